"""The concepts, in a page each: `cpersona help TOPIC`. Every line that begins with `$` is run by a test.

Contract: commands.same.
"""

from __future__ import annotations

from ..declare import catalogue, guessing, spec
from ..exits import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session

TOPICS = {
    "order": (
        "why the best row is the last one",
        """
A recall prints its rows in ascending order: the last row is the best, nearest
your prompt. Agents attend most to the end of what they read, and so do people
at a terminal.

    $ cpersona store "The release branch is cut every second Tuesday"
    $ cpersona recall "release branch" -n 3

The column `rank` counts from the best: rank 1 is printed last. --best-first
turns the rows round, --top prints the best row alone, and --json says
"order": "best_last", so that no script has to guess.

    $ cpersona recall "release branch" --best-first
    $ cpersona recall "release branch" --top

Where four rows or more of one source say the same but for numbers, days and
hashes (a nightly note, a log line), one of them stands for all, marked with
how many there are: (+39 alike). --json names them under `folded`, --deep and
CPERSONA_FOLD_ALIKE=false show every one.

`cpersona context` is different: it merges what was recalled with a
conversation by time. Rows without a readable time come first, so that the end
of the list is what is really newest.
""",
    ),
    "scores": (
        "what the number beside a row means",
        """
Each scored row names its signal and the score that the gate compared:

    blend   the default mode: how far the cosine stands above what unrelated
            rows of this store and questions about anything have, plus how much
            of the question's words the row holds (coverage), plus a share of
            its neighbour's. Absolute.
    cosine  similarity of question and row, from -1 to 1. Absolute: comparable
            between questions.
    rrf     a sum of reciprocal ranks, for a row that only words found.
            Positions, not closeness.
    rsf     relative to this question: the best of nothing scores as high as
            the best of everything.

A text of more than 1,200 bytes is known by its passages, of about 120 words
each: under blend it is as near as the best of them. A terminal shows that
passage behind the first words, --json has `passage`, --fields passage prints
it. They are made in the background; `cpersona status` counts them.

A score orders the rows of one answer. Only a blend and a cosine may be
compared between questions. --absolute shows the cosine and the coverage of
each row.

    $ cpersona store "The cache is warmed at 05:30 by a systemd timer"
    $ cpersona recall "when is the cache warmed?" --json
    $ cpersona recall "when is the cache warmed?" --explain

--explain shows each list's part in the score, the threshold and the verdict;
--why-not REF names the stage that dropped a row, and the number it missed by.
""",
    ),
    "wording": (
        "quotes and hyphens in a question",
        """
Words in double quotes, straight or curly, are one thing: rows that hold them
next to each other, in this order, come before rows that hold them apart. A
question that is nothing but quoted words which no row holds is answered with
nothing. Inside a longer question they weigh as much as they do without quotes,
and half of that in a row that holds them apart.

    $ cpersona store "Priya works as a mechanical engineer at the dam"
    $ cpersona recall '"mechanical engineer"'
    $ cpersona recall "who works at the dam -electrical"

A hyphen before a word of three letters or more leaves out the rows that hold
it, and -"two words" those that hold both next to each other. What is left out
is said. A pasted command leaves out nothing: neither the first piece of a
question, nor a word beside an option, a path or an assignment (-m, --all, ./x,
A=b), nor what is known as an option of the program before it, nor one that
some row holds with its hyphen. Quote a word to look for it all the same. Both
belong to the mode blend; in the others quotes and hyphens say nothing.
""",
    ),
    "gate": (
        "why a recall may answer nothing",
        """
In the mode blend the best row must reach a threshold, and others half of it
and a quarter of the best score (CPERSONA_TAIL_SHARE). The threshold is 0.11 for
100 rows and grows with their logarithm, since the best of many unrelated rows
is nearer than the best of few; how well your rows answer questions about
anything moves it, measured in the background whenever the store has doubled.
A row that holds a rare identifier of the question always passes, in whatever
spelling (E-1103 is E1103). One that no row holds is answered with nothing where
little else is asked, and in a longer question marks the rows as "(near)". Who
names what no row holds must be met better, and so must one about a person
whom many rows name, in words that no row holds. In the other modes each row is
compared by itself, with a threshold that follows from the number of rows,
from the embedder, or from a calibration measured on your own rows. An empty
recall exits 0 and says on stderr how many rows were looked at; --fail-empty
makes it exit 3, also where all rows are only near.

    $ cpersona store "Invoices are numbered by year"
    $ cpersona recall "how are invoices numbered?"
    $ cpersona precision get

`cpersona calibrate` measures, `cpersona precision set strict` asks for fewer
and surer rows, `lenient` for more. --deep halves the thresholds for one
question. In the modes rrf, rsf and cascade a word match that lies far in
meaning may fall to a calibrated gate, under rrf with the builtin embedder no
identifier; `cpersona exists TEXT` answers by words alone.
""",
    ),
    "window": (
        "how far back vector search looks",
        """
No window is a limit of storage: rows beyond it are still found by their words.
In the mode blend vector search looks at the newest CPERSONA_VECTOR_REACH rows
(250,000) and scores them alike. In the other modes it looks at the newest
CPERSONA_MAX_MEMORIES (10,000); raising that also removes a preference for the
recent, and CPERSONA_VECTOR_REACH adds older rows as a second list without
moving the first.

    $ cpersona recall "anything" --set vector_reach=20000
    $ cpersona config show
""",
    ),
    "axes": (
        "agents, projects, channels and sources",
        """
An agent never sees another agent's rows. Within one agent, a project sees its
own rows and the global pool, and a channel sees its own rows and those
without a channel. No project given means no filter; an empty one (--project
'') means the global pool alone.

    $ cpersona store "Use tabs in this repository" --agent coder --project web
    $ cpersona recall "tabs or spaces" --agent coder --project web
    $ cpersona list --agent coder

--source-id takes one source, or all that begin alike when it ends in a sign:
`user:` finds `user:10`. Defaults come from CPERSONA_AGENT, CPERSONA_PROJECT
and CPERSONA_CHANNEL, or the config file.
""",
    ),
    "dedup": (
        "why storing twice is harmless",
        """
The same text in the same place is kept once, and so is the same --id. The
second store answers `skipped`, which is a success: a script may send
everything again.

    $ cpersona store "Backups run at two" --id backups
    $ cpersona store "Backups run at two" --id backups
    $ cpersona store "Backups run at three" --id backups --on-conflict update

A skip never changes the stored row, even when the text differs under the same
id. Use --on-conflict update, `cpersona update REF`, or delete and store.
--fail-if-skipped makes a skip exit 3. A locked row cannot be changed or
deleted; a lock protects, it does not raise a row in any answer.
""",
    ),
    "history": (
        "what is kept of changed and deleted rows",
        """
What a row was before it was changed or deleted is kept for 30 days
(CPERSONA_HISTORY_DAYS; 0 keeps nothing): its text, key, times, source,
metadata and vector, and of a deleted one its batch, mentions and relations.

    $ cpersona store "The release train leaves on Mondays"
    $ cpersona update 1 "The release train leaves on Fridays"
    $ cpersona history mem:1
    $ cpersona restore-memory mem:1
    $ cpersona undo

`history` numbers what was, the latest first; `restore-memory mem:1@2` means
the second. Nothing is brought back over another row: where one has the text or
the key by now, it is named. A locked row is not changed. A restore is kept
like a change, so that it can be taken back.

`undo` without a name takes back what the agent wrote last, be it a store, a
change, a deletion, a restore, or an undo; `undo --dry-run` says what that is.
What one request did, or `undo NAME` deleted, comes back together.

It stands in the database beside the rows: whoever may read the agent may read
it, a backup carries it, an export does not. Of a row that `merge --mode move`
takes to another agent nothing is kept, and `forget-agent` removes what is kept
of an agent's. `cpersona status` says how much there is.

`delete --purge REF` deletes for good, a row or what is kept of a deleted one,
and `forget-agent` an agent. What was said then stands neither in rows nor
history nor in kept answers, words are merged out of the word index, the vector
files and the database are written anew, and its log is emptied. It stays in
backups, exports, `restore`'s files put aside, the spool's failed writes, and
what a service was sent (which is told of every deletion). Entities that a row
declared and canaries that name it stay until they are removed themselves; that
a row went, when, and on which axes is known, but not what it said. A disk may
keep old blocks: where that matters, encrypt it.
""",
    ),
    "backup": (
        "keeping a copy, and getting it back",
        """
`cpersona backup FILE` writes database, calibration and settings as one
verified file while the daemon runs. Do not copy the .db alone: what was
written last may still stand in the file beside it.

    $ cpersona store "Something worth keeping"
    $ cpersona backup /tmp/cpersona-topic.backup
    $ cpersona export --agent default /tmp/cpersona-topic.jsonl

`cpersona restore FILE` verifies the file first and moves the present database
aside. `cpersona export` and `import` carry one agent's rows as JSON lines
between machines; what is there already is skipped.
""",
    ),
    "models": (
        "stronger models: an embedding service, a reranker",
        """
The builtin model needs nothing. Another one is asked over HTTP when the
settings name it, in the environment or (without CPERSONA_ and in lower case)
in the config file; `cpersona doctor` tries it, `cpersona daemon restart`
applies it, `cpersona reindex` has all rows embedded by it. Your texts go to
the address that you name. What is the same for every embedding service:

    CPERSONA_EMBEDDING_MODE=http

Ollama:
    ollama pull nomic-embed-text
    CPERSONA_EMBEDDING_URL=http://127.0.0.1:11434/v1/embeddings
    CPERSONA_EMBEDDING_MODEL=nomic-embed-text
    CPERSONA_EMBEDDING_QUERY_PREFIX='search_query: '
    CPERSONA_EMBEDDING_DOCUMENT_PREFIX='search_document: '

llama.cpp, and its reranker:
    llama-server --embeddings -c 8192 -b 8192 -ub 8192 --port 8081 \\
        -hf nomic-ai/nomic-embed-text-v1.5-GGUF
    CPERSONA_EMBEDDING_URL=http://127.0.0.1:8081/v1/embeddings
    CPERSONA_EMBEDDING_MODEL=nomic-embed-text-v1.5    (prefixes as above)
    llama-server --reranking -c 8192 -b 8192 -ub 8192 --port 8082 \\
        -hf gpustack/bge-reranker-v2-m3-GGUF
    CPERSONA_RERANK_URL=http://127.0.0.1:8082/v1/rerank

vLLM, and its reranker:
    vllm serve BAAI/bge-m3 --port 8000
    CPERSONA_EMBEDDING_URL=http://127.0.0.1:8000/v1/embeddings
    CPERSONA_EMBEDDING_MODEL=BAAI/bge-m3
    vllm serve BAAI/bge-reranker-v2-m3 --port 8001
    CPERSONA_RERANK_URL=http://127.0.0.1:8001/v1/rerank
    CPERSONA_RERANK_MODEL=BAAI/bge-reranker-v2-m3

LM Studio:
    lms get nomic-embed-text-v1.5
    lms server start
    CPERSONA_EMBEDDING_URL=http://127.0.0.1:1234/v1/embeddings
    CPERSONA_EMBEDDING_MODEL=text-embedding-nomic-embed-text-v1.5
    (prefixes as for Ollama)

text-embeddings-inference, and its reranker:
    text-embeddings-router --model-id intfloat/multilingual-e5-small \\
        --auto-truncate --port 8080
    CPERSONA_EMBEDDING_URL=http://127.0.0.1:8080/v1/embeddings
    CPERSONA_EMBEDDING_MODEL=intfloat/multilingual-e5-small
    CPERSONA_EMBEDDING_QUERY_PREFIX='query: '
    CPERSONA_EMBEDDING_DOCUMENT_PREFIX='passage: '
    text-embeddings-router --model-id BAAI/bge-reranker-base --port 8083
    CPERSONA_RERANK_URL=http://127.0.0.1:8083/rerank

An address that ends with a version and embeddings is asked as OpenAI's is,
any other with {"texts": [...]}; CPERSONA_EMBEDDING_API=openai or native says
it otherwise. Prefixes are what a model was trained with and mean nothing to
the builtin one; in the config file they keep their last blank between quotes.
A key stands in a file that only you can read (CPERSONA_EMBEDDING_API_KEY_FILE,
CPERSONA_RERANK_API_KEY_FILE) or in the variable without _FILE.

A reranker reads the question beside each of the best 20 rows, under blend
alone, and moves their scores by 0.2 at most. A recall waits 2 s for it
(CPERSONA_RERANK_TIMEOUT_SECS), then answers without it and says so. It works
beside any embedder, the builtin one too.

A service that also searches, with /search, /index, /remove and /purge beside
its /embed, is asked which rows are near and told of every change:
    CPERSONA_EMBEDDING_URL=http://127.0.0.1:8401/embed
    CPERSONA_VECTOR_SEARCH_MODE=remote
It ranks under its own window and belongs to one database. While it does not
answer, the daemon compares by itself and says so; `cpersona reindex` sends it
everything again.

    $ cpersona config show embedding_url rerank_url
""",
    ),
    "time": (
        "how times are read and written",
        """
Every stamp names an instant; one without an offset means UTC. Options that
take a time understand an ISO instant, a date (its whole UTC day), an age such
as 90m, 3h or 2d, or a name in the machine's zone, which is said back: today,
yesterday, this week, last month, '3 days ago', monday (the latest), 'last
monday' (the latest before today), march, 'march 2024'.

    $ cpersona store "The fair opens" --at 2026-03-01T09:00:00+01:00
    $ cpersona recall "fair" --since yesterday
    $ cpersona recall "fair" --as-of 2d

--since and --until compare when a row was stored, both ends included: of a
named week --since means the beginning and --until the end. A question that
names a time itself ("what did we decide last week", "in March") has rows that
tell of it a few places further up; --explain says which.

With --as-of, recall, context, list and get find and show rows as they were
then, by the words and vectors that they had, deleted ones too, as far as
`history` has them. How many changed and how many went since is counted (with
--json in `as_of`), and for those whose past is not kept it is said; a row of
these that is shown as it is today has `changed_since`. How much a word weighs,
and what is good enough, is measured on today's rows.
Rows from a file or of another agent come with their own times and
without their past, and a store of an early version has none either:
`recorded_since` is the time before which nothing was counted.

A row keeps the stamp as you wrote it. A stamp far ahead of the clock is kept
and said to be.
""",
    ),
    "notes": (
        "what becomes of Markdown files",
        """
`cpersona import --markdown DIR` keeps the Markdown files of a directory (.md,
.markdown, .mdx) as memories. Run it again, from cron or a hook: what is new is
stored, what changed is updated in its place, the rest is skipped. --watch goes
on until Ctrl-C.

    cpersona import --markdown ~/notes --dry-run
    cpersona import --markdown ~/notes --prune --watch --yes

A file of at most 1,200 bytes is one memory. Of a longer one each heading is,
with all that is under it where that fits, else with its own words, and so on
below it. A memory begins with its headings (Guide > Install > Linux): an
answer is a section and not a book, and is found by what stands above it. A
section that is longer still is known by its passages (`help scores`).

Front matter, YAML between `---` or TOML between `+++`, goes to the metadata:
`tags`, `title`, the rest under `front_matter`. `date` (or `created`, or a day
that the file's name begins with) is the timestamp, else when the file was
changed. Of YAML plain values, lists and long texts are read; what is nested
stays as its text.

The id of a note is made of the directory and the path in it, and of a
section's headings: `md:notes-1f0c88ab02:trips/rome.md#Rome > Food`.

    $ cpersona list --id-prefix md:

So a file or a directory that got another name is gone and new. What is gone
stays until --prune, which asks first, or takes --yes; a directory that holds
no notes at all is asked about even then. Sections that a file no longer has go
with its update. A locked row is never changed or deleted, and is named.

`--format basic-memory` reads a directory of that memory: its observations and
relations stay in the text, and stand in the metadata as well.

In a git work tree what git ignores is not read; elsewhere hidden files,
node_modules and virtual environments are not. Links are not followed. Files
that are no UTF-8, or larger than 1 MiB, are named and left out, with exit 1.
""",
    ),
    "scripts": (
        "using it from a program",
        """
Off a terminal each row is one line with tabs between its fields, without
colours; data is on stdout and everything else on stderr. --json prints the
whole answer of the daemon; in it a row is always named by its `ref`, and a key
that you gave it is its `id`. Commands that show rows take --fields and
--format to say what of each, --max-chars for how much in all, and `-0`, which
ends records with NUL and leaves text as it is.

    $ cpersona recall "anything" --json
    $ cpersona list --since 1d --format '{ref}\t{content}'
    $ cpersona call recall '{"agent_id": "default", "query": "anything"}'

`cpersona call --stdin` reads {"id", "method", "params"} lines and answers
{"id", "response"} lines, each as soon as it is ready. `store --jsonl FILE`
reports an outcome per line and ends with totals. The exit codes: 0 done, 1
refused, 2 usage, 3 nothing found, 4 no daemon, 5 denied, 6 try again, 7
critical, 130 interrupted.
""",
    ),
}


