"""One table drives every setting. Contract: settings.order, settings.values."""

from __future__ import annotations

import re

import pytest

from cpersona_daemon.shared.settings import (
    CONFIG,
    DEFAULT,
    ENVIRONMENT,
    LARGEST_NUMBER,
    OPTION,
    BadValue,
    config_path,
    load,
    parse,
)
from cpersona_daemon.shared.settings_table import BY_NAME, CLIENT, DAEMON, PLACE, RETRIEVAL, SCOPED, TABLE


@pytest.fixture
def read(tmp_path):
    """Load settings from environment variables, options and the text of a config file."""

    def read(options=None, config: str | bytes | None = None, **environ):
        environ = {"HOME": str(tmp_path), **{f"CPERSONA_{name.upper()}": value for name, value in environ.items()}}
        if config is not None:
            path = tmp_path / ".config" / "cpersona" / "config.toml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(config if isinstance(config, bytes) else config.encode())
        return load(environ, options)

    return read


def test_every_name_stands_once_and_every_setting_says_what_it_means():
    assert len({s.name for s in TABLE}) == len(TABLE) == sum(map(len, SCOPED.values()))
    for setting in TABLE:
        assert setting.meaning and setting.variable == "CPERSONA_" + setting.name.upper()
        assert setting.scope in (PLACE, CLIENT, DAEMON, RETRIEVAL) and setting.range_text


@pytest.mark.parametrize("setting", TABLE, ids=lambda s: s.name)
def test_every_default_is_a_value_that_its_own_setting_takes(setting):
    if setting.default is not None and setting.default != "":
        assert parse(setting, setting.default) == setting.default
    assert type(setting.default) in {"int": (int,), "float": (float,), "bool": (bool,)}.get(
        setting.kind, (str, type(None))
    )
    for mode, value in setting.by_mode.items():
        assert mode in BY_NAME["recall_mode"].choices and parse(setting, value) == value
        assert type(value) is type(setting.default) and value != setting.default


def test_the_defaults_agree_with_each_other(read):
    settings = read()
    assert settings.warnings == () and settings.conflicts() == []
    assert all(getattr(settings, s.name) == s.default_in("blend") and settings.origin(s.name) == DEFAULT for s in TABLE)


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("recall_mode", " RSF ", "rsf"),
        ("recall_mode", "Cascade", "cascade"),
        ("confidence_enabled", "YES", True),
        ("confidence_enabled", " on ", True),
        ("fts_enabled", "0", False),
        ("fts_enabled", "Off", False),
        ("max_memories", " 42 ", 42),
        ("prior_age_rate", "1e-3", 0.001),
        ("rrf_k", 7, 7),
        ("confidence_enabled", True, True),
        ("embedding_url", " http://Host/Embed ", "http://Host/Embed"),
    ],
)
def test_values_are_trimmed_and_case_folded(name, raw, value):
    assert parse(BY_NAME[name], raw) == value


@pytest.mark.parametrize("raw", ["", "   "])
def test_an_empty_value_is_the_default(read, raw):
    settings = read(max_memories=raw, recall_mode=raw, confidence_enabled=raw)
    assert (settings.max_memories, settings.recall_mode, settings.confidence_enabled, settings.warnings) == (
        10_000,
        "blend",
        False,
        (),
    )
    assert not settings.is_set("max_memories")


def test_an_empty_project_is_the_global_pool_and_no_missing_value(read):
    assert read().project is None
    settings = read(project="")
    assert (settings.project, settings.is_set("project")) == ("", True)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("max_memories", "0"),
        ("max_memories", "-5"),
        ("max_memories", "ten"),
        ("max_memories", "1.5"),
        ("rrf_k", "0"),
        ("recall_mode", "fuse"),
        ("confidence_enabled", "maybe"),
        ("prior_age_rate", "-1"),
        ("prior_age_rate", "nan"),
        ("prior_age_floor", "1.1"),
        ("prior_age_floor", "inf"),
        ("prior_age_anchor", "oldest"),
        ("recall_preview_chars", "-1"),
        ("vector_min_similarity", "2"),
    ],
)
def test_a_value_that_is_malformed_or_out_of_range_falls_back_to_the_default_with_a_warning(read, name, raw):
    settings = read(**{name: raw})
    assert getattr(settings, name) == BY_NAME[name].default_in("blend") and not settings.is_set(name)
    (warning,) = settings.warnings
    assert BY_NAME[name].variable in warning and repr(raw) in warning and BY_NAME[name].range_text in warning


