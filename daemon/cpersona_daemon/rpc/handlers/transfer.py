"""Handlers of export, import, merge and the deletion of an agent.

Contract: export.file, import.lines, merge.copies, forget.agent.
"""

from __future__ import annotations

import msgspec

from ...health.canaries import run_after
from ...memory import undo
from ...memory.cleaning import check_axes
from ...portability import export, forget, paths
from ...portability.imports.run import Options, import_file
from ...portability.merging.dry_run import dry_run
from ...portability.merging.request import Request
from ...portability.merging.run import merge
from ...shared.methods import READ
from ..common import bounded
from ..registry import Call, Handler


class ExportParams(msgspec.Struct, forbid_unknown_fields=True):
    output_path: str
    agent_id: str = ""
    include_embeddings: bool = False
    for_reference: bool = False


class ImportParams(msgspec.Struct, forbid_unknown_fields=True):
    input_path: str
    target_agent_id: str | None = ""
    dry_run: bool = False
    embed: bool = False
    batch: str | None = None
    fail_if_cut: bool = False
    keep_vectors: bool = False
    session_key: str = ""


class MergeParams(msgspec.Struct, forbid_unknown_fields=True):
    source_agent_id: str
    target_agent_id: str
    mode: str = "copy"
    strategy: str = "skip"
    dry_run: bool = False
    session_key: str = ""


class UndoParams(msgspec.Struct, forbid_unknown_fields=True):
    batch: str
    agent_id: str = ""
    dry_run: bool = False
    session_key: str = ""


class BatchesParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str = ""
    limit: int = 100


class DeleteParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    session_key: str = ""


async def export_memories(call: Call) -> dict:
    p, ctx = call.params, call.ctx
    target = paths.output_file(p.output_path, call.settings, ctx.places)
    return await ctx.db.read(
        export.export, p.agent_id, target, ctx.clock.now(), p.include_embeddings, call.progress, p.for_reference
    )


async def import_memories(call: Call) -> dict:
    p = call.params
    answer = await import_file(
        call.ctx,
        call.settings,
        p.input_path,
        Options(p.dry_run, p.target_agent_id or "", p.embed, undo.check_name(p.batch), p.fail_if_cut, p.keep_vectors),
        call.progress,
    )
    if not p.dry_run:
        call.ctx.in_background(run_after(call.ctx, "an import"))
    return answer


async def merge_memories(call: Call) -> dict:
    p = call.params
    request = Request(p.source_agent_id, p.target_agent_id, p.mode, p.strategy)
    check_axes(target_agent_id=p.target_agent_id)
    if p.dry_run:
        return await call.ctx.db.read(dry_run, request)
    return await merge(call.ctx, request, call.key, call.progress)


async def undo_batch(call: Call) -> dict:
    p, sees_others = call.params, call.may_all(READ)
    if p.dry_run:
        return await call.ctx.db.read(undo.count, p.batch, p.agent_id, sees_others)
    return await undo.undo(call.ctx, p.batch, p.agent_id, call.progress, sees_others)


async def list_batches(call: Call) -> dict:
    return await call.ctx.db.read(undo.listed, call.params.agent_id, bounded(call.params.limit, 100, 0, 1000))


async def delete_agent_data(call: Call) -> dict:
    return await forget.forget_agent(call.ctx, call.params.agent_id, call.key, call.progress)


HANDLERS = {
    "export_memories": Handler(ExportParams, export_memories),
    "import_memories": Handler(ImportParams, import_memories),
    "merge_memories": Handler(MergeParams, merge_memories),
    "undo_batch": Handler(UndoParams, undo_batch),
    "list_batches": Handler(BatchesParams, list_batches),
    "delete_agent_data": Handler(DeleteParams, delete_agent_data),
}
