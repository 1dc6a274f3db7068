"""Declared associations are read by reconstruct and traverse only.

Contract: associations.silent, associations.alias, associations.bundle, associations.evidence, associations.claims.
"""

import json

import pytest
from contract_kit import episode, memory, reasons, refs

SET = {"recall_mode": "rsf"}


def declare(agent, *relations, entities=(), **params):
    spec = {
        "entities": [{"name": name, "aliases": list(aliases)} for name, aliases in entities],
        "relations": [dict(zip(("subject", "predicate", "object"), relation, strict=True)) for relation in relations],
    }
    answer = agent.own("declare_associations", associations=spec, **params)
    assert answer["ok"] and not answer["dropped"], answer
    return answer


def heads(answer):
    return [item["head_ref"] for item in answer["items"]]


def claims(answer, head):
    """Return the claims of the item with this head, by ref."""
    return {claim["ref"]: claim for item in answer["items"] if item["head_ref"] == head for claim in item["claims"]}


def test_what_is_declared_changes_no_recall_response(agent):
    """Contract: associations.silent."""
    agent.crowd()
    first, second = agent.load(
        memory("Aurora moved to Oslo", 0.7), memory("a note about the north", 0.6), episode("a talk on Aurora", 0.5)
    )[:2]
    asked = [
        ("Aurora", {}),
        ("Aurora", SET),
        ("aurora borealis", {"confidence_enabled": True}),
        ("", {}),
        ("northern lights", {"recall_mode": "cascade"}),
    ]

    def answers():
        found = [agent.recall(query, set, deep=True) for query, set in asked]
        for answer in found:
            for row in answer["messages"]:
                row.get("confidence", {}).pop("age_hours", None)
        return json.dumps(found)

    before = answers()
    declare(
        agent,
        (first, "supersedes", second),
        ("Aurora", "lives in", "Oslo"),
        entities=[("Aurora", ["northern lights", "aurora borealis"])],
        anchor_ref=first,
    )
    assert answers() == before


def test_with_nothing_declared_reconstruct_answers_what_it_did_before_anything_was(agent, other):
    """Contract: associations.silent."""
    agent.crowd()
    first, second = agent.load(memory("Aurora moved to Oslo", 0.7), memory("a note about the north", 0.6))
    before = json.dumps(agent.reconstruct("where is Aurora"))
    (theirs,) = other.load(memory("their Aurora", 0.7))
    declare(other, (theirs, "supersedes", "Aurora"), entities=[("Aurora", ["Oslo"])], anchor_ref=theirs)
    assert json.dumps(agent.reconstruct("where is Aurora")) == before
    made = declare(agent, (first, "supersedes", second), entities=[("Aurora", ["north"])], anchor_ref=first)
    assert json.dumps(agent.reconstruct("where is Aurora")) != before
    agent.own("declare_associations", retract={"relations": made["relations"], "entities": [made["entities"][0]["id"]]})
    assert json.dumps(agent.reconstruct("where is Aurora")) == before


def test_an_alias_adds_a_vote_and_lifts_a_record_that_the_other_search_voted_for(agent):
    """Contract: associations.alias."""
    agent.crowd()
    plain, named = agent.load(memory("somebody moved", 0.62), memory("Polaris moved", 0.6))
    assert heads(agent.reconstruct("news of Aurora"))[:2] == [plain, named]
    declare(agent, entities=[("Aurora", ["Polaris"])])
    answer = agent.reconstruct("news of Aurora", trace=True)
    assert heads(answer)[:2] == [named, plain]
    votes = {row["ref"]: [place["channel"] for place in row["lists"]] for row in answer["trace"]["recall"]["rows"]}
    assert votes[named] == ["vector_near", "memory_fts"] and votes[plain] == ["vector_near"]


def test_a_record_found_only_through_the_alias_stays_below_the_gate_exactly_as_without_it(agent):
    """Contract: associations.alias."""
    agent.crowd()  # in a pool of this size one vote by words would be enough
    (only,) = agent.load(memory("Polaris moved", 0.05))
    declare(agent, entities=[("Aurora", ["Polaris"])])
    answer = agent.reconstruct("news of Aurora", trace=True)
    (row,) = answer["trace"]["recall"]["rows"]
    assert (row["ref"], row["fate"], row["passes"], heads(answer)) == (only, "gate", False, [])
    assert answer["shortfall_reason"] == "below_quality_threshold"


