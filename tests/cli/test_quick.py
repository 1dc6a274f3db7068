"""The short way and Typer mean the same by every command line. Contract: commands.same, speed.client."""

import json
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpersona_cli import exits
from cpersona_cli.declare import app, catalogue, spec
from cpersona_cli.fast import quick
from cpersona_cli.terminal import output, reading

COMMANDS = [command for name in catalogue.ENTRIES for command in catalogue.declared(name)]
USUAL = [
    ["store", "a text"],
    ["store", "-"],
    ["store"],
    ["store", "a", "--id", "k", "--lock"],
    ["store", "--", "-a"],
    ["store", "", "--metadata={}"],
    ["store", "a", "--on-conflict", "update"],
    ["store", "a", "--agent", "x", "--project", "", "--channel=c", "-q", "--json", "--db", "d"],
    ["--db", "d", "--json", "store", "a"],
    ["--agent=x", "store", "a", "--agent", "y"],
    ["store", "--jsonl", "-"],
    ["store", "a", "--source", '{"System": "git"}', "--at", "3h"],
    ["store", "\udcff"],
    ["recall", "q"],
    ["recall", ""],
    ["recall", "-n", "5", "q"],
    ["recall", "q", "--limit=7", "--deep", "--full"],
    ["recall", "q", "--exclude", "a", "--exclude", "--b"],
    ["recall", "q", "--set", "recall_mode=rsf", "--set=rrf_k=1"],
    ["recall", "q", "--fields", "ref,preview", "-0"],
    ["recall", "q", "-n", "1", "-n", "2"],
    ["get", "mem:1"],
    ["get", "1", "ep:2", "--raw", "3"],
    ["get", "--", "1", "-2"],
    ["get", "--id", "k"],
    ["get", "1", "--json=ref,content"],
    ["call", "recall", '{"query": "x"}'],
    ["call", "--stdin"],
    ["call", "recall", "-", "--deadline", "2.5"],
    ["call", "daemon_status", "--deadline=3"],
    ["list", "-n", "3"],
    ["episode", "list"],
    ["delete", "mem:1", "ep:2"],
]
TYPERS = [
    [],
    ["--help"],
    ["recall"],
    ["recall", "--help"],
    ["recall", "q", "-h"],
    ["recall", "q", "r"],
    ["recall", "q", "-n"],
    ["recall", "q", "-n", "x"],
    ["recall", "q", "-n", "-1"],
    ["recall", "q", "-n=1"],
    ["recall", "q", "-n5"],
    ["recall", "q", "-qn", "5"],
    ["recall", "q", "--deep=1"],
    ["recall", "q", "--dee"],
    ["recall", "q", "-n", "1_0"],
    ["recall", "q", "-n", " 1"],
    ["--", "recall", "q"],
    ["--version"],
    ["--version", "recall", "q"],
    ["-x", "recall", "q"],
    ["reca", "q"],
    ["episode"],
    ["episode", "--json"],
    ["episode", "nothing"],
    ["episode", "--json", "list"],
    ["store", "a", "--on-conflict", "no"],
    ["store", "a", "--nothing"],
    ["call", "m", "{}", "x"],
    ["call", "m", "--deadline", "1e3"],
    ["call", "m", "--deadline", "nan"],
]
WORDS = [
    "",
    "-",
    "--",
    "-5",
    "5",
    "07",
    "2.5",
    "a",
    "a=b",
    "mem:1",
    "{}",
    "é",
    "\udcff",
    "--help",
    "skip",
    "update",
    "٣",
    "1_0",
    " 1",
    "9" * 30,
    "x=y=z",
    "-q",
    "--json",
    "--",
    "-n5",
    "--limit=5",
]


@pytest.fixture(scope="module")
def by_typer():
    """Parse an argument list with Typer: what the command's function would be called with, or None where it is not
    called.
    """
    root, called = app.typer.main.get_command(app.build()), []
    ways = app.Ways(lambda *read: called.append(read), lambda place: [])

    def parse(arguments):
        called.clear()
        try:
            with root.make_context("cpersona", list(arguments), obj=ways) as context:
                root.invoke(context)
        except Exception as error:
            assert hasattr(error, "exit_code") or isinstance(error, exits.Usage), f"{arguments}: {error!r}"
        return called[-1] if called else None

    yield parse


def plain(parsed):
    command, options, values = parsed
    given = {key: value for key, value in options.items() if key in spec.COMMON and value not in (None, False)}
    return (
        command,
        given,
        {
            name: list(value) if isinstance(value, (list, tuple)) else (type(value), value)
            for name, value in values.items()
        },
    )


def same(arguments, by_typer):
    """Hold both ways to each other; true when the short way took the command line."""
    meant = by_typer(arguments)
    try:
        parsed = quick.parse(arguments)
    except quick.Unusual:
        return False
    assert meant is not None, f"{arguments}: Typer refuses it"
    assert plain(parsed) == plain(meant), arguments
    return True


@pytest.mark.parametrize("arguments", USUAL, ids=ascii)
def test_a_usual_command_line_is_taken_and_means_what_typer_means(arguments, by_typer):
    assert same(arguments, by_typer)