@pytest.mark.parametrize(("raw", "value"), [("-3", 0.0), ("0.25", 0.25), ("7", 1.0)])
def test_the_far_weight_is_clamped_instead(read, raw, value):
    settings = read(prior_far_weight=raw)
    assert (settings.prior_far_weight, settings.warnings) == (value, ())


def test_a_default_by_mode_follows_the_mode_of_each_request_until_somebody_sets_the_value(read):
    settings = read()
    assert settings.version_order is True and not settings.is_set("version_order")
    assert read(recall_mode="rrf").version_order is False
    by_word = settings.with_overrides({"recall_mode": "cascade"})
    assert by_word.version_order is False and by_word.with_overrides({"recall_mode": "blend"}).version_order is True
    for word in ("false", "true"):
        chosen = read(version_order=word)
        in_rsf = chosen.with_overrides({"recall_mode": "rsf"})
        assert chosen.version_order is in_rsf.version_order is (word == "true") and in_rsf.is_set("version_order")
        emptied = chosen.with_overrides({"version_order": ""})
        assert emptied.version_order is True and not emptied.is_set("version_order")
    assert BY_NAME["version_order"].default_text == "true under blend, else false"
    assert (BY_NAME["idle_timeout"].default_text, BY_NAME["cosine_floor"].default_text) == ("3600", "0.2")
    assert (BY_NAME["project"].default_text, BY_NAME["agent"].default_text) == ("unset", "default")


def test_a_value_set_to_what_its_mode_has_anyway_is_still_told_apart(read):
    # Another client's request may come in another mode.
    assert read().digest() != read(version_order="true").digest() != read(version_order="false").digest()


def test_an_option_wins_over_the_environment_and_that_over_the_config_file(read):
    config = 'recall_mode = "cascade"\nrrf_k = 10\nmax_memories = 11\n'
    settings = read({"recall_mode": "rsf"}, config, recall_mode="rrf", rrf_k="20")
    assert (settings.recall_mode, settings.rrf_k, settings.max_memories) == ("rsf", 20, 11)
    assert [settings.origin(n) for n in ("recall_mode", "rrf_k", "max_memories", "fts_enabled")] == [
        OPTION,
        ENVIRONMENT,
        CONFIG,
        DEFAULT,
    ]


def test_a_bad_value_of_a_stronger_layer_leaves_the_weaker_one_in_force(read):
    settings = read(None, "rrf_k = 10\n", rrf_k="none")
    assert settings.rrf_k == 10 and "using 10" in settings.warnings[0]


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ("rrf_k = \n", "not valid TOML"),
        (b"rrf_k = '\xff'\n", "not valid TOML"),
        ("rrf_q = 3\n", "'rrf_q'"),
        ("rrf_k = [1]\n", "not list"),
    ],
)
def test_a_faulty_config_file_is_warned_about_and_never_stops_a_command(read, config, part):
    settings = read(None, config)
    assert settings.rrf_k == 60 and part in settings.warnings[0]


def test_the_config_file_lies_in_the_xdg_config_directory():
    assert config_path({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}) == "/x/cpersona/config.toml"
    assert config_path({"HOME": "/h"}) == "/h/.config/cpersona/config.toml"


