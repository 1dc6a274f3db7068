"""A daemon whose vectors are searched by a service that goes wrong in every way while it runs.

Contract: remote.search, remote.told, remote.waiting, passages.best, outbox.durable, outbox.anew, vectors.ahead,
services.keys.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from cli_kit import runner
from embed_kit import with_vector
from remote_kit import MODEL, VectorServer, unit

from cpersona_cli.wire import client
from cpersona_daemon.shared.settings import load

KEY = "vk-s3cret-of-the-tests"
RRF = {"recall_mode": "rrf"}
NEAR = "vector_near"
TEXTS = [
    "the red kite flies over the hill",
    "the green boat lies in the harbour",
    "a yellow lamp for the reading table",
]
QUESTION = "kite hill"  # its words stand in the first text alone


@pytest.fixture(scope="module")
def service():
    server = VectorServer()
    server.key = KEY
    yield server
    server.stop()


def settings(home, service, **more):
    key = Path(home["HOME"]) / "key"
    key.write_text(KEY + "\n")
    key.chmod(0o600)
    return home | {
        "CPERSONA_VECTOR_SEARCH_MODE": "remote",
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": service.url,
        "CPERSONA_EMBEDDING_API_KEY_FILE": str(key),
        "CPERSONA_LOG_LEVEL": "debug",
        **more,
    }


@pytest.fixture(scope="module")
def environ(module_home, service):
    return settings(module_home, service)


@pytest.fixture(scope="module")
def daemon(environ):
    with client.connect(load(environ), environ) as connection:
        yield connection


@pytest.fixture(autouse=True)
def honest(service):
    """The service goes well at the beginning and the end of a test."""
    yield
    service.gate.set()
    service.gate = type(service.gate)()
    service.faults, service.results = {}, None


@pytest.fixture
def agent(daemon, service, request):
    """An agent of a test's own, with three memories that the service knows."""
    name = request.node.name[:200]
    for text in TEXTS:
        stored(daemon, name, text)
    service.until(lambda: len(held(service, name)) == len(TEXTS))
    while daemon.call("daemon_status", {})[0]["outbox"]["pending"]:
        pass  # what it has taken is struck off a moment later
    return name


def stored(daemon, agent, text, **more):
    answer, _ = daemon.call("store", {"agent_id": agent, "content": text, **more})
    assert answer["result"] == "stored" and answer["embedded"], answer
    return f"mem:{answer['id']}"


def held(service, agent):
    return service.held.get(f"cpersona:{agent}", {})


def recall(daemon, agent, query=QUESTION, overrides=RRF, **more):
    answer, code = daemon.call("recall", {"agent_id": agent, "query": query, **more}, overrides=overrides)
    assert code is None, answer
    return answer


def refs(answer):
    return [row["ref"] for row in reversed(answer["messages"])]


def by_text(daemon, agent):
    rows = daemon.call("list_memories", {"agent_id": agent})[0]["memories"]
    return {row["content"]: row["ref"] for row in rows}


def test_a_service_is_told_of_rows_and_asked_in_the_form_of_the_protocol(daemon, agent, service):
    (*_, told) = (body for body in service.sent("/index") if body["namespace"] == f"cpersona:{agent}")
    assert set(told) == {"namespace", "items"} and all(set(item) == {"id", "text"} for item in told["items"])
    assert held(service, agent) == {ref: text for text, ref in by_text(daemon, agent).items()}
    service.asked.clear()
    recall(daemon, agent, limit=7)
    assert service.sent("/search") == [
        {"namespace": f"cpersona:{agent}", "query": QUESTION, "limit": 7, "min_similarity": 0.15}
    ]
    assert {target.partition("?")[2] for target in service.targets} == {"tenant=t1"}
    assert {"/v/search?tenant=t1", "/v/index?tenant=t1"} <= service.targets


@pytest.mark.parametrize("mode", ["rrf", "rsf", "cascade"])
def test_the_rows_that_the_service_names_are_the_near_list_with_its_scores(daemon, agent, service, mode):
    of = by_text(daemon, agent)
    lamp, kite = of[TEXTS[2]], of[TEXTS[0]]
    service.results = [{"id": lamp, "score": 0.91}, {"id": kite, "score": 0.42}]
    answer = recall(daemon, agent, overrides={"recall_mode": mode}, trace=True)
    listed = {row["ref"]: row["lists"][0] for row in answer["trace"]["rows"]}
    assert listed[lamp] | {"contribution": 0} == {"channel": NEAR, "rank": 0, "score": 0.91, "contribution": 0}
    assert (listed[kite]["channel"], listed[kite]["rank"], listed[kite]["score"]) == (NEAR, 1, 0.42)
    assert "advisory" not in answer
    if mode == "rrf":
        told = {row["ref"]: row["match_reason"] for row in answer["messages"]}
        assert told[lamp]["cosine"] == 0.91 and told[lamp]["signal"] == "cosine"


