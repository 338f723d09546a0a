#!/usr/bin/env python3
"""Counts the instructions of libl3's hot loops, and fails if a count is higher than its record.

    bench/gate.py                 compares with bench/results/instructions.json
    bench/gate.py --record        writes it

Unlike times, counts do not depend on how busy the machine is. If a count grows by some percent, the code has changed.
The gate runs each loop of `l3_loops` under valgrind with one turn and with two; the difference is the count of a turn.
It uses cachegrind with its caches off, which counts the same as callgrind in about half of the time. It covers the
processor targets that valgrind supports, so not those with AVX-512.

Counts depend on the compiler, its flags and the C library. There is a record for each combination that was counted.

Exit status: 0 if no loop grew; 1 if a loop grew beyond the tolerance, has no record, or is recorded but missing; 2 if
there is no record for this build, if a loop could not be counted, or for wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("portable", "avx2")
LACKS_TARGET = 3  # what l3_loops ends with where the processor does not have what L3_CPU names

# Instructions of a turn, by (loop, target).
Counts = dict[tuple[str, str], int]


def say(text: str) -> None:
    print(f"gate: {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Build:
    """What counts depend on beside the source."""

    compiler: str
    flags: str
    machine: str
    libc: str

    def __str__(self) -> str:
        return f"{self.compiler}, {self.flags}, {self.libc}, {self.machine}"


@dataclass(frozen=True)
class Record:
    build: Build
    valgrind: str  # for who wonders; counts do not depend on it
    counts: Counts


@dataclass(frozen=True)
class Finding:
    """A loop beside its record: None where it is missing on one side."""

    loop: str
    target: str
    before: int | None
    now: int | None
    tolerance: float  # in percent

    @property
    def change(self) -> float | None:
        """In percent."""
        return 100 * (self.now / self.before - 1) if self.before and self.now else None

    @property
    def verdict(self) -> str:
        if self.before is None:
            return "not on record"
        if self.now is None:
            return "gone"
        # In whole numbers as far as possible: exactly the tolerance is within it.
        over = 100 * abs(self.now - self.before) > self.tolerance * self.before
        return "" if not over else "grew" if self.now > self.before else "shrank"

    @property
    def fails(self) -> bool:
        return self.verdict not in ("", "shrank")


def compare(recorded: Counts, counted: Counts, tolerance: float) -> list[Finding]:
    """In the order of what was counted; what is gone comes last."""
    places = [*counted, *(place for place in recorded if place not in counted)]
    return [Finding(*place, recorded.get(place), counted.get(place), tolerance) for place in places]


def records_of(text: str) -> list[Record]:
    """ValueError where it is not what to_text writes."""
    try:
        return [Record(Build(**entry["build"]), str(entry["valgrind"]),
                       {(loop, target): int(count) for loop, targets in entry["instructions"].items()
                        for target, count in targets.items()}) for entry in json.loads(text)["records"]]
    except (AttributeError, KeyError, TypeError) as wrong:
        raise ValueError(f"not records of instructions: {wrong!r}") from wrong


def to_text(records: Sequence[Record]) -> str:
    entries: list[dict[str, Any]] = []
    for record in records:
        loops: dict[str, dict[str, int]] = {}
        for (loop, target), count in record.counts.items():
            loops.setdefault(loop, {})[target] = count
        entries.append({"build": asdict(record.build), "valgrind": record.valgrind, "instructions": loops})
    text = json.dumps({"records": entries}, indent=1)
    # A loop in a line, as one reads it.
    return re.sub(r"\{\s+((?:\"\w+\": \d+,?\s*)+)\}", lambda m: "{" + " ".join(m[1].split()) + "}", text) + "\n"


def record_for(records: Sequence[Record], build: Build) -> Record | None:
    return next((record for record in records if record.build == build), None)


def with_record(records: Sequence[Record], record: Record) -> list[Record]:
    """The others stay as they are."""
    others = [other for other in records if other.build != record.build]
    return sorted([*others, record], key=lambda each: str(each.build))


def table(findings: Sequence[Finding]) -> str:
    rows = [["loop", "target", "on record", "now", "change", ""]]
    for f in findings:
        rows.append([f.loop, f.target, "-" if f.before is None else f"{f.before:,}",
                     "-" if f.now is None else f"{f.now:,}",
                     "-" if f.change is None else f"{f.change:+.2f} %", f.verdict])
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(widths[c]) if 2 <= c <= 4 else cell.ljust(widths[c]) for c, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def judge(findings: Sequence[Finding]) -> tuple[int, list[str]]:
    """The exit status, and a line for each finding that somebody has to look at."""
    lines = []
    for f in findings:
        if f.verdict:
            change = f" by {abs(f.change):.2f} %" if f.change is not None else ""
            lines.append(f"{'FAILED' if f.fails else 'note'}: {f.loop} ({f.target}): {f.verdict}{change}")
    if any(f.verdict == "shrank" for f in findings):
        lines.append("note: what shrank may grow again unseen until it is recorded: --record")
    if any(f.verdict in ("not on record", "gone") for f in findings):
        lines.append("note: where loops were added or taken away on purpose: --record")
    return (1 if any(f.fails for f in findings) else 0), lines


def run(words: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, **options)


def asked(loops: Path, *words: str) -> list[str]:
    answer = run([str(loops), *words])
    if answer.returncode != 0:
        raise ValueError(f"{loops}: {answer.stderr.strip() or answer.returncode}")
    return answer.stdout.splitlines()


def build_of(loops: Path) -> Build:
    said = dict(line.split(": ", 1) for line in asked(loops, "--build"))
    return Build(**{word: said.get(word, "") for word in Build.__dataclass_fields__})


def instructions(loops: Path, loop: str, target: str, turns: int) -> int:
    """Of the whole program. What lies on its stack at the start, arguments and environment, is always the same."""
    words = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
             "--command-line-only=yes", f"./{loops.name}", loop, str(turns)]
    done = run(words, cwd=loops.parent, env={"PATH": os.environ.get("PATH", ""), "L3_CPU": target})
    if done.returncode == LACKS_TARGET:
        raise ValueError(f"this processor, or valgrind, lacks the target {target}")
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode != 0 or found is None:
        raise ValueError(f"{loop} ({target}): {(done.stderr.strip().splitlines() or ['no answer'])[-1]}")
    return int(found[1].replace(",", ""))


def count_all(loops: Path, names: Sequence[str], jobs: int) -> Counts:
    places = [(name, target) for name in names for target in TARGETS]
    with ThreadPoolExecutor(jobs) as pool:
        work = {(place, turns): pool.submit(instructions, loops, *place, turns) for place in places for turns in (1, 2)}
        try:
            return {place: work[place, 2].result() - work[place, 1].result() for place in places}
        except ValueError:
            pool.shutdown(cancel_futures=True)
            raise


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="LOOP", help="count only these loops (default: all)")
    parser.add_argument("--loops", type=Path, default=ROOT / "build/release/bench/micro/l3_loops", metavar="PROGRAM",
                        help="l3_loops of a release build")
    parser.add_argument("--results", type=Path, default=ROOT / "bench/results/instructions.json", metavar="FILE")
    parser.add_argument("--tolerance", type=float, default=3, metavar="PERCENT", help="default: 3")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="loops to run in parallel")
    parser.add_argument("--record", action="store_true", help="write the counts as the record of this build")
    options = parser.parse_args()
    if options.record and options.names:
        parser.error("a record is of all loops")
    if options.tolerance < 0 or options.jobs < 1:
        parser.error("the tolerance is at least 0, and there is at least one job")
    if not os.access(options.loops, os.X_OK):
        parser.error(f"{options.loops}: no such program; ./run bench --gate builds it")
    if shutil.which("valgrind") is None:
        parser.error("no valgrind here")
    options.loops = options.loops.resolve()
    return options


def gate(options: argparse.Namespace) -> int:
    records = records_of(options.results.read_text()) if options.results.exists() else []
    build = build_of(options.loops)
    known = record_for(records, build)
    if known is None and not options.record:
        say(f"no counts of this build are on record: {build}")
        for record in records:
            say(f"  on record: {record.build}")
        say("count a commit that is as fast as it should be with --record, then compare with that")
        return 2
    loops = asked(options.loops)
    unknown = [name for name in options.names if name not in loops]
    if unknown:
        raise ValueError(f"no such loops: {', '.join(unknown)}")
    counted = count_all(options.loops, options.names or loops, options.jobs)
    recorded = known.counts if known else {}
    if options.names:
        recorded = {place: count for place, count in recorded.items() if place[0] in options.names}
    findings = compare(recorded, counted, options.tolerance)
    print(table(findings), flush=True)
    if options.record:
        version = run(["valgrind", "--version"]).stdout.strip().removeprefix("valgrind-")
        options.results.write_text(to_text(with_record(records, Record(build, version, counted))))
        say(f"recorded for {build}")
        return 0
    status, lines = judge(findings)
    for line in lines:
        say(line)
    if status == 0:
        say(f"no loop takes more than {options.tolerance:g} % beyond its record ({build})")
    return status


def main() -> int:
    options = parsed()
    try:
        return gate(options)
    except (OSError, ValueError) as wrong:
        say(str(wrong))
        return 2


if __name__ == "__main__":
    sys.exit(main())
