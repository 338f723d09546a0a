"""Predicts from machine code how long a loop of a kernel takes. Nothing here was measured on a GPU.

Not all instructions cost the same. A multiprocessor has four schedulers. Each issues an instruction of a warp in a
cycle, but has only 16 lanes for most of them, so a pipe is busy with an instruction for two cycles. All four share the
path to memory. The pipe that is busy longest bounds the loop, however many warps there are. A simulation of resident
warps with the compiler's own waits says how near to that bound they come.

Where the numbers come from. NVIDIA's programming guide (results for each clock cycle and multiprocessor): 64 for
integer operations, so two cycles for a warp on a scheduler; 16 for POPC, FLO and conversions, so eight; 32 shuffles
for the multiprocessor. Its profiler's documentation: IMAD and IDP go to the heavy half of the FMA pipe, other integer
operations to ALU. Assumed, and not documented: that VIADD, VIMNMX and VABSDIFF4 are of ALU, two cycles for uniform
instructions and branches, the latencies, and a wavefront for each row that a store goes to.
Not modelled: misses of the instruction cache, conflicts of register banks, bandwidth of memory, ends of blocks.

A loop with branches and loops inside of it is followed along one way (Ways), which the caller chooses by what it is
worth to him.
"""

from __future__ import annotations

import math
import random
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

INSTRUCTION = 16  # bytes
SCHEDULERS = 4
MULTIPROCESSORS = {80: 108, 90: 132, 100: 148, 120: 170}
CLOCK = 1.755  # GHz, of an H200

# The lowest nine bits of an instruction say what it is.
OPERATIONS = {
    "alu": {0x002: "MOV", 0x003: "P2R", 0x004: "R2P", 0x005: "CS2R", 0x006: "VOTE", 0x007: "SEL", 0x00C: "ISETP",
            0x00F: "VIMNMX3", 0x010: "IADD3", 0x011: "LEA", 0x012: "LOP3", 0x013: "IABS", 0x014: "VABSDIFF",
            0x015: "VABSDIFF4", 0x016: "PRMT", 0x017: "IMNMX", 0x019: "SHF", 0x01B: "BMSK", 0x01C: "PLOP3",
            0x035: "IADD.64", 0x036: "VIADD", 0x046: "VIADDMNMX", 0x048: "VIMNMX", 0x086: "VOTEU", 0x0CA: "R2UR",
            0x1C2: "R2UR"},
    "fma": {0x024: "IMAD", 0x025: "IMAD.WIDE", 0x026: "IDP", 0x027: "IMAD.HI"},
    "float": {0x021: "FADD", 0x023: "FFMA", 0x031: "HFMA2", 0x045: "I2FP"},
    "xu": {0x100: "FLO", 0x101: "BREV", 0x104: "F2F", 0x105: "F2I", 0x106: "I2F", 0x108: "MUFU", 0x109: "POPC"},
    "memory": {0x119: "S2R", 0x180: "LD", 0x181: "LDG", 0x183: "LDL", 0x184: "LDS", 0x185: "ST", 0x186: "STG",
               0x187: "STL", 0x188: "STS", 0x189: "SHFL", 0x18A: "ATOM", 0x18C: "ATOMS", 0x18D: "ATOMS.CAS",
               0x18E: "RED", 0x1A8: "ATOMG", 0x1A9: "ATOMG.CAS", 0x1C3: "S2UR", 0x1C4: "REDUX"},
    "uniform": {0x04A: "UVIMNMX", 0x05A: "UI2F", 0x05C: "UF2I", 0x082: "UMOV", 0x087: "USEL", 0x08C: "UISETP",
                0x090: "UIADD3", 0x091: "ULEA", 0x092: "ULOP3", 0x096: "UPRMT", 0x097: "UIADD3.64",
                0x099: "USHF", 0x09B: "UBMSK", 0x09C: "UPLOP3", 0x0A4: "UIMAD", 0x0A5: "UIMAD.WIDE", 0x0A6: "UIMAD.HI",
                0x0B9: "ULDC", 0x0BD: "UFLO", 0x0BF: "UPOPC", 0x0CC: "CREDUX", 0x182: "LDC", 0x1AC: "LDCU"},
    "branch": {0x11B: "ENDCOLLECTIVE", 0x11C: "B2R", 0x11D: "BAR", 0x141: "BSYNC", 0x142: "BREAK", 0x144: "CALL",
               0x145: "BSSY", 0x146: "YIELD", 0x147: "BRA", 0x148: "WARPSYNC", 0x149: "BRX", 0x14D: "EXIT",
               0x150: "RET"},
    "none": {0x118: "NOP"},
}
PIPE_OF = {code: (name, pipe) for pipe, names in OPERATIONS.items() for code, name in names.items()}
CYCLES = {"alu": 2, "fma": 2, "float": 2, "xu": 8, "memory": 2, "uniform": 2, "branch": 2, "none": 0}
WIDE = ("IMAD.WIDE", "IMAD.HI")  # four cycles
LATENCY = {"LDS": 30, "STS": 14, "SHFL": 24, "S2R": 24, "STG": 14, "LDG": 100, "REDUX": 30, "VOTE": 14}
LATENCY_OF_PIPE = {"xu": 20, "uniform": 12, "memory": 40}
WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 16}  # bytes of a lane, by a field of the instruction


