#!/usr/bin/env python3
"""Compiles the kernels and reports what each needs: registers, spills, shared memory, instructions per sample.

It reads the machine code itself (16 bytes per instruction, from sm_70 on), so it needs no GPU and no disassembler.
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
SOURCES = ("stage_files.cu", "open_images.cu", "change_images.cu", "build_models.cu", "list_tiles.cu",
           "decode_dense.cu", "decode_tokens.cu", "decode_bytes.cu", "decode_words.cu")
INSTRUCTION = 16
EVERY_ARCHITECTURE = "80,86,89,90,100,120"
LIMITS = {"registers": 64, "spill_bytes": 0, "instructions_per_sample": 120}
# The loops of kernels that decode dense tiles: the least number of channels, and what the loops of each number write.
LOOPS = {"dense_kernel": (1, ("words", "any")), "tokens_kernel": (1, ("any",)), "wide_tokens_kernel": (3, ("any",))}
EXPLANATION = """\
step: machine instructions of the wavefront's loop over steps, all of those between the target of its backward branch
and that branch, whether every step runs them or not. Such loops are the innermost ones that have dot products (IDP),
for each number of channels; those that write samples as they are (words) have one of their own, others write any type
and layout (any). The loop for literals has no dot products, and is not among them.
per sample: divided by the samples that a lane decodes in a step, one for each channel."""


def sections(cubin: bytes):
    """The sections of an ELF file: name and contents."""
    start = struct.unpack_from("<Q", cubin, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", cubin, start + i * size) for i in range(count)]
    for name, kind, _, _, at, length in heads:
        first = heads[names][4] + name
        text = cubin[first : cubin.index(b"\0", first)].decode()
        yield text, b"" if kind == 8 else cubin[at : at + length]


def step_loops(code: bytes, architecture: int) -> list[tuple[int, int]]:
    """Returns the innermost loops with dot products: the number of dot products and of instructions."""
    words = [struct.unpack_from("<QQ", code, at) for at in range(0, len(code), INSTRUCTION)]
    dots = [i for i, (low, _) in enumerate(words) if low & 0x1FF == 0x026]
    loops: list[tuple[int, int]] = []
    for i, (low, high) in enumerate(words):
        if low & 0x1FF != 0x147:  # a branch
            continue
        # In words, from the next instruction on: 48 bits, and from sm_90 on 8 more below them.
        offset = low >> 34 | (high & 0x3FFFF) << 30
        offset -= offset >> 47 << 48
        if architecture >= 90:
            offset = offset << 8 | low >> 16 & 0xFF
        target = i + 1 + offset * 4 // INSTRUCTION
        if target <= i and any(target <= dot <= i for dot in dots):
            loops.append((target, i))
    innermost = [a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    return [(sum(first <= dot <= last for dot in dots), last - first + 1) for first, last in innermost]


def steps_by_channels(kernel: str, code: bytes, architecture: int) -> dict[str, dict[str, float]]:
    """Of a kernel whose loops are for a number of channels each, and an output."""
    first, outputs = LOOPS.get(kernel, (1, ()))
    loops = step_loops(code, architecture)
    steps: dict[str, dict[str, float]] = {}
    for channels, dots in enumerate(sorted({dots for dots, _ in loops}), start=first):
        for output, length in zip(outputs, sorted(length for d, length in loops if d == dots), strict=False):
            steps[f"{channels} {output}"] = {"step": length, "per_sample": round(length / channels, 1)}
    return steps


def compile_kernels(nvcc: str, generated: Path, architecture: str, source: str) -> tuple[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "kernels.cubin"
        command = [nvcc, "-std=c++20", "-O3", f"-arch=sm_{architecture}", "-cubin", "-Xptxas=-v",
                   "--expt-relaxed-constexpr", "--Werror=all-warnings", f"-I{ROOT / 'codec/src'}",
                   f"-I{ROOT / 'codec/include'}", f"-I{ROOT / 'kernels/include'}",
                   f"-I{ROOT / 'base/include'}", f"-I{generated}",
                   str(ROOT / "kernels/src" / source), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            sys.exit(f"report: {source} does not compile for sm_{architecture}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr, out.read_bytes()


def kernels(nvcc: str, generated: Path, architecture: str):
    for source in SOURCES:
        said, cubin = compile_kernels(nvcc, generated, architecture, source)
        code = dict(sections(cubin))
        functions = re.findall(
            r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
            r"(\d+) bytes spill loads.*?Used (\d+) registers([^\n]*)", said, re.DOTALL)
        for symbol, stack, stores, loads, registers, rest in functions:
            shared = re.search(r"(\d+) bytes smem", rest)
            machine_code = code[f".text.{symbol}"]
            kernel = re.sub(r"^_ZN2l3\d+(\w+?)E.*", r"\1", symbol)
            yield {
                "kernel": kernel,
                "architecture": f"sm_{architecture}",
                "registers": int(registers),
                "spill_bytes": int(stores) + int(loads),
                "stack_bytes": int(stack),
                "static_shared_bytes": int(shared[1]) if shared else 0,
                "instructions": len(machine_code) // INSTRUCTION,
                "steps": steps_by_channels(kernel, machine_code, int(architecture)),
            }


def version_of(nvcc: str) -> str:
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"release (\S+),", said)
    return found[1] if found else "unknown"


def compare(record: list[dict], rows: list[dict]) -> list[str]:
    """What is worse than in the record: spills and stack at all, registers and instructions by more than a 50th."""
    before = {(row["kernel"], row["architecture"]): row for row in record}
    worse = []
    for row in rows:
        name = f"{row['kernel']} {row['architecture']}"
        old = before.get((row["kernel"], row["architecture"]))
        if old is None:
            worse.append(f"{name}: not in the record")
            continue
        numbers = {key: (old[key], row[key]) for key in ("registers", "spill_bytes", "stack_bytes", "instructions")}
        for step, now in row["steps"].items():
            numbers[f"step, {step}"] = (old["steps"].get(step, {"step": 0})["step"], now["step"])
        for key, (then, now) in numbers.items():
            allowed = then if key in ("spill_bytes", "stack_bytes") else then + then / 50
            if now > allowed:
                worse.append(f"{name}: {key}: {now}, was {then}")
    return worse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--generated", type=Path, default=ROOT / "build/cuda/codec/generated", metavar="DIR",
                        help="where a build has made default_models.inc; build/cuda/codec/generated unless told")
    parser.add_argument("--architectures", default="90", help="comma-separated, or all; 90 unless told")
    parser.add_argument("--check", action="store_true",
                        help="fail where the kernel for dense tiles on sm_90 is over its limits")
    parser.add_argument("--against", type=Path, metavar="FILE",
                        help="fail where a kernel needs more than in this record, which --json wrote")
    options = parser.parse_args()
    wanted = EVERY_ARCHITECTURE if options.architectures == "all" else options.architectures
    rows = [row for architecture in wanted.split(",")
            for row in kernels(options.nvcc, options.generated, architecture)]
    if options.json:
        print(json.dumps({"nvcc": version_of(options.nvcc), "limits": LIMITS, "kernels": rows}, indent=1))
    else:
        print(f"{'kernel':18} {'arch':7} {'registers':>9} {'spills':>6} {'stack':>6} {'shared':>6} {'code':>6}")
        for row in rows:
            print(f"{row['kernel']:18} {row['architecture']:7} {row['registers']:9} {row['spill_bytes']:6} "
                  f"{row['stack_bytes']:6} {row['static_shared_bytes']:6} {row['instructions']:6}")
            for name, step in row["steps"].items():
                channels, output = name.split()
                print(f"  {channels} channels, {output:8} step {step['step']:4}, per sample {step['per_sample']:6}")
        print(EXPLANATION)
    if options.check:
        dense = next((r for r in rows if r["kernel"] == "dense_kernel" and r["architecture"] == "sm_90"), None)
        if dense is None or "3 words" not in dense["steps"]:
            sys.exit("report: the kernel's loops were not found")
        found = dense | {"instructions_per_sample": dense["steps"]["3 words"]["per_sample"]}
        if any(found[name] > limit for name, limit in LIMITS.items()):
            sys.exit("report: the kernel for dense tiles is over its limits")
    if options.against:
        record = json.loads(options.against.read_text())
        if record["nvcc"] != version_of(options.nvcc):
            print(f"report: the record is of nvcc {record['nvcc']}: not compared")
            sys.exit(77)
        worse = compare(record["kernels"], rows)
        if worse:
            sys.exit("\n".join(["report: more than in the record", *worse]))


if __name__ == "__main__":
    main()
