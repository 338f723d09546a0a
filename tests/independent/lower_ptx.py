"""Rewrites PTX for GPGPU-Sim: what it lacks, or executes wrongly, becomes several instructions that it has.

Usage: lower_ptx.py IN OUT. Prints what was rewritten, and how often. The kernel l3_fill_addresses of the output stores
the tables whose initialisers have addresses; run it before the others.
"""

import collections
import re
import sys
from pathlib import Path

# Lanes pass words to each other here, in shared memory behind what a block may have.
EXCHANGE = 0x80000
# The word that a block's reductions use.
REDUCED = 0x90000
# Temporary registers.
REGISTERS = "\n".join(f".reg .{kind} %z{letter}<{count}>;" for letter, kind, count in
                      (("u", "b32", 16), ("s", "b32", 4), ("h", "b16", 1), ("d", "b64", 8), ("p", "pred", 2),
                       ("f", "f64", 6)))

# ---- instructions: what each becomes, by its name. `o` are its operands, `op` the parts of its name.


def dot(o, op, count, first=0):
    """The sum of products of `count` parts."""
    bits = 32 // count
    kinds = [part for part in op if part in ("s32", "u32")]
    yield f"mov.b32 %zu6, {o[1]}; mov.b32 %zu7, {o[2]}; mov.b32 %zu5, {o[3]}"
    for i in range(count):
        yield f"bfe.{kinds[0]} %zu0, %zu6, {bits * i}, {bits}; bfe.{kinds[1]} %zu1, %zu7, {8 * (first + i)}, 8"
        yield "mad.lo.s32 %zu5, %zu0, %zu1, %zu5"
    yield f"mov.b32 {o[0]}, %zu5"


def absolute_differences(o, op):
    assert op[1:] == ["u32", "u32", "u32"], op
    yield f"mov.b32 %zu6, {o[1]}; mov.b32 %zu7, {o[2]}; mov.b32 %zu5, 0"
    for at in range(0, 32, 8):
        yield f"bfe.u32 %zu0, %zu6, {at}, 8; bfe.u32 %zu1, %zu7, {at}, 8; sad.u32 %zu0, %zu0, %zu1, 0"
        yield f"shl.b32 %zu0, %zu0, {at}; or.b32 %zu5, %zu5, %zu0"
    yield f"mov.b32 {o[0]}, %zu5"


def permute(o, op):
    assert op == ["prmt", "b32"], op
    yield f"mov.b32 %zu6, {o[1]}; mov.b32 %zu7, {o[2]}; mov.b32 %zu5, 0"
    if not o[3].startswith("%"):
        selector = int(o[3].rstrip("U"), 0)
        for i in range(4):
            choice = selector >> 4 * i & 15
            word, at = f"%zu{7 if choice & 4 else 6}", 8 * (choice & 3)
            # The byte itself, or its sign in all bits.
            yield f"bfe.s32 %zu0, {word}, {at + 7}, 1; and.b32 %zu0, %zu0, 255" if choice & 8 else \
                  f"bfe.u32 %zu0, {word}, {at}, 8"
            yield f"shl.b32 %zu0, %zu0, {8 * i}; or.b32 %zu5, %zu5, %zu0"
    else:
        yield f"mov.b32 %zu4, {o[3]}"
        for i in range(4):
            yield f"bfe.u32 %zu0, %zu4, {4 * i + 2}, 1; setp.ne.u32 %zp0, %zu0, 0; selp.b32 %zu1, %zu7, %zu6, %zp0"
            yield f"bfe.u32 %zu0, %zu4, {4 * i}, 2; shl.b32 %zu0, %zu0, 3; shr.u32 %zu1, %zu1, %zu0"
            yield "and.b32 %zu1, %zu1, 255"
            yield f"bfe.u32 %zu0, %zu4, {4 * i + 3}, 1; setp.ne.u32 %zp0, %zu0, 0"
            yield "shr.u32 %zu2, %zu1, 7; mul.lo.u32 %zu2, %zu2, 255; selp.b32 %zu1, %zu2, %zu1, %zp0"
            yield f"shl.b32 %zu1, %zu1, {8 * i}; or.b32 %zu5, %zu5, %zu1"
    yield f"mov.b32 {o[0]}, %zu5"


