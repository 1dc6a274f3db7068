"""Golden accounts: a seeded store, questions of every sort, and each whole answer with its account as it was recorded.

The recorded file holds what ``recall`` answers over the wire's own door (``dispatch``) with ``trace: true``. A change
that means to change no answer compares equal; one that means to is recorded anew, and the difference is read:

    CPERSONA_RECORD_GOLDEN=1 python -m pytest -n 0 tests/golden

The file is gzipped JSON lines of [key, answer], the same bytes for the same answers; a key is variant/mode/question.
Texts stand as digests, numbers with six significant digits, compared with a tolerance, as processors differ. Nothing
depends on the order of the questions: the clock stands still, and persistence is paused, so no recall is counted.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from embed_kit import MODEL, EmbedServer, with_vector
from store_kit import Store

from cpersona_daemon.model.clock import SystemClock

RECORDED = Path(__file__).with_name("accounts.jsonl.gz")
MODES = ("rrf", "rsf", "cascade", "blend")
FUSED = ("rrf", "rsf", "blend")
BLENDS_EVERY = 21
RELATIVE, ABSOLUTE, DIGITS = 1e-5, 3e-6, 6
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FIRST_DAY = datetime(2024, 2, 1, tzinfo=UTC)
ALMA, BELA, CORA = "alma", "bela", "cora"  # a large store; one too small for a profile; one where rows lack a vector
SESSION = "golden"
WORD_WIDTH, SIGN_WIDTH, SIGN_SHARE = 24, 8, 0.25


class StillClock(SystemClock):
    """A wall clock that stands still; durations go on."""

    def now(self) -> float:
        return NOW.timestamp()


# -- vectors


class BagEmbedder(EmbedServer):
    """Serves POST /embed: texts that share words and groups of letters have vectors that point the same way."""

    def reply(self, texts: list[str]) -> dict:
        return {"embeddings": [bag(text) for text in texts], "model": MODEL}


@lru_cache(4096)
def bag(text: str) -> list[float]:
    """Return a unit vector of 32 numbers: 24 for the words of a text, 8 for its letters (a fourth of the cosine)."""
    folded = text.lower()
    words = [w for w in re.findall(r"\w+", folded) if len(w) > 3 or not w.isascii()]
    signs = [folded[i : i + 3] for i in range(max(1, len(folded) - 2))]
    parts = ((words or ["-"], WORD_WIDTH, 1 - SIGN_SHARE), (signs, SIGN_WIDTH, SIGN_SHARE))
    return [x * share**0.5 for things, width, share in parts for x in _projected(things, width)]


def _projected(things: list[str], width: int) -> list[float]:
    rows = [_direction(thing, width) for thing in things]
    total = [sum(column) for column in zip(*rows, strict=True)]
    length = math.sqrt(sum(x * x for x in total))
    return [x / length for x in total]


@lru_cache(20_000)
def _direction(thing: str, width: int) -> list[float]:
    # All have a little of one direction in common, as the texts of any model have.
    return [
        b / 127.5 - 1 + (0.5 if i == 0 else 0) for i, b in enumerate(hashlib.sha256(thing.encode()).digest()[:width])
    ]


# -- the store

PEOPLE = "Marta Jonas Ilse Bruno Keiko Pavel Signe Tobias Noor Emil".split()
PLACES = "Trieste Bergen Aarhus Lucca Kyoto Ghent Porto Tartu Graz Bremen".split()
SERVICES = "ledger courier beacon mosaic harbor quarry lantern thicket".split()
CHANNELS, PROJECTS = ("chat", "mail", "terminal"), ("atlas", "borealis", "")
SOURCES = ({"type": "User", "id": "team:anna"}, {"type": "User", "id": "team:ben"}, {"type": "Agent", "id": "planner"})
LISTS = {
    "dish": "lentil soup,plum cake,mushroom risotto,pickled beets,barley stew,almond biscuits,leek pie,fig jam".split(
        ","
    ),
    "plant": "tomatoes,rhubarb,lavender,kale,dahlias,raspberries,thyme,pumpkins".split(","),
    "tool": "cast iron pan,soldering iron,hand plane,torque wrench,pressure cooker,garden fork".split(","),
    "piece": "a nocturne,the cello suite,an old waltz,a fugue in minor,the second sonata,a lullaby".split(","),
    "animal": "greyhound,parrot,tortoise,old cat,pony,hedgehog".split(","),
    "fault": "timed out,ran out of memory,dropped its connections,wrote a torn page,refused the handshake".split(","),
    "weather": "heavy rain,thick fog,early frost,a warm wind,a thunderstorm".split(","),
    "day": "Monday,Tuesday,Wednesday,Thursday,Friday,Saturday".split(","),
}
TEMPLATES = (
    "{person} cooked {dish} in the {tool} for the guests from {place}.",
    "The recipe for {dish} needs {n} minutes and less salt, says {person}.",
    "{person} planted {plant} beside the shed after {weather}.",
    "The {plant} did not survive {weather}; {person} will sow them again in April.",
    "The {service} service {fault} under load, and {person} restarted it on {day}.",
    "Deploys of {service} are frozen until {person} has reviewed the migration in {path}.",
    "{person} found that {service} {fault} because of commit {hash}.",
    "Advisory {cve} affects {service}; the patched build is {version}.",
    "Config of {service} lives in {path} and is read once at start.",
    "The night train to {place} leaves at {n}:15 on {day} from platform {m}.",
    "{person} stayed {m} nights in {place} and walked along the harbour in {weather}.",
    "Tickets to {place} cost {n} euros when booked before {day}.",
    "{person} practises {piece} every {day} evening with the window open.",
    "At the concert in {place} they played {piece} twice because of {weather}.",
    "The {animal} of {person} was seen by the vet on {day} and weighs {m} kilos.",
    "{person} is allergic to {dish} and carries tablets since the trip to {place}.",
    "The lease of the workshop in {place} ends in {month} and costs {n}0 a month.",
    "{person} borrowed the {tool} from the neighbour and promised it back by {day}.",
    "Meeting notes: {person} wants the {service} dashboard split by region before {month}.",
    "Budget for {month}: {n}00 for travel to {place}, the rest for the {tool}.",
    "{person}さんは{month_ja}に{place_ja}へ引っ越しました。荷物は{m}箱です。",
    "{place_ja}の会議で{person}さんが{service}の障害を説明した。",
    "毎週{day_ja}に庭の手入れをして、トマトに{n}分水をやる。",
    "{person} hat am {day_de} den Schlüssel zum Keller bei der Nachbarin in {place} abgegeben.",
    "Die Heizung in {place} wurde nach {m} Tagen repariert, die Rechnung kam im {month_de}.",
    "{person} möchte im {month_de} wieder nach {place} fahren und dort Fahrräder leihen.",
)
FACTS = (
    ("The {service} service listens on port {v} behind the proxy.", ("7410", "7522", "8033")),
    ("The password rotation of {service} happens every {v} days.", ("90", "45", "30")),
    ("{person} lives in {v} and works from home.", ("Bergen", "Lucca", "Ghent")),
    ("The standup of the {service} team is at {v} in the small room.", ("nine", "ten", "half past ten")),
    ("{person} drinks {v} in the morning before the first call.", ("black coffee", "green tea", "hot cocoa")),
)
SUMMARIES = (
    "{person} and the team moved {service} to new machines after it {fault}.",
    "A long weekend in {place}: {dish}, {piece} and {weather}.",
    "Planning of the garden: {plant}, a new {tool}, help from {person}.",
    "The outage of {service} on {day}, its cause {hash}, and what {person} changed.",
)
_JA = {"month_ja": ("三月", "六月", "十月"), "place_ja": ("京都", "大阪", "札幌"), "day_ja": ("土曜日", "日曜日")}
_DE = {"day_de": ("Montag", "Freitag", "Sonntag"), "month_de": ("März", "Juli", "Oktober")}


class Writer:
    """Fills templates, the same way for the same seed, and remembers what it put into the last one."""

    def __init__(self, seed: int):
        self.chance = random.Random(seed)

    def fill(self, template: str, **given: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda m: given.get(m[1]) or self._word(m[1]), template)

    def _word(self, name: str) -> str:
        c = self.chance
        simple = {
            "person": PEOPLE,
            "place": PLACES,
            "service": SERVICES,
            **LISTS,
            **_JA,
            **_DE,
            "month": ("March", "June", "October"),
        }
        if name in simple:
            return c.choice(simple[name])
        if name == "path":
            return (
                f"/srv/{c.choice(SERVICES)}/conf.d/{c.randrange(10, 99)}-{c.choice(('limits', 'routes', 'pool'))}.toml"
            )
        made = {"n": c.randrange(10, 60), "m": c.randrange(2, 9), "hash": f"{c.getrandbits(40):010x}"}
        made |= {
            "cve": f"CVE-2025-{c.randrange(10000, 60000)}",
            "version": f"v{c.randrange(1, 5)}.{c.randrange(20)}.{c.randrange(9)}",
        }
        return str(made[name])


@lru_cache(1)
def records() -> list[dict]:
    """Return the import lines of the store: 400 memories over two years and 30 episodes of three agents."""
    w = Writer(7)
    lines: list[dict] = []
    for agent, memories, episodes in ((ALMA, 280, 22), (BELA, 36, 3), (CORA, 84, 5)):
        rows: list[str] = []
        while len(rows) < (memories if agent == BELA else memories - 30):
            text = w.fill(TEMPLATES[len(rows) % len(TEMPLATES)])
            rows += [text] if text not in rows else []
        days = [w.chance.uniform(0, 700) for _ in rows]
        if agent != BELA:
            for n in range(10):  # one fact, told anew months apart
                template, values = FACTS[n % len(FACTS)]
                about = {"service": SERVICES[n % len(SERVICES)], "person": PEOPLE[n % len(PEOPLE)]}
                begin = w.chance.uniform(0, 200)
                for place, value in enumerate(values):
                    rows.append(w.fill(template, v=value, **about))
                    days.append(begin + place * 170)
        for n, (text, day) in enumerate(zip(rows, days, strict=True)):
            lines.append(_memory(agent, n, text, FIRST_DAY + timedelta(days=round(day, 3)), agent != CORA or n % 3 > 0))
        for n in range(episodes):
            text = f"{w.fill(SUMMARIES[n % len(SUMMARIES)])} Part {n + 1}."
            at = FIRST_DAY + timedelta(days=40 + n * 600 // episodes)
            line = {"_type": "episode", "agent_id": agent, "summary": text, "created_at": f"{at:%Y-%m-%d %H:%M:%S}"}
            lines.append(
                line | {"project_id": PROJECTS[n % 3]} | ({} if agent == CORA and n % 2 else with_vector(bag(text)))
            )
    return lines


def _memory(agent: str, n: int, text: str, at: datetime, vector: bool) -> dict:
    line: dict[str, Any] = {
        "_type": "memory",
        "agent_id": agent,
        "content": text,
        "created_at": f"{at:%Y-%m-%d %H:%M:%S}",
        "timestamp": "" if n % 23 == 22 else f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "channel": CHANNELS[n % 4] if n % 4 < 3 else "",
        "project_id": PROJECTS[n % 3],
        "source": SOURCES[n // 2 % 3],
        "recall_count": n % 5 if n % 7 == 0 else 0,
    }
    if line["recall_count"]:
        line["last_recalled_at"] = "2026-03-01 11:58:00" if n % 2 else "2026-01-20 08:00:00"
    return line | (with_vector(bag(text)) if vector else {})


def fill(store: Store, directory: Path) -> None:
    """Put the records and three profiles into a store, and pause what recalls would count."""
    path = directory / "golden.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in records()), encoding="utf-8")
    answer, code = store.call("import_memories", {"input_path": str(path)})
    assert code is None and not answer.get("errors"), answer
    assert (answer["imported_memories"], answer["imported_episodes"]) == (400, 30), answer
    for agent in (ALMA, BELA, CORA):
        _, code = store.call(
            "update_profile", {"agent_id": agent, "profile": f"{agent} keeps notes about a workshop and its people"}
        )
        assert code is None
    _, code = store.call("pause_persistence", {"session_key": SESSION})
    assert code is None


# -- the questions


@lru_cache(1)
def questions() -> list[str]:
    """Return the 200 questions; those of one sort stand at every tenth place or so, so that each part holds of all."""
    c, rows = random.Random(11), [line for line in records() if line["agent_id"] == ALMA and line["_type"] == "memory"]
    texts = [row["content"] for row in rows]
    telling = [
        m for text in texts for m in re.findall(r"CVE-\d+-\d+|/srv/\S+toml|\b[0-9a-f]{10}\b|v\d\.\d+\.\d+", text)
    ]
    plain = [text for text in texts if text.isascii()]

    def words() -> str:
        return " ".join(c.sample(re.findall(r"[A-Za-z]{4,}", c.choice(plain)), 3))

    person, place, service = (lambda: c.choice(PEOPLE)), (lambda: c.choice(PLACES)), (lambda: c.choice(SERVICES))
    sorts = (
        lambda: words(),
        lambda: f"What did {person()} say about {c.choice(LISTS['dish'])}?",
        lambda: c.choice(
            ("where is {} defined", "what do we know of {}", "{}", "which service is hit by {} and why")
        ).format(c.choice(telling)),
        lambda: c.choice(
            (
                "What does {0} drink now?",
                "Where did {0} live before?",
                "Where is {0} living these days?",
                "what was {0} drinking last year",
            )
        ).format(person()),
        lambda: c.choice(
            (
                "Which port does {0} listen on now?",
                "which port was {0} on before",
                "How often is the password of {0} rotated currently?",
                "When was the standup of the {0} team in March 2025?",
            )
        ).format(service()),
        lambda: c.choice(
            ("What does {0} think of {1}?", "Why was {0} in {1} with the greyhound?", "has {0} ever been to {1}")
        ).format(c.choice(("Zebulon", "Quillfeather", "Oda Brask", "Xanthe")), place()),
        lambda: c.choice(
            (
                f"Wer hat den Schlüssel in {place()} abgegeben?",
                f"Wann wurde die Heizung in {place()} repariert?",
                f"Möchte {person()} im Juli wieder nach {place()} fahren?",
            )
        ),
        lambda: c.choice(
            (
                f"{person()}さんはいつ引っ越しましたか",
                "京都の会議で何を説明した?",
                "トマトに水をやる日",
                f"札幌と{service()}の障害",
            )
        ),
        lambda: c.choice(
            (
                f"Why did {person()} climb the glacier in {place()} with borrowed crampons?",
                f"Is {person()} afraid of submarines and zeppelins?",
                "quantum chromodynamics lattice gauge",
                "how tall is the tallest giraffe",
            )
        ),
        lambda: c.choice(
            (
                "???",
                "…",
                "-",
                "🎻",
                f"{service()[:4]}",
                "of the",
                f"{place()}, {service()}, {person()}",
                f"the {c.choice(LISTS['animal'])} again",
            )
        ),
    )
    return [sorts[n % len(sorts)]() for n in range(200)]


# -- what is asked


@dataclass(frozen=True)
class Variant:
    """One way to ask.

    ``every`` picks the questions; a blend is asked fewer, as its accounts are long. ``store`` is where: "vectors",
    "parts" (the embedder declares numbers) or "words" (there is no embedder).
    """

    name: str
    set: dict = field(default_factory=dict)
    params: dict = field(default_factory=dict)
    modes: tuple[str, ...] = MODES
    agent: str = ALMA
    store: str = "vectors"
    every: int = 13
    method: str = "recall"


LEGACY = {"confidence_enabled": True, "confidence_ordering": "legacy"}
CONTEXT = [
    {"role": "user", "content": "Which port does ledger listen on?", "timestamp": "2025-05-01T10:00:00Z"},
    {"role": "assistant", "content": "I will look.", "timestamp": "2025-05-01T10:00:05Z"},
    {"role": "system", "content": "be short"},
]
KNOWN = [line["content"][:40] for line in records()[:280:4]]
VARIANTS = (
    Variant("plain", every=1),
    Variant("few", params={"limit": 3}),
    Variant("many", params={"limit": 30}, every=23),
    Variant("blank", params={"query": "  ", "limit": 7}, every=100),
    Variant("legacy", LEGACY),
    Variant("legacy far below", LEGACY | {"cosine_floor": 0.6, "cosine_ceil": 0.95, "decay_floor": 0.0}),
    Variant("confidence", {"confidence_enabled": True}),
    Variant("deep", params={"deep": True}),
    Variant("as of", params={"as_of": "2025-01-15T00:00:00Z"}),
    Variant("source", params={"source_id": "team:ben"}),
    Variant("sources", params={"source_id": "team:"}),
    Variant("source and channel", params={"source_id": "planner", "channel": "mail"}),
    Variant("project", params={"project_id": "atlas"}),
    Variant("global pool", params={"project_id": ""}),
    Variant("channel", params={"channel": "chat"}),
    Variant("reach", {"max_memories": 60, "vector_reach": 240, "vector_far_limit": 6, "prior_far_weight": 0.6}),
    Variant("window", {"max_memories": 60}),
    Variant("penalty", {"episode_penalty_enabled": True}),
    Variant("prior", {"prior_age_rate": 0.001}, modes=FUSED),
    Variant("prior from now", {"prior_age_rate": 0.01, "prior_age_anchor": "now", "prior_age_floor": 0.1}, modes=FUSED),
    Variant("versions", {"version_order": True}, every=7, modes=FUSED),
    Variant("versions in a cascade", {"version_order": True}, modes=("cascade",)),
    Variant("no autocut", {"autocut_enabled": False}, {"limit": 4}),
    Variant("eager autocut", {"autocut_min_gap_ratio": 0.01}, {"limit": 4}),
    Variant("eager autocut of legacy", LEGACY | {"autocut_min_gap_ratio": 0.01}),
    Variant("no index", {"fts_enabled": False}),
    Variant("excluded", params={"exclude_contents": KNOWN}),
    Variant("high floor", {"vector_min_similarity": 0.9, "recall_depth_floor": 25}, modes=("rrf", "rsf", "cascade")),
    Variant("other constant", {"rrf_k": 20}, modes=("rrf",)),
    Variant("absolute", params={"absolute": True, "limit": 5}),
    Variant("in context", params={"external_context": CONTEXT}, method="recall_with_context", every=29),
    Variant("small store", agent=BELA),
    Variant("rows without vectors", agent=CORA),
    Variant("rows without vectors, legacy", LEGACY, agent=CORA, every=23),
    Variant("words alone", store="words"),
    Variant("words alone, no index", {"fts_enabled": False}, store="words", every=23),
    Variant("words alone, legacy", LEGACY, store="words", every=23),
    Variant("parts", store="parts", every=9),
)
WHY_NOT = (
    Variant("why not", params={"limit": 4}, every=7),
    Variant("why not of a source", params={"source_id": "team:ben", "exclude_contents": KNOWN}),
    Variant("why not in the window", {"max_memories": 60}),
    Variant("why not at a high floor", {"vector_min_similarity": 0.95}, modes=("rrf", "cascade")),
    Variant("why not, no index", {"fts_enabled": False}, every=23),
    Variant("why not, autocut", {"autocut_min_gap_ratio": 0.01}, {"limit": 4}, modes=("cascade",)),
    Variant("why not by words", store="words"),
    Variant("why not without vectors", agent=CORA),
    Variant("why not blank", params={"query": ""}, every=67),
    Variant("why not legacy", LEGACY, every=23),
)


def asked(variant: Variant, texts: list[str]) -> Iterator[tuple[str, dict, dict]]:
    """Yield the key, params and settings of each question of a variant."""
    for mode in variant.modes:
        every = max(variant.every, BLENDS_EVERY) if mode == "blend" and variant.every > 1 else variant.every
        for n in range(0, len(texts), every):
            params = {
                "agent_id": variant.agent,
                "query": texts[n],
                "trace": True,
                "session_key": SESSION,
                **variant.params,
            }
            if variant in WHY_NOT:
                params["why_not"] = _asked_after(variant, texts[n], n)
            yield f"{variant.name}/{mode}/{n}", params, variant.set | {"recall_mode": mode}


def _asked_after(variant: Variant, question: str, n: int) -> str:
    """Return the row to ask after: by turns any episode, any row of the store, and one near to the question."""
    if n % 5 == 4:
        return f"ep:{n % 30 + 1}"
    if n % 5 == 0:
        return f"mem:{n * 37 % 410 + 1}"
    rows = [(at, line) for at, line in enumerate(line for line in records() if line["_type"] == "memory")]
    own = [at for at, line in rows if line["agent_id"] == variant.agent]
    if "exclude_contents" in variant.params:
        own = [at for at in own if at % 4 == 0 and rows[at][1]["source"]["id"] == variant.params["source_id"]]
    asked = bag(question)
    own.sort(key=lambda at: (-sum(a * b for a, b in zip(bag(rows[at][1]["content"]), asked, strict=True)), at))
    return f"mem:{own[(0, 2, 5, 11, 30, 60, 3)[n % 7] % len(own)] + 1}"


# -- answers as they are recorded


def reduced(value: Any) -> Any:
    """Return an answer with its numbers rounded and the texts of its rows as digests."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [reduced(v) for v in value]
    if isinstance(value, dict):
        return {k: digest(v) if k == "content" and isinstance(v, str) else reduced(v) for k, v in value.items()}
    return value


