r"""Run campaigns and append every result to a file; a second start continues where the first one ended.

  make campaign                                                    # all kinds, to their counts
  make campaign KINDS=kills COUNT=100 MINUTES=60 FOLDER=campaign
  python -m tests.campaigns.run --folder=campaign --render         # the tables of docs/results/trust.md

A case has a kind, a target and a seed, and gives the same moments, faults and files every time. The files of failed
cases stay in FOLDER/cases, FOLDER/inputs/found and FOLDER/fuzz.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.campaigns import attacks, commands, faults, fuzz, inputs, kills, machines
from tests.campaigns.records import LOST, MISSED, REFUSED, UNCLEAR, Record, Records, render, render_attacks
from tests.campaigns.works import Workshop

ROOT = Path(__file__).parents[2]
# How many cases a campaign has if nothing else is asked.
COUNTS = {"kills": 100, "faults": 112, "inputs": 200, "fuzz": 16, "machines": 8, "attacks": 1100, "commands": 420}
MOST_SKIPPED = 2_000  # cases in a row that are none of those to be run

Cases = Iterator[tuple[str, int]]
RunCase = Callable[[str, int], Record]


def campaign(kind: str, folder: Path, seconds: float) -> tuple[Cases, RunCase]:
    """Return the cases of a kind, and the function that runs one."""
    shop = Workshop(folder)
    if kind == "kills":
        return kills.list_cases(shop), lambda name, seed: kills.run_case(shop, name, seed)
    if kind == "faults":
        library = faults.build(folder)
        if library is None:
            raise FileNotFoundError("faults need a C compiler, and there is no cc")
        environment = shop.environment() | {"LD_PRELOAD": str(library)}
        shop.environment = lambda: environment  # type: ignore[method-assign]
        return faults.list_cases(shop), lambda name, seed: faults.run_case(shop, name, seed)
    if kind == "inputs":
        broken_files = inputs.Inputs(folder, shop.environment())
        return broken_files.list_cases(), broken_files.run_case
    if kind == "attacks":
        hostile = attacks.Attacks(folder, shop.environment())
        return hostile.list_cases(), hostile.run_case
    if kind == "commands":
        lines = commands.Commands(shop)
        return lines.list_cases(), lines.run_case
    if kind == "fuzz":
        own_environment = shop.environment()
        return fuzz.list_cases(folder), lambda name, seed: fuzz.run_case(folder, name, seed, seconds, own_environment)
    return machines.list_cases(), lambda name, seed: machines.run_case(shop, name, seed)


def run(kind: str, folder: Path, count: int, until: float, seconds: float, only: str = "", again: bool = False) -> None:
    """Run a kind's cases until there are `count` results or the time is over.

    With `again`, cases that were lost, unclear or missed are run once more, and no others.
    """
    records = Records(folder / "results.jsonl")
    kind_records = [record for record in records.all if record.kind == kind and only in record.name]
    refused = {record.name for record in kind_records if record.outcome == REFUSED}
    have = sum(record.outcome != REFUSED for record in kind_records)
    cases, run_case = campaign(kind, folder, seconds)
    if again:
        wrong = [record for record in kind_records if record.outcome in (LOST, UNCLEAR, MISSED)]
        cases, count, have = iter([(record.name, record.seed) for record in wrong]), len(wrong), 0
    skipped = 0
    while have < count and time.monotonic() < until and skipped < MOST_SKIPPED:
        name, seed = next(cases)
        if only not in name or name in refused or ((kind, name, seed) in records.done and not again):
            skipped += 1
            continue
        record = run_case(name, seed)
        records.add(record)
        skipped, have = 0, have + (record.outcome != REFUSED)
        refused |= {name} if record.outcome == REFUSED else set()
        print(f"{kind} {have}/{count} {name} {seed}: {record.outcome} {record.detail}"[:300], flush=True)


def main() -> int:
    """Run the kinds that the flags select; the status is 1 if a result was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default="campaign", help="where results and cases are kept")
    parser.add_argument("--kinds", default=",".join(COUNTS), help="some of: %(default)s")
    parser.add_argument("--count", type=int, default=0, help="cases of each kind; 0: the usual number")
    parser.add_argument("--minutes", type=float, default=600.0, help="for all kinds together")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each reader that is fuzzed")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--again", action="store_true", help="only cases that were lost, unclear or missed, once more")
    parser.add_argument("--render", action="store_true", help="only write the tables of trust.md and attacks.md")
    options = parser.parse_args()
    folder, until = Path(options.folder).resolve(), time.monotonic() + 60 * options.minutes
    if not options.render:
        for kind in options.kinds.split(","):
            if kind not in COUNTS:
                parser.error(f"--kinds={kind} is not known; there are {', '.join(COUNTS)}")
            run(kind, folder, options.count or COUNTS[kind], until, options.seconds, options.only, options.again)
    records = Records(folder / "results.jsonl").all
    for language, name in (("en", "trust.md"), ("ko", "trust.ko.md")):
        if options.render:
            render(ROOT / "docs" / "results" / name, records, language)
            render_attacks(ROOT / "docs" / "results" / name.replace("trust", "attacks"), records, language)
    lost = [record for record in records if record.outcome == LOST]
    for record in lost:
        print(f"lost: {record.kind} {record.name} {record.seed}: {record.detail}", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