# Where this thread's word for other lanes is, where the words of its warp begin, and its lane.
PROLOGUE = f"""mov.u32 %zs0, %tid.x; mov.u32 %zs2, %laneid; shl.b32 %zs0, %zs0, 2; add.u32 %zs0, %zs0, {EXCHANGE};
shl.b32 %zs1, %zs2, 2; sub.u32 %zs1, %zs0, %zs1;"""
# The lane that each way of shuffling reads (%zu4), from the lane, %zu1 and the mask of segments %zu2.
SHUFFLES = {"idx": ("not.b32 %zu4, %zu2; and.b32 %zu4, %zu4, %zu1; and.b32 %zu5, %zs2, %zu2; or.b32 %zu4, %zu4, %zu5",
                    "le"),
            "up": ("sub.s32 %zu4, %zs2, %zu1", "ge"), "down": ("add.s32 %zu4, %zs2, %zu1", "le"),
            "bfly": ("xor.b32 %zu4, %zs2, %zu1", "le")}
constants: dict[str, str] = {}  # of registers that one statement sets, to a number
unused: set[str] = set()  # predicates that only one statement names


def shuffle(o, op):
    """Lanes of a warp execute each instruction together, so a word that all stored can be loaded by the others."""
    source, compare = SHUFFLES[op[2]]
    to, _, valid = o[0].partition("|")
    yield f"mov.b32 %zu0, {o[1]}; st.shared.u32 [%zs0], %zu0; mov.b32 %zu1, {o[2]}; and.b32 %zu1, %zu1, 31"
    if valid.strip() in unused:
        valid = ""
    limit = constants.get(o[3], o[3])
    if op[2] in ("idx", "bfly") and limit == "31" and not valid:  # any lane of the warp
        yield source if op[2] == "bfly" else "mov.b32 %zu4, %zu1"
    elif op[2] == "up" and limit == "0":
        yield f"{source}; setp.ge.s32 %zp0, %zu4, 0; selp.b32 %zu4, %zu4, %zs2, %zp0"
    else:
        yield f"mov.b32 %zu3, {o[3]}; bfe.u32 %zu2, %zu3, 8, 5"
        # The first or last lane of the segment: lane & segment | clamp & ~segment.
        yield "and.b32 %zu6, %zs2, %zu2; not.b32 %zu7, %zu2; and.b32 %zu7, %zu7, %zu3; and.b32 %zu7, %zu7, 31"
        yield f"or.b32 %zu6, %zu6, %zu7; {source}; setp.{compare}.s32 %zp0, %zu4, %zu6"
        yield "selp.b32 %zu4, %zu4, %zs2, %zp0"
    yield f"shl.b32 %zu4, %zu4, 2; add.s32 %zu4, %zu4, %zs1; ld.shared.u32 {to.strip()}, [%zu4]"
    if valid:
        yield f"mov.pred {valid.strip()}, %zp0"


def reduce(o, op):
    _, _, what, kind = op
    yield f"mov.b32 %zu5, {o[1]}"
    for lanes in (1, 2, 4, 8, 16):
        yield f"st.shared.u32 [%zs0], %zu5; xor.b32 %zu0, %zs0, {4 * lanes}; ld.shared.u32 %zu1, [%zu0]"
        yield f"{what}.{kind} %zu5, %zu5, %zu1"
    yield f"mov.b32 {o[0]}, %zu5"


def reduce_block(o, op):
    assert op == ["bar", "red", "or", "pred"] and o[1] == "0", (op, o)
    yield f"mov.u32 %zu0, {REDUCED}; bar.sync 0; st.shared.u32 [%zu0], 0; bar.sync 0; selp.u32 %zu1, 1, 0, {o[2]}"
    yield "atom.shared.max.u32 %zu2, [%zu0], %zu1; bar.sync 0"
    yield f"ld.shared.u32 %zu1, [%zu0]; setp.ne.u32 {o[0]}, %zu1, 0"


