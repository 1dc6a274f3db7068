"""The memory as tools: the SDK's own client over a real pipe, and what is offered to it.

Contract: tools.rows, tools.schemas, tools.fixed, tools.bridge, tools.answers, tools.config.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from threading import Thread

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters

from cpersona_cli.mcp import server
from cpersona_cli.mcp.bridge import Bridge
from cpersona_cli.mcp.table import BY_NAME, NO_TOOLS, TABLE
from cpersona_cli.mcp.tools import Options, offered
from cpersona_cli.wire import client, control
from cpersona_daemon.rpc import schemas
from cpersona_daemon.shared import methods, params
from cpersona_daemon.shared.settings import load

SERVER = [sys.executable, "-m", "cpersona_cli", "mcp"]
USUAL = (
    "store recall recall_with_context get_contents update_memory delete_memory lock_memory list_memories "
    "archive_episode update_profile declare_associations traverse reconstruct check_health"
).split()


class Model:
    """A client of the SDK that a test calls from its own thread."""

    def __init__(self, portal, client):
        self.portal, self.client = portal, client

    def tools(self):
        return {tool.name: tool for tool in self.portal.call(self.client.list_tools).tools}

    def together(self, *calls, seconds=60):
        """Make calls at once: each (tool, arguments) becomes its result, or None where it was given up in time."""
        results = [None] * len(calls)

        async def one(at, name, arguments):
            with anyio.move_on_after(seconds):
                results[at] = await self.client.call_tool(name, arguments)

        async def all():
            async with anyio.create_task_group() as group:
                for at, (name, arguments) in enumerate(calls):
                    group.start_soon(one, at, name, arguments)

        self.portal.call(all)
        return results

    def call(self, name, /, **arguments):
        return self.together((name, arguments))[0]

    def ask(self, name, /, **arguments):
        """Return what a call that succeeds answers; the SDK holds it to the tool's output schema."""
        result = self.call(name, **arguments)
        assert not result.is_error, result
        assert json.loads(result.content[0].text) == result.structured_content
        return result.structured_content

    def refused(self, name, /, **arguments):
        """Return the line of a call that fails."""
        result = self.call(name, **arguments)
        assert result.is_error and "\n" not in result.content[0].text, result
        return result.content[0].text


@pytest.fixture(scope="module")
def portal():
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="module")
def started(portal, module_home):
    """Every tool, in the older form of the protocol, before there is a daemon: (model, its tools, whether there was
    a database when they were listed).
    """
    parameters = StdioServerParameters(command=SERVER[0], args=[*SERVER[1:], "--tools", "all"], env=module_home)
    with portal.wrap_async_context_manager(Client(parameters, mode="legacy")) as opened:
        model = Model(portal, opened)
        yield model, model.tools(), os.path.exists(module_home["CPERSONA_DB_PATH"])


@pytest.fixture(scope="module")
def model(started):
    return started[0]


