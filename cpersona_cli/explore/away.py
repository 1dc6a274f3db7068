"""What leaves the screen for a moment: the pager, and the editor, whose text becomes the row's.

Contract: explore.edits, edit.update, edit.kept.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

from .. import exits
from ..terminal import cuts
from ..terminal.editor import Draft
from ..terminal.output import Output, without_controls
from .asking import Outcome

Ask = Callable[[str, dict[str, Any]], Outcome]

_AT_ONCE = 0.15  # seconds within which a pager that ends has shown nothing that could be read


class Overheard(Output):
    """Keeps what would be said on stderr, for a line of the screen."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.warn(text)

    def warn(self, text: str) -> None:
        self.said.append(text.removeprefix("cpersona: ").removeprefix("cpersona "))


def page(text: str) -> str:
    """Show a text in $PAGER, else less or more, and return what went wrong, ''."""
    pager = os.environ.get("PAGER") or "less"
    # A text shorter than the screen is to stay until it was read, whatever $LESS says.
    environment = {**os.environ, "LESS": f"{os.environ.get('LESS', '-R')} -+F"}
    began = time.monotonic()
    shown = without_controls(text).encode("utf-8", "backslashreplace")
    done = subprocess.run(["/bin/sh", "-c", pager], input=shown + b"\n", env=environment, check=False)
    if done.returncode in (126, 127):
        return f"the pager {pager!r} cannot be run; PAGER names another one"
    if time.monotonic() - began < _AT_ONCE and not done.returncode:
        _wait_for_enter()
    return ""


def _wait_for_enter() -> None:
    """Leave on the screen what a pager like cat printed, until somebody has read it."""
    try:
        input("-- enter goes back --")
    except (EOFError, KeyboardInterrupt):
        pass


def refused(ref: str, found: Outcome) -> str:
    """Return why the memory that ``found`` tells of cannot be edited, '' where it can."""
    if found.failure:
        return found.failure
    if not found.response["items"]:
        return f"{ref} is not there any more"
    return f"{ref} is locked; l unlocks it" if found.response["items"][0].get("locked") else ""


def edit(ask: Ask, ref: str, was: str, write: dict[str, Any]) -> tuple[bool, str]:
    """Have a memory's text edited and give the memory what is left there: (whether it was changed, what is said).

    ``ask`` puts a request and waits for it, ``write`` is what every write carries. Nothing is changed where the text is
    empty or as it ``was``, or where the row was changed meanwhile; then it is said where the edited text is kept.
    """
    out, changed = Overheard(), False
    try:
        with Draft(out, "edit", f"{ref.replace(':', '-')}.txt", was) as draft:
            text = draft.edited()
            if text is None or not text.strip():
                said = f"the text is {'as it was' if text is None else 'empty'}; {ref} is not changed"
            else:
                params = {**write, "memory_id": int(ref.partition(":")[2]), "content": text, "if_content": was}
                outcome = ask("update_memory", params)
                paused = outcome.response.get("persisted") is False
                changed = not (outcome.failure or paused)
                said = outcome.failure or f"{ref} is {'as it was: persistence is paused' if paused else 'updated'}"
                if not changed or outcome.response.get("cut"):
                    draft.keep()
                cuts.warn(out, outcome.response)
    except exits.Stop as error:
        said = str(error)
    return changed, "; ".join((said, *out.said))