def test_without_an_embedder_too_a_record_found_only_through_the_alias_does_not_pass(reader):
    """Contract: associations.alias."""
    reader.crowd()
    written, only = reader.load(memory("news of Aurora"), memory("Polaris moved"))
    declare(reader, entities=[("Aurora", ["Polaris"])])
    answer = reader.reconstruct("Aurora", trace=True)
    fates = {row["ref"]: (row["fate"], row["passes"]) for row in answer["trace"]["recall"]["rows"]}
    assert (heads(answer), fates) == ([written], {written: ("returned", True), only: ("gate", False)})


def test_the_embedding_search_still_sees_the_query_as_written(agent, embedder):
    """Contract: associations.alias."""
    (row,) = agent.load(memory("Cassiopeia moved", 0.9))
    declare(agent, entities=[("Aurora", ["Cassiopeia"])])
    agent.reconstruct("any news of Aurora this week")
    assert "any news of Aurora this week" in embedder.asked
    assert not any("Cassiopeia" in text for text in embedder.asked)


def test_a_relation_between_two_records_bundles_them_into_one_item_when_both_are_candidates(agent):
    """Contract: associations.bundle."""
    agent.crowd()
    first, second, third = agent.load(
        memory("first", 0.9, at=0), memory("second", 0.6, at=50), memory("third", 0.1, at=90)
    )
    assert heads(agent.reconstruct("a question")) == [first, second]
    declare(agent, (first, "came before", second), (first, "came before", third))
    answer = agent.reconstruct("a question")
    assert heads(answer) == [first]
    assert set(claims(answer, first)) == {first, second}
    assert claims(answer, first)[second]["why"] == "relation:came before"


def test_a_role_word_as_predicate_labels_the_subject_as_that_role(agent):
    """Contract: associations.claims."""
    old, new = agent.load(memory("the old plan", 0.6, at=0), memory("the new plan", 0.9, at=50))
    declare(agent, (new, "Supersedes", old))
    found = claims(agent.reconstruct("a question"), new)
    assert found[old]["roles"] == [{"ref": new, "role": "supersedes"}] and "roles" not in found[new]


def test_a_predicate_that_is_no_role_word_labels_nothing(agent):
    """Contract: associations.claims."""
    old, new = agent.load(memory("the old plan", 0.6, at=0), memory("the new plan", 0.9, at=50))
    declare(agent, (new, "mentions", old))
    assert all("roles" not in claim for claim in claims(agent.reconstruct("a question"), new).values())


def test_a_shared_entity_never_bundles(agent):
    """Contract: associations.bundle."""
    first, second = agent.load(memory("first", 0.9, at=0), memory("second", 0.6, at=50))
    for row in (first, second):
        declare(agent, entities=[("Aurora", [])], anchor_ref=row)
    assert heads(agent.reconstruct("a question")) == [first, second]


def related(agent):
    """A candidate that mentions Ada, who knows Ben, who knows Cy.

    A record of Ben's and one of Cy's are there, which nothing else finds.
    """
    candidate, of_ben, of_cy, unrelated = agent.load(
        memory("candidate", 0.9, at=0),
        memory("of Ben", at=100),
        memory("of Cy", at=200),
        memory("unrelated", 0.6, at=300),
    )
    for row, name in ((candidate, "Ada"), (of_ben, "Ben"), (of_cy, "Cy")):
        declare(agent, entities=[(name, [])], anchor_ref=row)
    declare(agent, ("Ada", "knows", "Ben"), ("Ben", "works with", "Cy"))
    return candidate, of_ben, of_cy, unrelated


def test_a_relation_between_entities_adds_evidence_inside_the_item_with_its_predicate_and_hops(agent):
    """Contract: associations.evidence."""
    candidate, of_ben, of_cy, _ = related(agent)
    found = claims(agent.reconstruct("a question"), candidate)
    assert (found[of_ben]["why"], found[of_ben]["hops"]) == ("relation:knows", 1)
    assert (found[of_cy]["why"], found[of_cy]["hops"]) == ("relation:works with", 2)


def test_evidence_comes_fewest_hops_first(agent):
    """Contract: associations.evidence."""
    candidate, of_ben, of_cy, _ = related(agent)
    answer = agent.reconstruct("a question", max_evidence=1, trace=True)
    assert set(claims(answer, candidate)) == {candidate, of_ben}
    evidence = agent.reconstruct("a question", trace=True)["trace"]["evidence"][0]
    assert [(entry["ref"], entry["hops"]) for entry in evidence] == [(of_ben, 1), (of_cy, 2)]


def test_evidence_becomes_no_item_and_changes_neither_items_nor_their_order(agent):
    """Contract: associations.evidence."""
    candidate, _, _, unrelated = related(agent)
    with_walk, without = agent.reconstruct("a question"), agent.reconstruct("a question", max_hops=0)
    assert heads(with_walk) == heads(without) == [candidate, unrelated]
    assert [item["content"] for item in with_walk["items"]] == [item["content"] for item in without["items"]]


