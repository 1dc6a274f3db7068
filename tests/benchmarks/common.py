"""What the benchmarks share: timing, tables, JSON, and how busy the machine was meanwhile.

measure(work, 30)         -> Timing: medians and percentiles of wall time in milliseconds, and processor time
Report("vectors", args)   -> rows added as dictionaries, printed as a table, written as JSON with the machine's facts
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Timing:
    """Wall times of one thing done several times, and the processor time of the whole process; milliseconds."""

    times: list[float]
    processor: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def p95(self) -> float:
        return sorted(self.times)[min(len(self.times) - 1, int(len(self.times) * 0.95))]

    @property
    def least(self) -> float:
        return min(self.times)


def measure(work: Callable[[], Any], times: int = 30, warm: int = 2) -> Timing:
    """Return how long ``work`` takes, after ``warm`` runs that do not count."""
    for _ in range(warm):
        work()
    timing = Timing([])
    for _ in range(times):
        before = time.process_time()
        timing.times.append(once(work)[1])
        timing.processor.append((time.process_time() - before) * 1e3)
    return timing


def once(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what ``work`` returned and the milliseconds it took."""
    started = time.perf_counter()
    result = work()
    return result, (time.perf_counter() - started) * 1e3


def anonymous_mb(pid: int | str = "self") -> float | None:
    """Return a process's anonymous resident memory (RssAnon) in MB, None where the system does not tell."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith("RssAnon"))
    except OSError:
        return None


def parser(description: str, **more: Any) -> argparse.ArgumentParser:
    """Return an argument parser that knows ``--json``."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, **more
    )
    made.add_argument("--json", metavar="FILE", help="also write everything measured to FILE")
    return made


def numbers(text: str) -> list[int]:
    """Read ``10000,100000`` or ``10_000``: an argparse type."""
    return [int(part) for part in text.split(",")]


@dataclass
class Report:
    """Rows of measurements under one name. A row's ``target`` is the most that ``value`` may be, in the same unit."""

    name: str
    json_path: str | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    started: float = field(default_factory=time.time)
    load: tuple[float, ...] = field(default_factory=os.getloadavg)

    def add(
        self,
        what: str,
        timing: Timing | float | None,
        unit: str = "ms",
        reference: Timing | float | None = None,
        target: float | None = None,
        **more: Any,
    ) -> None:
        """Add a row and print it. ``reference`` is the plain way of doing the same, in the same run; ratio = value /
        reference.
        """
        row: dict[str, Any] = {"what": what, "unit": unit}
        if isinstance(timing, Timing):
            row.update(median=timing.median, p95=timing.p95, least=timing.least, runs=len(timing.times))
            if timing.processor:
                row["cpu"] = statistics.median(timing.processor)
        else:
            row["median"] = timing
        plain = reference.median if isinstance(reference, Timing) else reference
        if plain is not None:
            row["reference"] = plain
            if timing is not None and plain:
                row["ratio"] = row["median"] / plain
        if target is not None:
            row["target"] = target
        row.update(more)
        self.rows.append(row)
        if len(self.rows) == 1:
            print(f"{'':52}{'median':>10}{'p95':>10}{'least':>10}{'cpu':>10}{'plain':>10}{'ratio':>8}{'target':>9}")
        cells = [_shown(row.get(key)) for key in ("median", "p95", "least", "cpu", "reference")]
        print(
            f"{what[:51]:52}"
            + "".join(f"{cell:>10}" for cell in cells)
            + f"{_shown(row.get('ratio')):>8}{_shown(target):>9}  {unit}"
            + "".join(f"  {key} {value}" for key, value in more.items()),
            flush=True,
        )

    def finish(self) -> None:
        """Print how busy the machine was and write the JSON."""
        after = os.getloadavg()
        print(
            f"\n{os.cpu_count()} processors, load before {self.load[0]:.1f}, after {after[0]:.1f}; "
            f"{platform.python_implementation()} {platform.python_version()}"
        )
        if self.load[0] > 0.5 * (os.cpu_count() or 1):
            print("The machine was busy: look at the ratios, the least times and the processor times.", file=sys.stderr)
        if self.json_path:
            with open(self.json_path, "w") as file:
                json.dump(
                    {
                        "benchmark": self.name,
                        "at": self.started,
                        "processors": os.cpu_count(),
                        "load_before": self.load,
                        "load_after": after,
                        "python": platform.python_version(),
                        "machine": platform.machine(),
                        "rows": self.rows,
                    },
                    file,
                    indent=1,
                )


def _shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"
