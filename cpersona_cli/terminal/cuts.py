"""Texts that are longer than what is kept: how much of how much, in the same words for every command."""

from ..declare.spec import option
from .output import Output

FAIL_IF_CUT = option(
    "--fail-if-cut", "Store nothing and exit 1 where a text is too long to be kept whole.", kind="flag", default=False
)


def warn(out: "Output", response: dict, what: str = "the text", limit: str = "max_content_length") -> None:
    """Say of an answer how much of ``what`` it keeps; ``limit`` is the setting that says where a text is cut."""
    for key, named in (("cut", what), ("keywords_cut", "the list of keywords")):
        cut = response.get(key)
        if isinstance(cut, dict):
            out.warn(
                f"cpersona: {named} was cut: {kept(cut)}; `cpersona config show {limit}` says where, --fail-if-cut "
                "stores nothing instead"
            )


def kept(cut: dict) -> str:
    """Return how much of how much is kept, in words."""
    return f"kept {cut.get('kept', 0):,} of {cut.get('of', 0):,} characters"
