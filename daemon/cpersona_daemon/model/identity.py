"""Which model made a vector, and when two of them may be the same.

An identity names a model and its version; '' is a model that did not say its name, which may be any.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

_BUILTIN = "builtin:"
_PREFIXED = "+prefix:"


def with_prefix(model: str, prefix: str) -> str:
    """Return the identity of a model's vectors of texts that each begin with ``prefix``: with another they are
    others.
    """
    if not prefix:
        return model
    return f"{model}{_PREFIXED}{hashlib.sha256(prefix.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def bare(identity: str) -> str:
    """Return the model of an identity, whatever its texts begin with."""
    return identity.partition(_PREFIXED)[0]


def same_model(a: str, b: str) -> bool:
    """Tell whether two identities may be one model: an unknown one may be any."""
    return not a or not b or a == b


def may_change_width(known: str, answered: str) -> bool:
    """Tell whether two identities are certainly two models, so that their widths may differ.

    An unknown identity could be the same model; only the builtin one is never served by anybody else. A prefix changes
    no width.
    """
    known, answered = bare(known), bare(answered)
    if known.startswith(_BUILTIN) != answered.startswith(_BUILTIN):
        return True
    return not same_model(known, answered)


class Embedded(NamedTuple):
    """One vector, float32 of unit length, and the identity of the model that made it: the two never travel apart."""

    vector: np.ndarray
    model: str


class VectorModel(NamedTuple):
    """The model at work and the width of its vectors, told at one moment: '' and None while unknown."""

    identity: str
    dimension: int | None

    def fits(self, identity: str, width: int) -> bool:
        """Tell whether a vector of that model and width may be this model's; what is unknown fits any."""
        return same_model(self.identity, identity) and self.dimension in (None, width)
