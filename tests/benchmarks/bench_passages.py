"""Recall under blend where a tenth of the memories are long and have passages, beside the same store without any, the
embedder's time left out; and a store of a long text beside that of a short one.

    python tests/benchmarks/bench_passages.py [--rows 10000] [--dir D]

A long memory has 16,000 characters of the common workload, some 25 passages. ``plain`` is the same with short rows
only.
"""

from __future__ import annotations

import asyncio
import sys
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bench_recall import recalls
from common import Report, Timing, once, parser
from stores import DIM, ask, copied, embed_server, filled, serving, workplace
from workload import Embedder, records

from cpersona_daemon.life import lifecycle
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.cuts import content_key
from cpersona_daemon.model.identity import Embedded
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage import backlog, memories
from cpersona_daemon.text.passages import split

SHARE, CHARACTERS, TIMES = 10, 16_000, 1.5
STORES = 40


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=10_000)
    arguments.add_argument("--dim", type=int, default=DIM)
    arguments.add_argument("--questions", type=int, default=60)
    arguments.add_argument("--dir", help="where databases are kept; a temporary place otherwise")
    given = arguments.parse_args()
    report = Report("passages", given.json)
    with workplace(given.dir) as place, embed_server(given.dim) as embedder:
        source = filled(place, given.rows, given.dim)
        short = copied(source, place, "short", CPERSONA_RECALL_MODE="blend", **embedder)
        long = copied(source, place, "long", CPERSONA_RECALL_MODE="blend", **embedder)
        count = asyncio.run(_lengthen(long, given.rows, Embedder(given.dim)))
        plain = recalls(short, given.questions)
        report.add(
            f"recall, {given.rows:,} rows, {given.rows // SHARE:,} long, {count:,} passages",
            recalls(long, given.questions),
            reference=plain,
            target=round(plain.median * TIMES, 1),
        )
        of_short, of_long = stores(short, 400), stores(short, CHARACTERS)
        report.add(f"store of {CHARACTERS:,} characters", of_long, reference=of_short)
    report.finish()


async def _lengthen(environ: dict[str, str], rows: int, embedder: Embedder) -> int:
    """Give every tenth memory a long text with its passages, and return how many passages there are."""
    settings = load(environ | {"CPERSONA_EMBEDDING_MODE": "none"})
    ctx = await lifecycle.open_context(settings, places(settings), SystemClock())
    # One row in nine is Japanese; a long text is of one language.
    texts = cycle(record["content"] for record in records(rows) if record["content"].isascii())

    def job(tx, row_id: int) -> int:
        # No text ends a sentence by itself.
        content = f"{row_id}. {'. '.join(islice(texts, 40))}"[:CHARACTERS]
        spans = split(content)
        memories.replace_content(tx, row_id, content)
        backlog.attach_vector(tx, MEMORY, row_id, Embedded(embedder.one(content), Embedder.MODEL))
        made = [Embedded(embedder.one(content[span.start : span.end]), Embedder.MODEL) for span in spans]
        parts = tuple(content[start:end] for start, end in spans)
        backlog.attach(tx, backlog.Waiting(MEMORY, row_id, parts, content_key(content), tuple(spans)), made)
        tx.execute("DELETE FROM embedding_backlog")
        return len(spans)

    try:
        ids = [i for (i,) in ctx.db.read_now(lambda conn: conn.execute("SELECT id FROM memories").fetchall())]
        return sum([await ctx.db.write(lambda tx, row_id=row_id: job(tx, row_id)) for row_id in ids[::SHARE]])
    finally:
        ctx.vectors.rebuild()
        await lifecycle.close_context(ctx)


def stores(environ: dict[str, str], characters: int) -> Timing:
    with serving(environ) as connection:
        text = "the tide table is written anew each morning. " * (characters // 45 + 1)
        return Timing(
            [
                once(
                    lambda: ask(connection, "store", agent_id="s", content=f"{number} {characters} {text}"[:characters])
                )[1]
                for number in range(STORES)
            ]
        )


if __name__ == "__main__":
    main()
