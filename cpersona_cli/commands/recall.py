"""`recall`: ask, and show rows with the best one nearest the prompt.

Contract: recall.order, scores.meaning, output.shapes.
"""

from cpersona_daemon.shared.fields import EXIT_NOTHING

from .. import exits
from ..declare.spec import AXES, argument, command, option
from ..terminal import reading, render
from ..terminal.shaping import Shape, shape_options
from ._question import AS_OF, DEEP, FULL, LIMIT, NO_WAIT, SET, SOURCE_ID, nothing, question

_SHOWN = ("rank", "ref", "age", "signal", "score", "cosine", "preview")

_DRAWN = ("rank", "ref", "age", "match", "preview")

_ABSOLUTE = ("rank", "ref", "age", "cosine", "coverage", "preview")


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
    AS_OF,
    SET,
    NO_WAIT,
    option("--fail-empty", "Exit 3 when nothing was found.", kind="flag", default=False),
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
def recall(
    session,
    query,
    limit,
    source_id,
    exclude,
    full,
    deep,
    best_first,
    top,
    absolute,
    as_of,
    set,
    no_wait,
    fail_empty,
    explain,
    explain_all,
    why_not,
    legend,
    **shape,
):
    """Find memories by meaning and by words. The best row is the last one.

    Columns: rank (1 is best), ref, age, signal, score, cosine, preview. The score is the value that the gate
    compared. A blend and a cosine are absolute; rrf comes from positions; rsf is relative to this
    question, so it never tells whether an answer exists. An empty answer is an answer: exit 0. With --as-of it is
    said how many rows were changed or deleted since then. A ref alone, like mem:12, shows that row.

    Example:
      cpersona recall "which branch do deploys use?" -n 5
      cpersona recall E1042 --json | jq -r '.messages[-1].content'
      cpersona recall "billing" --format '{ref}\\t{cosine}\\t{content}'
    """
    shape = Shape(render.ROW_FIELDS, session.out.as_json, **shape)
    params = question(session, query, limit, source_id, full or top, deep, as_of, no_wait)
    if exclude:
        params["exclude_contents"] = list(exclude)
    if absolute:
        params["absolute"] = True
    if explain or explain_all or why_not is not None:
        params["trace"] = True
    if why_not is not None:
        params["why_not"] = "{}:{}".format(*reading.ref(why_not))
    narrowed = (
        exclude
        or set
        or source_id is not None
        or as_of is not None
        or "trace" in params
        or any(session.options.get(axis) is not None for axis in ("project", "channel"))
    )
    answer = None if narrowed else _pasted(session, params["query"])
    full = full or answer is not None
    answer = answer or session.ask("recall", params, overrides=reading.pairs(set) or None)
    if top:
        answer.response["messages"] = answer.response.get("messages", [])[-1:]
    shown = shape.within(session.out, answer.response, "messages", backwards=True)
    if best_first:
        shown.reverse()
    printed = session.show(answer, order="best_first" if best_first else "best_last")
    trace = answer.response.get("trace") or {}
    if not printed and trace.get("why_not") and not (explain or explain_all):
        from ..terminal import explain as explaining

        explaining.why_not(session.out, trace["why_not"])
        render.warnings(session.out, answer.response)
        return answer.status
    if not printed:
        if trace:
            from ..terminal import explain as explaining

            explaining.show(session.out, trace, explain_all)
        ranks = range(1, len(shown) + 1) if best_first else range(len(shown), 0, -1)
        _print(
            session.out,
            answer.response,
            [{**row, "rank": str(rank)} for rank, row in zip(ranks, shown)],
            shape,
            params["query"],
            absolute,
            top,
            full,
            best_first,
        )
    if legend:
        from ..terminal import view

        view.legend(session.out, shown)
    if not shown:
        if limit != 0 and not answer.response.get("no_words"):  # which the advisory has said
            session.out.note(nothing(answer.response))
        return EXIT_NOTHING if fail_empty else answer.status
    return answer.status


def _pasted(session, query):
    """Return an answer that holds the row whose ref is the whole question, None where the question is none or no row has it."""
    try:
        kind, number = reading.ref(query) if ":" in query else ("", 0)
    except exits.Usage:
        return None
    if not kind:
        return None
    answer = session.ask("get_contents", {"agent_id": session.agent, "refs": [f"{kind}:{number}"]})
    found = answer.response.get("items")
    if not found:
        return None
    session.out.note(f"{kind}:{number} names a row, and this is it; `cpersona get {kind}:{number}` does the same")
    answer.response = {"messages": found}
    return answer


def _print(out, response, rows, shape, query, absolute, top, full, best_first):
    names = _ABSOLUTE if absolute else _SHOWN
    if top and not shape.chosen:
        for row in rows:
            out.write(row.get("content", "") + ("\0" if shape.null else "\n"))
    elif out.draws and not shape.chosen and not shape.null:
        from ..terminal import view

        view.draw(out, rows, _ABSOLUTE if absolute else _DRAWN, query, whole=full)
    else:
        shape.print(out, rows, render.field, names, whole=full)
    render.warnings(out, response)
    if out.draws and rows and not top:
        _note(out, rows, best_first)


def _note(out, rows, best_first):
    """Say on a terminal what is easy to guess wrong: the order, the meaning of an rsf score, cut previews."""
    signals = {(row.get("match_reason") or {}).get("signal") for row in rows}
    said = ["best is first (rank 1)" if best_first else "best is last (rank 1), nearest the prompt"]
    if "rsf" in signals:
        said.append("rsf is relative to this question, cosine is absolute")
    if any(row.get("content_truncated") for row in rows):
        said.append("`cpersona get REF` shows a cut text whole")
    out.note("; ".join(said))


COMMANDS = (recall,)
