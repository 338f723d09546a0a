#!/usr/bin/env python3
"""Tests that spec/shards/MANIFEST.txt describes the results of the oracle, spec/l3_shard.py, and of the l3 command.

    shards_test.py --l3 COMMAND   builds them all, opens them (`COMMAND ls PATH`), verifies them (`COMMAND verify PATH`)
                                  and reads their samples (`COMMAND cat PATH NAME -`)
    shards_test.py                tests only the oracle
    shards_test.py --update       writes MANIFEST.txt again; then check the difference

The command must exit with 0 or 1. Any other status, or a signal, is a failure. A refused file is reported in one line
on stderr that names the file.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "spec" / "shards"), str(ROOT / "spec")]
import build_shards
import l3_decode
import l3_shard
from build_shards import ACCEPT, EITHER, REFUSE, UNTRIED, Recipe
from recipes import all_recipes

Item = TypeVar("Item")
MANIFEST = ROOT / "spec" / "shards" / "MANIFEST.txt"
SHARDS_READ, SAMPLES_READ = 4, 12  # of a data set, of a shard: the first ones and the last one
SECONDS = 60

# What a run takes that has nothing to do: sanitizers and libraries. Compared with, so that both may grow.
SLACK_KIB = 24 << 10
SPARSE_SECONDS = 10


@dataclass(frozen=True)
class Said:
    verdict: str
    complaints: tuple[str, ...] = ()


def ask_oracle(path: Path, verifying: bool) -> str:
    try:
        opened = l3_shard.open_path(path)
        if verifying:
            opened.verify()
    except l3_shard.Refusal:
        return REFUSE
    return ACCEPT


def ask_command(command: list[str], word: str, path: Path) -> Said:
    try:
        done = subprocess.run([*command, word, path], capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return Said("", (f"l3 {word} takes more than {SECONDS} seconds",))
    lines = done.stderr.splitlines()
    if done.returncode == 0:
        return Said(ACCEPT)
    if done.returncode != 1:
        said = lines[-1].decode(errors="replace") if lines else ""
        return Said("", (f"l3 {word} ends with {done.returncode}: {said[:200]}",))
    if len(lines) != 1:
        return Said(REFUSE, (f"l3 {word} says {len(lines)} lines of what it refuses",))
    if os.fsencode(path) not in lines[0]:
        return Said(REFUSE, (f"l3 {word} does not name the file: {lines[0][:200].decode(errors='replace')}",))
    return Said(REFUSE)


def compare(recipe: Recipe, path: Path, command: list[str] | None) -> list[str]:
    """What is not as the manifest has it."""
    complaints = []
    for word, verifying, wanted in (("ls", False, recipe.opening), ("verify", True, recipe.verifying)):
        if wanted == UNTRIED:
            continue
        said = {"the oracle": Said(ask_oracle(path, verifying))}
        if command:
            said[f"l3 {word}"] = ask_command(command, word, path)
        for who, what in said.items():
            complaints += what.complaints
            if what.verdict and wanted not in (what.verdict, EITHER):
                complaints.append(f"{who} says {what.verdict}, not {wanted}: {recipe.reason}")
    return [f"{recipe.name}: {complaint}" for complaint in complaints]


def first_and_last(items: list[Item], count: int) -> list[Item]:
    return items if len(items) <= count else [*items[: count - 1], items[-1]]


def samples_of(path: Path) -> Iterator[tuple[l3_shard.Shard, l3_shard.Entry]]:
    for shard in first_and_last(l3_shard.shards_of(l3_shard.open_path(path)), SHARDS_READ):
        for entry in first_and_last(shard.entries, SAMPLES_READ):
            yield shard, entry


def pixels(file: bytes, models: l3_decode.Models) -> bytes:
    return b"".join(l3_decode.pam(l3_decode.decode(file, models=models)))


def compare_samples(recipe: Recipe, path: Path, command: list[str], seen: Counter[str]) -> list[str]:
    """`l3 cat` gives of the samples what the oracle reads, with a named model in the file, and refuses those that the
    oracle refuses."""
    complaints = []
    for shard, entry in samples_of(path):
        done = subprocess.run([*command, "cat", path, os.fsdecode(entry.name), "-"], capture_output=True,
                              timeout=SECONDS)
        what = f"{recipe.name}: l3 cat of {entry.name[:80]!r}"
        models = {l3_decode.name_of(model): model for model in shard.models}
        try:
            wanted = shard.read(entry)
            if entry.model != l3_shard.NO_MODEL:
                expected = pixels(wanted, models)  # a model that cannot be used cannot be put into the file either
        except (l3_shard.Refusal, l3_decode.Refusal) as refusal:
            # The digest of what is no image need not be tested where it is read.
            if entry.kind == l3_shard.IMAGE or done.returncode != 0:
                seen["samples refused"] += 1
                if done.returncode != 1:
                    complaints.append(f"{what} ends with {done.returncode}, but the oracle says: {refusal}")
            continue
        if done.returncode != 0:
            complaints.append(f"{what} ends with {done.returncode}: {done.stderr[:200].decode(errors='replace')}")
        elif entry.model == l3_shard.NO_MODEL:
            seen["samples the same"] += 1
            if done.stdout != wanted:
                complaints.append(f"{what}: other bytes than the oracle reads")
        else:
            seen["samples with their model in them"] += 1
            try:
                if pixels(done.stdout, {}) != expected:
                    complaints.append(f"{what}: other pixels than the oracle decodes")
            except l3_decode.Refusal as refusal:
                complaints.append(f"{what}: not a file for itself: {refusal}")
    return complaints


# ------------------------------------------------------------------------------------------------------------- sparse


def has_holes(folder: Path) -> bool:
    """Whether the file system keeps no zeros for what was never written."""
    path = folder / "hole"
    with path.open("wb") as file:
        file.seek(16 << 20)
        file.write(b"\1")
    blocks = path.stat().st_blocks
    path.unlink()
    return 512 * blocks < 1 << 20


@dataclass(frozen=True)
class Run:
    code: int
    out: bytes
    seconds: float
    peak_kib: int


def measure(words: list[str], out: Path) -> Run:
    """A run of the command, and the most memory it had at once."""
    start = time.monotonic()
    with out.open("wb") as stdout:
        process = subprocess.Popen(words, stdout=stdout, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(process.returncode, out.read_bytes(), time.monotonic() - start, used.ru_maxrss)


def compare_sparse(recipes: list[Recipe], folder: Path, command: list[str] | None) -> list[str]:
    """Samples of many GiB, which are never read as a whole: neither time nor memory follow what they claim."""
    if not has_holes(folder):
        print("the file system has no sparse files: shards beyond 4 GiB are left out")
        return []
    complaints = []
    small = next(recipe for recipe in recipes if recipe.name == "valid/one").write(folder / "small")
    name = "pixel.png"
    for recipe in recipes:
        if not recipe.is_sparse:
            continue
        try:
            path = recipe.write(folder)
        except OSError as error:
            print(f"{recipe.name}: left out, because of {error.strerror}")
            continue
        complaints += compare(recipe, path, command)
        if recipe.opening == ACCEPT:
            shard = l3_shard.Shard(l3_shard.File(path))
            pixel = shard.read(shard.entries[-1])
            for words in (["ls", str(path)], ["cat", str(path), name, "-"]) if command else ():
                least = measure([*(command or ()), "ls", str(small)], folder / "out")
                run = measure([*(command or ()), *words], folder / "out")
                what = f"{recipe.name}: l3 {words[0]}"
                if run.code != 0 or (words[0] == "cat" and run.out != pixel):
                    complaints.append(f"{what} ends with {run.code} and {len(run.out)} bytes")
                if run.peak_kib > least.peak_kib + SLACK_KIB:
                    complaints.append(f"{what} takes {run.peak_kib} KiB of memory, of a small shard {least.peak_kib}")
                if run.seconds > SPARSE_SECONDS:
                    complaints.append(f"{what} takes {run.seconds:.1f} seconds")
        path.unlink()
    return complaints


# --------------------------------------------------------------------------------------------------------------------


def compare_manifest(recipes: list[Recipe], update: bool) -> list[str]:
    now = build_shards.manifest(recipes)
    if update:
        MANIFEST.write_text(now)
    before = MANIFEST.read_text().splitlines() if MANIFEST.exists() else []
    return [f"{MANIFEST.name}: {'gone' if line in before else 'new'}: {line}"
            for line in sorted(set(before) ^ set(now.splitlines()))]


def compare_controls(recipes: list[Recipe]) -> list[str]:
    """Whatever is refused has a control, and that is taken."""
    by_name = {recipe.name: recipe for recipe in recipes}
    complaints = []
    for recipe in recipes:
        control = by_name.get(recipe.control)
        if REFUSE in (recipe.opening, recipe.verifying) and (control is None or control.opening != ACCEPT):
            complaints.append(f"{recipe.name}: no control, so nothing says that one thing alone is wrong")
    return complaints


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the manifest of shards with the oracle and the command.")
    parser.add_argument("--l3", help="the command to test")
    parser.add_argument("--update", action="store_true", help="write the manifest anew")
    options = parser.parse_args()
    command = [str(Path(options.l3).resolve())] if options.l3 else None
    recipes = all_recipes()
    complaints = compare_manifest(recipes, options.update) + compare_controls(recipes)
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="l3-shards-") as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(name)
        built = [(recipe, recipe.write(folder)) for recipe in recipes if not recipe.is_sparse]
        for found in pool.map(lambda each: compare(*each, command), built):
            complaints += found
        if command:
            opened = [each for each in built if each[0].reads and each[0].opening == ACCEPT]
            for found in pool.map(lambda each: compare_samples(*each, command, seen), opened):
                complaints += found
        complaints += compare_sparse(recipes, folder, command)
    for recipe in recipes:
        seen[f"opening {recipe.opening}"] += 1
        seen[f"verifying {recipe.verifying}"] += 1
    print(", ".join(f"{count} {what}" for what, count in sorted(seen.items())))
    for complaint in complaints:
        print(complaint)
    print(f"{len(recipes)} shards and data sets, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