CONFLICTS = [
    ({"embedding_mode": "http"}, "CPERSONA_EMBEDDING_URL"),
    ({"reconstruct_default_count": "11"}, "CPERSONA_RECONSTRUCT_DEFAULT_COUNT=11"),
    (
        {"reconstruct_forced_count": "5", "reconstruct_max_count": "4", "reconstruct_default_count": "4"},
        "CPERSONA_RECONSTRUCT_FORCED_COUNT=5",
    ),
    ({"cosine_floor": "0.8"}, "CPERSONA_COSINE_FLOOR"),
    ({"decay_floor": "0.6"}, "CPERSONA_DECAY_FLOOR"),
    ({"vector_search_mode": "elsewhere"}, "CPERSONA_VECTOR_SEARCH_MODE=elsewhere: nothing of this name"),
    ({"vector_search_mode": "remote"}, "needs CPERSONA_EMBEDDING_MODE=http and a CPERSONA_EMBEDDING_URL"),
    (
        {"vector_search_mode": "remote", "embedding_mode": "http", "embedding_url": "http://h/v1/texts?x=/embed"},
        "whose path ends in /embed",
    ),
]


@pytest.mark.parametrize(("given", "part"), CONFLICTS, ids=lambda value: value if isinstance(value, str) else "")
def test_values_that_contradict_each_other_are_named(read, given, part):
    (problem,) = read(**given).conflicts()
    assert part in problem


def test_a_service_that_searches_may_have_a_query_string_in_its_address(read):
    given = {"vector_search_mode": "remote", "embedding_mode": "http", "embedding_url": "http://h/a/embed?key=1"}
    assert read(**given).conflicts() == []


def test_a_daemon_with_contradictory_values_refuses_to_start(run_cli):
    done = run_cli(["daemon", "start"], env={"CPERSONA_RECONSTRUCT_DEFAULT_COUNT": "11"})
    assert (
        done.returncode == 4
        and "CPERSONA_RECONSTRUCT_DEFAULT_COUNT=11 is above CPERSONA_RECONSTRUCT_MAX_COUNT=10" in done.stderr
    )


def test_a_malformed_value_starts_and_is_warned_about_in_the_status(connect):
    status, _ = connect(CPERSONA_MAX_MEMORIES="0", CPERSONA_RRF_K="many").call("daemon_status", {})
    assert any("CPERSONA_MAX_MEMORIES" in str(w) for w in status["warnings"]) and any(
        "CPERSONA_RRF_K" in str(w) for w in status["warnings"]
    )


def test_overrides_replace_retrieval_values_for_one_request_alone(read):
    settings = read(rrf_k="20")
    changed = settings.with_overrides({"recall_mode": " RSF ", "rrf_k": "", "prior_far_weight": 9})
    assert (changed.recall_mode, changed.rrf_k, changed.prior_far_weight) == ("rsf", 60, 1.0)
    assert (settings.recall_mode, settings.rrf_k) == ("blend", 20)
    assert changed.is_set("recall_mode") and settings.with_overrides(None) is settings


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        ({"recall_moode": "rsf"}, "no setting 'recall_moode'"),
        ({"recall_mode": "fuse"}, "rrf | rsf | cascade"),
        ({"max_memories": 0}, "at least 1"),
        ({"embedding_mode": "none"}, "cannot change for one request"),
        ({"db_path": "/x"}, "cannot change for one request"),
        ({"rrf_k": None}, "NoneType"),
        ({"cosine_floor": 0.9}, "CPERSONA_COSINE_FLOOR"),
        ({"vector_search_mode": "remote"}, "cannot change for one request"),
        ({"reconstruct_default_count": 50}, "CPERSONA_RECONSTRUCT_DEFAULT_COUNT"),
    ],
)
def test_overrides_are_validated_with_the_same_rules(read, overrides, part):
    with pytest.raises(BadValue, match=re.escape(part)):
        read().with_overrides(overrides)


def test_an_override_is_never_persisted(daemon):
    daemon.call("store", {"agent_id": "a", "content": "a heliotrope " + "x" * 600})
    ask = {"agent_id": "a", "query": "heliotrope"}
    before, _ = daemon.call("recall", ask)
    changed, _ = daemon.call("recall", ask, overrides={"recall_preview_chars": 5})
    assert (changed["messages"][0]["content"], daemon.call("recall", ask)[0]) == ("a hel", before)


