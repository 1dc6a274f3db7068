"""Autocut fires only on similarity-scale signals. Contract: autocut.gap."""

import numpy as np
from contract_kit import memory, refs, with_vector

LEGACY = {"confidence_enabled": True, "confidence_ordering": "legacy"}
CASCADE = {"recall_mode": "cascade"}


def gapped(agent):
    """Two near rows, a wide gap, three far ones: nothing that is asked shares a word with them."""
    agent.crowd()
    return agent.load(*(memory(f"row {n}", cosine, at=0) for n, cosine in enumerate((0.9, 0.88, 0.5, 0.48, 0.46))))


def test_autocut_fires_under_confidence_ordering(agent):
    """Contract: autocut.gap."""
    rows = gapped(agent)
    assert set(refs(agent.recall("a question", LEGACY))) == set(rows[:2])
    assert set(refs(agent.recall("a question", LEGACY | {"autocut_enabled": False}))) == set(rows)


def test_autocut_fires_on_a_homogeneous_raw_cosine_list(agent):
    """Contract: autocut.gap."""
    rows = gapped(agent)
    assert set(refs(agent.recall("a question", CASCADE))) == set(rows[:2])
    assert set(refs(agent.recall("a question", CASCADE | {"autocut_enabled": False}))) == set(rows)


def test_autocut_leaves_a_list_alone_where_some_row_carries_no_cosine(agent):
    """Contract: autocut.gap."""
    rows = gapped(agent)
    (worded,) = agent.load(memory("heliotrope"))
    assert set(refs(agent.recall("heliotrope", CASCADE))) == {*rows, worded}


def test_autocut_is_inert_under_rrf_and_rsf_ordering(agent):
    """Contract: autocut.gap."""
    rows = gapped(agent)
    for mode in ("rrf", "rsf"):
        set_ = {"recall_mode": mode, "autocut_min_gap_ratio": 0.0}
        # The last row of a min-max normalised list scores 0 and is the gate's, not autocut's.
        expected = rows if mode == "rrf" else rows[:2]
        assert set(refs(agent.recall("a question", set_))) == set(expected)
        assert agent.recall("a question", set_) == agent.recall("a question", set_ | {"autocut_enabled": False})


def test_confidence_under_fusion_ordering_does_not_make_it_fire(agent):
    """Contract: autocut.gap, confidence.beside."""
    rows = gapped(agent)
    assert set(refs(agent.recall("a question", {"confidence_enabled": True}))) == set(rows)


def test_in_the_default_configuration_autocut_min_results_has_no_effect_on_recall_size(agent):
    """Contract: autocut.gap."""
    gapped(agent)
    for mode in ("rrf", "rsf"):
        assert (
            len(
                {
                    str(agent.recall("a question", {"recall_mode": mode, "autocut_min_results": n}))
                    for n in (1, 2, 3, 100)
                }
            )
            == 1
        )


def test_where_it_fires_autocut_needs_as_many_rows_as_the_setting_says(agent):
    """Contract: autocut.gap."""
    agent.crowd()
    rows = agent.load(memory("near", 0.9), memory("far", 0.5))
    assert set(refs(agent.recall("a question", CASCADE))) == set(rows)
    assert refs(agent.recall("a question", CASCADE | {"autocut_min_results": 2})) == rows[:1]


def test_where_it_fires_autocut_needs_a_gap_of_fifteen_percent_of_the_first_score(agent):
    """Contract: autocut.gap."""
    agent.crowd()
    rows = agent.load(memory("one", 0.8), memory("two", 0.7), memory("three", 0.6))
    assert set(refs(agent.recall("a question", CASCADE))) == set(rows)
    assert refs(agent.recall("a question", CASCADE | {"autocut_min_gap_ratio": 0.12})) == rows[:1]


def test_profile_rows_take_no_part_in_the_gaps_and_are_never_cut(agent):
    """Contract: autocut.gap, profile.row."""
    rows = gapped(agent)
    agent.own("update_profile", profile="likes tea")
    assert set(refs(agent.recall("a question", CASCADE))) == {*rows[:2], "profile"}


def test_the_knob_that_moves_the_gate_under_fusion_modes_is_set_recall_precision(agent):
    """Contract: calibration.precision, calibration.gates."""
    random, lines = np.random.default_rng(7), []
    for topic in range(12):
        centre = random.normal(size=8)
        for n in range(5):
            vector = centre + 0.9 * random.normal(size=8)
            lines.append(
                memory(
                    f"topic {topic} note {n}",
                    at=topic * 24 + n / 12,
                    **with_vector(list(vector / np.linalg.norm(vector))),
                )
            )
    agent.load(*lines)
    gates = {}
    for precision in ("lenient", "strict"):
        assert agent.own("set_recall_precision", precision=precision)["ok"]
        gates[precision] = agent.recall("a question", trace=True)["trace"]["thresholds"]["cosine"]
    assert {gate["from"] for gate in gates.values()} == {"measured"}
    assert gates["lenient"]["value"] < gates["strict"]["value"]