def mask_bits(o, op):
    assert op == ["bmsk", "clamp", "b32"] and o[1] == "0", (op, o)
    yield f"mov.b32 %zu0, {o[2]}; mov.u32 %zu1, 1; shl.b32 %zu1, %zu1, %zu0; sub.u32 {o[0]}, %zu1, 1"


def insert_64(o, op):
    at, count = int(o[3], 0), int(o[4], 0)
    field = (1 << count) - 1
    rest = (1 << 64) - 1 - (field << at)
    yield f"and.b64 %zd0, {o[1]}, {field}; shl.b64 %zd0, %zd0, {at}"
    yield f"and.b64 %zd1, {o[2]}, {rest}; or.b64 {o[0]}, %zd0, %zd1"


def funnel(o, op):
    assert op[0] == "shf" and op[2] in ("wrap", "clamp") and op[3:] == ["b32"], op
    yield f"mov.b64 %zd0, {{{o[1]}, {o[2]}}}; mov.b32 %zu0, {o[3]}"
    yield "and.b32 %zu0, %zu0, 31" if op[2] == "wrap" else "min.u32 %zu0, %zu0, 32"
    yield "shr.u64 %zd0, %zd0, %zu0" if op[1] == "r" else "shl.b64 %zd0, %zd0, %zu0; shr.u64 %zd0, %zd0, 32"
    yield f"cvt.u32.u64 {o[0]}, %zd0"


def find_bit(o, op):
    assert op == ["bfind", "shiftamt", "u32"], op
    yield f"mov.b32 %zu0, {o[1]}; clz.b32 %zu1, %zu0; setp.eq.u32 %zp0, %zu0, 0"
    yield f"selp.b32 {o[0]}, 4294967295, %zu1, %zp0"


labels = iter(range(1 << 30))


def atomic_min_64(o, op):
    again = f"$L_min_{next(labels)}"
    address = o[1].strip("[]")
    yield f"mov.b64 %zd0, {o[2]}; ld.{op[1]}.u64 %zd1, [{address}]\n{again}:"
    yield f"min.u64 %zd2, %zd1, %zd0; atom.{op[1]}.cas.b64 %zd3, [{address}], %zd1, %zd2"
    yield f"setp.ne.u64 %zp0, %zd3, %zd1; mov.b64 %zd1, %zd3; @%zp0 bra {again}; mov.b64 {o[0]}, %zd1"


def high_product(o, op):
    yield f"mov.b64 %zd0, {o[1]}; mov.b64 %zd1, {o[2]}"
    yield "cvt.u32.u64 %zu0, %zd0; shr.u64 %zd0, %zd0, 32; cvt.u32.u64 %zu1, %zd0"
    yield "cvt.u32.u64 %zu2, %zd1; shr.u64 %zd1, %zd1, 32; cvt.u32.u64 %zu3, %zd1"
    yield "mul.wide.u32 %zd0, %zu0, %zu2; shr.u64 %zd0, %zd0, 32; mul.wide.u32 %zd1, %zu1, %zu2"
    yield "add.u64 %zd0, %zd0, %zd1; mul.wide.u32 %zd2, %zu0, %zu3; and.b64 %zd1, %zd0, 4294967295"
    yield "add.u64 %zd1, %zd1, %zd2; shr.u64 %zd1, %zd1, 32; shr.u64 %zd0, %zd0, 32"
    yield f"mul.wide.u32 %zd3, %zu1, %zu3; add.u64 %zd0, %zd0, %zd1; add.u64 {o[0]}, %zd0, %zd3"


def multiply_add_wide(o, op):
    yield f"mul.wide.{op[2]} %zd0, {o[1]}, {o[2]}; add.s64 {o[0]}, %zd0, {o[3]}"


