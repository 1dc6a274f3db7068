"""Which embedding model made a vector, and when two of them may be the same.

An identity names a model and its version; '' is a model that did not say its name, which may be any.
"""

from __future__ import annotations

_BUILTIN = "builtin:"


def same_model(a: str, b: str) -> bool:
    """Tell whether two identities may be one model: an unknown one may be any."""
    return not a or not b or a == b


def may_change_width(known: str, answered: str) -> bool:
    """Tell whether two identities are certainly two models, so that their widths may differ.

    An unknown identity could be the same model; only the builtin one is never served by anybody else.
    """
    if known.startswith(_BUILTIN) != answered.startswith(_BUILTIN):
        return True
    return not same_model(known, answered)
