"""What recipes are made of: numbers, noise, bytes and bit strings. For build.py and what it imports."""

from __future__ import annotations


class RecipeError(Exception):
    pass


class Noise:
    """SplitMix64, so that any language can draw the same numbers."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        z = self.state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return z ^ z >> 31

    def below(self, limit: int) -> int:
        return (self.next() >> 32) * limit >> 32


def pad(size: int) -> int:
    return (size + 15) // 16 * 16


def numbers(words: list[str]) -> list[int]:
    """`7`, `0x1f`, `7*20`."""
    result: list[int] = []
    for word in words:
        value, _, times = word.partition("*")
        result += [int(value, 0)] * (int(times) if times else 1)
    return result


def contents(words: list[str]) -> bytes:
    """Pairs of hexadecimal digits, `u16:N u32:N u64:N`, `text:WORD`, `noise:SEED:COUNT`; each also `*TIMES`."""
    result = bytearray()
    for word in words:
        word, _, times = word.partition("*")
        kind, _, value = word.rpartition(":")
        if kind in ("u16", "u32", "u64"):
            piece = int(value, 0).to_bytes(int(kind[1:]) // 8, "little")
        elif kind == "text":
            piece = value.encode("latin-1")
        elif kind.startswith("noise:"):
            noise = Noise(int(kind[6:]))
            piece = bytes(noise.next() & 0xFF for _ in range(int(value)))
        elif not kind:
            piece = bytes.fromhex(value)
        else:
            raise RecipeError(f"no bytes: {word}")
        result += piece * (int(times) if times else 1)
    return bytes(result)


class BitString:
    def __init__(self) -> None:
        self.value = 0
        self.count = 0
        self.whole: list[bytes] = []

    def put(self, value: int, width: int) -> None:
        if not 0 <= value < 1 << width:
            raise RecipeError(f"{value} does not fit {width} bits")
        self.value |= value << self.count
        self.count += width
        if self.count >= 1 << 12:  # long numbers are slow to add to
            size = self.count // 8
            self.whole.append((self.value & (1 << 8 * size) - 1).to_bytes(size, "little"))
            self.value >>= 8 * size
            self.count -= 8 * size

    def bytes(self) -> bytes:
        return b"".join(self.whole) + self.value.to_bytes((self.count + 7) // 8, "little")