def test_a_blend_weighs_what_the_service_names_by_the_vectors_that_are_here(daemon, agent, service):
    of = by_text(daemon, agent)
    service.results = [{"id": of[TEXTS[2]], "score": 0.91}, {"id": of[TEXTS[0]], "score": 0.42}]
    answer = recall(daemon, agent, overrides={}, trace=True)
    assert {"channel": NEAR, "rows": 2} in answer["trace"]["channels"]
    kite = answer["messages"][-1]
    cosine = float(unit(TEXTS[0]) @ unit(QUESTION))
    assert kite["ref"] == of[TEXTS[0]] and kite["match_reason"]["cosine"] == pytest.approx(cosine, abs=1e-5)
    assert service.sent("/search")[-1]["limit"] == 50 and service.sent("/search")[-1]["min_similarity"] == 0


def test_a_long_row_is_still_known_by_its_passages(daemon, agent, service):
    said = " ".join(f"On day {n} nobody wrote about the weather of the valley." for n in range(40))
    content = f"{said} The walrus sang an aria. {said}"
    long = f"mem:{daemon.call('store', {'agent_id': agent, 'content': content})[0]['id']}"
    service.until(lambda: long in held(service, agent))  # it has its vector, and then its passages are listed
    while daemon.call("daemon_status", {})[0]["backlog"]["passages_pending"]:
        pass
    service.results = []
    answer = recall(daemon, agent, "walrus sang aria", overrides={}, trace=True)
    assert "vector_passage" in {entry["channel"] for entry in answer["trace"]["channels"]}
    assert refs(answer) == [long] and answer["trace"]["vectors"]["by"] == "service"


def test_an_empty_list_is_an_answer(daemon, agent, service):
    service.results = []
    answer = recall(daemon, agent, query="kites over hills", overrides=RRF | {"fts_enabled": False})
    assert answer["messages"] == [] and "advisory" not in answer


@pytest.mark.parametrize(
    "fault", ["key", "broken", "dead", "missing", "null", "text", "bool", "scoreless", "nan", "infinite", "nonsense"]
)
def test_a_service_that_goes_wrong_is_answered_for_here_and_told(daemon, agent, service, fault):
    well = recall(daemon, agent)
    service.faults["/search"] = fault
    answer = recall(daemon, agent, trace=True)
    assert refs(answer) == refs(well) != []
    said = answer["advisory"]
    assert said["degraded"] and "by the database itself, not by the vector service" in said["reason"]
    assert "the vector service at 127.0.0.1" in said["evidence"] and KEY not in json.dumps(answer)
    assert answer["trace"]["vectors"] == {"by": "database", "why": said["evidence"]}
    service.faults.clear()
    again = recall(daemon, agent, trace=True)
    assert "advisory" not in again
    assert again["trace"]["vectors"] == {"by": "service", "exact": False, "window": False, "reach": False}


def test_ids_of_others_and_unknown_ones_are_dropped(daemon, agent, service):
    other = stored(daemon, agent + "-other", TEXTS[0])
    (mine,) = (ref for text, ref in by_text(daemon, agent).items() if text == TEXTS[1])
    odd = [other, "mem:999999", "ep:1", "mem:0", "x", 7, None, "mem:-1", f"{mine} "]
    service.results = [*({"id": ref, "score": 0.99} for ref in odd), {"score": 0.9}, {"id": mine, "score": 0.5}]
    answer = recall(daemon, agent, query="nothing of it", trace=True)
    assert refs(answer) == [mine] and [row["ref"] for row in answer["trace"]["rows"]] == [mine]


def test_what_the_service_names_is_seen_under_the_whole_scope(daemon, agent, service):
    more = {
        "x": stored(daemon, agent, "a note of project x", project_id="x"),
        "y": stored(daemon, agent, "a note of project y", project_id="y"),
        "c": stored(daemon, agent, "a note of channel c", channel="c"),
        "u": stored(daemon, agent, "a note of a user", source={"type": "User", "id": "u1"}),
    }
    daemon.call("lock_memory", {"memory_id": int(more["x"][4:]), "agent_id": agent})
    service.results = [{"id": ref, "score": 0.9} for ref in more.values()]

    def seen(**scope):
        answer = recall(daemon, agent, query="zebra", **scope)
        return {name for name, ref in more.items() if ref in refs(answer)}

    assert seen() == {"x", "y", "c", "u"}
    assert seen(project_id="x") == {"x", "c", "u"} and seen(project_id="") == {"c", "u"}
    assert seen(channel="d") == {"x", "y", "u"} and seen(source_id="u1") == {"u"}
    assert seen(as_of="2020-01-01T00:00:00Z") == set() == seen(until="2020-01-01T00:00:00Z")


