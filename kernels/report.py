#!/usr/bin/env python3
"""Compiles the kernels and reports what each needs: registers, spills, shared memory, and the time of its loops.

It reads the machine code itself, so it needs no GPU and no disassembler. model.py says where predictions come from.
"""

import argparse
import json
import re
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import latency
import model

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("stage_files.cu", "open_images.cu", "change_images.cu", "build_models.cu", "list_tiles.cu",
           "decode_dense.cu", "decode_tokens.cu", "decode_bytes.cu", "decode_words.cu", "encode_tiles.cu",
           "encode_files.cu")
EVERY_ARCHITECTURE = "80,86,89,90,100,120"
LIMITS = {"registers": 64, "spill_bytes": 0}
# Wavefronts of look-ups, on average of kodim05 and kodim20: tests/bank_conflicts.cpp. Of loads of 16 bytes, half are
# for weights of blocks, 4.1 each, and half for what all lanes share. A group of pixels goes to eight rows at once.
DENSE_ACCESSES = {"LDS 1": 1.9, "LDS 2": 3.1, "LDS 4": 2, "LDS 8": 6.3, "LDS 16": 2.6, "LDG 2": 1.3, "STG 8": 8,
                  "STG 16": 8}


@dataclass
class Kind:
    """The loops of a kernel that are modelled."""

    instruction: str  # which they have, at least so often
    least: int
    channels: str  # what they have once for each channel
    use: model.Use
    warps: int  # of a scheduler
    samples: int  # of a channel in a turn


# Of a step of a dense tile 128 pixels wide, half have a lane that enters a block, one at an edge, one that writes.
# Rows are aligned, so pixels leave as words of eight or sixteen bytes.
WORDS = Kind("IDP", 9, "LDS 2", model.Use(0.5, DENSE_ACCESSES, ("STG 4", "STG 1")), 8, 32)
KINDS = {"dense_kernel": WORDS}
# Strips of fast tiles. Lanes of 16 bytes are for eight lanes at once, and a store goes to four rows. That loads of the
# payload have three wavefronts is assumed: codes of three or four blocks lie apart, headers and widths do not.
STRIPS = model.Use(1, {"LDG 4": 3, "LDS 8": 2, "LDS 16": 4, "STS 16": 4, "STG 4": 4})
STRIP_WARPS = 10  # of a scheduler
# By the blocks that are decoded at once and the steps that this takes.
STRIP_NAMES = {(3, 8): "3 channels", (4, 8): "4 channels", (4, 9): "2 channels", (4, 11): "1 channel"}
BLOCK_SAMPLES, BLOCK_BYTES = 256, 128  # a payload has four bits a sample
COUNTED = ("dense_kernel", "tokens_kernel", "wide_tokens_kernel")
EXPLANATION = """\
Loops (of bytes_kernel: strips): cycles of a scheduler for a turn of one warp, by what is busy; "simulated" with as many
warps as there is room for; GB/s of a GPU that does nothing else, also with the lanes that work in tiles of 128 x 128
and 256 x 256. All of it is predicted. Steps: instructions of all loops over steps, whether a turn runs them or not."""


