"""Identifiers as rows hold them and as people type them, and identifiers that no row holds: `python
tests/recall/identifier_spellings.py` prints how many are answered rightly at 1, 20 and 2,000 rows.

Written before the rules that answer them. Contract: lexical.spellings, blend.absent.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

# (the row, what is asked): the row says the identifier in another way.
SPELLINGS = (
    ("commit 4be91c07: squash the retry loop", "4be91c07d2a85f3e6190bb47c8d12e5f7a903c64"),
    ("commit 77ad03fe519c2b8866d0e4f1a93b5c7d20e81f46: pin the linter", "77ad03f"),
    ("bisect says c3d9e10 broke the tray icon", "c3d9e10a774b2f18"),
    ("image digest sha256:91fe0b6c2d starts the old worker", "91fe0b6c2d"),
    ("request 5b1f6c1e-93a4-4d6a-8a10-7c2b8f0e9d11 timed out", "5b1f6c1e93a44d6a8a107c2b8f0e9d11"),
    ("trace 8d2c4a7796b14e0fa3d15b6c7e8f9012 is the slow one", "8d2c4a77-96b1-4e0f-a3d1-5b6c7e8f9012"),
    ("the printer answers at 10.44.7.19", "10.44.7.19:9100"),
    ("metrics are scraped from 10.44.8.20:9187", "10.44.8.20"),
    ("the bastion is 172.18.3.44, ask Ines for a key", "172.18.3.44/32"),
    ("staging listens on db-stage.example.test:5433", "db-stage.example.test"),
    ("the wiki moved to https://wiki.example.test/handbook", "wiki.example.test/handbook"),
    ("docs live at docs.example.test/setup now", "https://docs.example.test/setup/"),
    ("set max_retry_count to 5 for the importer", "maxRetryCount"),
    ("set queue-drain-limit to 80 on weekends", "queueDrainLimit"),
    ("QUEUE_POLL_MILLIS is 250 on the edge boxes", "queuePollMillis"),
    ("the option flushBatchSize was raised to 64", "flush_batch_size"),
    ("the option cacheWarmDelay is in seconds", "cache-warm-delay"),
    ("the flag parseStrictMode is off by default", "PARSE_STRICT_MODE"),
    ("snapshot_keep_days is 14 on the archive host", "SNAPSHOT_KEEP_DAYS"),
    ("upload-chunk-bytes must be a power of two", "upload_chunk_bytes"),
    ("LOG_ROTATE_HOURS defaults to 6", "log-rotate-hours"),
    ("InvoiceService throws when the currency is missing", "invoice service"),
    ("the ledger-writer restarts twice a day", "ledger writer"),
    ("payout_batcher is written in Go", "payout batcher"),
    ("PaymentRouter picks the cheapest acquirer", "payment_router"),
    ("the shipment_tracker polls every carrier", "ShipmentTracker"),
    ("voucher-printer needs the blue label roll", "VoucherPrinter"),
    ("the refund planner runs at noon", "refundPlanner"),
    ("call resolveTenantQuota before each upload", "tenant quota"),
    ("HTTPFrameDecoder drops frames over 8 kB", "frame decoder"),
    ("loadUserPreferences reads two files", "preferences"),
    ("the class XMLFeedReader leaks a handle", "feed reader"),
    ("GH-2231 is about the blinking cursor", "#2231"),
    ("GH-2242 is about the lost focus ring", "gh 2242"),
    ("#2253 asks for a darker theme", "GH-2253"),
    ("bug 2264 is a duplicate of an older one", "GH-2264"),
    ("PR #2275 rewrites the scheduler", "pull 2275"),
    ("see pull/2286 for the benchmark", "#2286"),
    ("build 5217 is the first one with signatures", "#5217"),
    ("error code E4417 means the pump is dry", "E-4417"),
    ("error code E-4428 means the valve is stuck", "E4428"),
    ("alarm W_4439 comes before the shutdown", "W4439"),
    ("JIRA OPS-6127: rotate the signing key", "OPS 6127"),
    ("PAY-6138 is blocked by the bank", "pay6138"),
    ("NET6149 was closed as a duplicate", "NET-6149"),
    ("ticket WEB 6150 is waiting for copy", "WEB-6150"),
    ("the function strip_trailing_commas is pure", "stripTrailingCommas"),
    ("rollNightlyLedger() must finish before six", "roll_nightly_ledger"),
    ("cron runs /opt/jobs/pg_vacuum_nightly.sh at three", "pg_vacuum"),
    ("scripts/export_ledger_v2.py needs Python 3.12", "export_ledger_v2"),
    ("the theme is in web/assets/palette.tokens.css", "palette.tokens.css"),
    ("src/billing/tax/rules.rs has the rounding table", "tax/rules.rs"),
    ("~/.config/relay/relay.toml holds the peer list", "relay/relay.toml"),
    ("README of libfoo 3.7.12 lists the breaking changes", "v3.7.12"),
    ("v4.8.13 fixed the crash on resume", "4.8.13"),
    ("release 5.9.14-rc2 went out on a Friday", "5.9.14rc2"),
    ("relayctl --dump-routes prints the table", "dump-routes"),
    ("pass --keep-partial to resume", "keepPartial"),
    ("std::atomic_thread_fence was the culprit", "atomic_thread_fence"),
    ("com.example.relay.PeerRegistry keeps the peers", "PeerRegistry"),
    ("CVE-2023-48795 concerns our bastion hosts", "cve 2023 48795"),
    ("the MAC of the gateway is 3c:22:fb:91:0a:7e", "3c-22-fb-91-0a-7e"),
    ("order 4500-2218-77 was shipped twice", "4500221877"),
    ("RFC 9562 defines the new UUIDs", "rfc9562"),
    ("ISO-27017 audit is due in May", "ISO 27017"),
)
# What no row holds; each has a look-alike among the rows above or below.
ABSENT = (
    "CVE-2024-3095",
    "CVE-2024-309",
    "4be91c17",
    "77ad03ff",
    "OPS-6128",
    "OPS 6129",
    "OPS-612",
    "GH-2232",
    "#2299",
    "gh 2249",
    "E4418",
    "E-4419",
    "10.44.7.18",
    "10.44.8.20:9188",
    "10.44.7.1",
    "v3.7.13",
    "4.8.1",
    "max_retry_delay",
    "maxRetryTotal",
    "INVOICE_TAX_MODE",
    "src/billing/tax/tables.rs",
    "pg_vacuum_hourly.sh",
    "5b1f6c1e-93a4-4d6a-8a10-7c2b8f0e9d12",
    "https://wiki.example.test/holidays",
    "mail-stage.example.test",
    "3c:22:fb:91:0a:7f",
    "rfc9563",
    "--dump-peers",
    "std::atomic_signal_fence",
    "4500221878",
)
# The same inside a few words, which say nothing without it.
ABSENT_WITH_WORDS = ("what is CVE-2024-3095", "who fixed OPS-6128", "status of GH-2232", "error E4418 meaning")
LOOK_ALIKES = ("CVE-2024-3094 is the xz backdoor", "WEB-2299 is about the menu", "the rack has 2249 units")


def fillers(count: int) -> list[str]:
    """Return rows that look like those above and hold none of their identifiers."""
    kinds = (
        "commit {0:07x}: tidy module number {1}",
        "TASK-{2} waits for review by team {1}",
        "host 192.168.{1}.{3} was renamed in batch {2}",
        "option_number_{2} is deprecated since release 1.{1}.{3}",
        "handleEvent{2} is called from src/module{1}/file{3}.py",
        "the weekly meeting number {2} talked about errors, retries, invoices and services",
    )
    return [kinds[n % len(kinds)].format(0xA000000 + n * 7919, n % 250, 10_000 + n, n // 250 + 1) for n in range(count)]


class Asked:
    """How many of the tables above are answered rightly by one agent's rows."""

    def __init__(self, ask):
        self.ask = ask

    def wrong_spellings(self, agents, refs) -> list[tuple[str, str, list[str]]]:
        """Return what is asked, the row that should be first, and what came, of each that is answered wrongly."""
        out = []
        for (row, asked), agent, ref in zip(SPELLINGS, agents, refs, strict=True):
            found = [r.ref for r in self.ask(asked, agent).rows]
            if found[:1] != [ref]:
                out.append((asked, row, found))
        return out

    def wrong_absent(self, agent) -> list[tuple[str, list[str]]]:
        return [(asked, texts) for asked in ABSENT if (texts := [r.text for r in self.ask(asked, agent).rows])]


