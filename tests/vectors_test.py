#!/usr/bin/env python3
"""Tests that spec/vectors/MANIFEST.txt describes the results of libl3, on all processor targets, and of the oracle.

    vectors_test.py VERDICTS...              the vector_verdicts command, with an emulator before it if it needs one
    vectors_test.py --no-oracle VERDICTS...  test only libl3, for processors that are emulated
    vectors_test.py --update VERDICTS...     write MANIFEST.txt and vectors_said.txt again if all agree; then check the
                                             difference

It also tests four more things. In a recipe with `+` or `-` lines, only those lines are wrong, so the file without them
must decode and verify. If a recipe states samples or entries of a palette, the oracle must return them. For every
reason for which libl3 refuses a file, there is a vector that it refuses for that reason (vectors_said.txt lists them).
And the table of violations in format.md (section 23) names the vectors that the oracle refuses for each number.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "spec" / "vectors"), str(ROOT / "spec"), str(ROOT / "tests")]
import l3_decode
import violations
from oracle_test import Blindness

import build

MANIFEST = ROOT / "spec" / "vectors" / "MANIFEST.txt"
SAID = ROOT / "tests" / "vectors_said.txt"
MANIFEST_HEAD = """\
# The vectors: what a decoder says of each file that build.py makes of a recipe.
#
# NAME, the SECTION of format.md it is about, what DECODING gives, what VERIFYING gives (section 9), and the reason.
# Decoding gives the first 16 bytes of the SHA-256 of the PAM file of section 11, or REJECT, or LIMIT: refused by a
# decoder with the limits of section 10, or MODEL: refused by one that was not given the model that the file names;
# neither is a verdict about the file. Verifying gives ok, REJECT, LIMIT or MODEL. Where it gives REJECT, the reason
# begins with the number of what is violated (section 23).
"""
SAID_HEAD = """\
# What libl3 says of the vectors that it refuses: a vector for each of its reasons. Written by vectors_test.py --update.
"""


@dataclass(frozen=True)
class Verdict:
    decoded: str
    verified: str
    number: str = field(default="", compare=False)  # of the violation, from the oracle


def ask_libl3(command: list[str], models: list[Path], paths: list[Path]) -> list[Verdict]:
    names = "".join(f"{path}\n" for path in paths)
    done = subprocess.run([*command, *map(str, models)], input=names, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"vectors_test: {done.stderr.strip() or 'the program for libl3 failed'} ({done.returncode})")
    targets, *lines = done.stdout.splitlines()
    print(targets)
    verdicts = []
    for path, line in zip(paths, lines, strict=True):
        name, decoded, verified = line.split("\t")
        assert name == str(path)
        verdicts.append(Verdict(decoded, verified))
    return verdicts


def ask_oracle(
    blindness: Blindness, data: bytes, models: l3_decode.Models, wanted: Verdict
) -> tuple[Verdict, l3_decode.Image | None]:
    """What the oracle says, and the image; of compressed metadata, which it cannot see, what is wanted."""
    try:
        image = l3_decode.decode(data, models=models)
    except l3_decode.OverLimit:
        return Verdict("LIMIT", "LIMIT"), None
    except l3_decode.MissingModel:
        return Verdict("MODEL", "MODEL"), None
    except l3_decode.Violation as violation:
        return Verdict("REJECT", "REJECT", violations.number_of(violation.reason)), None
    sha = hashlib.sha256()
    for part in l3_decode.pam(image):
        sha.update(part)
    verified, number = "ok", ""
    blindness.blind = False
    try:
        l3_decode.verify(data, models=models)
    except l3_decode.OverLimit:
        verified = "LIMIT"
    except l3_decode.Violation as violation:
        verified, number = "REJECT", violations.number_of(violation.reason)
    if verified == "ok" and blindness.blind:
        verified = wanted.verified
        number = violations.UNPACKED if verified == "REJECT" else ""
    return Verdict(sha.hexdigest()[:32], verified, number), image


def short(verdict: Verdict) -> Verdict:
    return Verdict(verdict.decoded.split()[0], verdict.verified.split()[0])


def reasons_of_libl3() -> set[str]:
    """The words of codec/src/container/reason.cpp for files that are refused, by the statuses that reason.h gives."""
    folder = ROOT / "codec" / "src" / "container"
    statuses = {}
    for names, status in re.findall(r"((?:case Reason::\w+:\s*)+)return L3_(\w+);", (folder / "reason.h").read_text()):
        statuses |= dict.fromkeys(re.findall(r"Reason::(\w+)", names), status)
    words = dict(re.findall(r"case Reason::(\w+):\s*return \"([^\"]+)\"", (folder / "reason.cpp").read_text()))
    of_files = ("ERROR_NOT_L3", "ERROR_UNSUPPORTED", "ERROR_CORRUPT", "ERROR_TRUNCATED")
    found = {text for name, text in words.items() if statuses.get(name, "ERROR_CORRUPT") in of_files}
    assert len(found) > 40, "the sources of reasons are not as they were"
    return found


def manifest_line(name: str, recipe: build.Recipe, verdict: Verdict, number: str) -> str:
    reason = f"{number}: {recipe.reason}" if number else recipe.reason
    return f"{name}\t{recipe.spec}\t{verdict.decoded}\t{verdict.verified}\t{reason}\n"


def numbers_in_manifest() -> dict[str, str]:
    """The number of each vector that is refused, for where the oracle is not asked."""
    lines = (line.split("\t") for line in MANIFEST.read_text().splitlines() if not line.startswith("#"))
    return {name: violations.number_of(reason) for name, _, _, _, reason in lines}


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare MANIFEST.txt with libl3 and the oracle.")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--no-oracle", action="store_true")
    parser.add_argument("verdicts", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    complaints: list[str] = []
    with tempfile.TemporaryDirectory(prefix="l3-vectors-") as folder:
        names, recipes, paths, controls = [], [], [], []
        for name, text in build.recipes():
            names.append(name)
            recipes.append(build.parse(text))
            paths.append(Path(folder, f"{name}.l3"))
            build.write(paths[-1], build.build_text(text))
            if build.has_control(text):
                controls.append(Path(folder, "controls", f"{name}.l3"))
                build.write(controls[-1], build.build_text(text, control=True))
            elif name.startswith("invalid/"):
                complaints.append(f"{name}: no line begins with + or -, so nothing says what is wrong with it")
        models = build.write_models(Path(folder))
        verdicts = ask_libl3(options.verdicts, models, paths + controls)
        for path, verdict in zip(controls, verdicts[len(paths) :], strict=True):
            if verdict.verified != "ok":
                complaints.append(f"{path.stem}: its control, which has nothing wrong, says {verdict}")
        numbers = numbers_in_manifest() if options.no_oracle else {}
        if not options.no_oracle:
            blindness = Blindness(l3_decode)
            by_name = {l3_decode.name_of(model.read_bytes()): model.read_bytes() for model in models}
            for name, recipe, path, verdict in zip(names, recipes, paths, verdicts, strict=False):
                oracle, image = ask_oracle(blindness, path.read_bytes(), by_name, short(verdict))
                if oracle != short(verdict):
                    complaints.append(f"{name}: the oracle says {oracle}, libl3 {verdict}")
                numbers[name] = oracle.number
                if recipe.samples is not None and (image is None or list(image.values()) != recipe.samples):
                    complaints.append(f"{name}: the oracle gives other samples than the recipe states")
                if recipe.entries is not None and (image is None or not build.entries_fit(recipe, image.palette)):
                    complaints.append(f"{name}: the oracle gives another palette than the recipe states")

    for name, verdict in zip(names, verdicts, strict=False):
        is_refused = verdict.verified not in ("ok", "LIMIT", "MODEL")
        if is_refused != name.startswith("invalid/"):
            complaints.append(f"{name}: says {verdict}")
    manifest = MANIFEST_HEAD + "".join(
        manifest_line(name, recipe, short(verdict), numbers.get(name, ""))
        for name, recipe, verdict in zip(names, recipes, verdicts, strict=False))
    said = SAID_HEAD + "".join(f"{name}\t{verdict.verified}\n" for name, verdict in zip(names, verdicts, strict=False)
                               if verdict.verified.startswith("REJECT"))
    for reason in sorted(reasons_of_libl3()):
        if f": {reason}" not in said:
            complaints.append(f"no vector is refused because {reason!r}")
    refused = [violations.Refused(name, recipe.spec, numbers.get(name, ""))
               for name, recipe in zip(names, recipes, strict=True) if name.startswith("invalid/")]
    text = violations.FORMAT.read_text()
    complaints += violations.complaints(text, refused)
    for path, now in ((MANIFEST, manifest), (SAID, said), (violations.FORMAT, violations.with_vectors(text, refused))):
        if options.update and not complaints:
            path.write_text(now)
        before = path.read_text().splitlines() if path.exists() else []
        for line in sorted(set(before) ^ set(now.splitlines())):
            complaints.append(f"{path.name}: {'gone' if line in before else 'new'}: {line}")
    for complaint in complaints:
        print(complaint)
    print(f"{len(names)} vectors, {len(controls)} controls, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