def fused(o, op):
    """a * b is exact with 64 bits. The sum is rounded to odd, so the second rounding is right."""
    for i in range(3):
        yield f"mov.b32 %zu{i}, {o[i + 1]}; cvt.f64.f32 %zf{i}, %zu{i}"
    yield "mul.rn.f64 %zf0, %zf0, %zf1; add.rn.f64 %zf3, %zf0, %zf2"
    yield "sub.rn.f64 %zf4, %zf3, %zf0; sub.rn.f64 %zf5, %zf3, %zf4; sub.rn.f64 %zf5, %zf0, %zf5"
    yield "sub.rn.f64 %zf4, %zf2, %zf4; add.rn.f64 %zf4, %zf4, %zf5"  # what the sum lost
    yield "mov.b64 %zd0, %zf3; mov.b64 %zd1, %zf4; xor.b64 %zd2, %zd0, %zd1; shr.s64 %zd2, %zd2, 63"
    yield "or.b64 %zd2, %zd2, 1; add.s64 %zd2, %zd0, %zd2; and.b64 %zd3, %zd0, 1; setp.eq.u64 %zp0, %zd3, 0"
    yield "setp.neu.f64 %zp1, %zf4, 0d0000000000000000; and.pred %zp0, %zp0, %zp1; selp.b64 %zd0, %zd2, %zd0, %zp0"
    yield f"mov.b64 %zf3, %zd0; cvt.rn.f32.f64 {o[0]}, %zf3"


def double_of_64_bits(o, op):
    """The halves become the lowest bits of 2^52 and of 2^84, which are exact, so the sum is rounded once. GPGPU-Sim
    converts what is in memory it did not set (s2f)."""
    yield f"mov.b64 %zd0, {o[1]}; cvt.u32.u64 %zu0, %zd0; shr.u64 %zd0, %zd0, 32; cvt.u32.u64 %zu1, %zd0"
    yield "xor.b32 %zu1, %zu1, -2147483648; mov.u32 %zu2, 1127219200; mov.u32 %zu3, 1160773632"
    yield "mov.b64 %zd0, {%zu0, %zu2}; mov.b64 %zd1, {%zu1, %zu3}; mov.b64 %zf0, %zd0; mov.b64 %zf1, %zd1"
    yield f"sub.rn.f64 %zf1, %zf1, 0d4530000080100000; add.rn.f64 {o[0]}, %zf1, %zf0"


def bfloat(o, op):
    yield f"mov.b32 %zu0, {o[1]}; bfe.u32 %zu1, %zu0, 16, 1; add.u32 %zu1, %zu1, 32767; add.u32 %zu1, %zu1, %zu0"
    yield "shr.u32 %zu1, %zu1, 16; and.b32 %zu0, %zu0, 2147483647; setp.gt.u32 %zp0, %zu0, 2139095040"
    yield f"selp.b32 %zu1, 32767, %zu1, %zp0; cvt.u16.u32 {o[0]}, %zu1"


def half(o, op):
    """The bits after the last one decide: half of them is 1 << places - 1, and ties go to even."""
    yield f"mov.b32 %zu0, {o[1]}; shr.u32 %zu1, %zu0, 16; and.b32 %zu1, %zu1, 32768; and.b32 %zu0, %zu0, 2147483647"
    yield "sub.u32 %zu2, %zu0, 939524096; mov.u32 %zu3, 13; shr.u32 %zu4, %zu0, 23; setp.lt.u32 %zp0, %zu0, 947912704"
    yield "and.b32 %zu5, %zu0, 8388607; or.b32 %zu5, %zu5, 8388608; selp.b32 %zu2, %zu5, %zu2, %zp0"
    yield "mov.u32 %zu5, 126; sub.u32 %zu5, %zu5, %zu4; min.u32 %zu5, %zu5, 30; selp.b32 %zu3, %zu5, %zu3, %zp0"
    yield "shr.u32 %zu4, %zu2, %zu3; and.b32 %zu4, %zu4, 1; mov.u32 %zu5, 1; sub.u32 %zu6, %zu3, 1"
    yield "shl.b32 %zu5, %zu5, %zu6; sub.u32 %zu5, %zu5, 1; add.u32 %zu2, %zu2, %zu5; add.u32 %zu2, %zu2, %zu4"
    yield "shr.u32 %zu2, %zu2, %zu3; setp.ge.u32 %zp0, %zu0, 1199570944; selp.b32 %zu2, 31744, %zu2, %zp0"
    yield "or.b32 %zu2, %zu2, %zu1; setp.gt.u32 %zp0, %zu0, 2139095040; selp.b32 %zu2, 32767, %zu2, %zp0"
    yield f"cvt.u16.u32 {o[0]}, %zu2"


