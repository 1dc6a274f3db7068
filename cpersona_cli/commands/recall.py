"""`recall`: ask, and show rows with the best one nearest the prompt.

Contract: recall.order, scores.meaning, output.shapes.
"""

from cpersona_daemon.shared.fields import EXIT_NOTHING

from .. import exits
from ..declare.spec import AXES, argument, command, option
from ..terminal import reading, render
from ..terminal.shaping import Shape, shape_options
from ._question import AS_OF, ASKED, DEEP, FULL, LIMIT, NO_WAIT, SET, SOURCE_ID, nothing, question
from ._times import SINCE, UNTIL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..session import Answer, Rows, Session
    from ..terminal.output import Output

# The columns off a terminal, on one, and with --absolute.
_SHOWN = ("rank", "ref", "age", "signal", "score", "cosine", "preview")
_DRAWN = ("rank", "ref", "age", "match", "preview")
_ABSOLUTE = ("rank", "ref", "age", "cosine", "coverage", "preview")

_TRACED = ("explain", "explain_all", "why_not")
_ASKED: "Rows" = (
    *ASKED,
    ("top", "full_content", None),
    ("exclude", "exclude_contents", lambda session, texts: list(texts)),
    ("absolute", "absolute", None),
    *((name, "trace", lambda session, value: True) for name in _TRACED),
    ("why_not", "why_not", lambda session, text: reading.canonical(text)),
)
# What asks for rows of some kind: a ref alone is a question then, and not the row of that ref.
_NARROWING = frozenset(("source_id", "as_of", "since", "until", "exclude_contents", "trace"))
_AXES = ("project", "channel")


@command(
    "recall",
    argument("query", "The question; - reads it from standard input, '' lists the newest."),
    LIMIT,
    SOURCE_ID,
    option("--exclude", "Leave out rows with this text; may be repeated.", metavar="TEXT", many=True),
    FULL,
    DEEP,
    option("--best-first", "Best row first instead of last.", kind="flag", default=False),
    option("--top", "The text of the best row alone, whole.", kind="flag", default=False),
    *shape_options(render.ROW_FIELDS),
    option(
        "--absolute", "Show cosine and coverage, which mean the same for every question.", kind="flag", default=False
    ),
    SINCE,
    UNTIL,
    AS_OF,
    SET,
    NO_WAIT,
    option(
        "--fail-empty",
        "Exit 3 when nothing was found, or only what comes near an identifier.",
        kind="flag",
        default=False,
    ),
    option(
        "--explain",
        "Show ranks, scores and what was cut where; --explain=all shows every candidate.",
        kind="flag",
        default=False,
    ),
    option("--explain-all", "The same as --explain=all.", kind="flag", default=False),
    option("--why-not", "Say at which stage this row was dropped, and nothing else.", metavar="REF", values="refs"),
    option("--legend", "Explain on stderr what the numbers of these rows mean.", kind="flag", default=False),
    common=AXES,
)
def recall(session: "Session", query: str, set: list[str], **given: "Any") -> int:
    """Find memories by meaning and by words. The best row is the last one.

    Columns: rank (1 is best), ref, age, signal, score, cosine, preview. The score is the value that the gate
    compared. A blend and a cosine are absolute; rrf comes from positions; rsf is relative to this
    question, so it never tells whether an answer exists. An empty answer is an answer: exit 0. An identifier is
    known in other spellings too (E-1103 as E1103, maxRetryCount as max_retry_count); where no row holds it, it is
    answered with nothing, or with rows marked "(near)" within a longer question. --since and --until compare when a
    row was stored, both included; a question that names a time ("what did we decide last week") lifts rows that tell
    of it. With --as-of rows are found and shown as they were then, deleted ones too, as far as `history` has them; of
    the others it is said. A ref alone, like mem:12, shows that row.

    Example:
      cpersona recall "which branch do deploys use?" -n 5
      cpersona recall "deploys" --since "last week"
      cpersona recall E1042 --json | jq -r '.messages[-1].content'
      cpersona recall "billing" --json=ref,score,content
      cpersona recall "billing" --format '{ref}\\t{cosine}\\t{content}'
    """
    shape = Shape.taken(render.ROW_FIELDS, session.out, given)
    params = question(session, query, given, _ASKED) | {"passages": True}
    answer = _pasted(session, params, set)
    if answer is None:
        answer = session.ask("recall", params, overrides=reading.pairs(set) or None)
    else:
        given["full"] = True
    rows = _ordered(session.out, answer.response, shape, given)
    shown = session.show(
        answer,
        order="best_first" if given["best_first"] else "best_last",
        **shape.chosen_json("messages", rows, render.field),
    )
    if not shown and _explain(session.out, answer.response, given):
        return answer.status
    if not shown:
        _print(session.out, answer.response, rows, shape, params["query"], given)
    if given["legend"]:
        from ..terminal import view

        view.legend(session.out, rows)
    if not rows and given["limit"] != 0 and not answer.response.get("no_words"):  # which the advisory has said
        session.out.note(nothing(answer.response))
    return EXIT_NOTHING if given["fail_empty"] and _only_near(rows) else answer.status


