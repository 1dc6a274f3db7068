"""Retrieval settings at the ends of their ranges change what is found, and never whether there is an answer.

Contract: settings.values.
"""

from __future__ import annotations

import pytest
from contract_kit import memory

from cpersona_daemon.shared.settings import LARGEST_NUMBER
from cpersona_daemon.shared.settings_table import RETRIEVAL, TABLE

NUMBERS = [s for s in TABLE if s.scope == RETRIEVAL and s.kind in ("int", "float")]


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda s: s.name)
def test_a_number_at_the_end_of_its_range_is_an_answer_in_every_mode(agent, setting):
    agent.load(*(memory(f"walnut {n}", cosine=0.5 + n / 20) for n in range(4)))
    ends = {setting.low, setting.high, LARGEST_NUMBER if setting.kind == "int" else 1e300} - {None}
    for value in ends:
        for mode in ("blend", "rrf", "rsf", "cascade"):
            for more in ({}, {"confidence_enabled": True, "confidence_ordering": "legacy"}):
                for method in ("recall", "reconstruct"):
                    answer = agent.own(
                        method, {setting.name: value, "recall_mode": mode, **more}, query="walnut 1", trace=True
                    )
                    assert agent.code in (None, "invalid_params"), (value, mode, method, answer)
