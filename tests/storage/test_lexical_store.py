"""The lexical channel on real SQLite: what is found, in which order, and at which cost.

Contract: lexical.order, lexical.keyword, lexical.cost.
"""

import random
import unicodedata

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.storage import frequencies, keyword, lexical, lexical_plan, memories, postings, schema
from cpersona_daemon.storage.scope import memory_sql
from cpersona_daemon.text.terms import parse_query

KIT = Scope("kit")


class Store:
    """A migrated database with the rows that a test writes."""

    def __init__(self, path):
        self.conn = apsw.Connection(str(path))
        self.conn.execute("PRAGMA synchronous = OFF")  # nothing here survives the test
        schema.migrate(self.conn, 0.0)
        self._id = 0

    def add(self, *texts, agent="kit", project="", channel="", source=None, created="2026-01-01 00:00:00"):
        for text in texts:
            self._id += 1
            self.conn.execute(
                (
                    "INSERT INTO memories (id, agent_id, project_id, channel, source_id, created_at, content_key,"
                    " content) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
                ),
                (self._id, agent, project, channel, source, created, str(self._id).encode(), text),
            )
            postings.put_memory(self.conn, self._id, text)
        return self._id

    def episode(self, summary, keywords=""):
        self._id += 1
        self.conn.execute(
            (
                "INSERT INTO episodes (id, agent_id, created_at, summary, keywords)"
                " VALUES (?, 'kit', '2026-01-01 00:00:00', ?, ?)"
            ),
            (self._id, summary, keywords),
        )
        postings.put_episode(self.conn, self._id, summary, keywords)
        return self._id

    def hits(self, text, scope=KIT, depth=10, kind=MEMORY, **limits):
        return lexical.search(self.conn, kind, parse_query(text), scope, depth, **limits)

    def ids(self, text, **options):
        return [id for id, _ in self.hits(text, **options)]

    def found(self, text, **options):
        texts = dict(self.conn.execute("SELECT id, content FROM memories"))
        return [texts[id] for id in self.ids(text, **options)]

    def trace(self, text, **limits):
        out = {}
        lexical.search(self.conn, MEMORY, parse_query(text), KIT, 10, out, **limits)
        return out


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "lexical.db")
    yield store
    store.conn.close()


NOTES = (
    "CVE-2024-3094 affects the build host",
    "The CVE of 2024 was in 3094 lines",
    "Use foo-bar, not foo_bar, in the slug",
    "C++ templates are slow to compile",
    "C is small",
    "see (docs) for [flags] and 'quotes'",
    "path is /etc/cron.d/backup",
    "module src/a.b/c.py is imported",
    "mail goes to ops@example.test",
    "version 1.2.3-rc1 was tagged",
    "I don't know",
    "commit 56dd09702fdb9e899f577ffd51693c1f2176cb08 runs the smoke test",
    "commit 12abced0ffff4fa9c01d6c5eebd0e6a1f6d2d9ee is another",
    "JIRA OPS-1427: rotate the secret",
    "JIRA OPS-1528: rotate the logs",
    "the end.",
    "5% done",
    "5 done",
    "pass --dry-run to prune",
)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("CVE-2024-3094", NOTES[0]),
        ("cve-2024-3094", NOTES[0]),
        ("CVE-2024", NOTES[0]),
        ("foo_bar", NOTES[2]),
        ("foo-bar,", NOTES[2]),
        ("C++", NOTES[3]),
        ("(docs)?", NOTES[5]),
        ("[flags]!", NOTES[5]),
        ("'quotes'", NOTES[5]),
        ("cron.d", NOTES[6]),
        ("/etc/cron.d/backup", NOTES[6]),
        ("/etc/cr", NOTES[6]),
        ("src/a.b/c.py", NOTES[7]),
        ("src/a.b", NOTES[7]),
        ("ops@example.test", NOTES[8]),
        ("1.2.3-rc1", NOTES[9]),
        ("don't", NOTES[10]),
        ("don’t", NOTES[10]),
        ("56dd097", NOTES[11]),
        ("12abced", NOTES[12]),
        ("OPS-1427", NOTES[13]),
        ("OPS-15", NOTES[14]),
        ("end...", NOTES[15]),
        ("5%", NOTES[16]),
        ("--dry-run", NOTES[18]),
        ("dry-run", NOTES[18]),
    ],
)
def test_an_identifier_is_found_first(store, query, first):
    store.add(*(f"Daily log {i}: nothing special happened" for i in range(60)), *NOTES)
    assert store.found(query)[0] == first