def _only_near(rows: "list[dict]") -> bool:
    """Tell whether no row answers: there is none, or all only come near an identifier that no row holds."""
    reasons = [row.get("match_reason") or {} for row in rows if row.get("ref")]
    return not rows or bool(reasons) and all(reason.get("near") for reason in reasons)


def _pasted(session: "Session", params: dict, overrides: list[str]) -> "Answer | None":
    """Return an answer that holds the row whose ref is the whole question, None where it is none or no row has it."""
    narrowed = overrides or _NARROWING & params.keys() or any(session.options.get(a) is not None for a in _AXES)
    if narrowed or ":" not in params["query"]:
        return None
    try:
        ref = reading.canonical(params["query"])
    except exits.Usage:
        return None
    answer = session.ask("get_contents", {"agent_id": session.agent, "refs": [ref]})
    found = answer.response.get("items")
    if not found:
        return None
    session.out.note(f"{ref} names a row, and this is it; `cpersona get {ref}` does the same")
    answer.response = {"messages": found}
    return answer


def _ordered(out: "Output", response: dict, shape: "Shape", given: dict) -> list[dict]:
    """Leave in an answer the rows that are shown, and return them in the order that was asked for, with their ranks."""
    if given["top"]:
        response["messages"] = response.get("messages", [])[-1:]
    rows = shape.within(out, response, "messages", backwards=True)
    if given["best_first"]:
        rows.reverse()
    ranks = range(1, len(rows) + 1) if given["best_first"] else range(len(rows), 0, -1)
    return [{**row, "rank": str(rank)} for rank, row in zip(ranks, rows)]


def _explain(out: "Output", response: dict, given: dict) -> bool:
    """Show what was noted on the way to the rows; true where --why-not asked for nothing but its verdict."""
    trace = response.get("trace")
    if not trace:
        return False
    from ..terminal import explain

    if not trace.get("why_not") or given["explain"] or given["explain_all"]:
        explain.show(out, trace, given["explain_all"])
        return False
    explain.why_not(out, trace["why_not"])
    render.warnings(out, response)
    return True


def _print(out: "Output", response: dict, rows: list[dict], shape: "Shape", query: str, given: dict) -> None:
    if given["top"] and not shape.chosen:
        for row in rows:
            out.write(row.get("content", "") + ("\0" if shape.null else "\n"))
    elif out.draws and not shape.chosen and not shape.null:
        from ..terminal import view

        view.draw(out, rows, _ABSOLUTE if given["absolute"] else _DRAWN, query, whole=given["full"])
    else:
        shape.print(out, rows, render.field, _ABSOLUTE if given["absolute"] else _SHOWN, whole=given["full"])
    render.warnings(out, response)
    if out.draws and rows and not given["top"]:
        _note(out, rows, given["best_first"])


def _note(out: "Output", rows: list[dict], best_first: bool) -> None:
    """Say on a terminal what is easy to guess wrong: the order, the meaning of an rsf score, cut previews."""
    signals = {(row.get("match_reason") or {}).get("signal") for row in rows}
    said = ["best is first (rank 1)" if best_first else "best is last (rank 1), nearest the prompt"]
    if "rsf" in signals:
        said.append("rsf is relative to this question, cosine is absolute")
    if any(row.get("content_truncated") for row in rows):
        said.append("`cpersona get REF` shows a cut text whole")
    out.note("; ".join(said))


COMMANDS = (recall,)
