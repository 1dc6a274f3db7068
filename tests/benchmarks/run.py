"""Every benchmark, one after the other: `python tests/benchmarks/run.py [--quick] [--json FILE] [--dir DIR]`.

--quick   10,000 rows at most, few turns: some minutes, for a look at the ratios
--dir     keep the databases there, so that the next run need not fill them again (about 4 GB)
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from common import parser  # noqa: E402
from stores import workplace  # noqa: E402

# name -> (arguments of a whole run, arguments of a quick one, whether it takes a place for databases)
BENCHMARKS = {
    "client": ([], ["--turns", "15"], False),
    "store": ([], ["--rows", "1000,10000", "--stores", "50", "--together", "2000"], True),
    "recall": ([], ["--rows", "1000,10000", "--questions", "30"], True),
    "import": ([], ["--rows", "10000"], True),
    "calibrate": ([], ["--rows", "10000", "--turns", "3"], True),
    "start": ([], ["--rows", "10000", "--turns", "7"], True),
    "vectors": ([], ["--rows", "10000"], False),
    "git": ([], ["--commits", "1000"], False),
    "engines": ([], ["--rows", "10000", "--questions", "15"], True),
    "passages": ([], ["--questions", "30"], True),
}


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--only", help="names, separated by commas: " + ", ".join(BENCHMARKS))
    arguments.add_argument("--dir")
    given = arguments.parse_args()
    names = given.only.split(",") if given.only else list(BENCHMARKS)
    found, failed = {}, []
    with workplace(given.dir) as place, tempfile.TemporaryDirectory() as results:
        for name in names:
            whole, quick, placed = BENCHMARKS[name]
            out = Path(results, f"{name}.json")
            print(f"\n== {name}", flush=True)
            command = [
                sys.executable,
                str(HERE / f"bench_{name}.py"),
                *(quick if given.quick else whole),
                *(["--dir", str(place)] if placed else []),
                "--json",
                str(out),
            ]
            if subprocess.run(command).returncode:
                failed.append(name)
            if out.exists():
                found[name] = json.loads(out.read_text())
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
