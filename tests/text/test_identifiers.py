"""What is taken for an identifier, the words inside one, and when a question is closed up.

Contract: lexical.spellings, blend.absent, lexical.index.
"""

from __future__ import annotations

import pytest

from cpersona_daemon.text.identifiers import NONE, PERHAPS, SURELY, closed_up, humps, naming
from cpersona_daemon.text.terms import index_text, parse_query

SURE = (
    "CVE-2024-3094 4f2a9ced v2.3.1 10.0.0.1 10.0.0.1:80 src/api/x.py /etc/hosts --dry-run fetchUserById maxRetry a_b"
    " E1103 OPS-1427 #1234 GH-12 https://a.test/b ops@example.test std::move deploy.yaml AGENTD_SOCKET a.b.example.com"
)
PERHAPS_ONE = "4711 InvoiceService example.com"
NO_NAME = (
    "2024-03-15 15.03.2024 03/15/2024 v2.4 k8s 100ms 24/7 12:30 12:30:15 e2e GPT-4 covid-19 node.js and/or he/she -v"
    " JavaScript GitHub iPhone on-call state-of-the-art 10am 5000px $2,500 C++ utf-8 sha256 base64 1990s 42% 10,000 1/2"
    " U.S.A don't O'Brien SQL 3.11 Caroline 55"
)


@pytest.mark.parametrize(("pieces", "sure"), [(SURE, SURELY), (PERHAPS_ONE, PERHAPS), (NO_NAME, NONE)])
def test_identifiers_are_told_from_words_amounts_and_dates(pieces, sure):
    assert {piece: naming(piece) for piece in pieces.split()} == dict.fromkeys(pieces.split(), sure)


@pytest.mark.parametrize(
    ("piece", "words"),
    [
        ("maxRetryCount", "max retry count"),
        ("HTTPFrameDecoder", "http frame decoder"),
        ("sqlite3.OperationalError", "operational error"),
        ("load2FactorSettings", "factor settings"),
        ("JavaScript", ""),
        ("APIs", ""),
        ("Caroline", ""),
        ("aGVsbG8gV29ybGQ", ""),
    ],
)
def test_words_inside_camel_case_are_words(piece, words):
    assert " ".join(humps(piece)) == words


def test_the_words_inside_camel_case_are_indexed_beside_the_whole():
    assert index_text("set maxRetryCount now") == "set maxretrycount now max retry count"


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("OPS 1427", "OPS-1427"),
        ("status of OPS 1427?", "status of OPS-1427?"),
        ("gh #1234", "gh-1234"),
        ("cve 2024 3094", "cve-2024-3094"),
        ("MAR 2024", "MAR 2024"),
        ("AWS 2024 invoice", "AWS 2024 invoice"),
        ("HTTP 500 errors", "HTTP 500 errors"),
        ("does anybody remember what gh 1234 was about", "does anybody remember what gh-1234 was about"),
        ("port 8443", "port 8443"),
        ("I waited there for OPS 1427", "I waited there for OPS 1427"),
    ],
)
def test_a_short_question_is_closed_up(text, closed):
    assert closed_up(text) == closed


def test_other_spellings_are_asked_for_only_where_wanted():
    (plain,), (spelled,) = parse_query("E-1103").terms, parse_query("E-1103", with_spellings=True).terms
    assert plain.others == () and [other.words for other in spelled.others] == ["e1103"]