def stored(add) -> dict[str, tuple[list[str], list[str]]]:
    """Store the tables at three sizes with ``add(agent, texts)``, which returns refs; answer both by size."""
    rows, filler = [row for row, _ in SPELLINGS], fillers(2_000)
    sizes = {"1": ([], []), "20": ([], [])}
    for n, row in enumerate(rows):
        for size, around in (("1", []), ("20", filler[n * 19 : n * 19 + 19])):
            agent = f"{size}-{n}"
            sizes[size][0].append(agent)
            sizes[size][1].append(add(agent, [row, *around])[0])
    return sizes


def all_in_one(add, count: int) -> tuple[list[str], list[str]]:
    """Store everything as rows of one agent, ``count`` in all."""
    rows = [row for row, _ in SPELLINGS]
    agent = f"all-{count}"
    refs = add(agent, [*rows, *LOOK_ALIKES, *fillers(count - len(rows) - len(LOOK_ALIKES))])
    return [agent] * len(rows), refs[: len(rows)]


def main() -> int:
    from words_kit import WordStore

    with tempfile.TemporaryDirectory(prefix="cp-", dir="/tmp") as root:
        store = WordStore(Path(root))
        asked = Asked(lambda text, agent: store.recall(text, agent=agent))

        def add(agent, texts):
            return store.add(*texts, agent=agent)

        sizes = stored(add)
        sizes["2000"] = all_in_one(add, 2_000)
        wrong = 0
        for size, (agents, refs) in sizes.items():
            missed = asked.wrong_spellings(agents, refs)
            print(f"{size:>5} rows: {len(SPELLINGS) - len(missed)} of {len(SPELLINGS)} other spellings")
            for entry in missed:
                print("      ", *entry[:2], entry[2][:2], sep=" | ")
            wrong += len(missed)
        for agent in ("all-2000",):
            found = asked.wrong_absent(agent)
            print(f"{agent}: {len(ABSENT) - len(found)} of {len(ABSENT)} absent ones answered with nothing")
            for text, rows in found:
                print("      ", text, rows[:2], sep=" | ")
            wrong += len(found)
        store.close()
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
