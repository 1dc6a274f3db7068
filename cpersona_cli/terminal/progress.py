"""How far long work has come: a bar on a terminal, and lines on stderr elsewhere, where somebody asks for them.

rich is imported by the bar alone.

Contract: output.streams, progress.measured.
"""

from __future__ import annotations

import sys
import time

from cpersona_daemon.shared.pace import Followed, seconds_left

from .output import Output, to_stderr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

LINES_SECONDS = 2.0  # between two lines
_REDRAWN_SECONDS = 0.1


def shown(out: Output, name: str, lines: bool = False) -> Bar | Lines | None:
    """Return what shows the progress of the command of this name: a bar where stderr is a terminal, else ``lines``
    where these are wanted; None where nobody watches.
    """
    if sys.stderr.isatty() and not out.quiet:
        return Bar()
    return Lines(name) if lines else None


class _Followed:
    """Steps of one or several stages, each with the rate that is known of it."""

    def __init__(self) -> None:
        self._stage, self._followed = "", Followed()

    def tempo(self, step: dict, now: float) -> str:
        """Return a step's rate and the time that is left in words: its own, or as they were measured here."""
        if step.get("stage", "working") != self._stage:
            self._stage, self._followed = step.get("stage", "working"), Followed()
        done, total = step.get("done"), step.get("total")
        rate = self._followed.reached(done, now) if done is not None else None
        if "rate" in step:  # which somebody measured who knows better
            return words(step["rate"], step.get("eta"))
        return words(rate, None if total is None or done is None else seconds_left(max(0, total - done), rate))


class Bar(_Followed):
    """One line on stderr that says how far a long call has come; redrawn ten times a second at most."""

    def __init__(self) -> None:
        from rich import progress
        from rich.console import Console

        super().__init__()
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[tempo]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("working", total=None, tempo="")
        self._drawn = 0.0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, said: dict) -> None:
        """Take one progress map: `done`, `total` and `stage`, each if known, `rate` and `eta` where they were told."""
        now = time.monotonic()
        if now - self._drawn < _REDRAWN_SECONDS and said.get("done") != said.get("total"):
            return
        self._drawn = now
        self._bar.update(
            self._task,
            completed=said.get("done", 0),
            total=said.get("total"),
            description=str(said.get("stage", "working")),
            tempo=self.tempo(said, now),
        )


class Lines(_Followed):
    """The same for a log: a line now and then, and one where a stage is done."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name, self._said, self._ended = name, time.monotonic(), ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, said: dict) -> None:
        """Take one progress map, as a bar does."""
        if "done" not in said:
            return
        now, done, total = time.monotonic(), said["done"], said.get("total")
        stage = str(said.get("stage", "done"))
        tempo, ends = self.tempo(said, now), done == total and self._ended != stage
        if now - self._said < LINES_SECONDS and not ends:
            return
        self._said = now
        if ends:
            self._ended = stage
        far = f"{done:,}" if total is None else f"{done:,} of {total:,}"
        to_stderr(f"cpersona {self._name}: {stage} {far}" + (f", {tempo}" if tempo and not ends else ""))


def words(rate: float | None, left: float | None) -> str:
    """Return a rate and the time that is left in words, '' of what is not known."""
    parts = [] if rate is None else [_rate(rate)]
    return ", ".join([*parts, f"{duration(left)} left"] if left else parts)


def _rate(rate: float) -> str:
    if rate < 1:
        return f"{rate * 60:.1f}/min"
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"


def duration(seconds: float) -> str:
    """Return how long something takes, in a few words."""
    if seconds < 1:
        return "less than 1 s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
