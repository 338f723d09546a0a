#!/usr/bin/env python3
"""Tests how bench/gate.py judges counts. Valgrind and the loops are simulated."""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
import gate

BUILD = gate.Build("GNU 12.2.0", "-O3 -DNDEBUG", "x86_64", "glibc 2.36")
OTHER = gate.Build("GNU 13.2.0", "-O3 -DNDEBUG", "x86_64", "glibc 2.39")


def counts(**of: int) -> gate.Counts:
    """Of both targets; the second takes half of what the first takes."""
    return {(loop, target): count // (1 + i) for loop, count in of.items() for i, target in enumerate(gate.TARGETS)}


class Comparison(unittest.TestCase):
    def verdicts(self, before: gate.Counts, now: gate.Counts, tolerance: float = 3) -> tuple[int, list[str]]:
        findings = gate.compare(before, now, tolerance)
        return gate.judge(findings)[0], [f"{f.loop} {f.target} {f.verdict}" for f in findings if f.verdict]

    def test_same(self) -> None:
        self.assertEqual(self.verdicts(counts(encode=1000, decode=2000), counts(encode=1000, decode=2000)), (0, []))

    def test_growth_within_the_tolerance_passes(self) -> None:
        self.assertEqual(self.verdicts(counts(encode=2000), counts(encode=2060)), (0, []))

    def test_growth_beyond_it_fails(self) -> None:
        self.assertEqual(self.verdicts(counts(encode=2000, decode=2000), counts(encode=2062, decode=2000)),
                         (1, ["encode portable grew", "encode avx2 grew"]))

    def test_growth_of_one_target_fails(self) -> None:
        before, now = counts(encode=2000), counts(encode=2000)
        now["encode", "avx2"] += 31
        self.assertEqual(self.verdicts(before, now), (1, ["encode avx2 grew"]))

    def test_growth_is_not_made_up_for_elsewhere(self) -> None:
        status, verdicts = self.verdicts(counts(encode=2000, decode=2000), counts(encode=1000, decode=2100))
        self.assertEqual(status, 1)
        self.assertEqual(verdicts, ["encode portable shrank", "encode avx2 shrank", "decode portable grew",
                                    "decode avx2 grew"])

    def test_other_tolerances(self) -> None:
        before, now = counts(encode=2000), counts(encode=2002)
        self.assertEqual(self.verdicts(before, now, 0)[0], 1)
        self.assertEqual(self.verdicts(before, before, 0)[0], 0)
        self.assertEqual(self.verdicts(before, counts(encode=3000), 50)[0], 0)
        self.assertEqual(self.verdicts(before, counts(encode=3002), 50)[0], 1)

    def test_shrinking_passes_with_advice(self) -> None:
        findings = gate.compare(counts(decode=2000), counts(decode=1900), 3)
        status, lines = gate.judge(findings)
        self.assertEqual(status, 0)
        self.assertIn("note: decode (avx2): shrank by 5.00 %", lines)
        self.assertIn("--record", lines[-1])

    def test_a_new_loop_fails(self) -> None:
        self.assertEqual(self.verdicts(counts(encode=2000), counts(encode=2000, decode=7)),
                         (1, ["decode portable not on record", "decode avx2 not on record"]))

    def test_a_vanished_loop_fails(self) -> None:
        self.assertEqual(self.verdicts(counts(encode=2000, decode=7), counts(encode=2000)),
                         (1, ["decode portable gone", "decode avx2 gone"]))

    def test_findings_are_named(self) -> None:
        _, lines = gate.judge(gate.compare(counts(encode=2000), counts(encode=2100), 3))
        self.assertEqual(lines[0], "FAILED: encode (portable): grew by 5.00 %")
        text = gate.table(gate.compare(counts(encode=2_000_000), counts(decode=7_000_000), 3))
        self.assertIn("2,000,000", text)
        self.assertIn("gone", text)


class Records(unittest.TestCase):
    def test_come_back_as_they_were(self) -> None:
        records = [gate.Record(BUILD, "3.19.0", counts(encode=2000, decode=10)),
                   gate.Record(OTHER, "3.22.0", counts(encode=1900))]
        text = gate.to_text(records)
        self.assertEqual(gate.records_of(text), records)
        self.assertIn('"encode": {"portable": 2000, "avx2": 1000}', text)

    def test_of_another_build_stay(self) -> None:
        old, other = gate.Record(BUILD, "3.19.0", counts(encode=2)), gate.Record(OTHER, "3.22.0", counts(encode=4))
        new = gate.Record(BUILD, "3.19.0", counts(encode=6))
        self.assertEqual(gate.with_record([other, old], new), [new, other])

    def test_that_are_none_are_refused(self) -> None:
        for text in ("{}", "[]", '{"records": [{}]}', '{"records": [{"build": {"compiler": "x"}}]}', "nonsense"):
            with self.assertRaises(ValueError):
                gate.records_of(text)

    def test_in_the_tree(self) -> None:
        """Every record has every target of its loops, and all have the same loops."""
        records = gate.records_of((ROOT / "bench/results/instructions.json").read_text())
        self.assertTrue(records)
        for record in records:
            self.assertEqual(set(record.counts), set(records[0].counts))
            self.assertEqual({target for _, target in record.counts}, set(gate.TARGETS))
            self.assertTrue(all(count > 0 for count in record.counts.values()))


class Gate(unittest.TestCase):
    """From options to exit status, with made-up counts."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = Path(folder.name) / "instructions.json"

    def gate(self, now: gate.Counts, build: gate.Build = BUILD, **options: object) -> tuple[int, str]:
        words = {"loops": Path("l3_loops"), "results": self.results, "tolerance": 3, "jobs": 1, "record": False,
                 "names": [], **options}
        said = io.StringIO()

        def counted(_loops: Path, names: list[str], _jobs: int) -> gate.Counts:
            return {place: count for place, count in now.items() if place[0] in names}

        loops = list(dict.fromkeys(loop for loop, _ in now))
        with (mock.patch.object(gate, "build_of", return_value=build), mock.patch.object(gate, "count_all", counted),
              mock.patch.object(gate, "asked", return_value=loops),
              mock.patch.object(gate, "run", return_value=mock.Mock(stdout="valgrind-3.19.0\n")),
              contextlib.redirect_stdout(said), contextlib.redirect_stderr(said)):
            status = gate.gate(Namespace(**words))
        return status, said.getvalue()

    def test_nothing_on_record(self) -> None:
        status, said = self.gate(counts(encode=2000))
        self.assertEqual(status, 2)
        self.assertIn("no counts of this build are on record: GNU 12.2.0", said)

    def test_another_compiler_on_record(self) -> None:
        self.gate(counts(encode=2000), OTHER, record=True)
        status, said = self.gate(counts(encode=2000))
        self.assertEqual(status, 2)
        self.assertIn("on record: GNU 13.2.0", said)

    def test_record_and_compare(self) -> None:
        self.assertEqual(self.gate(counts(encode=2000, decode=2000), record=True)[0], 0)
        self.assertEqual(self.gate(counts(encode=2000, decode=2000))[0], 0)
        status, said = self.gate(counts(encode=2000, decode=4000))
        self.assertEqual(status, 1)
        self.assertIn("FAILED: decode (avx2): grew by 100.00 %", said)
        self.assertEqual(self.gate(counts(encode=2000))[0], 1)  # decode is gone
        self.assertEqual(self.gate(counts(encode=2000, decode=4000), record=True)[0], 0)
        self.assertEqual(self.gate(counts(encode=2000, decode=4000))[0], 0)

    def test_some_loops_alone(self) -> None:
        self.gate(counts(encode=2000, decode=2000), record=True)
        grown = counts(encode=2000, decode=4000)
        self.assertEqual(self.gate(grown, names=["encode"])[0], 0)
        self.assertEqual(self.gate(grown, names=["decode"])[0], 1)
        with self.assertRaises(ValueError):
            self.gate(grown, names=["nonsense"])


if __name__ == "__main__":
    unittest.main()