def digest(text: str) -> str:
    return "#" + hashlib.sha256(text.encode()).hexdigest()[:6]


def difference(recorded: Any, now: Any, path: str = "") -> str | None:
    """Return the first place where two answers differ, with both values; None where they agree."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in [key for key in recorded if key in now]:
            found = difference(recorded[key], now[key], f"{path}.{key}")
            if found:
                return found
        gone, new = sorted(recorded.keys() - now.keys()), sorted(now.keys() - recorded.keys())
        return f"{path}: keys gone {gone}, new {new}" if gone or new else None
    if isinstance(recorded, list) and isinstance(now, list):
        for at, (one, other) in enumerate(zip(recorded, now, strict=False)):
            found = difference(one, other, f"{path}[{at}]")
            if found:
                return found
        return None if len(recorded) == len(now) else f"{path}: {len(recorded)} entries recorded, {len(now)} now"
    if (
        isinstance(recorded, float)
        and isinstance(now, (int, float))
        or isinstance(now, float)
        and isinstance(recorded, (int, float))
    ):
        same = math.isclose(recorded, now, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    else:
        same = recorded == now
    return None if same else f"{path}: recorded {recorded!r}, now {now!r}"


def write(answers: dict[str, dict]) -> None:
    """Record answers anew; those of one question stand together, as they are alike and compress well."""

    def place(key: str) -> tuple[int, int, str]:
        variant, mode, n = key.split("/")
        return int(n), MODES.index(mode), variant

    lines = [
        json.dumps([key, answers[key]], ensure_ascii=False, separators=(",", ":")) for key in sorted(answers, key=place)
    ]
    RECORDED.write_bytes(gzip.compress("\n".join(lines).encode(), 9, mtime=0))


def read() -> dict[str, dict]:
    """Return the recorded answers by key."""
    return dict(map(json.loads, gzip.decompress(RECORDED.read_bytes()).decode().splitlines()))