def test_rows_of_a_narrow_scope_are_found_behind_others_of_the_agent(daemon, agent, service):
    mine = stored(daemon, agent, "kite hill and a tail", project_id="x")
    service.until(lambda: mine in held(service, agent))
    for n in range(3):
        stored(daemon, agent, f"kite hill {n}", project_id="y")
    service.asked.clear()
    answer = recall(daemon, agent, limit=2, project_id="x", overrides=RRF | {"fts_enabled": False})
    assert mine in refs(answer) and [body["limit"] for body in service.sent("/search")] == [2, 500]


def test_a_changed_row_is_indexed_again_and_a_deleted_one_removed(daemon, agent, service):
    ref = by_text(daemon, agent)[TEXTS[1]]
    answer, _ = daemon.call(
        "update_memory", {"agent_id": agent, "memory_id": int(ref[4:]), "content": "the boat has sunk"}
    )
    assert answer["ok"]
    service.until(lambda: held(service, agent).get(ref) == "the boat has sunk")
    daemon.call("delete_memory", {"agent_id": agent, "memory_id": int(ref[4:])})
    service.until(lambda: ref not in held(service, agent))
    assert len(held(service, agent)) == 2
    episode, _ = daemon.call("archive_episode", {"agent_id": agent, "summary": "we sailed", "keywords": "boat sea"})
    service.until(lambda: held(service, agent).get(f"ep:{episode['episode_id']}") == "we sailed\nboat sea")


def test_an_agent_that_is_forgotten_is_purged(daemon, agent, service):
    service.asked.clear()
    daemon.call("delete_agent_data", {"agent_id": agent})
    service.until(lambda: not held(service, agent))
    assert {"namespace": f"cpersona:{agent}"} in service.sent("/purge") and not service.sent("/remove")


