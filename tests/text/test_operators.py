"""Quotes and hyphens in a question. Contract: question.quoted, question.without."""

from __future__ import annotations

import pytest

from cpersona_daemon.text.operators import MOST, as_written, phrase, read

QUOTED = [
    ('"mechanical engineer"', ("mechanical engineer",), True),
    ("“mechanical engineer”", ("mechanical engineer",), True),
    ("„mechanical engineer“ ?", ("mechanical engineer",), True),
    ("« ingénieur mécanicien »", ("ingénieur mécanicien",), True),
    ("「機械工学」", ("機械工学",), True),
    ('who is the "mechanical engineer" here', ("mechanical engineer",), False),
    ('"red fox" "blue hen"', ("red fox", "blue hen"), True),
    ('the 5" and the 6" pipe', (), False),
    ('a 24" screen and "dead pixels"', ("dead pixels",), False),
    ("O'Brien's 'own' words", (), False),
    ('an unpaired " quote', (), False),
    ('say "this and go', (), False),
    ('""', (), False),
    ('"" zebra', (), False),
    ('"?!"', (), False),
    ('he said " no " twice', (), False),
    ('"NEAR(a b)" OR "c*"', ("NEAR(a b)", "c*"), False),
    ('git commit -m "fix the parser"', ("fix the parser",), False),
]


@pytest.mark.parametrize(("text", "phrases", "only"), QUOTED)
def test_what_stands_between_two_quotes_is_one_thing(text, phrases, only):
    assert (read(text).quoted, read(text).only_quoted) == (phrases, only) and read(text).text == text


LEAVING_OUT = [
    ("jaguar -car", ("car",), "jaguar"),
    ("jaguar speed -car -dealer", ("car", "dealer"), "jaguar speed"),
    ("invoices -Draft of this year", ("Draft",), "invoices of this year"),
    ("where do we deploy -staging?", ("staging",), "where do we deploy"),
    ('release notes -"known issues"', ("known issues",), "release notes"),
    ('"release notes" -draft', ("draft",), '"release notes"'),
    ("Rechnung -Entwurf", ("Entwurf",), "Rechnung"),
    ("docker networking -swarm", ("swarm",), "docker networking"),
    ("python tutorial -snake", ("snake",), "python tutorial"),
    ("цены -скидка", ("скидка",), "цены"),
]


@pytest.mark.parametrize(("text", "without", "rest"), LEAVING_OUT)
def test_a_word_behind_a_hyphen_is_left_out(text, without, rest):
    assert (read(text).without, read(text).text) == (without, rest)


HARMLESS = """
rm -rf
rm -rf build
git commit -m
git commit -am "wip"
git push --force-with-lease
git log --oneline -5
what does --dry-run do
what does -x do
-x
-draft
-draft invoices
-1
offset -1
a temperature of -40 degrees
Paris - the city
we shipped - finally
the well-known bug
tar -xzf backup.tgz
tar -czvf out.tgz src
ls -lah
ps -aux
grep -rin todo
rsync -avz src dst
curl -fsSL get.example.com
set -euo pipefail
find . -name foo -type f
find src -name foo
find logs -delete
go test -race
go test -run TestParse -count=1
java -version
java -jar app.jar
node -version
openssl x509 -noout -text
ffmpeg -i in.mp4 -codec copy out.mp4
terraform apply -target module
terraform plan -destroy
gcc -Wall -Werror main.c
kubectl get pods -o wide
docker run -it ubuntu
ssh -vvv host
netstat -tulpn
chmod -R 755 dir
FOO=bar run -fast
cat x | sort -unique
echo $HOME -quiet
~/bin/tool -fast
./configure -prefix
Haupt -und Nebeneingang
the plan -which we made
""".strip().splitlines()


@pytest.mark.parametrize("text", HARMLESS)
def test_commands_dashes_and_numbers_leave_out_nothing(text):
    assert read(text).without == () and read(text).text == text


def test_a_page_full_of_quotes_or_hyphens_is_a_page():
    assert read(" ".join(f'"word number{n}"' for n in range(40))).quoted == ()
    assert read("list " + " ".join(f"-item{chr(97 + n)}" for n in range(20))).without == ()


@pytest.mark.parametrize("unit", ['"a ', "“ ", "« x ", '-"', "a -word ", "「", '" " ', "=-", "- "])
def test_a_page_of_quotes_and_hyphens_is_bounded(unit):
    typed = read(unit * (8000 // len(unit)))
    assert len(typed.quoted) <= MOST and len(typed.without) <= MOST


def test_a_phrase_is_asked_for_as_the_index_holds_its_words():
    assert phrase("Mechanical Engineer").token == '"mechanical engineer"'
    assert phrase("機械工学").token == '"機械 械工 工学"'
    assert phrase("engineer") is None and phrase("機 械") is None and phrase("") is None
    assert phrase('a"b OR c*').token == '"a b or c"'


def test_an_option_is_known_by_its_hyphen_alone():
    term = as_written("race")
    assert term.text == "-race" and term.forms == (term.token,) and "race" not in term.token