def divide(o, op):
    """A division by zero ends GPGPU-Sim. On GPUs its result is unspecified, and compilers speculate."""
    bits = op[1][1:]
    letter = "u" if bits == "32" else "d"
    yield f"mov.b{bits} %z{letter}0, {o[2]}; setp.eq.u{bits} %zp0, %z{letter}0, 0"
    yield f"selp.b{bits} %z{letter}0, 1, %z{letter}0, %zp0; {'.'.join(op)} {o[0]}, {o[1]}, %z{letter}0"


def signed_byte(o, op):
    kinds = "u16.u32" if o[0].startswith("%rs") else "s32.s32"
    yield f"{'.'.join(op[:-1])}.u8 %zu0, {o[1]}; bfe.s32 %zu0, %zu0, 0, 8; cvt.{kinds} {o[0]}, %zu0"


def lanes_so_far(o, op):
    yield f"mov.u32 %zu0, %laneid; mov.u32 %zu1, 2; shl.b32 %zu1, %zu1, %zu0; sub.u32 {o[0]}, %zu1, 1"


RULES = (
    (r"dp4a\.", lambda o, op: dot(o, op, 4)),
    (r"dp2a\.lo\.", lambda o, op: dot(o, op, 2)),
    (r"dp2a\.hi\.", lambda o, op: dot(o, op, 2, 2)),
    (r"vabsdiff4\.", absolute_differences),
    (r"prmt\.", permute),
    (r"shfl\.sync\.", shuffle),
    (r"redux\.sync\.", reduce),
    (r"bar\.red\.", reduce_block),
    (r"bmsk\.", mask_bits),
    (r"bfi\.b64", insert_64),
    (r"shf\.", funnel),
    (r"bfind\.", find_bit),
    (r"atom\.\w+\.min\.u64", atomic_min_64),
    (r"mul\.hi\.u64", high_product),
    (r"mad\.wide\.", multiply_add_wide),
    (r"(div|rem)\.[us](32|64)", divide),
    (r"fma\.rn\.f32", fused),
    (r"cvt\.rn\.f64\.s64", double_of_64_bits),
    (r"cvt\.rn\.bf16\.f32", bfloat),
    (r"cvt\.rn\.f16\.f32", half),
    (r"ld\.(\w+\.)?s8", signed_byte),
    (r"vote\.sync\.", lambda o, op: [f"{'.'.join(op).replace('.sync', '')} {o[0]}, {o[1]}"]),
    # A barrier of the whole block to GPGPU-Sim. Its memory has an order anyhow, and lanes go in step.
    (r"membar\.|fence\.|bar\.warp\.sync", lambda o, op: []),
    (r"mov\.u32 \S+ %lanemask_le", lanes_so_far),
)
counts: collections.Counter[str] = collections.Counter()


def with_small_literals(statement):
    """GPGPU-Sim reads literals with 32 bits."""
    if not re.search(r"\.[bus]64\b", statement.split(" ")[0]):
        return statement
    made = []

    def register(found):
        value = int(found[0], 0)
        if -(1 << 31) <= value < 1 << 31:
            return found[0]
        name = f"%zd{6 + len(made)}"
        low, high = value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF
        made.append(f"mov.u32 %zu8, {low}; mov.u32 %zu9, {high}; mov.b64 {name}, {{%zu8, %zu9}}; ")
        return name

    changed = re.sub(r"(?<![\w.%+])-?(?:0x[0-9A-Fa-f]+|\d+)(?![\w.\]])", register, statement)
    return "".join(made) + changed