@pytest.mark.parametrize("query", ["CVE-2024-3094", "C++", "foo_bar", "OPS-1427", "5%", "don't", "56dd097"])
def test_an_identifier_brings_no_row_that_has_only_its_words(store, query):
    store.add(*NOTES)
    assert len(store.ids(query)) == 1


@pytest.mark.parametrize(
    "query",
    [
        "NOT host",
        "build AND",
        "host OR",
        "NEAR(build host)",
        'build"',
        '"',
        "build*",
        "body: host",
        "host^",
        "-host",
        "{build}: host",
        "build + host",
        "host)",
        "(((host",
    ],
)
def test_syntax_of_the_index_is_only_text(store, query):
    store.add("affects the build host", "something else")
    assert store.ids(query) in ([1], [])
    if query != '"':
        assert store.ids(query) == [1]


@settings(max_examples=50)
@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text_can_be_asked_and_stored(text):
    store = Store(":memory:")
    row = store.add(text)
    assert store.ids(text) in ([row], [])
    store.conn.close()


def test_words_match_whatever_their_case_accents_and_inflection(store):
    store.add("Deployments were failing at the Café in Zürich")
    for query in ("deployment", "FAILED", "fails", "cafe", "zurich", "CAFÉ"):
        assert store.ids(query) == [1], query


def test_composed_and_decomposed_text_is_found_by_either(store):
    store.add(
        *(unicodedata.normalize(form, text) for form in ("NFC", "NFD") for text in ("crème brûlée", "ガソリンスタンド"))
    )
    for form in ("NFC", "NFD"):
        assert sorted(store.ids(unicodedata.normalize(form, "brûlée"))) == [1, 3]
        assert sorted(store.ids(unicodedata.normalize(form, "ガソリン"))) == [2, 4]


@pytest.mark.parametrize("text", ["日本語の文書を検索する", "備份策略每天凌晨執行", "고양이가사료를먹는다"])
def test_every_substring_of_cjk_text_is_found(store, text):
    store.add(f"前{text}tower", "x y z")
    for start in range(len(text)):
        for stop in range(start + 1, len(text) + 1):
            assert store.ids(text[start:stop]) == [1]


def test_two_characters_glued_to_latin_text_are_found(store):
    store.add("東京towerの展望台を予約した", "京都towerの話")
    assert store.found("東京") == ["東京towerの展望台を予約した"]
    assert store.found("東京tower")[0] == "東京towerの展望台を予約した"


def test_stop_words_do_not_vote_beside_other_words(store):
    store.add("the end", "what is the use of the host", "host")
    assert sorted(store.ids("what is the host")) == [2, 3]
    assert sorted(store.ids("the the")) == [1, 2]


def test_summary_and_keywords_of_an_episode_are_searched(store):
    first, second = (
        store.episode("Sprint review went fine", "yarrow planning"),
        store.episode("Talked about yarrow", "misc"),
    )
    assert sorted(store.ids("yarrow", kind=EPISODE)) == [first, second]
    assert store.ids("sprints", kind=EPISODE) == [first]
    assert store.ids("yarrow") == []
    postings.drop(store.conn, EPISODE, first)
    postings.put_episode(store.conn, second, "Talked about tamarind", "misc")
    assert store.ids("yarrow", kind=EPISODE) == [] and store.ids("tamarind", kind=EPISODE) == [second]


# -- postings


def test_changed_text_replaces_its_postings(store):
    store.add("the old kettle", "another row")
    store.conn.execute("UPDATE memories SET content = 'a new teapot' WHERE id = 1")
    postings.put_memory(store.conn, 1, "a new teapot")
    assert store.ids("kettle") == [] and store.ids("teapot") == [1]
    assert store.conn.execute("SELECT count(*) FROM memory_terms WHERE term = 'kettl'").fetchall() == [(0,)]


def test_dropped_postings_are_gone_and_dropping_again_is_harmless(store):
    store.add("kettle", "kettle too")
    for _ in range(2):
        postings.drop(store.conn, MEMORY, 1)
    assert store.ids("kettle") == [2]
    store.conn.execute("INSERT INTO memory_fts (memory_fts) VALUES ('integrity-check')")


