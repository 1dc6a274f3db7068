"""What `--plot` and `--svg` do with the scores of an answer. Contract: pictures.drawn."""

from __future__ import annotations

from cpersona_daemon.shared import files

from ..declare.spec import option
from ..terminal import pictures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..terminal.output import Output

PLOT = option("--plot", "Draw what known and unrelated questions score, with the gate.", kind="flag", default=False)
SVG = option("--svg", "Write the picture into this file, as SVG.", metavar="FILE", values="files")


def show(out: Output, told: dict, plot: bool, svg: str | None) -> None:
    """Draw scores on a terminal, print their numbers elsewhere, and write their picture where a file is named."""
    scores = pictures.Scores(told)
    if svg is not None:
        write(out, svg, _drawn(scores))
    if not plot or out.as_json:
        return
    if out.draws:
        for line in pictures.histograms(scores, out.columns(), pictures.in_this_locale()):
            out.line(line)
    else:
        _print(out, scores)
    (known, asked), (noise, others) = zip(scores.kept, scores.counts, strict=True)
    verb = "have a score, and no gate is known" if scores.gate is None else "reach the gate"
    out.note(
        f"of {asked} known questions {known} {verb}, of {others} unrelated ones {noise}; one in words that the store "
        "hardly has must reach more"
    )


def _drawn(scores: pictures.Scores) -> str:
    from ..terminal import svg

    return svg.histograms(scores)


def write(out: Output, path: str, picture: str) -> None:
    """Put a picture in place, whole or not at all, and say where it is."""
    files.replace(path, picture.encode("utf-8", "replace"))
    out.note(f"the picture is {path}")


def _print(out: Output, scores: pictures.Scores) -> None:
    """Print a record for each bin: where it begins and ends, known and unrelated questions; the gate before them."""
    out.record(("signal", scores.signal))
    out.record(("gate", "-" if scores.gate is None else f"{scores.gate:g}"))
    out.record(("without their row", scores.missing[0], scores.missing[1]))
    bins = pictures.Bins(scores)
    for low, high, known, unrelated in zip(bins.edges, bins.edges[1:], bins.known, bins.unrelated):
        out.record(("scores", f"{low:.6g}", f"{high:.6g}", known, unrelated))