def sections(cubin: bytes):
    """The sections of an ELF file: name and contents."""
    start = struct.unpack_from("<Q", cubin, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", cubin, start + i * size) for i in range(count)]
    for name, kind, _, _, at, length in heads:
        first = heads[names][4] + name
        text = cubin[first : cubin.index(b"\0", first)].decode()
        yield text, b"" if kind == 8 else cubin[at : at + length]


def worth_in_strip(one: model.Instruction) -> int:
    """What leads the way through a strip: all blocks, no fault, lanes that are together, the longest transform of
    colours (it has most of this constant), and words in order, for which no type is read from memory."""
    if one.name in ("FLO", "ENDCOLLECTIVE"):
        return -5000
    if one.name == "REDUX":
        return 1000
    if one.name in ("SHFL", "POPC") or (one.pipe == "alu" and one.constant == 0x7F7F7F7F):
        return 100
    if one.access() == "STG 4":
        return 150
    return {"LDG": -100, "BRA": -30}.get(one.name, -1)


def turns_in_strip(body: list[model.Instruction]) -> int:
    """A loop over rows takes one, three or eight of them at a time, if tiles have one channel, two or more."""
    names = [one.name for one in body]
    if "SHFL" in names:
        rows = names.count("STS")
        return {1: 11, 3: 9}.get(rows, 8) // rows
    return 3 if "POPC" in names else 1


def predict_strips(code: list[model.Instruction], architecture: int) -> dict[str, dict[str, object]]:
    """All that strips take: headers, widths, rows, colours, stores, and their share of the payload's check."""
    ways = model.Ways(code)
    of_check = max(([code[i] for i in sorted(part)] for part in ways.loops.values()
                    if all(code[i].name not in ("STG", "STS", "SHFL") for i in part)),
                   key=lambda body: sum(one.access() == "LD 4" for one in body))
    loads = sum(one.access() == "LD 4" for one in of_check)
    found: dict[str, dict[str, object]] = {}
    for first in ways.smallest_loop(lambda body: {"REDUX", "POPC", "STG"} <= {one.name for one in body}):
        body = ways.way(first, worth_in_strip, turns_in_strip)
        loop = model.straight(body)
        blocks, rows = loop.count("REDUX"), loop.count("STS 4") - 1  # the last row is stored once more
        if (blocks, rows) not in STRIP_NAMES:  # this architecture's loop over rows has another form
            continue
        check = of_check[: len(of_check) * blocks * BLOCK_BYTES // (4 * 32 * loads)]
        loop = model.straight(body + check)
        cycles = model.simulate(loop, STRIPS, STRIP_WARPS, 3)
        found[STRIP_NAMES[blocks, rows]] = {
            "instructions": len(loop.body), "busy": model.busy(loop, STRIPS), "simulated": cycles,
            "rate": round(model.rate(architecture, blocks * BLOCK_SAMPLES, cycles))}
    return dict(sorted(found.items()))


def predict(kernel: str, code: list[model.Instruction], architecture: int) -> dict[str, dict[str, object]]:
    of_near = architecture if architecture in model.MULTIPROCESSORS else architecture // 10 * 10
    if kernel == "bytes_kernel":
        return predict_strips(code, of_near)
    kind = KINDS.get(kernel)
    if kind is None:
        return {}
    loops: dict[str, model.Loop] = {}
    for loop in model.loops_with(code, kind.instruction, kind.least):
        name = f"{loop.count(kind.channels)} words"
        # The loop that writes any type and layout is longer.
        if name not in loops or len(loop.body) < len(loops[name].body):
            loops[name] = loop
    found: dict[str, dict[str, object]] = {}
    for name, loop in sorted(loops.items()):
        cycles = model.simulate(loop, kind.use, kind.warps)
        samples = kind.samples * loop.count(kind.channels)
        found[name] = {"instructions": len(loop.body), "busy": model.busy(loop, kind.use), "simulated": cycles,
                       "rate": round(model.rate(of_near, samples, cycles))}
    return found


def count_steps(kernel: str, code: list[model.Instruction]) -> dict[str, int]:
    """The instructions of loops over steps, in the order of their length."""
    lengths = sorted(len(loop.body) for loop in model.loops_with(code, "IDP", 9)) if kernel in COUNTED else []
    return {str(number): length for number, length in enumerate(lengths, start=1)}


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
            is_read = kernel in KINDS or kernel in COUNTED or kernel == "bytes_kernel"
            instructions = model.read_code(machine_code, int(architecture)) if is_read else []
            yield {
                "kernel": kernel,
                "architecture": f"sm_{architecture}",
                "registers": int(registers),
                "spill_bytes": int(stores) + int(loads),
                "stack_bytes": int(stack),
                "static_shared_bytes": int(shared[1]) if shared else 0,
                "instructions": len(machine_code) // model.INSTRUCTION,
                "loops": predict(kernel, instructions, int(architecture)),
                "steps": count_steps(kernel, instructions),
            }


MODEL_WARPS, MODEL_BLOCKS = 24, 1  # of models_kernel: warps of a block, and blocks of a multiprocessor


def predict_latency(nvcc: str, generated: Path, architecture: str) -> str:
    codes = {}
    for source in ("build_models.cu", "decode_dense.cu"):
        said, cubin = compile_kernels(nvcc, generated, architecture, source)
        code = next(code for name, code in sections(cubin) if name.startswith(".text."))
        codes[source] = model.read_code(code, int(architecture))
    chains = latency.chains_of_models(codes["build_models.cu"])
    step = min((loop for loop in model.loops_with(codes["decode_dense.cu"], WORDS.instruction, WORDS.least)
                if loop.count(WORDS.channels) == 3), key=lambda loop: len(loop.body))
    found = [(case, latency.predict(case, chains, step, WORDS.use, MODEL_WARPS, MODEL_BLOCKS, int(architecture)))
             for case in latency.CASES]
    return f"{chains}\n{latency.table(found)}"


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
            numbers[f"step {step}"] = (old["steps"].get(step, 0), now)
        for loop, now in row["loops"].items():
            then = old["loops"].get(loop, {"simulated": 0, "busy": {}})
            numbers[f"{loop}, simulated"] = (then["simulated"], now["simulated"])
            longest = max(now["busy"], key=now["busy"].get)
            numbers[f"{loop}, {longest}"] = (max(then["busy"].values(), default=0), now["busy"][longest])
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
    parser.add_argument("--latency", action="store_true", help="predict how long calls take that have little to do")
    options = parser.parse_args()
    if options.latency:
        print(predict_latency(options.nvcc, options.generated, "90"))
        return
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
            for name, loop in row["loops"].items():
                busy = ", ".join(f"{what} {cycles:g}" for what, cycles in loop["busy"].items())
                print(f"  {name}: {busy}; simulated {loop['simulated']:g}, {loop['rate']} GB/s", end="")
                working = [loop["rate"] * model.lanes_that_work(edge, edge, 32) for edge in (128, 256)]
                print(f"; {working[0]:.0f} and {working[1]:.0f}" if row["kernel"] in KINDS else "")
            if row["steps"]:
                print(f"  steps: {', '.join(str(length) for length in row['steps'].values())}")
        print(EXPLANATION)
    if options.check:
        dense = next((r for r in rows if r["kernel"] == "dense_kernel" and r["architecture"] == "sm_90"), None)
        if dense is None or list(dense["loops"]) != ["1 words", "2 words", "3 words", "4 words"]:
            sys.exit("report: the kernel's loops were not found")
        if any(dense[name] > limit for name, limit in LIMITS.items()):
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
