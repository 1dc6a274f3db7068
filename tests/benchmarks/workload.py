"""The common workload, the same for the same seed: memories, their vectors, and questions about them.

Written after the generator that every benchmark of this project is compared by, draw for draw, so that rows, vectors
and questions are those of anybody else's run. About one row in nine is Japanese; texts have 200 to 800 characters,
timestamps spread over two years, and there are three agents, four projects and four channels.

    records(1000)              -> dictionaries: agent_id, project_id, channel, msg_id, content, source, timestamp, topic
    questions(100)             -> (text, topic)
    Embedder(768).embed(texts) -> float32 (n, 768), unit length
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

TOPICS = {
    name: words.split()
    for name, words in {
        "deploy": (
            "deployment rollout canary staging production rollback release pipeline artifact container "
            "registry kubernetes helm manifest cluster namespace ingress replica probe blue green"
        ),
        "database": (
            "database index migration schema transaction deadlock vacuum replica postgres sqlite query "
            "planner checkpoint journal backup restore partition shard latency constraint"
        ),
        "auth": (
            "login token session oauth password cookie credential permission role scope refresh expiry audit "
            "identity provider certificate signature keychain passkey consent"
        ),
        "frontend": (
            "button layout component stylesheet viewport dialog keyboard focus animation contrast theme "
            "responsive accessibility tooltip navigation sidebar hydrate bundle render typography"
        ),
        "ml": (
            "model training gradient checkpoint dataset evaluation benchmark embedding tokenizer quantization "
            "inference batch learning rate overfitting annotation label metric recall precision"
        ),
        "travel": (
            "flight hotel itinerary passport train luggage reservation airport visa museum ferry mountain "
            "beach market restaurant map ticket gate boarding hostel"
        ),
        "cooking": (
            "recipe oven garlic onion butter simmer broth noodle dough yeast seasoning skillet basil tomato "
            "vinegar marinate roast knead pepper dessert"
        ),
        "health": (
            "appointment doctor sleep exercise prescription allergy vitamin therapy blood pressure knee "
            "running stretch diet physiotherapy symptom clinic dosage recovery injury hydration"
        ),
        "finance": (
            "invoice budget salary mortgage tax receipt refund expense forecast quarterly revenue margin "
            "subscription pension dividend ledger audit currency payment reconciliation"
        ),
        "music": (
            "guitar chord rehearsal concert album melody drummer piano rhythm studio microphone playlist "
            "vinyl orchestra violin tempo lyric chorus amplifier festival"
        ),
        "garden": (
            "tomato seedling compost pruning rose soil watering greenhouse mulch harvest lavender fence "
            "hedge pond beetle fertilizer tulip orchard trellis lawn"
        ),
        "school": (
            "homework lecture exam professor thesis semester scholarship library essay grade tutor "
            "kindergarten curriculum seminar laboratory lesson enrollment campus graduate notebook"
        ),
        "legal": (
            "contract clause liability license agreement lawyer deadline signature compliance privacy "
            "regulation dispute patent trademark hearing appeal warranty indemnity notary statute"
        ),
        "hardware": (
            "laptop battery monitor keyboard firmware router cable sensor soldering voltage fan thermal "
            "memory motherboard printer camera drone bluetooth adapter docking"
        ),
        "incident": (
            "outage alert pager timeout latency postmortem root cause mitigation escalation dashboard "
            "threshold spike queue backlog retry saturation memory leak failover recovery runbook"
        ),
        "family": (
            "birthday grandmother sister wedding anniversary dinner cousin baby school holiday photograph "
            "kitchen puppy picnic cottage letter neighbour daughter uncle reunion"
        ),
        "writing": (
            "chapter draft editor paragraph character plot novel publisher manuscript dialogue outline "
            "revision deadline metaphor narrator scene title review essay translation"
        ),
        "security": (
            "vulnerability patch exploit firewall phishing encryption sandbox secret rotation scanner "
            "malware disclosure hardening privilege audit incident perimeter hash nonce entropy"
        ),
        "meeting": (
            "agenda minutes standup retrospective stakeholder roadmap priority milestone decision attendee "
            "calendar sprint backlog estimate workshop feedback sync owner quarter objective"
        ),
        "gaming": (
            "dungeon quest level boss inventory multiplayer controller speedrun sprite shader texture guild "
            "raid loot puzzle campaign character respawn arcade emulator"
        ),
    }.items()
}
JAPANESE = {
    name: words.split()
    for name, words in {
        "deploy": "デプロイ 本番環境 ステージング ロールバック リリース 監視 コンテナ 設定ファイル",
        "travel": "旅行 飛行機 ホテル 予約 温泉 京都 新幹線 切符 荷物 観光",
        "cooking": "料理 味噌汁 出汁 野菜 醤油 鍋 煮込み 包丁 レシピ 弁当",
        "meeting": "会議 議事録 予定 締め切り 担当者 優先順位 進捗 課題 共有 承認",
        "family": "家族 誕生日 母 妹 結婚式 写真 夕食 週末 子供 公園",
        "ml": "学習 モデル 評価 データセット 精度 埋め込み ベクトル検索 推論 実験 再現率",
    }.items()
}
JAPANESE_SENTENCES = [
    "{p}さんは{a}について{b}を確認したいと言っていました。",
    "{c}で{a}の{b}が問題になったので、{d}までに見直すことにした。",
    "{a}より{b}を優先する、という方針を{p}さんと決めた。",
    "前回の{a}では{b}を忘れていたため、今回は{d}に{c}で準備する。",
    "{p}さんの好みは{a}で、{b}はあまり好きではないとのこと。",
    "{a}と{b}の手順をまとめ、{c}のチームに共有済み。番号は{n}。",
]
NAMES = (
    "Aiko Marta Jonas Priya Chen Olu Sofia Liam Noor Kenji Elena Tomas Ruth Amara Diego Ingrid Hana Victor "
    "Yusuf Grace Mina Oscar Lucia Ravi Freya Hugo Zara Emil Nadia Theo"
).split()
ENDINGS = ("py", "toml", "md", "sql")
CITIES = (
    "Kyoto Berlin Lagos Lisbon Toronto Oslo Prague Chennai Seoul Dublin Quito Nairobi Osaka Vienna Madrid "
    "Boston Warsaw Helsinki Lima Perth"
).split()
SENTENCES = [
    "{p} asked about the {a} {b} and said the {c} should be finished before {d}.",
    "We decided to keep the {a} in {city} because the {b} was cheaper and the {c} looked more reliable than last time.",
    "The {a} failed with code {n} after the {b} changed, so I restored the {c} and told {p} to check again on {d}.",
    "{p} prefers {a} over {b}, and does not want to talk about {c} before the weekend.",
    "Remember that the {a} for {proj} lives in {path} and that the {b} needs {n} units of {c}.",
    "During the call on {d} we compared {a} with {b}; {p} thought the {c} was the real cause of the delay.",
    "I still have to write the {a} summary, review the {b}, and send the {c} notes to {p} in {city}.",
    "It turned out that the old {a} was never connected to the {b}, which explains why the {c} kept growing.",
    "If the {a} is slow again, first look at the {b}, then restart the {c} and open ticket {tick}.",
    "{p} and {p2} met in {city} to plan the {a}; they agreed that the {b} comes first and the {c} can wait until {d}.",
    "My notes say the {a} costs {n} euros per month, although the {b} with a better {c} would be half of that.",
    "The user said: please never change the {a} without asking, and always mention the {b} when the {c} is discussed.",
    "After three attempts the {a} finally worked, mostly because {p2} found a typo in the {b} section of {path}.",
    "There is an open question about whether the {a} replaces the {b} or only supports the {c} for {proj}.",
    "On {d} the {a} was {n} percent better than the {b}, and {p} wants the same result for the {c}.",
]
QUESTIONS = [
    "what did {p} say about the {a} and the {b}?",
    "how do we fix the {a} when the {b} fails",
    "{a} {b} {c}",
    "when is the {a} in {city} due",
    "which {a} does {p} prefer",
    "why was the {a} slower than the {b}",
    "notes on {a} and {b} for {p}",
]
AGENTS = ["agent.alpha"] * 70 + ["agent.beta"] * 20 + ["agent.gamma"] * 10
PROJECTS = ["", "", "web", "infra", "home", "research"]
CHANNELS = ["", "chat", "discord", "cli"]
STOP_WORDS = set(
    "the a an and or but of to in on for with about that was were is are be been it its we i my they he she said "
    "say says asked should would could can not never before after because"
    " than then so still have has had do does did this these those there if when which who how first last time "
    "again only more most any all each other into over under out up down no"
    " yes please always".split()
)
BEGINNING = datetime(2024, 11, 1, tzinfo=UTC)
SPAN_SECONDS = 730 * 86400
_WORDS = re.compile(r"[A-Za-z0-9_\-/\.]+|[\u3040-\u30ff\u4e00-\u9fff]{1}")


def records(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Yield memories, oldest first. The order of the draws is what makes two runs alike: change none of it."""
    draw = random.Random(seed)
    topics = list(TOPICS)
    for row in range(count):
        topic = draw.choice(topics)
        length = int(min(800, max(200, draw.lognormvariate(5.95, 0.35))))
        japanese = topic in JAPANESE and draw.random() < 0.4
        name, city = draw.choice(NAMES), draw.choice(CITIES)
        project = (
            draw.choice(["atlas", "borealis", "cinder", "delta-9", "ember", "foxglove"])
            + "-"
            + str(draw.randrange(200))
        )
        text = _text(draw, topic, topics, length, japanese, name, city, project)
        agent, axis, channel = draw.choice(AGENTS), draw.choice(PROJECTS), draw.choice(CHANNELS)
        source = (
            {"type": "User", "id": "user:" + name.lower(), "name": name}
            if draw.random() < 0.6
            else {"type": "Agent", "id": "agent:self"}
        )
        moment = BEGINNING + timedelta(seconds=SPAN_SECONDS * (row / max(1, count)) + draw.random() * 3600)
        yield {
            "agent_id": agent,
            "project_id": axis,
            "channel": channel,
            "msg_id": f"m{seed}-{row}",
            "content": text,
            "source": source,
            "timestamp": moment.isoformat(),
            "topic": topic,
        }