def lower(statement):
    """A statement, without its semicolon, as statements."""
    found = re.match(r"(@!?\S+\s+)?([a-z][\w.:]*)\s*(.*)$", statement, re.DOTALL)
    guard, name, rest = found.groups()
    operands = [each.strip() for each in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", rest)]
    for pattern, rule in RULES:
        if re.match(pattern, f"{name} {' '.join(operands)}"):
            assert guard is None, f"not known with a predicate: {statement}"
            counts[name] += 1
            made = "; ".join(rule(operands, name.split(".")))
            return "; ".join(with_small_literals(each.strip()) for each in made.split(";"))
    # GPGPU-Sim has no caches when it only executes.
    plain = name.replace(".global.nc.", ".global.").replace(".relaxed.gpu.", ".").replace(".L1::no_allocate", "")
    return f"{guard or ''}{plain} {rest}" if guard else with_small_literals(f"{plain} {rest}")


# ---- what is around the instructions


def body(text):
    """The body of a kernel. Inner blocks are dissolved, and their registers get names of their own."""
    declared, lines = [], []
    set_once = collections.Counter(re.findall(r"[;{}\s][a-z][\w.:]*\s+(%r\d+)\b(?=[,|])", text))
    named = collections.Counter(re.findall(r"%p\d+\b", text))
    unused.clear()
    unused.update(name for name, count in named.items() if count == 1)
    constants.clear()
    constants.update((name, value) for name, value in re.findall(r"\smov\.[ub]32\s+(%r\d+), (\d+);", text)
                     if set_once[name] == 1)
    scopes: list[dict[str, str]] = []
    for found in re.finditer(r"\s*(?:\{(?=\s)|\}|\$?\w+:(?=\s)|(?:[^;{}]|\{[^}]*\})+;)", text):
        piece = found.group().strip()
        if piece == "{":
            scopes.append({})
        elif piece == "}":
            scopes.pop()
        elif piece.endswith(":"):
            lines.append(piece)
        elif piece.startswith(".pragma"):
            pass
        elif piece.startswith(".reg") and scopes:
            _, kind, names = piece.rstrip(";").split(None, 2)
            for name in re.split(r",\s*", names.strip()):
                scopes[-1][name] = f"%in{len(declared)}"
                declared.append(f".reg {kind} %in{len(declared)};")
        elif piece.startswith("."):
            lines.append(piece)
        else:
            names = {name: renamed for scope in scopes for name, renamed in scope.items()}
            piece = re.sub(r"(?<![\w%.$])%?\w+(?![\w.])", lambda word, names=names: names.get(word[0], word[0]), piece)
            low = lower(piece[:-1])
            if low:
                lines += [line if line.endswith(":") else line + ";" for each in low.split(";")
                          for line in each.strip().split("\n")]
    first = next(i for i, line in enumerate(lines) if not line.startswith("."))
    return "\n".join([REGISTERS, *declared, *lines[:first], PROLOGUE, *lines[first:]])


def module(text):
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"\.version [\d.]+", ".version 6.0", text)
    text = re.sub(r"\.target \w+", ".target sm_70", text)
    stores = []

    def without_addresses(found):
        for number, value in enumerate(found[2].split(",")):
            to = value.strip()[8:-1] if "generic(" in value else str(int(value))
            stores.append(f"{with_small_literals(f'mov.u64 %rd1, {to}')}; mov.u64 %rd2, {found[1]};\n"
                          f"st.global.u64 [%rd2+{8 * number}], %rd1;")
        return f"{found[1]}[{len(found[2].split(','))}] = {{{re.sub(r'[^,]+', '0', found[2])}}};"

    text = re.sub(r"(\S+)\[\d+\] = \{([^}]*generic[^}]*)\};", without_addresses, text)
    parts, last = [], 0
    for found in re.finditer(r"\.entry [^)]*\)([^{]*)\{", text):
        end, depth = found.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        # The limits of launches are no concern of an executor; GPGPU-Sim does not read them all.
        parts.append(f"{text[last:found.start(1)]}\n{{\n{body(text[found.end():end - 1])}\n}}")
        last = end
    # Constants begin where the program can have them too, at 1 MiB.
    first = text.index(".address_size 64") + len(".address_size 64")
    parts[0] = f"{parts[0][:first]}\n.global .align 256 .b8 l3_below[1048576];\n{parts[0][first:]}"
    fill = "\n".join([".visible .entry l3_fill_addresses()\n{", REGISTERS, ".reg .b64 %rd<3>;", *stores, "ret;\n}\n"])
    return "\n".join([*parts, text[last:], fill])


def main():
    Path(sys.argv[2]).write_text(module(Path(sys.argv[1]).read_text()))
    print("lowered:", ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))


main()
