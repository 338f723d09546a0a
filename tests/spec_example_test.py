#!/usr/bin/env python3
"""Tests that the annotated example at the end of spec/format.md is a valid file with the content that the text states,
and that the check of the class colours is the stated one.

Usage: spec_example_test.py L3_COMMAND
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SPEC = Path(__file__).resolve().parent.parent / "spec"
sys.path.insert(0, str(SPEC))
import l3_decode


def main() -> int:
    text = (SPEC / "format.md").read_text()
    (of_colours,) = re.findall(r"of all 256 of them, 768 bytes, is `0x([0-9A-F]{8})`", text)
    colours = b"".join(l3_decode.class_colour(entry) for entry in range(256))
    assert l3_decode.check(colours) == int(of_colours, 16), "the oracle has other class colours"
    image, dump = text.split("## 17.")[1].split("```")[1:4:2]
    data = bytearray()
    for offset, pairs in re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?){1,8})", dump, re.MULTILINE):
        assert int(offset, 16) == len(data), f"offset {offset} follows {len(data):04x}"
        data += bytes.fromhex(pairs)
    samples = bytes(int(word) for word in image.split())

    decoded = l3_decode.decode(bytes(data))
    assert bytes(decoded.samples) == samples, "the oracle decodes other samples"
    l3_decode.verify(bytes(data))
    done = subprocess.run([sys.argv[1], "decode", "-", "-", "--format", "pam"], input=bytes(data), capture_output=True,
                          check=True)
    assert done.stdout.split(b"ENDHDR\n", 1)[1] == samples, "l3 decodes other samples"
    print(f"{len(data)} bytes, {len(samples)} samples")
    return 0


if __name__ == "__main__":
    sys.exit(main())
