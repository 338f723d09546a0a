"""Predicts how long a decoding call takes that has little to do. Nothing here was measured on a GPU.

A call is a chain: its kernels run one after the other, and in each the longest thread decides. What a thread does alone
is a chain of dependent instructions, so a turn of its loop takes as long as the compiler's waits say (model.simulate()
with one warp). The turns are counted in files. Assumed: how long it takes until the next kernel of a stream begins, how
long a trip to memory takes, and how many trips that wait for each other a kernel makes besides its loops, by reading
its code. Not counted: the payloads' checks, and waits for the host.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import model

GAP = 1.5  # microseconds from the end of a kernel to the first instruction of the next one
TRIP = 700  # cycles of a load that waits for memory
TRIPS = {"memset": 0, "open": 12, "models": 6, "list": 8, "dense": 12, "tokens": 2, "wide tokens": 2, "rows": 2,
         "bytes": 2, "words": 2, "report": 4}
ALONE = model.Use(1, {})


@dataclass
class Counted:
    """What the longest parts of a model take, in turns of loops."""

    rows: int  # of a channel: tables by level
    changes: int  # turns in all of them
    symbols: int  # of a table
    tables: int


DEFAULT = Counted(32, 467, 256, 24)  # spec/models/03.l3model
OWN = Counted(28, 268, 256, 24)  # as `l3 convert` makes for kodim05


@dataclass
class Case:
    name: str
    images: int
    tiles: int
    steps: int  # of a tile
    models: int  # that are built
    counted: Counted


# Tiles of 128 x 128 with 32 lanes.
CASES = (Case("2048 x 1024, default model", 1, 128, 574, 1, DEFAULT),
         Case("2048 x 1024, own model", 1, 128, 574, 1, OWN),
         Case("256 of 224 x 224, default model", 256, 1024, 574, 1, DEFAULT),
         Case("256 of 224 x 224, own models", 256, 1024, 574, 256, OWN))


def alone(body: list[model.Instruction]) -> float:
    """The cycles that a turn takes if a warp has a scheduler for itself."""
    return model.simulate(model.straight(body), ALONE, 1, 8)


@dataclass
class Chains:
    """Cycles of a turn for what the models kernel does one after the other."""

    row: float  # what a row takes besides its turns
    change: float
    symbol: float
    table: float  # until a table's buckets are built


def chains_of_models(code: list[model.Instruction]) -> Chains:
    parts = model.Ways(code).loops
    loops = {first: [code[i] for i in sorted(part)] for first, part in parts.items()}

    def count(body: list[model.Instruction], *names: str) -> int:
        return sum(one.name in names for one in body)

    def inside(first: int) -> list[int]:
        return [other for other in loops if parts[other] < parts[first]]

    changes = [first for first, body in loops.items()
               if count(body, "FLO") == 1 and count(body, "STS", "STG", "SHFL", "VOTE") == 0]
    rows = [first for first in loops if any(other in changes for other in inside(first))]
    symbols = [body for body in loops.values() if count(body, "FLO") and count(body, "STS")
               and count(body, "SHFL", "VOTE") == 0]
    # Of 256 buckets: eight rounds, of which the last loop has one in each turn.
    tables = [first for first, body in loops.items() if count(body, "SHFL") > 50]
    change = max(alone(loops[first]) for first in changes)
    row = max(alone(loops[first]) for first in rows) - change
    table = max(alone(loops[first]) + sum(7 * alone(loops[other]) for other in inside(first)) for first in tables)
    return Chains(row, change, max(alone(body) / count(body, "STS") for body in symbols), table)


def predict(case: Case, chains: Chains, step: model.Loop, use: model.Use, warps: int, per_multiprocessor: int,
            architecture: int) -> dict[str, float]:
    """Microseconds of each kernel, without what lies between them."""
    multiprocessors = model.MULTIPROCESSORS[architecture]
    cycles = {name: float(trips * TRIP) for name, trips in TRIPS.items()}
    counted = case.counted
    channel = counted.rows * chains.row + counted.changes * chains.change
    built = max(channel, counted.symbols * chains.symbol) + math.ceil(counted.tables / warps) * chains.table
    cycles["models"] += built * math.ceil(case.models / (multiprocessors * per_multiprocessor))
    of_scheduler = math.ceil(case.tiles / (multiprocessors * model.SCHEDULERS))
    cycles["dense"] += case.steps * of_scheduler * model.simulate(step, use, of_scheduler)
    return {name: number / model.CLOCK / 1000 for name, number in cycles.items()}


def table(found: list[tuple[Case, dict[str, float]]]) -> str:
    lines = ["Predicted microseconds of a call, by kernel:",
             "  " + " " * 32 + "".join(f"{name:>12}" for name in TRIPS) + f"{'gaps':>8}{'before tiles':>14}{'all':>8}"]
    for case, times in found:
        gaps = GAP * len(TRIPS)
        before = sum(times[name] for name in ("memset", "open", "models", "list")) + 5 * GAP
        shown = "".join(f"{time:12.0f}" for time in times.values())
        lines.append(f"  {case.name:32}{shown}{gaps:8.0f}{before:14.0f}{sum(times.values()) + gaps:8.0f}")
    return "\n".join(lines)
