#!/usr/bin/env python3
"""Changes the oracle, spec/l3_decode.py, in one place at a time, and expects that the vectors of spec/vectors notice.

    oracle_mutation.py             all mutants, and the score
    oracle_mutation.py --sample N  every N-th mutant, and whether all that are listed exist
    oracle_mutation.py --only F    the mutants of one function, such as Lanes.end

A mutant is killed if it gives another verdict or other samples than MANIFEST.txt for any vector, if it crashes, or if
it takes far too long. One that survives shows that a vector is missing, unless the change is redundant: it changes the
result of no file. oracle_survivors.txt lists those, with a reason each. Fails if a mutant survives that is not listed,
or if one that is listed is killed or does not exist any more.
"""

from __future__ import annotations
import __future__

import argparse
import ast
import gc
import hashlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "spec" / "vectors"), str(ROOT / "spec"), str(ROOT / "tests")]
import l3_decode
from oracle_mutants import Finder, Mutant, used_at_start, with_probes
from oracle_test import Blindness

import build

ORACLE = ROOT / "spec" / "l3_decode.py"
MANIFEST = ROOT / "spec" / "vectors" / "MANIFEST.txt"
LISTED = ROOT / "tests" / "oracle_survivors.txt"
SMALL = 4096  # samples of an image: vectors up to here come first
MEMORY = 3 << 30  # for a mutant
KILLED = 1  # exit status of a process that noticed a change


@dataclass
class Vector:
    name: str
    recipe: build.Recipe
    data: bytes
    decoded: str  # as in the manifest
    verified: str
    blind: bool = True  # whether the oracle cannot see what is wrong
    seconds: float = 1.0  # for the oracle
    reached: set[int] = field(default_factory=set)  # lines of statements


class Vectors:
    """All vectors: the small ones, and the large ones when they are asked for."""

    def __init__(self) -> None:
        lines = (line.split("\t") for line in MANIFEST.read_text().splitlines() if not line.startswith("#"))
        self.manifest = {name: (decoded, verified) for name, _, decoded, verified, _ in lines}
        self.models = {l3_decode.name_of(model): model for model in build.models()}
        self.later: list[tuple[str, build.Recipe]] = []
        self.all: list[Vector] = []
        for name, text in build.recipes():
            recipe = build.parse(text)
            if name.startswith("limits/") or recipe.width * recipe.height * recipe.channels > SMALL:
                self.later.append((name, recipe))
            else:
                self.build(name, recipe)
        self.small = self.measured(self.all)

    def build(self, name: str, recipe: build.Recipe) -> None:
        if name not in self.manifest:
            sys.exit(f"oracle_mutation: {name} is not in the manifest: run tests/vectors_test.py --update first")
        self.all.append(Vector(name, recipe, build.build(recipe), *self.manifest[name]))

    def large(self) -> list[Vector]:
        begin = len(self.all)
        for name, recipe in self.later:
            self.build(name, recipe)
        self.later = []
        return self.measured(self.all[begin:])

    def measured(self, vectors: list[Vector]) -> list[Vector]:
        """With what each reaches and how long it takes, the cheapest first. The oracle without a change must pass."""
        source = ORACLE.read_text()
        reached = bytearray(source.count("\n") + 2)
        vars(l3_decode)["_REACHED"] = reached
        exec(compile(with_probes(source), str(ORACLE), "exec"), vars(l3_decode))
        blindness = Blindness(l3_decode)
        for vector in vectors:
            reached[:] = bytes(len(reached))
            began = time.process_time()
            if not self.as_wanted(vector, blindness):
                sys.exit(f"oracle_mutation: {vector.name}: the oracle, as it is, does not say what the manifest says")
            vector.blind = blindness.blind
            vector.seconds = time.process_time() - began
            vector.reached = {line for line, hit in enumerate(reached) if hit}
        exec(compile(source, str(ORACLE), "exec"), vars(l3_decode))
        return sorted(vectors, key=lambda vector: vector.seconds)

    def as_wanted(self, vector: Vector, blindness: Blindness) -> bool:
        """Whether the oracle says of the vector what the manifest says, if it is not blind for what is wrong."""
        blindness.blind = False
        if vector.decoded in ("REJECT", "LIMIT", "MODEL") or vector.verified == "REJECT":
            if self.said(vector, l3_decode.decode) != vector.decoded:
                return False
        if vector.verified == vector.decoded:
            return True
        said = self.said(vector, l3_decode.verify)
        if vector.verified == "ok":
            return said == vector.decoded
        return said == vector.verified or (vector.blind and blindness.blind and said == vector.decoded)

    def said(self, vector: Vector, function: Callable[..., l3_decode.Image]) -> str:
        try:
            image = function(vector.data, models=self.models)
        except l3_decode.OverLimit:
            return "LIMIT"
        except l3_decode.MissingModel:
            return "MODEL"
        except l3_decode.Violation:
            return "REJECT"
        if not build.entries_fit(vector.recipe, image.palette):
            return "another palette"
        sha = hashlib.sha256()
        for part in l3_decode.pam(image):
            sha.update(part)
        return sha.hexdigest()[:32]