@pytest.mark.parametrize("overrides", [{"rrf_k": 0}, {"nothing": 1}, {"idle_timeout": 1}])
def test_a_bad_override_is_a_failure_of_the_request_and_changes_nothing(daemon, overrides):
    answer, code = daemon.call("recall", {"agent_id": "a", "query": "x"}, overrides=overrides)
    assert (answer["ok"], answer["messages"], code) == (False, [], "invalid_params") and answer["error"]


def test_settings_are_immutable_and_know_no_other_names(read):
    settings = read()
    with pytest.raises(AttributeError):
        settings.rrf_k = 1
    with pytest.raises(AttributeError):
        settings.no_such_setting  # noqa: B018


def test_the_digest_follows_what_a_daemon_uses_and_neither_places_nor_secrets(read):
    plain = read().digest()
    assert read(rrf_k="60").digest() == plain
    assert read(rrf_k="61").digest() != plain and read(idle_timeout="5").digest() != plain
    assert read(db_path="/elsewhere/t.db", agent="me", token="secret").digest() == plain


def test_what_a_scope_carries_is_what_was_set_in_it(read):
    settings = read(rrf_k="60", idle_timeout="5", agent="me")
    assert (settings.carried(RETRIEVAL), settings.carried(DAEMON), settings.carried(CLIENT)) == (
        {"rrf_k": 60},
        {"idle_timeout": 5.0},
        {"agent": "me"},
    )


@pytest.mark.parametrize("name", [s.name for s in TABLE if s.kind == "int"])
def test_no_whole_number_is_larger_than_what_is_worked_out_from_it_may_be(read, name):
    for digits in (str(LARGEST_NUMBER + 1), "9" * 40, "9" * 5000):
        settings = read(**{name: digits})
        assert (
            getattr(settings, name) == BY_NAME[name].default_in("blend")
            and len(settings.warnings) == 1
            and len(settings.warnings[0]) < 400
        )


def test_what_opens_something_is_marked_as_secret():
    assert [s.name for s in TABLE if s.secret] == [
        "token",
        "embedding_url",
        "embedding_api_key",
        "rerank_url",
        "rerank_api_key",
        "qdrant_url",
        "qdrant_api_key",
    ]


@pytest.mark.parametrize(
    ("address", "shown", "kept"),
    [
        ("", "", ""),
        ("http://host/embed", "http://host/embed", "http://host/embed"),
        ("https://me:pw@host:8400/embed?key=k#f", "https://***@host:8400/embed?***", "https://host:8400/embed"),
        ("http://k@host", "http://***@host", "http://host"),
        ("path:/a/folder", "path:/a/folder", "path:/a/folder"),
        ("http://host?key=k", "http://host?***", "http://host"),
        ("http://host/#f", "http://host/#***", "http://host/"),
        ("http://me:p/w@host/embed", "http://***@host/embed", None),
        ("http://me:p?w@host/embed", "http://***", None),
        ("http://me:p#w@host", "http://***", None),
        ("http://me:p@w@host/x", "http://***@host/x", "http://host/x"),
        ("http://host/x?mail=a@b", "http://***", None),
        ("http://[::1]:80/x", "http://[::1]:80/x", "http://[::1]:80/x"),
        ("me:pw@host/embed", "***", None),
        ("sk-123456", "***", None),
    ],
)
def test_an_address_is_shown_and_kept_without_what_is_secret_of_it(read, address, shown, kept):
    setting = BY_NAME["embedding_url"]
    assert (setting.shown(address), setting.open_part(address)) == (shown, kept)
    value = read(embedding_url=address).embedding_url
    assert value == address


def test_a_text_that_is_a_secret_is_shown_as_set_and_kept_nowhere():
    setting = BY_NAME["token"]
    assert (setting.shown("t0ken"), setting.open_part("t0ken"), setting.shown("")) == ("(set)", None, "")