# -- order and scope


def test_more_matching_words_rank_higher_and_the_score_is_the_bm25_of_sqlite(store):
    store.add(
        "turmeric only",
        "turmeric saffron paprika all three",
        "turmeric with saffron together",
        *(f"filler {i}" for i in range(50)),
    )
    hits = store.hits("turmeric saffron paprika")
    assert [id for id, _ in hits] == [2, 3, 1]
    expected = store.conn.execute(
        "SELECT rowid, bm25(memory_fts) FROM memory_fts WHERE memory_fts MATCH 'turmeric OR saffron OR paprika'"
        " ORDER BY 2"
    ).fetchall()
    assert hits == expected and all(score < 0 for _, score in hits)


def test_equal_scores_come_in_the_order_of_their_ids(store):
    store.add("same words", *(f"filler {i}" for i in range(20)), "same words", "same words")
    assert store.ids("same words", depth=2) == [1, 22]


def test_only_rows_in_scope_are_returned_however_few_of_the_best_they_are(store):
    store.add(*["kettle"] * 20, agent="other")
    store.add("kettle in a longer note of mine", project="home", channel="chat", source="user:10")
    store.add("kettle in a rather longer note of mine here", project="work", channel="cli", source="user:11")
    store.add("kettle of the pool, in the longest note of all of these notes here")
    expected = {
        Scope("kit"): [21, 22, 23],
        Scope("kit", project_id=""): [23],
        Scope("kit", project_id="home"): [21, 23],
        Scope("kit", channel="cli"): [22, 23],
        Scope("kit", source_id="user:"): [21, 22],
        Scope("kit", source_id="user:1"): [],
        Scope("nobody"): [],
    }
    for scope, ids in expected.items():
        assert store.ids("kettle", scope=scope) == ids, scope


WORDS = ["kettle", "hub", "axle", "spoke", "rim", "valve", "chain", "saddle", "OPS-1234", "東京駅"]


def many_rows(store, pick):
    """Five hundred rows of a few words, some of them in nearly every row."""
    often = [pick.random() ** 2 for _ in WORDS]
    for _ in range(500):
        body = [
            word
            for word, share in zip(WORDS, often, strict=True)
            for _ in range(pick.choice((1, 1, 1, 3)))
            if pick.random() < share
        ]
        store.add(
            " ".join([*body, *["filler"] * pick.randrange(12)]) or "nothing",
            project=pick.choice(("", "a", "b")),
            agent=pick.choice(("kit", "kit", "other")),
        )


def same_hits(one, other):
    return [sorted((round(score, 9), row_id) for row_id, score in hits) for hits in (one, other)]


def test_looking_at_few_rows_of_a_large_table_finds_what_ranking_all_of_them_finds(store):
    pick = random.Random(4)
    many_rows(store, pick)
    for _ in range(150):
        query = " ".join(pick.sample(WORDS, pick.randrange(1, 7)))
        options = {
            "scope": pick.choice((KIT, Scope("kit", "a"), Scope("other", ""), Scope("nobody"))),
            "depth": pick.choice((1, 3, 10, 40)),
        }
        # No word is in more than 490 rows, so none is common either way; a table above the limit is looked at term by
        # term.
        whole, pruned = (store.hits(query, common_rows=limit, **options) for limit in (10_000, 490))
        one, other = same_hits(pruned, whole)
        assert one == other, (query, options)


def test_looking_at_few_of_the_newest_rows_of_a_common_word_finds_what_ranking_all_of_them_finds(store):
    pick = random.Random(6)
    many_rows(store, pick)
    looked_at = 0
    for _ in range(150):
        query = parse_query(" ".join(pick.sample(WORDS[:8], pick.randrange(1, 6))))
        scope, depth = pick.choice((KIT, Scope("kit", "a"), Scope("other", ""))), pick.choice((1, 3, 10, 40))
        table = frequencies.Frequencies(store.conn, MEMORY, 30)
        own = frequencies.Own(table, scope.agent_id)
        plan = lexical_plan.SearchPlan(table, own, query, 400, 10_000)
        if plan.rare or not plan.newest:
            continue
        driver, votes, lowest = plan.newest
        everything = lexical._driven([driver.expression], [vote.expression for vote in votes])
        found = lexical.search(
            store.conn, MEMORY, query, scope, depth, common_rows=30, voting_rows=400, half_from=10_000
        )
        one, other = same_hits(
            found, lexical._ranked(lexical._Reader(store.conn, table, own, scope, depth, False), everything, lowest)
        )
        assert one == other, (query, scope, depth)
        looked_at += 1
    assert looked_at > 20


