#!/usr/bin/env python3
"""Tests that a shared library exports exactly what its map and its header list, and links only the expected libraries.

Usage: exports_test.py --library LIBL3_SO --source CODEC_FOLDER [--name l3]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

# Of the C and C++ runtimes, and what sanitizers bring along.
NEEDED = r"(libl3|libzstd|libstdc\+\+|libc\+\+|libc\+\+abi|libgcc_s|libunwind|libc|libm|ld-linux[\w-]*)\.so(\.\d+)*"
SANITIZERS = r"lib(asan|ubsan)\.so(\.\d+)*"


def output(*words: object) -> str:
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def differences(expected: set[str], found: set[str], missing: str, added: str) -> list[str]:
    return [f"{name}: {missing}" for name in sorted(expected - found)] + [
        f"{name}: {added}" for name in sorted(found - expected)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--name", default="l3", help="of the library and of the map")
    options = parser.parse_args()

    script = without_comments((options.source / f"{options.name}.map").read_text())
    version = re.match(r"\s*(\w+(?:\.\d+)*)\s*\{\s*global:(.*?)local:\s*\*;\s*\};\s*$", script, re.DOTALL)
    if version is None:
        print("the map: not one version with a list of names and `local: *`")
        return 1
    listed = {name.strip() for name in version[2].split(";") if name.strip()}
    headers = sorted((options.source / "include" / "l3").glob("*.h"))
    header = "\n".join(without_comments(path.read_text()) for path in headers)
    declared = set(re.findall(r"^L3_API\b[^;(]*?\b(\w+)\(", header, re.MULTILINE))
    wrong = differences(declared, listed, "in the header, and missing in the map",
                        "in the map, and the header does not declare it")

    exported = set()
    for line in output("nm", "-D", "--defined-only", options.library).splitlines():
        kind, name = line.split()[-2:]
        if (kind, name) == ("A", version[1]):
            continue  # the version itself
        exported.add(name)
    # Names without the version did not go through the map.
    wrong += differences({f"{name}@@{version[1]}" for name in listed}, exported,
                         "in the map, and the library does not export it",
                         "the library exports it, and the map does not list it")

    dynamic = output("readelf", "-d", "-W", options.library)
    soname = re.findall(r"\(SONAME\).*\[(.*)\]", dynamic)
    if soname != [f"lib{options.name}.so.{version[1].removeprefix('L3_')}"]:
        wrong.append(f"the SONAME is {soname}, and the version in the map is {version[1]}")
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    allowed = f"{NEEDED}|{SANITIZERS}" if any(re.fullmatch(SANITIZERS, name) for name in needed) else NEEDED
    wrong += [f"{name}: the library needs it, and should not" for name in needed if not re.fullmatch(allowed, name)]
    # Others find libl3 beside them; where it was built it is elsewhere.
    if options.name == "l3" and ("(RUNPATH)" in dynamic or "(RPATH)" in dynamic):
        wrong.append("the library has a run path")
    if not declared or not needed:
        wrong.append("nothing was read")

    for line in wrong:
        print(line)
    print(f"{len(exported)} functions, {soname}, needs {' '.join(needed)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
