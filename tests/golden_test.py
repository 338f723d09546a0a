#!/usr/bin/env python3
"""Tests that the files that were written when a version of the format was fixed are read for ever.

Usage: golden_test.py VERDICTS L3 [--oracle]

spec/golden/README.md says what is in an archive. VERDICTS (vector_verdicts) decodes its files on every target, L3 (the
command) compares what it wrote then with the originals. With --oracle, the Python decoder reads all files too.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "spec" / "golden"
sys.path.insert(0, str(ROOT / "spec"))

import l3_decode  # noqa: E402

# The SHA-256 of what must never change. A new archive is added here; nothing is ever removed.
FROZEN = {
    "bit-models.tar.xz": "e39c91c64f838abfdcd039fb9e3a92e37bc672e547b20231d323f7712b75b572",
    "bit-models.txt": "2912e01d6da98172d5ca400e26f7eb1ed4cea77f3cc00380953d244c60d35704",
    "channel-maps.tar.xz": "36f75b3eade303d82023b3ca904dd0813df4abda71efcfb0e8bf3d3ccfe52bc0",
    "channel-maps.txt": "a333158278a32e1b925538b3d61dc2c9e49b87f10a30fcc1174d3db5d973ef9a",
    "shapes.tar.xz": "a884609eeb3aaf9eedfc6d6b44e9b879a24aa5b88a5a17b21e0facb635f8ca56",
    "shapes.txt": "149f759bd8bc5c62b2bd1442cfdc2b66f005c4dcd38c9adc7186e9a8d9ec86eb",
    "version-1.tar.xz": "be20492a99d3504b1adae4f4925b83677a30b4f86a25deb7576f0a2f1ad60b55",
    "version-1.txt": "d752a260409b3d3acd82a203d2d6c914b0ecacd8100e15cba6326c54ab5759c9",
}


def run(*words: object, given: str = "") -> str:
    done = subprocess.run([str(word) for word in words], input=given, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"golden_test: {Path(str(words[0])).name}: {done.stderr.strip()} ({done.returncode})")
    return done.stdout


def of_oracle(path: Path, models: l3_decode.Models) -> str:
    sha = hashlib.sha256()
    for part in l3_decode.pam(l3_decode.decode(path.read_bytes(), models=models)):
        sha.update(part)
    return sha.hexdigest()[:32]


def main() -> int:
    parser = argparse.ArgumentParser(description="Read the files of spec/golden.")
    parser.add_argument("verdicts", type=Path)
    parser.add_argument("l3", type=Path)
    parser.add_argument("--oracle", action="store_true")
    options = parser.parse_args()
    complaints = []
    for name, digest in FROZEN.items():
        if hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() != digest:
            complaints.append(f"{name} is not as it was")
    read = 0
    for archive in sorted(FOLDER.glob("*.tar.xz")):
        manifest = archive.with_name(archive.name.removesuffix(".tar.xz") + ".txt")
        lines = [line.split("\t") for line in manifest.read_text().splitlines() if not line.startswith("#")]
        with tempfile.TemporaryDirectory(prefix="l3-golden-") as folder:
            with tarfile.open(archive) as tar:
                tar.extractall(folder)
            top = Path(folder)
            models = sorted(top.glob("models/*.l3model"))
            paths = [top / name for name, _ in lines]
            said = run(options.verdicts, *models, given="".join(f"{path}\n" for path in paths)).splitlines()[1:]
            for (name, wanted), line in zip(lines, said, strict=True):
                _, decoded, verified = line.split("\t")
                if (decoded, verified) != (wanted, "ok"):
                    complaints.append(f"{name}: libl3 says {decoded}, {verified}")
            run(options.l3, "verify", "-q", "--against", top / "png", top / "written")
            run(options.l3, "verify", "-q", "--against", top / "png", top / "set")
            for shard in sorted(top.glob("shards/*.l3s")):
                run(options.l3, "verify", "-q", shard)
            if options.oracle:
                known = {l3_decode.name_of(data): data for data in (model.read_bytes() for model in models)}
                for path, (name, wanted) in zip(paths, lines, strict=True):
                    if of_oracle(path, known) != wanted:
                        complaints.append(f"{name}: the oracle gives other samples")
            read += len(lines)
    for complaint in complaints:
        print(complaint)
    print(f"{read} files, {len(complaints)} complaints")
    return 1 if complaints or read == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