def test_evidence_does_not_appear_twice_in_one_response(agent):
    """Contract: associations.evidence."""
    _, _, _, unrelated = related(agent)
    declare(agent, entities=[("Ada", [])], anchor_ref=unrelated)
    answer = agent.reconstruct("a question")
    all_claims = [claim["ref"] for item in answer["items"] for claim in item["claims"]]
    assert len(answer["items"]) == 2 and len(all_claims) == len(set(all_claims)) == 4


def test_a_candidate_is_never_evidence(agent):
    """Contract: associations.evidence."""
    candidate, _, _, unrelated = related(agent)
    declare(agent, entities=[("Ben", [])], anchor_ref=unrelated)
    assert unrelated not in claims(agent.reconstruct("a question"), candidate)


def test_traverse_shows_the_declared_neighbourhood(reader):
    """Contract: associations.traverse."""
    declare(reader, ("Ada", "knows", "Ben"), ("Ben", "knows", "Cy"))
    assert [(e["name"], e["hops"]) for e in reader.own("traverse", entity="ada", max_hops=2)["entities"]] == [
        ("Ada", 0),
        ("Ben", 1),
        ("Cy", 2),
    ]
    near = reader.own("traverse", entity="Ada")
    assert [e["name"] for e in near["entities"]] == ["Ada", "Ben"] and near["bounds"] == {"omitted": ["max_hops"]}
    assert reader.own("traverse", entity="nobody")["reason"] == "no_such_entity"


def test_the_server_extracts_nothing_and_infers_nothing(reader):
    """Contract: associations.silent."""
    reader.own("store", content="Ada knows Ben, also called Benjamin; mem:1 supersedes mem:2")
    reader.own("store", content="Ben knows Cy", associations={"entities": [{"name": "Cy"}]})
    listed = reader.own("list_associations")
    assert [entity["name"] for entity in listed["entities"]] == ["Cy"] and listed["relations"] == []


def test_a_wrong_declaration_stays_until_it_is_retracted(reader):
    """Contract: associations.silent."""
    (relation,) = declare(reader, ("Ada", "knows", "Ben"))["relations"]
    declare(reader, ("Ada", "never met", "Ben"))
    assert len(reader.own("traverse", entity="Ada")["relations"]) == 2
    reader.own("declare_associations", retract={"relations": [relation]})
    assert [r["predicate"] for r in reader.own("traverse", entity="Ada")["relations"]] == ["never met"]


def test_count_alone_never_moves_the_candidate_set(agent):
    """Contract: associations.reconstruct."""
    agent.crowd()
    rows = agent.load(*(memory(f"row {n}", 0.9 - n / 32, at=n * 10) for n in range(6)))
    declare(agent, (rows[0], "goes with", rows[4]))
    whole = agent.reconstruct("a question", count=6)
    assert set(claims(whole, rows[0])) == {rows[0], rows[4]}
    for count in range(1, 6):
        part = agent.reconstruct("a question", count=count)
        assert part["items"] == whole["items"][:count]


def test_a_quotation_is_always_verbatim_text_of_the_stored_row(agent):
    """Contract: associations.quotes."""
    sentences = [f"Sentence {n} speaks of {'aurora' if n == 40 else 'snow'} and nothing else." for n in range(80)]
    text = " ".join(sentences)
    (row,) = agent.load(memory(text, 0.9))
    (item,) = agent.reconstruct("where is the aurora")["items"]
    assert item["content_truncated"] and item["content_len"] == len(text) and "aurora" in item["content"]
    for piece in item["content"].split("\n"):
        assert piece.strip(" …") in text


def test_reasons_of_recall_and_reconstruct_are_drawn_from_one_ranking(agent):
    """Contract: associations.reconstruct."""
    agent.crowd()
    agent.load(memory("one", 0.6, at=0), memory("two", 0.8, at=50), memory("three", 0.7, at=90))
    answer = agent.recall("a question", limit=20)
    assert heads(agent.reconstruct("a question")) == list(reversed(refs(answer))) and len(reasons(answer)) == 3


@pytest.mark.parametrize("method", ["recall", "recall_with_context"])
def test_a_declared_name_finds_nothing_for_recall(reader, method):
    """Contract: associations.silent."""
    reader.own(
        "store", content="Polaris moved", associations={"entities": [{"name": "Aurora", "aliases": ["Polaris"]}]}
    )
    answer = reader.own(method, query="Aurora")
    assert (answer["messages"], answer["considered"]) == ([], 0)