def test_depth_cuts_the_list_and_zero_asks_for_nothing(store):
    store.add("kettle", "kettle b", "kettle b c")
    assert store.ids("kettle", depth=2) == [1, 2]
    assert store.ids("kettle", depth=0) == []


def test_scope_is_checked_by_primary_key(store):
    plan = [
        row[-1]
        for row in store.conn.execute(
            "EXPLAIN QUERY PLAN SELECT f.rowid FROM memory_fts f CROSS JOIN memories m ON m.id = f.rowid"
            " WHERE memory_fts MATCH 'x' AND m.agent_id = 'kit'"
        )
    ]
    assert plan[0].startswith("SCAN f VIRTUAL TABLE") and plan[1] == "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"


# -- bounded cost


def test_a_word_in_more_than_half_of_a_large_store_does_not_vote(store):
    store.add(*(f"sprocket number{i}" for i in range(6)), "gadget alone", "sprocket gadget", "filler", "filler")
    assert len(store.ids("sprocket gadget", half_from=1000)) == 8
    assert sorted(store.ids("sprocket gadget", half_from=10)) == [7, 8]
    assert store.trace("sprocket gadget", half_from=10)["too_frequent"] == ["sprocket"]
    assert len(store.ids("sprocket", half_from=10)) == 7  # nothing else is left


def common_store(store):
    """Of thirty rows "wheel" stands in twelve, "axle" in eight, "hub" in two."""
    for i in range(30):
        words = ["filler"] + ["wheel"] * (i % 5 in (0, 1)) + ["axle"] * (i % 4 == 0) + ["hub"] * (i in (5, 7))
        store.add(" ".join(words))


def test_a_common_word_scores_only_rows_that_a_rarer_one_found(store):
    common_store(store)
    everywhere = dict(store.hits("wheel hub", depth=100))
    bounded = store.hits("wheel hub", depth=100, common_rows=10)
    assert {id for id, _ in bounded} == {6, 8}
    assert dict(bounded) == {id: everywhere[id] for id in (6, 8)}  # with its full vote where it stands
    assert store.trace("wheel hub", common_rows=10)["common_terms"] == ["wheel"]


def test_without_a_rarer_word_the_newest_rows_of_the_rarest_are_the_candidates(store):
    common_store(store)
    everywhere = dict(store.hits("wheel axle", depth=100))
    bounded = store.hits("wheel axle", depth=100, common_rows=5)
    axle = sorted(id for id in store.ids("axle", depth=100))
    assert sorted(id for id, _ in bounded) == axle[-5:]
    assert dict(bounded) == {id: everywhere[id] for id in axle[-5:]}
    assert store.trace("wheel axle", common_rows=5)["newest_rows_only"] == 5


def test_a_word_found_nowhere_is_not_the_rarer_one(store):
    common_store(store)
    assert len(store.ids("wheel zzz", depth=100, common_rows=5)) == 5


def test_a_rarer_word_of_other_agents_does_not_hide_the_common_ones(store):
    common_store(store)
    store.add("unicorn", agent="other")
    assert len(store.ids("wheel unicorn", depth=100, common_rows=5)) == 5


def test_a_word_beyond_the_voting_limit_is_silent_beside_a_rarer_one(store):
    common_store(store)
    assert store.hits("wheel hub", common_rows=5, voting_rows=5) == store.hits("hub", common_rows=5)
    assert store.trace("wheel hub", common_rows=5, voting_rows=5)["terms_without_vote"] == ["wheel"]


def test_a_prefix_that_starts_too_much_is_left_out_and_said(store):
    store.add(*(f"/srv/app/file{i}.py" for i in range(12)), "/srv/app", "other")
    assert len(store.ids("/srv/app", depth=100)) == 13
    assert store.ids("/srv/app", depth=100, common_rows=10) == [13]
    trace = store.trace("/srv/app", common_rows=10)
    assert trace["prefixes_left_out"] == trace["phrases_left_out"] == ["/srv/app"]