def test_an_import_arrives_in_chunks_of_a_hundred_at_most(daemon, environ, service, tmp_path):
    path = tmp_path / "rows.jsonl"
    lines = [
        {"_type": "memory", "agent_id": "bulk", "content": f"row {n}", **with_vector(unit(f"row {n}").tolist(), MODEL)}
        for n in range(150)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert daemon.call("import_memories", {"input_path": str(path)})[0]["imported_memories"] == 150
    service.until(lambda: len(held(service, "bulk")) == 150)
    sizes = [len(body["items"]) for body in service.sent("/index") if body["namespace"] == "cpersona:bulk"]
    assert sum(sizes) == 150 and max(sizes) <= 100 and len(sizes) == 2


def test_a_write_waits_for_no_service_and_its_row_is_found_before_that_knows_it(daemon, agent, service):
    service.faults["/index"] = "slow"
    before = len(service.asked)
    new = stored(daemon, agent, "the purple submarine dives")
    service.until(lambda: any(path == "/v/index" for path, _ in service.asked[before:]))  # and hangs there
    answer = recall(daemon, agent, query="submarine purple", overrides=RRF | {"fts_enabled": False})
    assert new not in held(service, agent) and refs(answer)[0] == new and "advisory" not in answer
    told = daemon.call("daemon_status", {})[0]
    assert told["outbox"]["pending"] == 1 and told["vector_service"]["problem"] is None
    issues = daemon.call("check_health", {"checks": ["outbox"]})[0]["issues"]
    assert "1 changes wait for the vector service" in issues[0]["message"]
    service.gate.set()
    service.until(lambda: new in held(service, agent))


def test_a_service_that_was_down_for_a_while_ends_with_all_that_there_is(daemon, agent, service):
    of = by_text(daemon, agent)
    service.faults["*"] = "dead"
    new = [stored(daemon, agent, f"stored while it was down {n}") for n in range(3)]
    daemon.call("delete_memory", {"agent_id": agent, "memory_id": int(new[0][4:])})
    daemon.call("delete_memory", {"agent_id": agent, "memory_id": int(of[TEXTS[0]][4:])})
    said = recall(daemon, agent, query="stored while down")
    assert new[1] in refs(said) and "advisory" in said
    assert "closed connection without response" in said["advisory"]["evidence"]
    service.faults.clear()
    expected = {ref: text for text, ref in by_text(daemon, agent).items()}
    service.until(lambda: held(service, agent) == expected)
    assert len(expected) == 4 and new[0] not in expected


def test_one_text_that_a_service_refuses_keeps_no_other_back(daemon, agent, service):
    service.faults["/index"] = "refuses"
    stored(daemon, agent, "this one is refused")
    last = stored(daemon, agent, "this one is taken")
    service.until(lambda: last in held(service, agent))
    assert "this one is refused" not in held(service, agent).values()


def test_status_explain_and_doctor_say_who_searches(daemon, agent, environ, service):
    run = runner(environ)
    status = run(["daemon", "status"]).stdout
    assert "vector service" in status and "outbox" in status and "0 waiting" in status
    explained = run(["recall", QUESTION, "--agent", agent, "--explain"]).stdout
    assert "ranked by the vector service under a window of its own" in explained
    service.faults["/search"] = "key"
    explained = run(["recall", QUESTION, "--agent", agent, "--explain"])
    assert "compared by the daemon itself" in explained.stdout and "HTTP 401" in explained.stdout
    findings = [f for f in json.loads(run(["doctor", "--json"]).stdout)["checks"] if f["check"] == "vectors"]
    assert findings[0]["level"] == "warn" and "HTTP 401" in findings[0]["message"]
    service.faults.clear()
    findings = [f for f in json.loads(run(["doctor", "--json"]).stdout)["checks"] if f["check"] == "vectors"]
    assert (
        findings == [{"check": "vectors", "level": "ok", "message": findings[0]["message"]}]
        and "the vector service at 127.0.0.1" in findings[0]["message"]
    )


def test_no_key_of_the_service_stands_in_anything_that_is_kept_or_shown(daemon, agent, environ, service):
    service.faults["*"] = "key"
    stored(daemon, agent, "refused for its key")
    shown = [recall(daemon, agent), daemon.call("daemon_status", {})[0], daemon.call("check_health", {})[0]]
    assert KEY not in json.dumps(shown) and "tenant=t1" not in json.dumps(shown[1]["outbox"])
    kept = [path for path in Path(environ["HOME"]).rglob("*") if path.is_file() and path.name != "key"]
    assert len(kept) > 3 and not [path for path in kept if KEY.encode() in path.read_bytes()]


def test_a_store_is_sent_whole_when_the_mode_begins_and_when_the_service_lost_it_and_survives_a_kill(home):
    service = VectorServer()
    service.key = KEY
    try:
        here = settings(home, service)
        with client.connect(load(local := here | {"CPERSONA_VECTOR_SEARCH_MODE": "local"}), local) as daemon:
            for text in TEXTS:
                stored(daemon, "a", text)
        run = runner(here)
        run(["daemon", "stop"])
        assert service.held == {} and not service.sent("/index")
        with client.connect(load(here), here) as daemon:  # it begins to be searched remotely
            assert "advisory" in recall(daemon, "a") or held(service, "a")
            service.until(lambda: len(held(service, "a")) == 3)
            service.faults["/index"] = "slow"
            new = stored(daemon, "a", "acknowledged before the kill")
            service.until(lambda: len(service.sent("/index")) == 2)
            os.kill(daemon.call("daemon_status", {})[0]["pid"], signal.SIGKILL)
        service.faults.clear()
        service.gate.set()
        service.until(lambda: new in held(service, "a"))
        service.held.clear()  # and the service begins anew, with nothing
        with client.connect(load(here), here) as daemon:
            daemon.call("get_profile", {"agent_id": "a"})
            service.until(lambda: len(held(service, "a")) == 4)
            assert held(service, "a")[new] == "acknowledged before the kill"
            service.held["cpersona:a"]["mem:77"] = "what it should not have"
            assert daemon.call("reindex", {})[0]["ok"]
            assert len(held(service, "a")) == 4 and "mem:77" not in held(service, "a")
            assert run(["backup", backup := str(Path(home["HOME"]) / "b.tar")]).returncode == 0
            daemon.call("delete_memory", {"agent_id": "a", "memory_id": 1})
            service.until(lambda: len(held(service, "a")) == 3)
        run(["daemon", "stop"])
        assert run(["restore", backup]).returncode == 0
        with client.connect(load(here), here) as daemon:  # a service that knows newer rows is sent the older ones
            daemon.call("get_profile", {"agent_id": "a"})
            service.until(lambda: len(held(service, "a")) == 4)
    finally:
        service.stop()