# ------------------------------------------------------------------------------------------------------- one mutant


class Mutation:
    """Runs mutants, each in a process of its own."""

    def __init__(self, jobs: int, verbose: bool) -> None:
        self.jobs = jobs
        self.verbose = verbose
        self.source = ORACLE.read_text()
        self.finder = Finder(self.source)
        self.mutants = self.finder.found
        self.at_start = used_at_start(self.finder.tree)
        self.vectors = Vectors()

    def code(self, mutant: Mutant) -> CodeType:
        """The changed function or class, or the whole module where that begins with the change."""
        block = self.finder.tree.body[mutant.block]
        whole = not isinstance(block, ast.FunctionDef | ast.ClassDef) or block.name in self.at_start
        start, end = 0, len(self.source)
        if not whole:
            first = min([block.lineno, *(each.lineno for each in block.decorator_list)])
            start, end = self.finder.lines[first - 1], self.finder.end(block)
        text = self.source[start : mutant.start] + mutant.text + self.source[mutant.end : end]
        return compile(text, str(ORACLE), "exec", __future__.annotations.compiler_flag)

    def runs(self, mutant: Mutant, vectors: list[Vector]) -> list[Vector]:
        return [vector for vector in vectors if not mutant.reached or mutant.line in vector.reached]

    def child(self, mutant: Mutant, vectors: list[Vector]) -> int:
        """Runs vectors until one kills the mutant; its number behind the first, or 0."""
        exec(self.code(mutant), vars(l3_decode))
        blindness = Blindness(l3_decode)
        for number, vector in enumerate(vectors, 1):
            signal.setitimer(signal.ITIMER_VIRTUAL, 2 + 20 * vector.seconds)  # its signal ends the process
            if not self.vectors.as_wanted(vector, blindness):
                return number
        return 0

    def survivors(self, mutants: list[Mutant], vectors: list[Vector]) -> list[Mutant]:
        running: dict[int, Mutant] = {}
        alive: list[Mutant] = []
        left = iter(mutants)
        gc.freeze()
        done = 0
        while True:
            while len(running) < self.jobs and (mutant := next(left, None)) is not None:
                process = os.fork()
                if process == 0:
                    self.end_child(mutant, self.runs(mutant, vectors))
                running[process] = mutant
            if not running:
                return sorted(alive, key=lambda mutant: mutant.start)
            process, status = os.wait()
            mutant = running.pop(process)
            done += 1
            if done % 200 == 0:
                print(f"{done} of {len(mutants)} mutants, {len(alive)} survive", file=sys.stderr, flush=True)
            if status == 0:
                alive.append(mutant)
                if self.verbose:
                    print(f"survives so far: {show(mutant)}", file=sys.stderr, flush=True)

    def end_child(self, mutant: Mutant, vectors: list[Vector]) -> None:
        status = KILLED
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            status = KILLED if self.child(mutant, vectors) else 0
        except BaseException:  # a crash is another result
            pass
        os._exit(status)


# -------------------------------------------------------------------------------------------------------- the list


def listed() -> dict[tuple[str, ...], str]:
    """The reason of each mutant that may survive."""
    lines = [line.split("\t") for line in LISTED.read_text().splitlines() if line and not line.startswith("#")]
    return {tuple(key): reason for *key, reason in lines}


def show(mutant: Mutant) -> str:
    return "\t".join(mutant.key)


def main() -> int:
    parser = argparse.ArgumentParser(description="Check that the vectors notice each change of the oracle.")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="only every N-th mutant")
    parser.add_argument("--only", metavar="FUNCTION", help="only the mutants of this function")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--verbose", action="store_true", help="name what survives while it runs")
    options = parser.parse_args()
    began = time.time()
    mutation = Mutation(options.jobs, options.verbose)
    may_survive = listed()
    lost = may_survive.keys() - {mutant.key for mutant in mutation.mutants}
    complaints = ["listed, but there is no such mutant: " + "\t".join(key) for key in sorted(lost)]
    mutants = mutation.mutants[options.sample // 2 :: options.sample]
    if options.only:
        mutants = [mutant for mutant in mutants if mutant.function == options.only]
    alive = mutation.survivors(mutants, mutation.vectors.small)
    # A sample does not run the large vectors for mutants that may survive.
    rest = [mutant for mutant in alive if options.sample == 1 or mutant.key not in may_survive]
    if rest:
        killed_late = {mutant.key for mutant in rest}
        killed_late -= {mutant.key for mutant in mutation.survivors(rest, mutation.vectors.large())}
        alive = [mutant for mutant in alive if mutant.key not in killed_late]
    survive = {mutant.key for mutant in alive}
    complaints += [f"survives: {show(mutant)}" for mutant in alive if mutant.key not in may_survive]
    complaints += [f"listed as a survivor, but killed: {show(mutant)}" for mutant in mutants
                   if mutant.key in may_survive and mutant.key not in survive]
    for complaint in complaints:
        print(complaint)
    print(f"{len(mutants)} mutants, {len(mutants) - len(alive)} killed, {len(alive)} survive; "
          f"{len(mutation.vectors.all)} vectors, {len(complaints)} complaints, {time.time() - began:.0f} s")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
