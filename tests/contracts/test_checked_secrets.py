"""store with check_secrets, for every client. Contract: secrets.checked."""

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cDabcd"


def test_warn_stores_and_names_kind_and_place(reader):
    answer = reader.own("store", content=f"deploy with {TOKEN}", check_secrets="warn")
    assert answer["result"] == "stored" and answer["secrets"] == [{"kind": "github_token", "at": 12}]
    assert TOKEN in reader.own("list_memories")["memories"][0]["content"]


def test_refuse_stores_nothing_and_does_not_repeat_the_secret(reader):
    answer = reader.own("store", content="fine", metadata={"token": TOKEN}, check_secrets="refuse")
    assert (answer["ok"], answer["result"], answer["secrets"]) == (
        False,
        "rejected",
        [{"kind": "github_token", "at": 11, "in": "metadata"}],
    )
    assert TOKEN not in str(answer) and "github_token" in answer["reason"] and reader.code == "refused"
    assert reader.own("list_memories")["count"] == 0


def test_it_is_off_unless_asked_for_and_an_unknown_mode_is_refused(reader):
    for more in ({}, {"check_secrets": "off"}, {"check_secrets": None}):
        assert "secrets" not in reader.own("store", content=f"{more} {TOKEN}", **more)
    assert reader.own("store", content="x", check_secrets="maybe")["result"] == "rejected"


def test_a_clean_text_is_stored_without_a_word(reader):
    for mode in ("warn", "refuse"):
        answer = reader.own("store", content=f"deploys run from release, {mode}", check_secrets=mode)
        assert answer["result"] == "stored" and "secrets" not in answer
