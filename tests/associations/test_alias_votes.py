"""Contract: associations.alias."""

from __future__ import annotations

from assoc_kit import axis

OMA = {"entities": [{"name": "Grandmother Ilse", "aliases": ["Oma"]}]}


def refs(answer: dict) -> set[str]:
    return {item["head_ref"] for item in answer["items"]}


def test_a_row_that_only_the_alias_finds_stays_out_without_an_embedder(in_store):
    async def body(world):
        await world.remember("Grandmother Ilse likes plums")
        await world.declare(OMA)
        return await world.reconstruct("how is Oma")

    assert in_store(body)["items"] == []


def test_a_row_that_only_the_alias_finds_stays_out_of_a_large_store_too(in_store, model):
    async def body(world):
        asked = "how is Oma doing"
        model.vectors[asked] = axis(1.0)
        for i in range(505):
            await world.remember(f"Shift report {i}")
        await world.remember("Called the bakery about bread", vector=axis(0.7))
        await world.remember("Visited Grandmother Ilse in the hospital", vector=axis(0.6))
        await world.remember("Grandmother Ilse also likes plums", vector=axis(0.0, 0.9))
        before = await world.reconstruct(asked)
        await world.declare(OMA)
        return before, await world.reconstruct(asked)

    before, after = in_store(body, embedding_mode="http", embedding_url=model.url)
    assert refs(before) == refs(after) == {"mem:506", "mem:507"}
    assert after["items"][0]["head_ref"] == "mem:507"
