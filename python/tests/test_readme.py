"""Runs the first example of the README."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from support import L3_COMMAND, NEEDS_COMMAND, Folder, convert

ROOT = Path(__file__).parents[2]


@unittest.skipUnless(L3_COMMAND, NEEDS_COMMAND)
class Readme(Folder):
    def test_first_example(self) -> None:
        found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        assert found is not None
        program = found[1].strip()
        self.assertLessEqual(len(program.splitlines()), 10)
        demo = self.folder / "build/demo"
        subprocess.run([sys.executable, ROOT / "bench/draw_demo.py", demo / "png"], check=True)
        convert(demo / "png", demo / "set", "--method", "fast")
        done = subprocess.run([sys.executable, "-c", program], cwd=self.folder, env=os.environ, text=True,
                              capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^0 \(\d, 3, 128, 128\) float32 \['scene_")
        self.assertIn("\n1 (", done.stdout)
