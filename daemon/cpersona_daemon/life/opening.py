"""Opening the parts of one database: what a first answer needs at once, everything else right after it.

The database, the access list and the spool come first; that is what listing, reading by ref or stopping takes. Vectors,
embedder, backlog and calibration (numpy, the index's columns, a model that loads) follow after the first answer or a
short grace, and at once when a request needs them: it waits until they are there.

Contract: daemon.opens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ..context import Context
from ..errors import ShuttingDown
from ..model.clock import Clock
from ..rpc.access import AccessList
from ..rpc.dispatch import HANDLERS
from ..rpc.pauses import Pauses
from ..rpc.runs import Runs
from ..shared.paths import Places
from ..shared.settings import Settings
from ..storage.database import Database
from .spool import Spool
from .status import Status

log = logging.getLogger("cpersona.opening")

GRACE_SECONDS = 0.3


async def open_early(
    settings: Settings,
    places: Places,
    clock: Clock,
    through: Callable[[BaseException | None], None] = lambda error: None,
) -> Context:
    """Open what a first answer needs; the rest is under way in ``ctx.opening``. The caller holds the database's lock.

    ``through`` is told once the rest is open, or what kept it from that. Raises CPersonaError and leaves nothing open.
    """
    access, status = AccessList.load(settings.acl_file), Status(clock)
    exposed = _services(settings)
    db = Database(places.db, clock)
    db.history_days = settings.history_days
    db.open()
    ctx = Context(
        settings=settings, places=places, clock=clock, db=db, access=access, pauses=Pauses(clock), status=status
    )
    for warning in (*settings.warnings, *exposed):
        log.warning("%s", warning)
        status.warn(warning)
    ctx.runs, ctx.spool = Runs(), (spool := Spool(ctx))
    ctx.opening = Opening(ctx, through)
    ctx.in_background(spool.run())
    return ctx


def _services(settings: Settings) -> list[str]:
    """Return what is wrong with the files that hold the keys of services. Raises SettingsConflict for an address that
    is none, which keeps a daemon from starting; what asks a service opens later.
    """
    if settings.embedding_mode != "http" and not settings.rerank_url and settings.vector_search_mode == "local":
        return []
    from ..services import address
    from ..vectors import choice

    choice.check(settings)
    keys = [address.checked(settings, what)[1] for what in address.asked_for(settings)]
    return [said for key in keys if (said := key.exposed()) is not None]


async def close(ctx: Context) -> None:
    """End the work in the background, then close every part; accepted writes are finished and the WAL is folded."""
    await ctx.opening.stop()
    running = list(ctx.tasks)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    if ctx.backlog is not None:
        await ctx.backlog.stop()
    if ctx.embedding is not None:
        await ctx.embedding.close()
    if ctx.reranker is not None:
        ctx.reranker.close()
    if ctx.vectors is not None:
        ctx.vectors.leave()
    ctx.db.close()
    if ctx.vectors is not None:
        ctx.vectors.close()


class Opening:
    """The second half of opening a context.

    ``whole`` says that it is done; everything here belongs on the event loop.
    """

    def __init__(self, ctx: Context, through: Callable[[BaseException | None], None]) -> None:
        self.whole = False
        self._ctx, self._through = ctx, through
        self._begin = asyncio.Event()
        self._stopped = False
        self._line, self._in_line = asyncio.Lock(), 0
        self._done = asyncio.get_running_loop().create_future()
        self._task = asyncio.get_running_loop().create_task(self._run(), name="opening")

    def begin(self) -> None:
        """Wait no longer: somebody was answered, or waits for what is opened here."""
        self._begin.set()

    async def wanted(self) -> None:
        """Return once every part is open. Raises what kept one from it."""
        self.begin()
        await asyncio.shield(self._done)

    @property
    def passed(self) -> bool:
        """Whether every part is open and no request still waits for that."""
        return self.whole and not self._in_line

    async def in_turn(self) -> None:
        """Return like ``wanted``, to requests in the order in which they came.

        What is stored first is the older memory.
        """
        self._in_line += 1
        try:
            async with self._line:
                await self.wanted()
        finally:
            self._in_line -= 1

    async def stop(self) -> None:
        """Return when nothing is being opened any more; what was not begun is not opened."""
        self._stopped = True
        self.begin()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await self._begin.wait()
        except TimeoutError:
            pass
        try:
            if self._stopped:
                raise ShuttingDown("the daemon is stopping")
            await self._open()
        except Exception as error:
            self._done.set_exception(error)
            self._done.exception()  # seen: with nobody waiting it is no forgotten error
            if not self._stopped:
                log.error("not all parts could be opened: %s", error)
                self._through(error)
            return
        self.whole = True
        self._done.set_result(None)
        await asyncio.to_thread(self._load_the_rest)
        self._through(None)

    async def _open(self) -> None:
        ctx = self._ctx
        await asyncio.to_thread(self._open_vectors)
        from ..calibration.file import CalibrationFile
        from ..embedding.backlog import BacklogWorker
        from ..embedding.service import EmbeddingService
        from ..memory.aging import forget_what_is_old
        from ..memory.respelling import write_words_anew
        from ..portability.sweep import leftovers
        from ..recall.recent import RecentRecalls

        ctx.calibration = CalibrationFile(ctx.places.calibration)
        ctx.embedding = EmbeddingService(ctx.settings, ctx.clock)
        ctx.backlog = BacklogWorker(ctx.db, ctx.embedding)
        if ctx.settings.rerank_url:
            from ..rerank.service import Reranker

            ctx.reranker = Reranker(ctx.settings, ctx.clock)
        ctx.recent = RecentRecalls()
        ctx.embedding.start()
        ctx.backlog.start()
        ctx.in_background(_settle(ctx))
        ctx.in_background(leftovers(ctx))
        ctx.in_background(write_words_anew(ctx))
        ctx.in_background(forget_what_is_old(ctx))

    def _open_vectors(self) -> None:
        """Load numpy, the index's files and the modules of the other parts, beside the event loop."""
        from ..calibration import file  # noqa: F401
        from ..embedding import backlog, service  # noqa: F401
        from ..recall import recent  # noqa: F401
        from ..vectors import choice

        vectors = choice.backend(self._ctx.settings, self._ctx.places, self._ctx.clock)
        # Nothing is written before all parts are open: no writing method is an early one.
        self._ctx.db.on_commit = vectors.apply
        self._ctx.vectors = vectors
        vectors.open(self._ctx.db, background=True)
        for name in ("recall", "store"):  # what is asked for most, and in order: no request waits for its file
            HANDLERS[name]

    def _load_the_rest(self) -> None:
        for name in HANDLERS:
            if self._stopped:
                return
            HANDLERS[name]


async def _settle(ctx: Context) -> None:
    """Calibrate anew where that is due, and then see whether every saved question still finds its row."""
    from ..calibration.at_start import recalibrate_if_stale
    from ..health import canaries

    if ctx.db.read_only:
        return  # what a calibration finds, and how canaries fare, could not be kept
    before = ctx.calibration.current
    await recalibrate_if_stale(ctx)
    if ctx.calibration.current is not before:
        await canaries.run_after(ctx, "a calibration at start")
    else:
        await canaries.run_if_changed(ctx)