def _text(
    draw: random.Random, topic: str, topics: list[str], length: int, japanese: bool, name: str, city: str, project: str
) -> str:
    sentences, written = [], 0
    while written < length:
        words = TOPICS[topic] if draw.random() < 0.85 else TOPICS[draw.choice(topics)]
        day = f"{2024 + draw.randrange(3):04d}-{1 + draw.randrange(12):02d}-{1 + draw.randrange(28):02d}"
        if japanese:
            words = JAPANESE[topic] if draw.random() < 0.85 else JAPANESE[draw.choice(list(JAPANESE))]
            sentence = draw.choice(JAPANESE_SENTENCES).format(
                p=name, a=draw.choice(words), b=draw.choice(words), c=draw.choice(words), d=day, n=draw.randrange(10000)
            )
            written += len(sentence)
        else:
            sentence = draw.choice(SENTENCES).format(
                p=name,
                p2=draw.choice(NAMES),
                a=draw.choice(words),
                b=draw.choice(words),
                c=draw.choice(words),
                d=day,
                city=city,
                proj=project,
                n=draw.randrange(10000),
                tick=f"{draw.choice(['OPS', 'WEB', 'DATA', 'BUG'])}-{draw.randrange(90000)}",
                path=f"/srv/{project}/{draw.choice(words)}_{draw.randrange(1000)}.{draw.choice(ENDINGS)}",
            )
            written += len(sentence) + 1
        sentences.append(sentence)
    return ("" if japanese else " ").join(sentences)[:800]