def test_the_limits_change_nothing_below_them(store):
    common_store(store)
    for query in ("wheel axle hub", "wheel", "zzz", "hub-wheel"):
        assert store.hits(query, common_rows=30) == store.hits(query)


def test_answers_do_not_depend_on_what_was_asked_or_counted_before(store, tmp_path):
    common_store(store)
    queries = ["wheel axle", "hub wheel", "axle", "wheel"]
    warm = [store.hits(query, common_rows=5) for query in queries * 2]
    fresh = []
    for query in queries * 2:
        conn = apsw.Connection(str(tmp_path / "lexical.db"), flags=apsw.SQLITE_OPEN_READONLY)
        fresh.append(lexical.search(conn, MEMORY, parse_query(query), KIT, 10, common_rows=5))
        conn.close()
    assert warm == fresh


def test_counts_follow_writes_of_this_and_of_other_connections(store, tmp_path):
    common_store(store)
    reader = apsw.Connection(str(tmp_path / "lexical.db"), flags=apsw.SQLITE_OPEN_READONLY)

    def ask(conn):
        return [id for id, _ in lexical.search(conn, MEMORY, parse_query("hub wheel"), KIT, 100, common_rows=10)]

    assert sorted(ask(reader)) == sorted(ask(store.conn)) == [6, 8]
    last = store.add("hub")
    assert sorted(ask(reader)) == sorted(ask(store.conn)) == [6, 8, last]
    reader.close()


# -- without a score


def test_wildcards_of_like_are_literal(store):
    store.add("5% done", "5x done", "a_b key", "axb key", "C:\\a dir", "C:/a dir", "100%")
    expected = {"5%": [1], "a_": [3], "\\a": [5], "%": [7, 1], "_": [3], "0%": [7], " DONE ": [2, 1], "": [], "zz": []}
    for text, ids in expected.items():
        assert keyword.keyword_scan(store.conn, text, KIT, 10) == ids, text


def test_the_scan_is_newest_first_within_scope_and_depth(store):
    store.add("note", created="2026-01-03 00:00:00")
    store.add("note", "note", created="2026-01-02 00:00:00")
    store.add("note", agent="other", created="2026-01-04 00:00:00")
    assert keyword.keyword_scan(store.conn, "note", KIT, 10) == memories.recent(store.conn, KIT, 10) == [1, 3, 2]
    assert keyword.keyword_scan(store.conn, "note", KIT, 2) == memories.recent(store.conn, KIT, 2) == [1, 3]
    assert keyword.keyword_scan(store.conn, "note", KIT, 10, scan_rows=2) == [1, 3]
    assert memories.recent(store.conn, KIT, 0) == []


def test_a_text_whose_inner_word_no_row_holds_is_not_looked_for_and_one_whose_ends_are_pieces_of_words_is(store):
    store.add("a message hello world", "some other note", "the message\nHELLO worlds apart")
    assert keyword.keyword_scan(store.conn, "ssage hello wor", KIT, 10) == [1]
    assert keyword.keyword_scan(store.conn, "ssage\nhello wor", KIT, 10) == [3]
    asked = []
    store.conn.exec_trace = lambda cursor, sql, bindings: asked.append(sql) or True
    assert keyword.keyword_scan(store.conn, "ssage unheard wor", KIT, 10) == []
    assert asked and not any("LIKE" in sql for sql in asked)


def test_a_row_that_lost_its_postings_is_still_found_by_its_text(store):
    store.add("first of all notes", "the only kettle here")
    store.conn.execute("DELETE FROM memory_fts WHERE rowid = 2")
    assert keyword.keyword_scan(store.conn, "only kettle here", KIT, 10) == [2]


def test_listing_walks_the_index_of_newest_rows_without_sorting(store):
    axes, params = memory_sql(Scope("kit", project_id="p", channel="c", source_id="user:"))
    plan = [
        row[-1]
        for row in store.conn.execute(
            f"EXPLAIN QUERY PLAN SELECT id FROM memories WHERE {axes} ORDER BY created_at DESC, id DESC LIMIT 10",
            tuple(params),
        )
    ]
    assert plan == [
        "SEARCH memories USING INDEX memories_recent (agent_id=?)",
        "USING ROWID SEARCH ON TABLE hidden_memories FOR IN-OPERATOR",
    ]