@dataclass
class Instruction:
    name: str
    pipe: str
    cycles: int  # of its pipe
    stall: int  # cycles until the warp may go on
    write_bar: int  # the barrier that its result releases; 7: none
    read_bar: int
    waits: int  # for these barriers, a bit for each
    is_uniform: bool  # all lanes have the same address
    width: int  # bytes of a lane in memory
    target: int  # of a branch: which instruction; else -1
    is_certain: bool  # no predicate decides whether it runs
    constant: int  # its 32 bits, if it has one
    guard: int  # the predicate that decides whether it runs; 7: none
    voted: int  # the predicate that a vote writes; 7: none
    table: tuple[int, ...] = ()  # of a branch through a table: where it may go

    def wavefronts(self, of_access: dict[str, float]) -> float:
        """How long it keeps the multiprocessor's path to memory busy."""
        if self.pipe != "memory":
            return 0
        if self.is_uniform and self.name in ("LDS", "STS"):
            return 1
        return of_access.get(self.access(), 1)

    def access(self) -> str:
        return f"{self.name} {self.width}"


def read_tables(info: bytes) -> dict[int, tuple[int, ...]]:
    """Where branches through tables may go, by their places: what the compiler says of a kernel (.nv.info)."""
    found, at = {}, 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        end = at + size if form == 4 else at
        while attribute == 0x34 and at < end:
            place, _, count = struct.unpack_from("<III", info, at)
            found[place // INSTRUCTION] = tuple(
                to // INSTRUCTION for to in struct.unpack_from(f"<{count}I", info, at + 12))
            at += 12 + 4 * count
        at = end
    return found


def read_code(code: bytes, architecture: int, tables: dict[int, tuple[int, ...]]) -> list[Instruction]:
    """Reads machine code, from sm_80 on."""
    found = []
    for at in range(0, len(code), INSTRUCTION):
        low, high = struct.unpack_from("<QQ", code, at)
        operation = low & 0x1FF
        if operation not in PIPE_OF:
            raise ValueError(f"unknown instruction {operation:#05x}: add it to OPERATIONS")
        name, pipe = PIPE_OF[operation]
        target = -1
        # Some compilers jump by a call under a condition. BRA.DIV, for lanes that are apart, does nothing here.
        by_uniform = name == "BRA" and low >> 9 & 7 == 2  # a predicate of the whole warp decides
        is_certain = low >> 12 & 15 == 7 and not by_uniform and (name != "BRA" or high >> 23 & 31 == 7)
        is_of_lanes = high >> 27 & 1 == 1 and low >> 9 & 7 == 4
        if (name == "BRA" and not (is_of_lanes and low >> 32 & 3 == 2)) or (name == "CALL" and not is_certain):
            # In words, from the next instruction on: 48 bits, and from sm_90 on 8 more below them.
            offset = low >> 34 | (high & 0x3FFFF) << 30
            offset -= offset >> 47 << 48
            if architecture >= 90:
                offset = offset << 8 | low >> 16 & 0xFF
            target = at // INSTRUCTION + 1 + offset * 4 // INSTRUCTION
        found.append(Instruction(name, pipe, 4 if name in WIDE else CYCLES[pipe], high >> 41 & 15, high >> 46 & 7,
                                 high >> 49 & 7, high >> 52 & 63, low >> 24 & 0xFF == 0xFF,
                                 WIDTHS.get(high >> 9 & 7, 4), target,
                                 is_certain, low >> 32, low >> 12 & 7, high >> 17 & 7 if name == "VOTE" else 7,
                                 tables.get(at // INSTRUCTION, ())))
    return found


@dataclass
class Use:
    """How images use a loop."""

    share: float  # in how many turns the parts run that branches skip
    wavefronts: dict[str, float]  # of an access to memory, if not 1
    absent: tuple[str, ...] = ()  # accesses that are not made


@dataclass
class Loop:
    first: int
    body: list[Instruction]

    @property
    def end(self) -> int:
        return self.first + len(self.body)

    def count(self, access: str) -> int:
        """How many instructions have this name, or access memory in this way."""
        return sum(access in (one.name, one.access()) for one in self.body)

    def parts(self) -> list[tuple[int, int]]:
        """What branches inside of the loop skip: the outermost ones, in order, without what they end with."""
        found: list[tuple[int, int]] = []
        for i, one in enumerate(self.body):
            end = one.target - self.first
            if i + 1 < end < len(self.body) and (not found or i >= found[-1][1]):
                found.append((i + 1, end))
        return found

    def weights(self, use: Use) -> list[float]:
        """For each instruction, in how many turns of the loop it runs."""
        weights = [float(one.pipe != "memory" or one.access() not in use.absent) for one in self.body]
        for first, end in self.parts():
            for i in range(first, end):
                weights[i] *= use.share
        return weights

    def turns(self, use: Use, count: int) -> Iterator[list[Instruction]]:
        """The instructions of turns, one after the other."""
        weights = self.weights(use)
        for turn in range(count):
            yield [one for one, weight in zip(self.body, weights)  # noqa: B905 (Python 3.9)
                   if int((turn + 1) * weight) > int(turn * weight)]


def loops_with(code: list[Instruction], name: str, least: int = 1) -> list[Loop]:
    """The loops that have so many of an instruction and contain no other such loop."""
    loops = [Loop(one.target, code[one.target : i + 1]) for i, one in enumerate(code) if 0 <= one.target <= i]
    loops = [loop for loop in loops if loop.count(name) >= least]
    return [loop for loop in loops
            if not any(other is not loop and loop.first <= other.first and other.end <= loop.end for other in loops)]


class Ways:
    """Where control may go in a kernel, and the loops of it."""

    def __init__(self, code: list[Instruction]) -> None:
        self.code = code
        self.before: list[list[int]] = [[] for _ in code]
        self.after = [self._after(i) for i in range(len(code))]
        for i, followers in enumerate(self.after):
            for next_one in followers:
                self.before[next_one].append(i)
        self.loops: dict[int, set[int]] = {}  # by their first instruction: all instructions
        for last, first in self._back_edges():
            self.loops.setdefault(first, set()).update(self._loop(first, last))

    def _after(self, i: int) -> list[int]:
        one = self.code[i]
        followers = [*one.table, *([one.target] if one.target >= 0 else [])]
        if not (one.is_certain and one.name in ("BRA", "BRX", "EXIT", "RET")) and i + 1 < len(self.code):
            followers.append(i + 1)
        return followers

    def _back_edges(self) -> Iterator[tuple[int, int]]:
        entered, open_ones, stack = {0}, {0}, [(0, iter(self.after[0]))]
        while stack:
            i, followers = stack[-1]
            for next_one in followers:
                if next_one in open_ones:
                    yield i, next_one
                elif next_one not in entered:
                    entered.add(next_one)
                    open_ones.add(next_one)
                    stack.append((next_one, iter(self.after[next_one])))
                    break
            else:
                open_ones.discard(i)
                stack.pop()

    def _loop(self, first: int, last: int) -> set[int]:
        found, left = {first, last}, [last] if last != first else []
        while left:
            for i in self.before[left.pop()]:
                if i not in found:
                    found.add(i)
                    left.append(i)
        return found

    def votes(self, first: int) -> list[int]:
        """The branches of a loop that all lanes take together, after a vote, in order."""
        found = []
        loop = sorted(self.loops[first])
        for place, vote in enumerate(loop):
            predicate = self.code[vote].voted
            for i in loop[place + 1 : place + 40] if predicate != 7 else ():
                if self.code[i].voted == predicate:
                    break
                if self.code[i].name == "BRA" and self.code[i].guard == predicate:
                    found.append(i)
                    break
        return found

    def way(self, first: int, worth: Callable[[Instruction], int], turns: Callable[[list[Instruction]], int],
            chosen: dict[int, int] | None = None) -> list[Instruction]:
        """The instructions of a turn of the loop that begins here, on the way through it that is worth most. Loops
        inside of it run as often as `turns` says, from their instructions. What follows an instruction of `chosen` is
        given. Empty if no way comes back."""
        chosen = chosen or {}
        loop = self.loops[first]
        inside = [(start, part) for start, part in self.loops.items() if start in loop and start != first]
        whole = {i: start for start, part in sorted(inside, key=lambda one: len(one[1])) for i in part}
        rest: dict[int, tuple[float, list[Instruction], int]] = {}  # from here: worth, instructions, what is next
        stack = [first]
        while stack:
            here = stack[-1]
            part = self.loops[here] if here in whole else {here}
            nexts = {whole.get(i, i) for j in part for i in ([chosen[j]] if j in chosen else self.after[j])
                     if i in loop and i not in part}
            unknown = [i for i in nexts if i != first and i not in rest]
            if unknown and here not in rest:
                rest[here] = (-math.inf, [], -1)  # also of a way that comes back to itself
                stack.extend(unknown)
                continue
            stack.pop()
            own = [self.code[here]]
            if here in whole:
                turn = self.way(here, worth, turns)
                own = turn * turns(turn)
            after, best = max(((0 if i == first else rest[i][0]), i) for i in nexts) if nexts else (-math.inf, -1)
            rest[here] = (after + sum(worth(one) for one in own), own, best)
        found: list[Instruction] = []
        here = first
        while rest[here][0] > -math.inf:
            found += rest[here][1]
            here = rest[here][2]
            if here == first:
                return found
        return []

    def smallest_loop(self, has: Callable[[list[Instruction]], bool]) -> list[int]:
        """Where the loops begin that have this, and contain no other loop that has."""
        found = {first: part for first, part in self.loops.items() if has([self.code[i] for i in part])}
        return [first for first, part in found.items()
                if not any(other < part for other in found.values())]


def straight(body: list[Instruction]) -> Loop:
    """A loop of these instructions in this order, without branches."""
    return Loop(0, [replace(one, target=-1) for one in body])


def busy(loop: Loop, use: Use) -> dict[str, float]:
    """The cycles of a scheduler that a turn of one warp takes, by what is busy. Of memory, which the schedulers share,
    four times as long."""
    cycles: Counter[str] = Counter()
    for one, weight in zip(loop.body, loop.weights(use)):  # noqa: B905 (Python 3.9)
        cycles["issue"] += weight
        cycles[one.pipe] += weight * one.cycles
        cycles["wavefronts"] += weight * one.wavefronts(use.wavefronts) * SCHEDULERS
    names = {"issue": "issue", "alu": "ALU", "fma": "FMA", "xu": "XU", "wavefronts": "memory"}
    return {shown: round(cycles[name], 1) for name, shown in names.items()}


class Warp:
    def __init__(self, trace: list[Instruction], place: int) -> None:
        self.trace, self.place, self.ready = trace, place, 0.0
        self.bars = [0.0] * 8


def simulate(loop: Loop, use: Use, warps: int, turns: int = 12) -> float:
    """The cycles of a scheduler that a turn of one warp takes, if each scheduler has so many warps. A scheduler stays
    with a warp until it must wait, and then takes the one that is ready first."""
    trace = [one for turn in loop.turns(use, 4) for one in turn]
    dice = random.Random(1)
    memory = 0.0  # when the path to memory is free
    schedulers = [{"warps": [Warp(trace, dice.randrange(len(trace))) for _ in range(warps)],
                   "free": Counter(), "issue": 0.0} for _ in range(SCHEDULERS)]
    issued, begun, goal = 0, 0.0, SCHEDULERS * warps * turns * len(trace) // 4
    while issued < goal:
        scheduler = min(schedulers, key=lambda one: one["issue"])
        free, all_warps, now = scheduler["free"], scheduler["warps"], scheduler["issue"]
        best, best_time = 0, float("inf")
        for i, warp in enumerate(all_warps):
            one = warp.trace[warp.place]
            time = max(now, warp.ready, free[one.pipe])
            if one.pipe == "memory":
                time = max(time, memory - 24)  # the queue in front of it is short
            if one.waits:
                time = max([time] + [warp.bars[bar] for bar in range(6) if one.waits >> bar & 1])
            if time < best_time:
                best, best_time = i, time
            if time == now:
                break
        warp, now = all_warps.pop(best), best_time
        all_warps.insert(0, warp)
        one = warp.trace[warp.place]
        free[one.pipe] = now + one.cycles
        done = now + LATENCY.get(one.name, LATENCY_OF_PIPE.get(one.pipe, 10))
        if one.pipe == "memory":
            start = max(memory, now + 4)
            memory = start + one.wavefronts(use.wavefronts)
            done += memory - now - 5
        if one.write_bar != 7:
            warp.bars[one.write_bar] = max(warp.bars[one.write_bar], done)
        if one.read_bar != 7:
            warp.bars[one.read_bar] = max(warp.bars[one.read_bar], memory if one.pipe == "memory" else now + 8)
        warp.ready = now + max(1, one.stall)
        warp.place = (warp.place + 1) % len(trace)
        scheduler["issue"] = now + 1
        issued += 1
        if issued == goal // 2:
            begun = now
    time = max(one["issue"] for one in schedulers) - begun
    return round(time * SCHEDULERS / ((issued - goal // 2) / (len(trace) / 4)), 1)


def rate(architecture: int, samples: float, cycles: float) -> float:
    """10^9 samples a second of a GPU, from the cycles of a scheduler for the samples of a warp."""
    return SCHEDULERS * MULTIPROCESSORS[architecture] * samples / cycles * CLOCK


def lanes_that_work(width: int, height: int, lanes: int) -> float:
    """Of a wavefront, in all steps of a tile."""
    period = max(width, 2 * lanes)
    steps = (height - 1) // lanes * period + width + 2 * ((height - 1) % lanes)
    return width * height / (steps * lanes)
