#!/usr/bin/env python3
"""The violations of spec/format.md, section 23: a table of numbers, each with the vectors that break that rule alone.

    violations.py --renumber    number the rules anew, in the order of the table, also in spec/l3_decode.py. A new rule
                                first gets a number with a letter, like V40a. Then run vectors_test.py --update

Each reason of the oracle begins with a number. vectors_test.py compares what the oracle says of each vector with the
table, and --update writes its last column.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SPEC = Path(__file__).resolve().parent.parent / "spec"
FORMAT = SPEC / "format.md"
ORACLE = SPEC / "l3_decode.py"
ROW = re.compile(r"^\| ([VF]\d+[a-z]?) \| ([\d., ]+) \| (.+) \| (.*) \|$", re.MULTILINE)
NUMBER = re.compile(r"([VF]\d+[a-z]?): ")
MOST_NAMES = 3  # of vectors in a row
UNPACKED = "F14"  # what the oracle cannot see: it has no Zstandard decoder


@dataclass(frozen=True)
class Refused:
    """A vector that is refused."""

    name: str
    section: str  # that its recipe names
    number: str  # of the rule that it breaks, as the oracle says


def number_of(reason: str) -> str:
    found = NUMBER.match(reason)
    return found[1] if found else ""


def cell(names: list[str]) -> str:
    shown = ", ".join(name.removeprefix("invalid/") for name in names[:MOST_NAMES])
    return shown + (f", and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")


def with_vectors(text: str, refused: list[Refused]) -> str:
    """The text of format.md with the last column as the vectors are. A reason why there are none stays."""

    def row(found: re.Match[str]) -> str:
        number, sections, what, before = found.groups()
        names = [vector.name for vector in refused if vector.number == number]
        now = cell(names) if names else before if before.startswith("none: ") else ""
        return f"| {number} | {sections} | {what} | {now} |"

    return ROW.sub(row, text)


def reasons_of_oracle() -> Iterator[str]:
    """The beginning of each reason that stands in a call which refuses, or in a variable `reason`."""
    for node in ast.walk(ast.parse(ORACLE.read_text())):
        value: ast.expr | None = None
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in ("require", "require_zero", "Violation"):
                value = node.args[-1]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "reason":
            value = node.value
        if isinstance(value, ast.JoinedStr):
            value = value.values[0]
        if isinstance(value, ast.Constant):
            yield str(value.value)


def section_key(section: str) -> list[int]:
    return [int(part) for part in section.split(".")]


def complaints(text: str, refused: list[Refused]) -> Iterator[str]:
    rows = [found.groups() for found in ROW.finditer(text)]
    sections = {number: of.split(", ") for number, of, _, _ in rows}
    for letter in "VF":
        numbers = [number for number in sections if number[0] == letter]
        if not numbers or numbers != [f"{letter}{i + 1}" for i in range(len(numbers))]:
            yield f"format.md: the numbers {letter} do not rise from 1 (violations.py --renumber)"
    firsts = [section_key(of[0]) for number, of in sections.items() if number[0] == "V"]
    if firsts != sorted(firsts):
        yield "format.md: the violations are not in the order of their sections"
    in_text = {".".join(words) for words in re.findall(r"^##+ (\d+)(?:\.(\d+))?\.? ", text, re.MULTILINE)}
    for number, of in sections.items():
        for section in of:
            if section not in in_text and section + "." not in in_text:
                yield f"format.md: {number} names section {section}, which is not there"
    said = set()
    for reason in reasons_of_oracle():
        said.add(number_of(reason))
        if number_of(reason) not in sections:
            yield f"l3_decode.py: no number of the table: {reason}"
    for number in sections.keys() - said - {UNPACKED}:
        yield f"l3_decode.py: nothing is refused for {number}"
    for vector in refused:
        if vector.number not in sections:
            yield f"{vector.name}: the oracle names no number of the table"
        elif not any(f"{vector.section}.".startswith(f"{section}.") for section in sections[vector.number]):
            yield f"{vector.name}: is about section {vector.section}, and breaks {vector.number}"
    for number, _, what, vectors in rows:
        if not any(vector.number == number for vector in refused) and not vectors.startswith("none: "):
            yield f"format.md: no vector breaks {number}, {what}, and nothing says why"


def renumber() -> None:
    text = FORMAT.read_text()
    new: dict[str, str] = {}
    for found in ROW.finditer(text):
        letter = found[1][0]
        new[found[1]] = f"{letter}{1 + sum(number[0] == letter for number in new)}"
    FORMAT.write_text(ROW.sub(lambda found: found[0].replace(found[1], new[found[1]], 1), text))
    in_reasons = re.compile(rf'(?<="){NUMBER.pattern}')
    ORACLE.write_text(in_reasons.sub(lambda found: f"{new[found[1]]}: ", ORACLE.read_text()))


if __name__ == "__main__":
    if sys.argv[1:] != ["--renumber"]:
        sys.exit(__doc__)
    renumber()
