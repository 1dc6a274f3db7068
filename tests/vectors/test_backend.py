"""What holds for every engine behind the protocol, and that the database answers where one cannot.

Contract: vectors.exact, window.near.
"""

import glob
import types

import numpy as np
import pytest
from vector_kit import House, Row, unit

from cpersona_daemon.errors import SettingsConflict
from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.shared.paths import Places
from cpersona_daemon.vectors import choice
from cpersona_daemon.vectors.backend import NoAnswer, QueryVectors, Window
from cpersona_daemon.vectors.fallback import WithFallback

RNG = np.random.default_rng(17)
POOL = [unit(v) for v in RNG.normal(size=(12, 20))]
QUERIES = [unit(v) for v in RNG.normal(size=(3, 20))]


class Silent:
    """An engine that is up and has no answer to anything."""

    def __init__(self):
        self.asked = []

    def open(self, db, background=False):
        self.asked.append("open")

    def _nothing(self, name):
        self.asked.append(name)
        raise NoAnswer("the service is down")

    def search(self, *asked):
        self._nothing("search")

    def cosines(self, *asked):
        self._nothing("cosines")

    def rows_of(self, *asked):
        self._nothing("rows_of")

    def background(self, *asked):
        self._nothing("background")


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    kinds = (MEMORY, MEMORY, EPISODE)
    house.add(*(Row(POOL[i % 12], 7 * i, kind=kinds[i % 3], model=("m", "n", "")[i % 4 % 3]) for i in range(60)))
    yield house
    house.stop()


def test_an_engine_without_an_answer_is_never_noticed_in_one(house):
    silent = WithFallback(Silent())
    silent.open(house.db)
    batch = QueryVectors(np.array(QUERIES), "m")
    for kind in (MEMORY, EPISODE):
        for window in (Window(0, 1000), Window(5, 20)):
            asked = (batch, kind, Scope("a"), window, -1.0, 8)
            assert silent.search(*asked) == house.store.search(*asked) != [[], [], []]
    rids = [(MEMORY, 3), (EPISODE, 2), (MEMORY, 1), (MEMORY, 999)]
    assert silent.cosines(QUERIES[0], iter(rids), "m") == house.store.cosines(QUERIES[0], iter(rids), "m") != {}
    for (found, block), (expected, rows) in [(silent.rows_of(rids, 20, "m"), house.store.rows_of(rids, 20, "m"))]:
        assert found == expected and np.array_equal(block, rows)
    (*counts, mean), (*expected, other) = (s.background(Scope("a"), 1000, 20, "m", 9) for s in (silent, house.store))
    assert counts == expected and np.array_equal(mean, other)
    assert set(silent.engine.asked) == {"open", "search", "cosines", "rows_of", "background"}


def test_questions_asked_together_get_the_answers_that_each_gets_alone(house):
    nothing = np.zeros(20, np.float32)
    together = QueryVectors(np.array([QUERIES[0], nothing, QUERIES[1]]), "m")
    found = house.store.search(together, MEMORY, Scope("a"), Window(0, 1000), -1.0, 10)
    alone = [
        house.store.search(QueryVectors.one(query, "m"), MEMORY, Scope("a"), Window(0, 1000), -1.0, 10)[0]
        for query in together.vectors
    ]
    assert found == alone and found[1] == [] and found[0] != found[2]


def test_no_row_is_found_for_a_width_that_none_has(house):
    query = unit(np.ones(7))
    asked = QueryVectors.one(query, "m")
    assert house.store.search(asked, MEMORY, Scope("a"), Window(0, 1000), -1.0, 10) == [[]]
    assert house.store.cosines(query, [(MEMORY, 1), (EPISODE, 1)], "m") == {}
    found, block = house.store.rows_of([(MEMORY, 1)], 7, "m")
    assert found == [] and block.shape == (0, 7)
    assert house.store.background(Scope("a"), 1000, 7, "m") is None


def test_the_files_that_a_backend_names_are_all_that_it_makes(house):
    # The house has no long row.
    made = [path for path in choice.files_of(house.places) if ".passages." not in path]
    assert sorted(made) == sorted(glob.glob(house.path + ".*.vec*"))


def test_a_mode_that_is_not_there_is_refused_with_the_reason():
    settings = types.SimpleNamespace(vector_search_mode="elsewhere")
    with pytest.raises(SettingsConflict, match="VECTOR_SEARCH_MODE=elsewhere: nothing of this name"):
        choice.backend(settings, Places("x", "", ""), None)


def test_the_local_engine_tells_that_it_keeps_to_everything_asked(house):
    told = house.store.capabilities
    assert told.exact and told.window and told.reach
    assert told.filters == {"agent_id", "project_id", "channel", "source_id", "as_of", "since", "until"}
