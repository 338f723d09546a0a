#!/usr/bin/env python3
"""Breaks libl3 and the kernels on purpose, one fault at a time, and expects the tests to notice.

    mutation_check.py WORK            all faults, in a copy of the tree under WORK
    mutation_check.py WORK 3 7        only these faults
    mutation_check.py --list          list the faults

For each fault, it builds the library and the tests again and runs tests until one fails. If no test fails, it names the
fault, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from planted_faults import FAULTS

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "CHANGELOG.md", "base", "bench", "bridge",
         "cmake", "codec", "formats", "kernels", "loader", "spec", "tests", "tools")
PROGRAMS = ("vector_verdicts", "codec_test", "dense_test", "hostile_test", "allocation_test", "engine_test",
            "oracle_samples", "gpu_emulated_test", "gpu_model_parts_test", "loader_order_test", "loader_test",
            "loader_gpu_test", "resample_test")


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=3600)


class Copy:
    """The tree under WORK, its build, and its tests."""

    def __init__(self, work: Path, options: list[str]) -> None:
        self.tree = work / "tree"
        self.build = work / "build"
        # New files are newer than what an interrupted run left in the build, which may have a fault in it.
        shutil.rmtree(self.tree, ignore_errors=True)
        self.tree.mkdir(parents=True)
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, self.tree / part, copy_function=shutil.copyfile)
            elif (ROOT / part).exists():
                shutil.copyfile(ROOT / part, self.tree / part)
        done = run(["cmake", "-G", "Ninja", "-S", str(self.tree), "-B", str(self.build), "-DCMAKE_BUILD_TYPE=Release",
                    "-DCMAKE_CXX_FLAGS_RELEASE=-O1", "-DL3_CUDA=OFF", "-DL3_TOOLS=OFF", *options])
        if done.returncode != 0:
            sys.exit(f"mutation_check: {done.stdout}{done.stderr}")
        vectors = self.build / "vectors"
        run([sys.executable, str(self.tree / "spec" / "vectors" / "build.py"), str(vectors)])
        os.environ["L3_VECTORS"] = str(vectors)

    def compile(self) -> str:
        done = run(["cmake", "--build", str(self.build), "--target", *PROGRAMS])
        return "" if done.returncode == 0 else done.stdout[-2000:]

    def first_red(self, only: str = "") -> str:
        """The first test that fails, of those whose names begin so, or nothing."""
        programs = self.build / "tests"
        tests = {
            "vectors": [sys.executable, str(self.tree / "tests" / "vectors_test.py"), "--no-oracle",
                        str(programs / "vector_verdicts")],
            "codec": [str(programs / "codec_test"), "--gtest_fail_fast"],
            "dense": [str(programs / "dense_test"), "--gtest_fail_fast"],
            "allocation": [str(programs / "allocation_test"), "--gtest_fail_fast"],
            "hostile": [str(programs / "hostile_test"), "--gtest_fail_fast"],
            "engine": [str(programs / "engine_test"), "--gtest_fail_fast"],
            "oracle": [sys.executable, str(self.tree / "tests" / "oracle_test.py"),
                       str(programs / "oracle_samples")],
            "gpu_parts": [str(programs / "gpu_model_parts_test"), "--gtest_fail_fast"],
            "gpu": [str(programs / "gpu_emulated_test"), "--gtest_fail_fast"],
            "loader_order": [str(programs / "loader_order_test"), "--gtest_fail_fast"],
            "loader": [str(programs / "loader_test"), "--gtest_fail_fast"],
            "loader_resample": [str(programs / "resample_test"), "--gtest_fail_fast"],
            "loader_gpu": [str(programs / "loader_gpu_test"), "--gtest_fail_fast"],
        }
        tests = {name: test for name, test in tests.items() if not only or name.startswith(only)}
        for name, command in tests.items():
            if run(command).returncode != 0:
                return name
        return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutation_check.py", description="Plant faults that tests must notice.")
    parser.add_argument("--list", action="store_true", help="say what the faults are")
    parser.add_argument("--cmake", action="append", default=[], metavar="OPTION", help="a further option for CMake")
    parser.add_argument("work", nargs="?", type=Path, metavar="WORK")
    parser.add_argument("numbers", nargs="*", type=int, metavar="N")
    options = parser.parse_args()
    if options.list or options.work is None:
        for number, fault in enumerate(FAULTS, 1):
            print(f"{number:>3}  {fault.what} ({fault.file})")
        return 0
    copy = Copy(options.work.resolve(), options.cmake)
    if problem := copy.compile() or copy.first_red():
        sys.exit(f"mutation_check: red without any fault: {problem}")
    unnoticed = 0
    for number in options.numbers or range(1, len(FAULTS) + 1):
        fault = FAULTS[number - 1]
        path = copy.tree / fault.file
        before = path.read_text()
        if before.count(fault.old) != 1:
            sys.exit(f"mutation_check: fault {number} is not to be planted: {before.count(fault.old)} places")
        path.write_text(before.replace(fault.old, fault.new))
        problem = copy.compile()
        only = {"kernels": "gpu", "loader": "loader", "base": "loader"}.get(fault.file.split("/")[0], "")
        if fault.file.endswith("change_images.cu"):
            only = "loader_gpu"
        noticed = f"does not compile: {problem}" if problem else copy.first_red(only)
        path.write_text(before)
        unnoticed += not noticed
        print(f"{number:>3}  {fault.what}: {noticed or 'NOT NOTICED'}", flush=True)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