@spec.command(
    "help",
    spec.argument(
        "words",
        "A topic or the words of a command; without any the topics are listed.",
        many=True,
        required=False,
        metavar="TOPIC|COMMAND",
        values="topics",
    ),
    common=("quiet",),
)
def help_(session: Session, words: list[str]) -> int | None:
    """Explain one concept on a page: order, scores, wording, gate, window, axes, dedup, history, backup, models,
    time, notes, scripts.

    Or explain one command.

    Example:
      cpersona help order
      cpersona help daemon start
    """
    if not words:
        for name, (summary, _) in TOPICS.items():
            session.out.line(f"{name:<8} {summary}")
        session.out.note("`cpersona help COMMAND` explains a command, `cpersona --help` lists them")
        return None
    name = words[0]
    if words == [name] and name in TOPICS:
        summary, text = TOPICS[name]
        for line in (f"{name}: {summary}", *text.rstrip().split("\n")):
            session.out.line(line)
        if name in catalogue.ENTRIES:
            session.out.note(f"`cpersona {name} --help` explains the command")
        return None
    if name in catalogue.ENTRIES:
        from ..declare import app

        return app.run([*words, "--help"])
    raise Usage(f"{guessing.unknown('', [name])}; the topics are {', '.join(TOPICS)}")


COMMANDS = (help_,)