def questions(count: int, seed: int = 7, japanese_share: float = 0.15) -> list[tuple[str, str]]:
    """Return questions in the words of the corpus, each with its topic."""
    draw = random.Random(seed)
    out = []
    for _ in range(count):
        if draw.random() < japanese_share:
            topic = draw.choice(list(JAPANESE))
            words = JAPANESE[topic]
            out.append((f"{draw.choice(words)}の{draw.choice(words)}について", topic))
            continue
        topic = draw.choice(list(TOPICS))
        words = TOPICS[topic]
        out.append(
            (
                draw.choice(QUESTIONS).format(
                    p=draw.choice(NAMES),
                    city=draw.choice(CITIES),
                    a=draw.choice(words),
                    b=draw.choice(words),
                    c=draw.choice(words),
                ),
                topic,
            )
        )
    return out


class Embedder:
    """Texts as sums of the directions of their words, with a direction that all share and noise of their own; the same
    text, the same vector.
    """

    MODEL = "bench"

    def __init__(self, dim: int = 768, buckets: int = 16384, seed: int = 99):
        draw = np.random.default_rng(seed)
        self.dim, self.buckets = dim, buckets
        self._directions = draw.standard_normal((buckets, dim), dtype=np.float32)
        self._directions /= np.linalg.norm(self._directions, axis=1, keepdims=True)
        self._shared = draw.standard_normal(dim).astype(np.float32)
        self._shared /= np.linalg.norm(self._shared)
        self._known: dict[str, int] = {}
        self._stop = {zlib.crc32(word.encode()) % buckets for word in STOP_WORDS}

    def one(self, text: str) -> np.ndarray:
        """Return one text's vector: float32, unit length."""
        counts: dict[int, int] = {}
        for word in _WORDS.findall(text.lower()):
            bucket = self._known.get(word)
            if bucket is None:
                bucket = self._known[word] = zlib.crc32(word.encode()) % self.buckets
            counts[bucket] = counts.get(bucket, 0) + 1
        counts = counts or {0: 1}
        weights = np.sqrt(np.fromiter(counts.values(), np.float32, len(counts)))
        for place, bucket in enumerate(counts):
            if bucket in self._stop:
                weights[place] *= 0.1
        vector = weights @ self._directions[np.fromiter(counts.keys(), np.int64, len(counts))]
        vector /= np.linalg.norm(vector) + 1e-9
        noise = self._directions[(zlib.crc32(text.encode()) * 2654435761 + 12345) % self.buckets]
        vector = vector + 0.55 * self._shared + 0.35 * noise
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def embed(self, texts: list[str]) -> np.ndarray:
        """Return the texts' vectors, shape (n, dim)."""
        return np.stack([self.one(text) for text in texts])