@pytest.mark.parametrize("arguments", TYPERS, ids=ascii)
def test_help_errors_and_rare_forms_are_left_to_typer(arguments, by_typer):
    assert not same(arguments, by_typer)


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_command_line_means_two_things(by_typer, data):
    command = data.draw(st.sampled_from(COMMANDS))
    own = [flag for p in [*command.parameters, *spec.COMMON.values()] for flag in p.flags]
    words = st.one_of(
        st.sampled_from(own),
        st.sampled_from(WORDS),
        st.sampled_from(own).map(lambda flag: f"{flag}=5"),
        st.sampled_from([f for p in spec.COMMON.values() for f in p.flags]),
    )
    before = data.draw(st.lists(words, max_size=2)) if data.draw(st.integers(0, 4)) == 0 else []
    same([*before, *command.path, *data.draw(st.lists(words, max_size=6))], by_typer)


def test_every_command_can_be_reached_on_the_short_way(by_typer):
    for command in COMMANDS:
        assert same([*command.path, *("a" for p in command.parameters if p.required)], by_typer)
        for parameter in command.parameters:
            for flag in parameter.flags:
                value = (
                    []
                    if parameter.kind == "flag"
                    else [parameter.choices[-1] if parameter.choices else "a" if parameter.kind == "text" else "12"]
                )
                assert same(
                    [*command.path, flag, *value, *("a" for p in command.parameters if p.required)], by_typer
                ), flag


def test_both_ways_print_and_return_the_same(home, daemon):
    answer, _ = daemon.call(
        "store",
        {
            "agent_id": "default",
            "content": "deploys run\tfrom the release branch \x1b[31m",
            "id": "k",
            "timestamp": "2024-03-01T00:00:00Z",
            "metadata": {"a": [1.5, None]},
        },
    )
    assert answer["result"] == "stored"
    run = (
        "import sys\nfrom cpersona_cli import main\nfrom cpersona_cli.fast import quick\nif sys.argv.pop(1) == "
        "'typer': quick.plain = lambda arguments: None\nsys.exit(main.main())"
    )
    for arguments, stdin in [
        (["recall", "release branch", "--deep"], ""),
        (["recall", "-", "--deep", "--json"], "release branch"),
        (["recall", "deploys", "--deep", "--fields", "ref,nothing"], ""),
        (["recall", "zebra", "--fail-empty"], ""),
        (["recall", "deploys", "--set", "nothing=1"], ""),
        (["get", "mem:1", "--raw"], ""),
        (["get", "1", "mem:99", "--json"], ""),
        (["get", "mem:0"], ""),
        (["store", "deploys run elsewhere", "--id", "k"], ""),
        (["store", "deploys run elsewhere", "--id", "k", "--on-conflict", "fail", "--json"], ""),
        (["store", "--metadata", "{"], "x"),
        (["store", "x", "--metadata", "[1]"], ""),
        (["store", "--jsonl", "-"], '"deploys run"\n{"content": "deploys run"}\nnothing\n'),
        (["call", "get_contents", '{"agent_id": "default", "refs": ["mem:1"]}'], ""),
        (["call", "nothing", "{}"], ""),
        (["call", "recall", '{"limit": NaN}'], ""),
        (["call", "--stdin"], '{"id": 1, "method": "nothing"}\n'),
        (["list", "-n", "1"], ""),
        (["recall", "q", "-n", "x"], ""),
        (["get"], ""),
    ]:

        def done(way):
            found = subprocess.run(
                [sys.executable, "-c", run, way, *arguments],
                input=stdin,
                env=home,
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=60,
            )
            return found.returncode, found.stdout, found.stderr

        if arguments[0] == "store":
            done("typer")  # what is stored by the first of two is skipped by the second
        quickly = done("quick")
        assert quickly == done("typer") and "Traceback" not in quickly[2], arguments


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    )
)
def test_the_c_half_of_json_writes_and_reads_what_json_does(value):
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value)
    assert output.to_json(value) == text
    if "NaN" not in text and "Infinity" not in text:
        assert reading.parse_json(f" \n{text}\t") == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "[1,]",
        "1 2",
        "NaN",
        "[-Infinity]",
        '{"a": 1}}',
        "\ufeff1",
        "\u00a01",
        "'a'",
        '"\t"',
        "[" * 100_000,
    ],
)
def test_what_is_no_json_is_refused_with_a_place(text):
    with pytest.raises(ValueError, match="line 1 column|no JSON value|nested too deeply"):
        reading.parse_json(text)


@pytest.mark.parametrize(
    "text, meant",
    [("mem:1", ("mem", 1)), ("ep:20", ("ep", 20)), (" 7 ", ("mem", 7)), ("1" * 18, ("mem", int("1" * 18)))],
)
def test_a_ref_is_read(text, meant):
    assert reading.ref(text) == meant


@pytest.mark.parametrize(
    "text", ["", "mem:", ":1", "mem:0", "mem:01", "x:1", "mem:1:2", "mem: 1", "-1", "٣", "1" * 19, "mem:x", "MEM:1"]
)
def test_what_is_no_ref_is_refused(text):
    with pytest.raises(exits.Usage, match="is no ref"):
        reading.ref(text)


def test_only_control_characters_and_line_separators_are_escaped():
    assert (
        output.one_line("a\nb\tc\rd\x1b\x7f\x85\u2028é\u00a0\U0001f600")
        == "a\\nb\\tc\\rd\\x1b\\x7f\\x85\\u2028é\u00a0\U0001f600"
    )
    assert output.without_controls("a\nb\tc\rd\x1b") == "a\nb\tc\\rd\\x1b"