@pytest.fixture(scope="module")
def printed(module_home):
    """What --print-config prints for a server bound to an agent and a project."""
    done = subprocess.run(
        [*SERVER, "--agent", "kit", "--project", "p", "--print-config"],
        env=module_home | {"CPERSONA_TOKEN": "hush"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "hush" not in done.stdout + done.stderr and "CPERSONA_TOKEN" in done.stderr
    return dict(block.split("\n", 1) for block in done.stdout.removeprefix("# ").strip().split("\n\n# "))


@pytest.fixture(scope="module")
def bound(portal, printed):
    """The usual tools of one agent and project, in the newest form, started as a printed block says and with no other
    environment.
    """
    entry = json.loads(next(iter(printed.values())))["mcpServers"]["cpersona"]
    with portal.wrap_async_context_manager(Client(StdioServerParameters(**entry))) as opened:
        yield Model(portal, opened)


@pytest.fixture(scope="module")
def bridge(module_home):
    """Put calls to the same daemon from this process: ``bridge(offer, arguments)``."""
    settings = load(module_home)
    return lambda offer, **given: Bridge(settings, True).call(offer, given, lambda: None)


def test_the_usual_tools_are_fourteen_within_16_kb_and_two_lines_each():
    tools = offered(Options(meant={"agent_id": "default"}))
    assert list(tools) == USUAL
    sent = [server.described(offer).model_dump_json(by_alias=True, exclude_none=True) for offer in tools.values()]
    assert len(",".join(sent).encode()) < 16_000
    for tool in offered(Options(everything=True)).values():
        assert tool.description.count("\n") == 1 and max(map(len, tool.description.splitlines())) < 110


def test_a_method_is_a_tool_or_no_tool_for_a_reason_and_rows_name_its_parameters():
    assert set(BY_NAME) | set(NO_TOOLS) == set(methods.METHODS)
    assert len(BY_NAME) == len(TABLE) and not set(BY_NAME) & set(NO_TOOLS)
    taken = params.load()
    for tool in TABLE:
        own = set(taken[tool.name]["properties"])
        assert {*tool.required, *tool.notes, *tool.writes, *tool.beyond} <= own, tool.name
        assert set(tool.always) <= set(tool.answers)


def test_the_schemas_are_those_of_the_structs():
    written = Path(params.FILE).read_text("utf-8")
    assert written == schemas.text(), "run python -m cpersona_daemon.rpc.schemas"
    recall = offered(Options())["recall"].input_schema
    assert recall["required"] == ["agent_id", "query"] and recall["additionalProperties"] is False
    assert recall["properties"]["limit"] | {"description": ""} == {
        "type": "integer",
        "minimum": 0,
        "maximum": 100,
        "description": "",
    }


def test_tools_are_listed_before_any_daemon_is_up(started):
    _, tools, was_there = started
    assert set(tools) == set(BY_NAME) and not was_there
    hints = {name: tool.annotations for name, tool in tools.items()}
    assert hints["recall"].read_only_hint and not hints["store"].read_only_hint and hints["store"].idempotent_hint
    assert hints["delete_memory"].destructive_hint and not hints["archive_episode"].destructive_hint
    assert tools["recall"].input_schema["required"] == ["query"], "an agent that is not named is that of the settings"
    assert tools["recall"].input_schema["properties"]["agent_id"]["default"] == "default"


def test_a_model_does_its_daily_work(model):
    long = "The deploy runbook. " + "step " * 200
    agent = {"agent_id": "daily"}
    first = model.ask("store", content=long, id="k", source={"type": "User", "id": "u"}, **agent)
    row, ref = first["id"], f"mem:{first['id']}"
    assert model.ask("store", content="another text", id="k", **agent)["result"] == "skipped"
    model.ask("store", content="Deploys need a runbook", **agent)
    found = model.ask("recall", query="deploy runbook", limit=2, full_content=None, **agent)["messages"]
    assert len(found) == 2 and found[0]["match_reason"]["score"] <= found[1]["match_reason"]["score"]
    (cut,) = [row for row in found if row["ref"] == ref]
    assert len(cut["content"]) == 500 and cut["content_truncated"] and cut["content_len"] == len(long.strip())
    whole = model.ask("recall", query="deploy runbook", full_content=True, **agent)["messages"]
    assert long.strip() in [row["content"] for row in whole]
    assert model.ask("get_contents", refs=[ref, "mem:999"], **agent)["missing"] == ["mem:999"]
    said = [{"role": "user", "content": "what first?", "timestamp": "2026-01-01T00:00:00Z"}]
    merged = model.ask("recall_with_context", query="deploy runbook", external_context=said, **agent)["messages"]
    assert merged[0]["content"] == "what first?" and len(merged) == 3
    model.ask("update_memory", memory_id=row, content="Deploy with ship.sh", **agent)
    model.ask("lock_memory", memory_id=row, **agent)
    assert "locked" in model.refused("delete_memory", memory_id=row, **agent)
    links = {"relations": [{"subject": "ship.sh", "predicate": "belongs to", "object": "Alice"}]}
    model.ask("declare_associations", associations=links, anchor_ref=ref, **agent)
    assert len(model.ask("traverse", entity="Alice", **agent)["entities"]) == 2
    assert model.ask("reconstruct", query="ship.sh", **agent)["items"][0]["head_ref"] == ref
    model.ask("archive_episode", summary="We deployed", **agent)
    model.ask("update_profile", profile="Ships things", **agent)
    assert model.ask("list_memories", limit=1, **agent)["count"] == 1
    assert model.ask("check_health", checks=["sqlite_integrity"])["status"] == "healthy"


# What each further tool is called with, in this order; all are held to their output schemas.
CALLS = {
    "store": {"content": "Bob mends the printer", "lock": True},
    "exists": {"text": "printer"},
    "unlock_memory": {"memory_id": 1},
    "list_associations": {},
    "row_history": {"ref": "mem:1"},
    "restore_row": {"ref": "@EDITED"},
    "undo_last": {},
    "list_batches": {},
    "purge_rows": {"refs": ["@EDITED"]},
    "list_axes": {},
    "store_stats": {"days": 2},
    "archive_episode": {"summary": "a session"},
    "list_episodes": {},
    "get_profile": {},
    "set_recall_precision": {"precision": "strict"},
    "get_recall_precision": {},
    "add_canary": {"query": "printer", "ref": "@REF"},
    "list_canaries": {},
    "run_canaries": {},
    "remove_canary": {"canary_id": 1},
    "export_memories": {"output_path": "@HOME/all.jsonl"},
    "import_memories": {"input_path": "@HOME/all.jsonl", "dry_run": True},
    "backup_database": {"output_path": "@HOME/all.tar"},
    "merge_memories": {"source_agent_id": "default", "target_agent_id": "copy", "dry_run": True},
    "undo_batch": {"batch": "none", "dry_run": True},
    "reindex": {},
    "persistence_status": {},
    "pause_persistence": {"session_key": "s", "ttl_seconds": 60},
    "update_memory": {"memory_id": 1, "content": "unkept", "session_key": "s"},
    "lock_memory": {"memory_id": 1, "session_key": "s"},
    "delete_memory": {"memory_id": 1, "session_key": "s"},
    "delete_episode": {"episode_id": 1, "session_key": "s"},
    "update_profile": {"profile": "unkept", "session_key": "s"},
    "declare_associations": {"associations": {}, "session_key": "s"},
    "resume_persistence": {"session_key": "s"},
    "delete_agent_data": {"agent_id": "nobody"},
    "daemon_status": {},
}


def test_every_other_tool_answers_as_its_schema_says(model, module_home):
    ref, edited = "", model.ask("store", content="Carol mends the lift")["id"]
    model.ask("update_memory", memory_id=edited, content="Dave mends the lift")
    for name, arguments in CALLS.items():
        text = json.dumps(arguments).replace("@HOME", module_home["HOME"]).replace("@REF", ref)
        text = text.replace("@EDITED", f"mem:{edited}")
        answer = model.ask(name, **json.loads(text))
        ref = ref or f"mem:{answer['id']}"
    assert "needs 10" in model.refused("calibrate_threshold"), "the one that a store without vectors refuses"
    read = "recall recall_with_context get_contents list_memories traverse reconstruct check_health".split()
    assert set(CALLS) | {"calibrate_threshold", *read} == set(BY_NAME)


def test_a_failure_is_a_tool_error_with_the_daemons_line(model):
    assert model.refused("update_memory", memory_id=999, content="x") == "update_memory: mem:999 does not exist"
    result = model.call("store", content=" ")
    assert result.is_error and result.structured_content["result"] == "rejected"
    assert "since names no instant" in model.refused("recall", query="x", since="noon")
    assert "takes no 'colour'" in model.refused("recall", query="x", colour="red")
    assert "'agent_id'" in model.refused("recall", query="x", agent_id=3)
    assert "there is no tool 'fly'" in model.refused("fly")


def test_what_is_fixed_vanishes_and_cannot_be_left(model, bound):
    tools = bound.tools()
    assert set(tools) == set(USUAL)
    assert not [name for name in tools if {"agent_id", "project_id"} & set(tools[name].input_schema["properties"])]
    there = {"agent_id": "kit", "project_id": "q"}
    foreign = model.ask("store", content="the secret of q", **there)["id"]
    others = model.ask("store", content="the secret of others", agent_id="other")["id"]
    own = bound.ask("store", content="the plan of p")["id"]
    assert model.ask("list_memories", agent_id="kit", project_id="p", limit=1)["memories"][0]["project_id"] == "p"
    assert bound.ask("recall", query="the secret")["messages"] == []
    assert [row["id"] for row in bound.ask("list_memories")["memories"]] == [own]
    refs = [f"mem:{foreign}", f"mem:{others}"]
    assert bound.ask("get_contents", refs=refs)["missing"] == refs
    for row in (foreign, others):
        for name, more in (("update_memory", {"content": "mine"}), ("delete_memory", {}), ("lock_memory", {})):
            assert "does not exist" in bound.refused(name, memory_id=row, **more)
    assert "fixed to 'kit'" in bound.refused("recall", query="the secret", agent_id="other")
    assert "fixed to 'p'" in bound.refused("recall", query="the secret", project_id="")
    assert "takes no 'retract'" in bound.refused("declare_associations", retract={"relations": [1]})
    assert bound.ask("recall", query="plan", agent_id="kit")["messages"][0]["ref"] == f"mem:{own}"


def test_only_what_can_be_held_to_the_axes_is_offered_with_them():
    whose = offered(Options(everything=True, fixed={"agent_id": "a"}))
    gone = set(BY_NAME) - set(whose)
    assert gone == {
        *("import_memories", "merge_memories", "backup_database", "reindex", "daemon_status"),
        *("pause_persistence", "resume_persistence", "persistence_status"),
    }
    placed = offered(Options(everything=True, fixed={"agent_id": "a", "project_id": "p"}))
    assert set(whose) - set(placed) == {
        *("export_memories", "delete_agent_data", "undo_batch", "undo_last", "list_batches", "list_axes"),
        *("list_canaries", "run_canaries", "remove_canary"),
    }
    for offer in placed.values():
        assert offer.fixed["agent_id"] == "a" and "agent_id" not in offer.input_schema["properties"]


def test_a_server_that_only_reads_has_no_way_to_write(bridge):
    tools = offered(Options(everything=True, read_only=True))
    assert set(tools) == {name for name, row in methods.METHODS.items() if row.reads and name in BY_NAME} | {
        "check_health"
    }
    assert all(tool.annotations["readOnlyHint"] for tool in tools.values())
    assert "takes no 'fix'" in bridge(tools["check_health"], fix=True).failure
    assert bridge(tools["check_health"], checks=["schema"]).response["status"] == "healthy"


@pytest.mark.parametrize(
    "place, create, said", [("none/t.db", False, "there is no database"), ("f/t.db", True, "cannot be opened")]
)
def test_without_a_store_a_call_fails_in_one_line_and_makes_none(module_home, place, create, said):
    Path(module_home["HOME"], "f").touch()
    place = Path(module_home["HOME"], place)
    reader = Bridge(load(module_home | {"CPERSONA_DB_PATH": str(place)}), create)
    outcome = reader.call(offered(Options())["recall"], {"agent_id": "a", "query": "x"}, lambda: None)
    assert outcome.response is None and said in outcome.failure and "\n" not in outcome.failure, outcome
    assert outcome.failure.startswith("recall: ") and not (place.exists() or place.parent.is_dir())


def test_a_call_that_names_no_axis_is_asked_within_those_of_the_settings():
    meant = {"agent_id": "me", "project_id": "p", "channel": "c"}
    tools = offered(Options(meant=meant))
    assert tools["store"].meant == tools["list_memories"].meant == meant
    assert tools["get_contents"].meant == tools["update_profile"].meant == {"agent_id": "me"}
    assert tools["delete_memory"].meant == {}, "a row of any agent may be named by its number alone"
    assert tools["store"].input_schema["required"] == ["content"]


def test_the_key_of_a_session_goes_with_its_writes(module_home):
    store, pause = (offered(Options(everything=True))[name] for name in ("store", "pause_persistence"))
    bridge = Bridge(load(module_home), True, session_key="quiet")
    assert bridge.call(pause, {"ttl_seconds": 60}, lambda: None).response["scope"] == "session"
    assert bridge.call(store, {"content": "x", "agent_id": "a"}, lambda: None).response["persisted"] is False


def test_two_clients_at_once_each_get_their_own_answers(model, bound):
    model.ask("store", content="warm"), bound.ask("list_memories", limit=0)
    results = {}

    def both(who, name):
        calls = [("store", {"content": f"{name} says {number}"}) for number in range(20)]
        results[name] = who.together(*calls)

    threads = [Thread(target=both, args=pair) for pair in ((model, "one"), (bound, "two"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = {}
    for name, answers in results.items():
        assert all(answer.structured_content["result"] == "stored" for answer in answers)
        ids[name] = [answer.structured_content["id"] for answer in answers]
    assert len({*ids["one"], *ids["two"]}) == 40
    for who, name in ((model, "one"), (bound, "two")):
        refs = [f"mem:{row}" for row in ids[name]]
        texts = [item["content"] for item in who.ask("get_contents", refs=refs)["items"]]
        assert texts == [f"{name} says {number}" for number in range(20)]


def daemon_pid(home):
    return control.find_daemon(load(home), home)["pid"]


def test_a_cancelled_call_is_given_up_and_the_next_one_answered(model, module_home):
    model.ask("store", content="before")
    pid = daemon_pid(module_home)
    os.kill(pid, signal.SIGSTOP)
    try:
        # More than are let through at once: what is cancelled holds no place.
        given_up = model.together(*[("recall", {"query": "before"})] * 20, seconds=0.3)
        assert given_up == [None] * 20 and set(model.tools()) == set(BY_NAME)

        class Cancelled(BaseException):
            pass

        def check():
            raise Cancelled

        with pytest.raises(Cancelled):
            Bridge(load(module_home), True).call(offered(Options())["recall"], {"agent_id": "a"}, check)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert model.ask("recall", query="before")["messages"][-1]["content"] == "before"


def test_a_daemon_that_is_killed_in_between_is_started_anew(model, bound, module_home):
    row = model.ask("store", content="written before the end")["id"]
    pid = daemon_pid(module_home)
    os.kill(pid, signal.SIGKILL)
    answers = model.together(*[("get_contents", {"refs": [f"mem:{row}"]})] * 3)
    assert [answer.structured_content["count"] for answer in answers] == [1, 1, 1]
    assert bound.ask("store", content="written after it")["result"] == "stored"
    assert daemon_pid(module_home) != pid


def test_two_megabytes_of_text_arrive_and_are_said_to_be_cut(bound):
    answer = bound.ask("store", content="é" * 1_000_000)
    assert answer["truncated"] and answer["cut"] == {"kept": 16_000, "of": 1_000_000}
    whole = bound.ask("get_contents", refs=[f"mem:{answer['id']}"])["items"][0]["content"]
    assert whole == "é" * 16_000


def test_a_process_that_was_connected_before_leaves_a_daemon_of_another_version_alone(
    module_home, model, monkeypatch, capsys
):
    model.ask("list_memories", limit=0)
    pid = daemon_pid(module_home)
    monkeypatch.setattr(client, "__version__", "0.0.9")
    with client.connect(load(module_home), module_home, again=True) as connection:
        assert connection.hello["pid"] == pid and connection.call("list_memories", {"limit": 0})[1] is None
    monkeypatch.setattr(client.fields, "PROTOCOL", 99)
    with pytest.raises(client.CallFailed, match="speaks protocol") as failure:
        client.connect(load(module_home), module_home, again=True)
    assert "anew" in failure.value.hint and daemon_pid(module_home) == pid and capsys.readouterr().err == ""


def test_an_interrupt_ends_the_server_at_once(module_home):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    with subprocess.Popen(SERVER, env=module_home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        print(json.dumps(request), file=server.stdin, flush=True)
        assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "cpersona"
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == -signal.SIGINT


def test_without_the_sdk_the_command_says_how_to_get_it(module_home, tmp_path):
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("raise ModuleNotFoundError('no', name='mcp')")
    done = subprocess.run(
        SERVER, env=module_home | {"PYTHONPATH": str(tmp_path)}, input="", capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "pip install 'cpersona-cli[mcp]'" in done.stderr and "mcp>=2.3,<3" in done.stderr


def test_what_is_printed_for_a_client_says_that_the_sdk_is_missing(module_home, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['mcp'] = None\n")
    printed = subprocess.run(
        [*SERVER, "--print-config"], env=module_home | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert printed.returncode == 0 and "mcpServers" in printed.stdout
    assert printed.stderr.count("\n") == 1 and "pip install 'cpersona-cli[mcp]'" in printed.stderr
    there = subprocess.run([*SERVER, "--print-config"], env=module_home, capture_output=True, text=True)
    assert there.stderr == ""


def test_an_agent_that_is_nobody_is_refused(module_home):
    done = subprocess.run([*SERVER, "--agent", ""], env=module_home, input="", capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "--agent" in done.stderr


def test_the_printed_blocks_say_the_same_in_each_clients_form(printed, module_home):
    desktop, code, codex, line = printed.values()
    entry = json.loads(desktop)["mcpServers"]["cpersona"]
    bound_to = ["--db", os.path.realpath(module_home["CPERSONA_DB_PATH"]), "--agent", "kit", "--project", "p"]
    assert entry["args"][-6:] == bound_to and os.path.isabs(entry["command"])
    assert entry["env"]["CPERSONA_EMBEDDING_MODE"] == "none" and "CPERSONA_TOKEN" not in entry["env"]
    assert json.loads(code)["servers"]["cpersona"] == {"type": "stdio", **entry}
    assert tomllib.loads(codex)["mcp_servers"]["cpersona"] == entry
    words = shlex.split(line)
    assert words[:4] == ["claude", "mcp", "add-json", "cpersona"] and json.loads(words[4]) == {"type": "stdio", **entry}
