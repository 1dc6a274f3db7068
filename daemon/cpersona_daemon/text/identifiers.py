"""Identifiers as people write them: the words inside one, its other spellings, what it is taken for. Pure functions.

``maxRetryCount`` and MAX_RETRY_COUNT, E1103 and E-1103, a hash and its beginning, an address with a port are one thing
to a person, while CVE-2024-309 and CVE-2024-3094 are two. So what is found by the index is compared once more as
written: a number that goes on is another number.

Contract: lexical.spellings, lexical.index, blend.absent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .spelling import normalise, spelled

NONE, PERHAPS, SURELY = 0, 1, 2  # how sure it is that a piece is the identifier of something

# The words inside fetchUserById, HTTPServer and InvoiceService. What changes its case more often than words do is coded
# bytes; and some names are one word in spite of their capitals.
_HUMPED = re.compile("[A-Z](?:(?<=[a-z][A-Z])|(?<=[A-Z][A-Z])[a-z]{2})")  # begins with what is rare
_RUN = re.compile("[A-Za-z]+")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_HUMP_LENGTH, _RUN_LENGTH = 3, 64
_ONE_WORD = frozenset(
    "javascript typescript coffeescript github gitlab youtube linkedin postgresql mysql nosql graphql sqlite powershell"
    " wordpress facebook whatsapp paypal openai openapi devops iphone ipad ios macos ebay latex tensorflow pytorch"
    " mongodb dynamodb influxdb cockroachdb rabbitmq websocket vscode intellij pycharm macbook airpods playstation"
    " webassembly autocad photoshop mcdonald oauth vmware opensearch clickhouse cloudflare bitbucket jetbrains".split()
)

_HASH = re.compile(r"(?=.*[0-9])(?=.*[a-f])[0-9a-f]{6,}")
_SHORT_HASHES = (7, 8, 9, 10, 11, 12, 16)  # how many digits of a hash people write
_UUID = re.compile(r"([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})")
_AT = re.compile(r"(\d+(?:\.\d+){3}|[^\W_][\w-]*(?:\.[\w-]+)+)(?::\d+|/\d{1,3})")  # a host or file, a port or line
_URL = re.compile(r"[a-z][a-z0-9+.-]*://(?:www\.)?(.*?)/*")
_HOME = re.compile(r"(?:/home/[^/]+|/users/[^/]+|/root|~|\.)/(.+)")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)(?:[-.+]?(rc|alpha|beta|dev|post|a|b)[-.]?(\d*))?")
_GLUED = re.compile(r"([a-z]{1,8})(\d{2,})")
_JOINED = re.compile(r"[^\W_]+(?:[-_][^\W_]+)+")
_TRACKED = re.compile(r"(#|!|gh|pr|mr|issue|pull|bug)[-#/_]*(\d{2,})")
# What stands before the number of an issue or a pull request, however it is written; a # alone stands for more.
_ISSUE = r"gh|pr|mr|cl|issues?|bugs?|tickets?|tasks?|cases?|pulls?|pull requests?|merge requests?"
_ANY = r"builds?|runs?|jobs?|orders?|invoices?|stor(?:y|ies)|cards?|items?|no|nr|numbers?|id"

# gh 1234 and CVE 2024 3094 are typed for GH-1234 and CVE-2024-3094, and where little else is typed OPS 1427 for
# OPS-1427.
_KEYS = "gh pr mr issue pull bug cve rfc iso pep".split()
_SPACED = re.compile(rf"(?<!\S)((?i:{'|'.join(_KEYS)})|[A-Z]{{2,8}})((?: +#?\d+)+)(?=[\s?!.,;]|$)")
_SPACED_WORDS, _SPACED_DIGITS = 4, 3
# Before a number these begin no key, and neither do words before a year.
_NO_KEYS = frozenset(
    "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC JANUARY FEBRUARY MARCH APRIL JUNE JULY HTTP HTTPS ERROR STATUS"
    " CODE EXIT PORT LINE UTC USD EUR GBP JPY CHF".split()
)
_DIGIT = re.compile("[0-9]")
_YEAR = re.compile("(?:19|20)[0-9]{2}")

_QUANTITY = re.compile(r"[~<>+-]?[$€£]?\d+(?:[.,:]\d+)*(?:[%€$£°]|[a-z]{1,3})?")
_DATE = re.compile(
    r"(?:19|20)\d\d([-./])\d{1,2}(?:\1\d{1,2})?(?:t[\d:.]+z?)?|\d{1,2}([-./])\d{1,2}(?:\2(?:(?:19|20)?\d\d))?"
)
_TELLING_NUMBER, _TELLING_DIGITS = 4, 3  # digits of a number by itself, and beside letters
_FILE = re.compile(
    r"[\w-]+(?:\.[\w-]+)*\.(?:py|rs|go|ts|tsx|json|toml|ya?ml|md|sh|sql|css|html?|txt|csv|log|conf|ini|cfg|c|h|cpp"
    r"|java|rb|php|lock|service|db|xml|proto|tf|env|pem|key|whl|zip|gz|tar|woff2?|png|jpe?g|svg|pdf)"
)
_MARKED = re.compile(r"[^\W_]_+[^\W_]|[^\W_]::[^\W_]|^--[a-z]|[a-z]://|@[\w-]+\.|(?:[\w-]+\.)+[\w-]{2,}\.[\w-]{2,}$")
_HOST = re.compile(r"[\w-]{3,}\.(?!js$)[a-z]{2,4}")
# Names of ways to do something, which a row about it need not use.
_KNOWN = re.compile(r"(?:sha|md|utf|base|h|x|ipv|http|win|es|aes|rsa|rtx|gtx|usb|mp|oauth)-?\d+")
_PATH = re.compile(r"(?:~|\.{1,2})?/[^/].*|[^/]*[a-z][^/]*/.*[\d._/].*")
_DOTTED = re.compile(r"v?\d+(?:\.\d+){2,}.*")
# What a piece is that has one of these forms, the first that it has.
_FORMS = ((NONE, (_DATE,)), (SURELY, (_TRACKED, _DOTTED, _PATH, _FILE, _HASH)), (NONE, (_QUANTITY, _KNOWN)))


@dataclass(frozen=True, slots=True)
class Spelling:
    """Another way to write an identifier: what an index finds it by, words in a row, and what its text must match.

    ``check`` is a pattern of lower-case text, '' for none.
    """

    words: str
    check: str = ""


def humps(piece: str) -> list[str]:
    """Return the words inside the camel-case runs of a piece, in lower case; none of a piece without any."""
    if not _HUMPED.search(piece):
        return []
    return [word for run in _humped_runs(piece) for word in _humps_of(run)]


def holds_humps(text: str) -> bool:
    """Tell whether a text may hold words in camel case."""
    return _HUMPED.search(text) is not None


def humped(text: str) -> str:
    """Return the camel-case runs of a text in lower case, between blanks."""
    return f" {' '.join(_humped_runs(text)).lower()} " if _HUMPED.search(text) else ""


def may_be_humped(word: str) -> bool:
    """Tell of a word at little cost whether it may hold words in camel case: it has a capital behind its first
    letter.
    """
    return not word[1:].islower() and len(word) > 1


def _humped_runs(text: str) -> list[str]:
    return [run for run in _RUN.findall(text) if may_be_humped(run) and _HUMPED.search(run)]


def _humps_of(run: str) -> list[str]:
    if len(run) > _RUN_LENGTH or run.lower() in _ONE_WORD:
        return []
    words = _HUMP.findall(run)
    if len(words) < 2 or len(run) < _HUMP_LENGTH * len(words):
        return []
    return [word.lower() for word in words]


def closed_up(text: str) -> str:
    """Return a question with gh 1234 written as the one identifier that is meant, in a short one OPS 1427 too."""
    if not _DIGIT.search(text):
        return text
    short = len(text.split()) <= _SPACED_WORDS

    def hyphened(found: re.Match[str]) -> str:
        key, numbers = found[1], found[2].replace("#", "").split()
        known = key.lower() in _KEYS
        other = key in _NO_KEYS or len(numbers) == 1 and _YEAR.fullmatch(numbers[0])
        if sum(map(len, numbers)) < _SPACED_DIGITS or not known and (other or not short):
            return found[0]
        return "-".join((key, *numbers))

    return _SPACED.sub(hyphened, text)


@lru_cache(1_024)
def spellings(piece: str) -> tuple[Spelling, ...]:
    """Return the other spellings of an identifier, which is a stripped piece of normalised text in its own case."""
    low = piece.lower()
    found = [*_of_hash(low), *_of_place(low), *_of_number(low), *_of_words(piece)]
    whole = " ".join(spelled(low).split())
    return tuple({s.words: s for s in found if s.words and s.words != whole or s.check}.values())


def _of_hash(piece: str) -> list[Spelling]:
    """A hash is known by its beginning, a UUID with its hyphens and without."""
    out = []
    if uuid := _UUID.fullmatch(piece):
        out += [
            Spelling("".join(uuid.groups())),
            Spelling(" ".join(uuid.groups())),
            Spelling(uuid[1], rf"\b{uuid[1]}\b(?!-)"),
        ]
    elif _HASH.fullmatch(piece):
        out += [Spelling(piece[:n]) for n in _SHORT_HASHES if n < len(piece)]
    return out


def _of_place(piece: str) -> list[Spelling]:
    """An address is known without its port, scheme or home directory, a path by its file where no other path stands."""
    out = []
    if at := _AT.fullmatch(piece):
        out.append(Spelling(_words(at[1]), rf"(?<![\w.-]){re.escape(at[1])}(?![\w-]|\.\w|[:/]\d)"))
    if url := _URL.fullmatch(piece):
        out.append(Spelling(_words(url[1]), re.escape(url[1])))
    if home := _HOME.fullmatch(piece):
        out.append(Spelling(_words(home[1]), re.escape(home[1])))
    if _PATH.fullmatch(piece) and "." in (name := piece.rstrip("/").rpartition("/")[2]) and "://" not in piece:
        out.append(Spelling(_words(name), rf"(?<![\w./-]){re.escape(name)}"))
    return out


def _of_number(piece: str) -> list[Spelling]:
    """A version is known with and without its v, an issue by its number after a word for issues, E-1103 as E1103."""
    out = []
    if version := _VERSION.fullmatch(piece):
        numbers, stage, count = version.groups(default="")
        ending = rf"[-.+]?{stage}[-.]?{count}" if stage else ""
        check = rf"(?<!\d)(?<!\d\.){re.escape(numbers)}{ending}(?!\d)"
        words = _words(numbers)
        out += [Spelling(f"{words}{apart}{stage}{count}", check) for apart in (("", " ") if stage else ("",))]
    elif tracked := _TRACKED.fullmatch(piece):
        out.append(Spelling(tracked[2], _tracked(*tracked.groups())))
    if glued := _GLUED.fullmatch(piece):
        out.append(Spelling(f"{glued[1]} {glued[2]}", rf"(?<![^\W_]){glued[1]}[\W_]{{0,3}}{glued[2]}(?!\d)"))
    return out


def _tracked(mark: str, number: str) -> str:
    """Return the pattern of the number of an issue, in a text that says that it is one."""
    words = f"{_ISSUE}|{_ANY}" if mark == "#" else _ISSUE
    return rf"(?:[#!]|\b(?:{words})\W{{0,3}}){number}(?!\d)"


def _of_words(piece: str) -> list[Spelling]:
    """Names in camel case are known by their words, and max-retry-count as one word."""
    bare = piece.strip("-_")
    if _JOINED.fullmatch(bare):
        return [Spelling("".join(_words(bare).split()))]
    words = humps(piece)
    return [Spelling(" ".join(words))] if words and piece.isalnum() else []


def _words(piece: str) -> str:
    return " ".join(spelled(piece).split())


@lru_cache(1_024)
def own_check(piece: str) -> str:
    """Return what the text of a row must match beside its words to hold a piece as written, '' where words are enough.

    A number neither begins nor ends within another: 10.0.0.1 is not in 10.0.0.12, nor OPS-142 in OPS-1427. A hash that
    goes on is the same hash.
    """
    low = piece.lower()
    if not any(char.isdigit() for char in low) or not low.isascii() or _HASH.fullmatch(low):
        return ""
    if tracked := _TRACKED.fullmatch(low):
        return _tracked(*tracked.groups())
    groups = re.findall(r"\d+|[a-z]+", low)
    before = r"(?<!\d)(?<!\d\.)" if groups[0].isdigit() else ""
    # A number that goes on in letters of a hash is its beginning.
    after = r"(?!\d+(?![\da-f]))" if groups[-1].isdigit() else ""
    return before + r"[\W_]*".join(groups) + after


def naming(piece: str) -> int:
    """Return how sure it is that a stripped piece identifies something: SURELY, PERHAPS (if it is all that is asked),
    NONE.

    Amounts, dates and times identify nothing, and neither do words with a digit or hyphens, like k8s and on-call.
    """
    low = piece.lower()
    if low.isdigit():
        return PERHAPS if len(low) >= _TELLING_NUMBER else NONE
    for sure, forms in _FORMS:
        if any(form.fullmatch(low) for form in forms):
            return sure
    if _MARKED.search(low) or sum(map(str.isdigit, low)) >= _TELLING_DIGITS:
        return SURELY
    words = len(humps(piece))
    return SURELY if words > (1 if piece[:1].islower() else 2) else PERHAPS if words or _HOST.fullmatch(low) else NONE


def as_checked(text: str) -> str:
    """Return a text in the form that checks are made for."""
    return normalise(text).lower()
