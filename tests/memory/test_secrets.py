"""Secrets are pointed out and never repeated. Contract: secrets.checked."""

import pytest

from cpersona_daemon.memory import secrets

LETTERS = "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cD"
# Put together here, so that no scanner of repositories takes this file for a leak.
SAMPLES = {
    "private_key": "-----BEGIN " + "OPENSSH PRIVATE KEY-----\nb3BlbnNz",
    "aws_access_key": "AKIA" + "IOSFODNN7EXAMPLE",
    "github_token": "ghp_" + LETTERS + "abcd",
    "gitlab_token": "glpat-" + LETTERS[:20],
    "slack_token": "xoxb-" + "123456789012-abcdef",
    "slack_webhook": "https://hooks.slack.com/services/" + "T00000000/B00000000/XXXX",
    "google_api_key": "AIza" + LETTERS + "abc",
    "google_oauth_token": "ya29." + LETTERS,
    "stripe_key": "sk_live_" + LETTERS,
    "anthropic_key": "sk-ant-" + "api03-" + LETTERS,
    "openai_key": "sk-proj-" + LETTERS,
    "huggingface_token": "hf_" + LETTERS,
    "npm_token": "npm_" + LETTERS + "abcd",
    "pypi_token": "pypi-AgE" + LETTERS * 2,
    "docker_token": "dckr_pat_" + LETTERS,
    "sendgrid_key": "SG." + LETTERS[:22] + "." + LETTERS,
    "telegram_token": "123456789:AA" + LETTERS + "a",
    "azure_key": "AccountKey=" + LETTERS * 2 + "==",
    "json_web_token": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + LETTERS,
    "authorization_header": "Authorization: Bearer " + LETTERS,
    "password_in_address": "postgres://app:" + "hunter22@db.internal/app",
    "assigned_secret": "DB_PASSWORD=" + "tr0ub4dor&3",
}


@pytest.mark.parametrize("kind", secrets.PATTERNS)
def test_each_kind_is_found_where_it_stands(kind):
    found = secrets.find(f"note: {SAMPLES[kind]} and more")
    assert [one["kind"] for one in found] == [kind] and found[0]["at"] >= 6


@pytest.mark.parametrize(
    "text",
    [
        "the deploy branch is release",
        "fixed in 9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
        "password: changeme",
        "token = ${GITHUB_TOKEN}",
        "password: ********",
        "set the api_key: your_api_key_here",
        "secret: none",
        "https://example.org:8080/path",
        "git@github.com:team/repo.git",
        "the token expired yesterday",
        "sk-learn is a library",
        "passwordless logins: configured everywhere",
        "-----BEGIN PUBLIC KEY-----",
        "550e8400-e29b-41d4-a716-446655440000",
        "secret = os.environ",
        "token: str = ''",
        "AKIA is how those keys begin",
        "https://user@host/path",
    ],
)
def test_what_people_write_every_day_is_no_secret(text):
    assert secrets.find(text) == []


def test_nothing_that_is_told_holds_the_secret():
    text = "\n".join(SAMPLES.values())
    found = secrets.search(text, '{"id": "x"}', '{"token": "' + SAMPLES["github_token"] + '"}')
    said = str(found) + secrets.refusal(found)
    assert len(found) == secrets.MOST and not any(sample[8:] in said for sample in SAMPLES.values())


def test_what_stands_beside_the_text_is_marked():
    assert secrets.search("fine", "{}", SAMPLES["npm_token"]) == [{"kind": "npm_token", "at": 0, "in": "metadata"}]


def test_a_long_text_of_anything_is_looked_through_in_linear_time():
    # Each of these begins a pattern over and over; none may make it go back.
    for piece in ("eyJ", "password=", "a://b:", "-----BEGIN ", "xoxb-", "sk-", "authorization: bearer "):
        secrets.find(piece * 4000)
