"""The settings of a backup that somebody made or changed: only harmless ones are written, and only when asked for.

Contract: restore.checked.
"""

import json

import pytest
from backup_kit import untouched

from cpersona_daemon.errors import Refused
from cpersona_daemon.portability.backup import restore
from cpersona_daemon.shared.settings import load


def with_settings(rebuilt, kept):
    return rebuilt(
        change=lambda files, facts: files.update(
            {"settings.json": json.dumps(kept).encode() if not isinstance(kept, bytes) else kept}
        )
    )


def setting(value, origin="config"):
    return {"value": value, "origin": origin}


@pytest.mark.parametrize(
    "kept",
    [
        b"not json",
        b"[" * 100_000,
        [],
        "text",
        {"recall_mode": "rsf"},
        {"recall_mode": {"value": {"a": 1}, "origin": "config"}},
        {"recall_mode": {"origin": "config"}},
        {"recall_mode": {"value": "rsf", "origin": 7}},
    ],
)
@pytest.mark.parametrize("asked", [False, True])
def test_settings_of_another_shape_are_found_before_anything_is_replaced(place, rebuilt, kept, asked):
    path = with_settings(rebuilt, kept)
    with pytest.raises(Refused) as why:
        place.restore(path, with_settings=asked)
    assert "settings" in str(why.value)
    untouched(place)
    with pytest.raises(Refused):
        restore.check(path)


KEPT = {
    "recall_mode": setting("rsf"),
    "agent": setting("zoë\n\"'\\"),
    "vector_reach": setting(20_000),
    "confidence_enabled": setting(True),
    "log_level": setting("debug", "environment"),
    "acl_file": setting("/tmp/mine"),
    "export_dir": setting("/"),
    "embedding_url": setting("http://example.org/embed"),
    "embedding_mode": setting("http"),
    "token": setting("t"),
    "db_path": setting("/etc/passwd"),
    "socket": setting("/tmp/s"),
    "mystery": setting(1),
    "fts_enabled": setting("perhaps"),
    "max_memories": setting(-3),
}


def test_settings_are_written_only_when_asked_for_and_only_harmless_ones(place, rebuilt):
    path, config = with_settings(rebuilt, KEPT), place.root / "config" / "cpersona" / "config.toml"
    told = place.restore(path)
    assert (
        told["settings"] == "kept"
        and not config.exists()
        and told["offered_settings"] == ["agent", "confidence_enabled", "recall_mode", "vector_reach"]
    )
    told = place.restore(path, with_settings=True)
    assert told["settings"] == "written" and told["config"] == str(config)
    import tomllib

    assert tomllib.loads(config.read_text("utf-8")) == {
        "agent": "zoë\n\"'\\",
        "confidence_enabled": True,
        "recall_mode": "rsf",
        "vector_reach": 20_000,
    }
    assert set(told["refused_settings"]) == {
        "acl_file",
        "export_dir",
        "embedding_url",
        "embedding_mode",
        "token",
        "db_path",
        "socket",
        "mystery",
        "fts_enabled",
        "max_memories",
    }
    assert not load({"HOME": str(place.root), "XDG_CONFIG_HOME": str(place.root / "config")}).conflicts()


def test_a_config_file_that_is_there_is_never_written_over(place, rebuilt):
    config = place.root / "config" / "cpersona" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('recall_mode = "cascade"\n')
    told = place.restore(with_settings(rebuilt, KEPT), with_settings=True)
    assert (
        told["settings"] == "kept"
        and config.read_text() == 'recall_mode = "cascade"\n'
        and "recall_mode" in told["differing_settings"]
    )
