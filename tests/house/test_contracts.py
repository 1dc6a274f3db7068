"""CONTRACTS.md and the `Contract:` lines say the same names, and nothing points at a document that is not here."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "daemon" / "cpersona_daemon" / "CONTRACTS.md"
CODE = ("daemon", "cpersona_cli")
TESTS = ("tests",)

NAME = r"[a-z]+\.[a-z]+"
RULE = re.compile(rf"^### (?P<name>{NAME}) \((?:protocol|own)\)$", re.MULTILINE)
CITATION = re.compile(r'Contract: (?P<names>.*?)(?="""|\n[ \t]*\n)', re.DOTALL)
NAMES = re.compile(rf"{NAME}(?:, {NAME})*\.?")

# What a reader of this tree does not have: the documents that it was built from, their sections, and tickets.
ELSEWHERE = re.compile(
    r"(?:contracts|interface|quality|design|interop)\.md"
    r"|behavior-contracts|one-prior-function|recall-preview-tier|seeds/|\b[Tt]he seeds'?\b"
    r"|§|\b[Ii]ssues? [\"“#\d]"
)
READ = {".py", ".md", ".toml", ".service", ".socket", ".plist", ".1", ".5", ".7", ""}
SKIPPED = {"data", "__pycache__"}


def test_every_rule_has_a_name_of_its_own_and_says_something():
    rules = RULE.findall(PAGE.read_text())
    assert len(rules) > 100 and len(rules) == len(set(rules))
    bodies = RULE.split(PAGE.read_text())[2::2]
    assert [name for name, body in zip(rules, bodies, strict=True) if len(body.split()) < 10] == []
    assert [
        line for line in PAGE.read_text().splitlines() if line.startswith("### ") and not RULE.fullmatch(line)
    ] == []


def test_a_contract_line_holds_names_of_rules_and_nothing_else():
    wrong = [f"{path}: {names}" for path, names in _citations(*CODE, *TESTS) if not NAMES.fullmatch(names)]
    assert wrong == []


def test_every_name_cited_is_a_rule_of_the_page():
    rules = set(RULE.findall(PAGE.read_text()))
    unknown = {name: paths for name, paths in _cited(*CODE, *TESTS).items() if name not in rules}
    assert unknown == {}


def test_every_rule_is_cited_by_code():
    assert sorted(set(RULE.findall(PAGE.read_text())) - _cited(*CODE).keys()) == []


def test_every_rule_is_cited_by_a_test():
    assert sorted(set(RULE.findall(PAGE.read_text())) - _cited(*TESTS).keys()) == []


def test_nothing_points_at_a_document_that_is_not_in_this_tree():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()}"
        for path in _texts()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := ELSEWHERE.search(line))
    ]
    assert found == []


def _texts() -> Iterator[Path]:
    """Every text of the tree that people read or write, but this one and data."""
    for room in (*CODE, *TESTS, "man", "completions", ".ci"):
        for path in sorted((ROOT / room).rglob("*")):
            if path.is_file() and path.suffix in READ and path != Path(__file__) and not SKIPPED & set(path.parts):
                yield path
    yield from sorted(path for path in ROOT.iterdir() if path.suffix in (".md", ".toml"))


def _citations(*rooms: str) -> Iterator[tuple[str, str]]:
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            if path != Path(__file__):
                for match in CITATION.finditer(path.read_text()):
                    yield str(path.relative_to(ROOT)), " ".join(match["names"].split())


def _cited(*rooms: str) -> dict[str, list[str]]:
    """Return who cites each name."""
    cited: dict[str, list[str]] = defaultdict(list)
    for path, names in _citations(*rooms):
        for name in re.findall(NAME, names):
            cited[name].append(path)
    return cited
