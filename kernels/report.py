#!/usr/bin/env python3
"""Compiles the kernels and says what each needs: registers, spills, shared memory, instructions for each sample.

Reads the machine code itself: instructions of 16 bytes, as from sm_70 on. No GPU and no disassembler is needed.
"""

import argparse
import json
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("decode_dense.cu", "decode_tiles.cu")
INSTRUCTION = 16
LIMITS = {"registers": 64, "spill_bytes": 0, "instructions_per_sample": 120}
EXPLANATION = """\
instructions: machine instructions of the wavefront's step loop, all of those between the target of its backward branch
and that branch, whether every step runs them or not; the loop is the smallest one that has every four-way dot product
(IDP). per sample: divided by the samples that a lane decodes in a step, one for each channel."""


def sections(cubin: bytes):
    """The sections of an ELF file: name and contents."""
    start = struct.unpack_from("<Q", cubin, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", cubin, start + i * size) for i in range(count)]
    for name, kind, _, _, at, length in heads:
        first = heads[names][4] + name
        text = cubin[first : cubin.index(b"\0", first)].decode()
        yield text, b"" if kind == 8 else cubin[at : at + length]


def step_loop(code: bytes, architecture: int) -> int | None:
    """How many instructions the smallest loop has that holds all dot products."""
    words = [struct.unpack_from("<QQ", code, at) for at in range(0, len(code), INSTRUCTION)]
    dots = [i for i, (low, _) in enumerate(words) if low & 0x1FF == 0x026]
    if not dots:
        return None
    best = None
    for i, (low, high) in enumerate(words):
        if low & 0x1FF != 0x147:  # a branch
            continue
        # In words, from the next instruction on: 48 bits, and from sm_90 on 8 more below them.
        offset = low >> 34 | (high & 0x3FFFF) << 30
        offset -= offset >> 47 << 48
        if architecture >= 90:
            offset = offset << 8 | low >> 16 & 0xFF
        target = i + 1 + offset * 4 // INSTRUCTION
        if target <= dots[0] and i >= dots[-1] and (best is None or i - target + 1 < best):
            best = i - target + 1
    return best


def compile_kernels(nvcc: str, architecture: str, source: str) -> tuple[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "kernels.cubin"
        command = [nvcc, "-std=c++20", "-O3", f"-arch=sm_{architecture}", "-cubin", "-Xptxas=-v",
                   "--Werror=all-warnings", f"-I{ROOT / 'codec/src'}", f"-I{ROOT / 'codec/include'}",
                   str(ROOT / "kernels/src" / source), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            sys.exit(f"report: {source} does not compile for sm_{architecture}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr, out.read_bytes()


def kernels(nvcc: str, architecture: str):
    for source in SOURCES:
        said, cubin = compile_kernels(nvcc, architecture, source)
        code = dict(sections(cubin))
        functions = re.findall(
            r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
            r"(\d+) bytes spill loads.*?Used (\d+) registers([^\n]*)", said, re.DOTALL)
        for symbol, stack, stores, loads, registers, rest in functions:
            channels = re.search(r"decode_denseILj(\d)E", symbol)
            name = f"decode_dense<{channels[1]}>" if channels else re.sub(r"^_ZN2l3\d+(\w+?)E.*", r"\1", symbol)
            shared = re.search(r"(\d+) bytes smem", rest)
            loop = step_loop(code[f".text.{symbol}"], int(architecture)) if channels else None
            yield {
                "kernel": name,
                "architecture": f"sm_{architecture}",
                "registers": int(registers),
                "spill_bytes": int(stores) + int(loads),
                "stack_bytes": int(stack),
                "static_shared_bytes": int(shared[1]) if shared else 0,
                "step_instructions": loop,
                "instructions_per_sample": round(loop / int(channels[1]), 1) if loop else None,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--architectures", default="90", help="comma-separated, 90 unless told")
    parser.add_argument("--check", action="store_true",
                        help="fail where the kernel for RGB on sm_90 is over its limits")
    options = parser.parse_args()
    rows = [row for architecture in options.architectures.split(",") for row in kernels(options.nvcc, architecture)]
    if options.json:
        print(json.dumps({"limits": LIMITS, "kernels": rows}, indent=2))
    else:
        print(f"{'kernel':18} {'arch':7} {'registers':>9} {'spills':>6} {'stack':>6} {'shared':>6} {'step':>5} "
              f"{'per sample':>10}")
        for row in rows:
            step, each = row["step_instructions"] or "", row["instructions_per_sample"] or ""
            print(f"{row['kernel']:18} {row['architecture']:7} {row['registers']:9} {row['spill_bytes']:6} "
                  f"{row['stack_bytes']:6} {row['static_shared_bytes']:6} {step:>5} {each:>10}")
        print(EXPLANATION)
    if options.check:
        rgb = next((r for r in rows if r["kernel"] == "decode_dense<3>" and r["architecture"] == "sm_90"), None)
        if rgb is None or any(rgb[k] is None or rgb[k] > limit for k, limit in LIMITS.items()):
            sys.exit("report: the kernel for RGB is over its limits")


if __name__ == "__main__":
    main()
