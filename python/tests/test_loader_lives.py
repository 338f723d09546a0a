"""How loaders begin and end: memory, signals, forks, and the end of the interpreter."""

from __future__ import annotations

import gc
import importlib.util
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import l3
import numpy as np
from support import Sets, child_environment, picture, python, write_png


def count_units(path: str) -> int:
    with l3.Loader(path, 4) as loader:
        return sum(len(batch.ids) for batch in loader)


def use_in_child(loader: l3.Loader, results: multiprocessing.SimpleQueue[str]) -> None:
    try:
        next(iter(loader))
        results.put("no error")
    except Exception as error:
        results.put(f"{type(error).__name__}: {error}")
    loader.close()


def threads_now() -> int:
    return len(os.listdir("/proc/self/task"))


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Memory(Sets):
    def test_batches_may_be_kept(self) -> None:
        loader = l3.Loader(self.classes_set(), 2)
        kept = [batch.images for batch in loader]
        copies = [images.copy() for images in kept]
        parts = [images[0, :, 3:5] for images in kept]
        for _ in loader:
            pass
        loader.close()
        del loader
        gc.collect()
        for images, copy, part in zip(kept, copies, parts):  # noqa: B905 (Python 3.9)
            np.testing.assert_array_equal(images, copy)
            np.testing.assert_array_equal(part, copy[0, :, 3:5])

    def test_memory_is_used_again(self) -> None:
        addresses = set()
        with l3.Loader(self.classes_set(), 2, prefetch=1) as loader:
            for _ in range(5):
                for batch in loader:
                    addresses.add(batch.images.ctypes.data)
        # Two more than `prefetch`.
        self.assertLessEqual(len(addresses), 4)

    def test_numbers_do_not_keep_a_batch(self) -> None:
        numbers, addresses = [], set()
        with l3.Loader(self.classes_set(), 1, prefetch=1) as loader:
            for images, labels, ids in loader:
                numbers.append((labels, ids))
                addresses.add(images.ctypes.data)
        self.assertLessEqual(len(addresses), 4)

    def test_flat(self) -> None:
        with l3.Loader(self.classes_set(), 1, threads=2) as loader:
            def run(epochs: int) -> None:
                for _ in range(epochs):
                    for images, _, _ in loader:
                        images[0, 0, 0, 0] = 1
            run(30)
            gc.collect()
            before = resident_bytes()
            run(500)  # more than 10,000 batches
            gc.collect()
            self.assertLess(resident_bytes() - before, 4 << 20)

    def test_many_loaders(self) -> None:
        for _ in range(3):
            with l3.Loader(self.classes_set(), 2) as loader:
                next(iter(loader))
        threads, files = threads_now(), len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            loader = l3.Loader(self.classes_set(), 2)
            for _ in loader:
                break
            del loader
        gc.collect()
        self.assertLessEqual(threads_now(), threads)
        self.assertEqual(len(os.listdir("/proc/self/fd")), files)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
    def test_torch_keeps_batches(self) -> None:
        import torch

        with l3.Loader(self.classes_set(), 2, dtype="bfloat16") as loader:
            tensors = [torch.from_dlpack(batch.images) for batch in loader]
            sums = [float(tensor.float().sum()) for tensor in tensors]
            for _ in loader:
                pass
        self.assertEqual([float(tensor.float().sum()) for tensor in tensors], sums)
        with l3.Loader(self.classes_set(), 2) as loader:
            images, labels, _ = next(iter(loader))
            self.assertEqual(torch.from_numpy(images).shape, (2, 3, 24, 32))
            self.assertEqual(torch.from_numpy(labels).dtype, torch.int64)


class Closing(Sets):
    def test_closed(self) -> None:
        data = l3.Dataset(self.classes_set())
        loader = l3.Loader(data, 4)
        loop = iter(loader)
        next(loop)
        data.close()
        next(loop)
        loader.close()
        loader.close()
        self.assertTrue(loader.closed)
        for use in (lambda: next(loop), lambda: iter(loader), loader.timeline, lambda: loader.write_trace("x")):
            with self.assertRaisesRegex(ValueError, "closed"):
                use()
        self.assertEqual(loader.failures, [])

    def test_closed_by_another_thread(self) -> None:
        loader = l3.Loader(self.classes_set(), 4)
        errors: list[BaseException] = []

        def run() -> None:
            try:
                while True:
                    for _ in loader:
                        pass
            except ValueError as error:
                errors.append(error)

        threads = [threading.Thread(target=run)]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        loader.close()
        for thread in threads:
            thread.join(10)
            self.assertFalse(thread.is_alive())
        self.assertIn("closed", str(errors[0]))


# Loops for ever, so that an interruption nearly always finds it waiting in the loader.
# A shell that starts a job in the background makes it ignore SIGINT, and Python then installs no handler.
LOOP = """
import signal, sys, l3
signal.signal(signal.SIGINT, signal.default_int_handler)
loader = l3.Loader(sys.argv[1], 1, crop=(1500, 1500), threads=1)
print("begun", flush=True)
while True:
    for batch in loader:
        pass
"""


class Ends(Sets):
    def large_set(self) -> str:
        def draw(png: object) -> list[str]:
            for i in range(2):
                write_png(png / f"{i}.png", picture(i, 1600, 1600))  # type: ignore[operator]
            return ["--effort", "1"]
        return self._make("large", draw)

    def test_interrupt(self) -> None:
        child = subprocess.Popen([sys.executable, "-c", LOOP, self.large_set()], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, env=child_environment())
        assert child.stdout is not None
        self.assertEqual(child.stdout.readline(), "begun\n")
        time.sleep(0.7)
        begun = time.monotonic()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=30)
        self.assertLess(time.monotonic() - begun, 5)
        self.assertIn("KeyboardInterrupt", errors)
        self.assertNotIn("nanobind", errors)

    def test_end_of_interpreter(self) -> None:
        path = self.classes_set()
        for code in (
            "loop = iter(loader); next(loop); kept = next(loop)",
            "loop = iter(loader); sys.kept = [loop, next(loop), loader]",
            "next(iter(loader)); sys.exit(0)",
            "import threading, time\n"
            "def run():\n"
            "    while True:\n"
            "        for batch in loader: pass\n"
            "threading.Thread(target=run, daemon=True).start(); time.sleep(0.3)",
        ):
            with self.subTest(code):
                ended = python(f"import sys, l3\nloader = l3.Loader(sys.argv[1], 2)\n{code}\n", path)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertNotIn("nanobind", ended.stderr)
                # A thread that still runs may report that the loader was closed.
                if "daemon" not in code:
                    self.assertEqual(ended.stderr, "")

    def test_exception_ends_well(self) -> None:
        ended = python("import sys, l3\nfor batch in l3.Loader(sys.argv[1], 2): raise OSError('as planned')\n",
                       self.classes_set())
        self.assertEqual(ended.returncode, 1)
        self.assertIn("as planned", ended.stderr)
        self.assertNotIn("nanobind", ended.stderr)

    def test_forked(self) -> None:
        with l3.Loader(self.classes_set(), 4) as loader:
            loop = iter(loader)
            kept = next(loop)
            context = multiprocessing.get_context("fork")
            results = context.SimpleQueue()
            child = context.Process(target=use_in_child, args=(loader, results))
            child.start()
            self.assertRegex(results.get(), "^RuntimeError: .*process.*'spawn'")
            child.join(30)
            self.assertEqual(child.exitcode, 0)
            self.assertEqual(len(list(loop)), 5)
            self.assertEqual(len(kept.ids), 4)

    def test_forked_child_ends(self) -> None:
        ended = python("import os, sys, l3\n"
                       "loader = l3.Loader(sys.argv[1], 2)\nloop = iter(loader)\nkept = next(loop)\n"
                       "child = os.fork()\n"
                       "if child == 0: sys.exit(7)\n"
                       "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
                       "print(sum(len(batch.ids) for batch in loop))\n", self.classes_set())
        self.assertEqual((ended.returncode, ended.stdout.strip()), (0, str(self.COUNT - 2)), ended.stderr)

    def test_processes_of_their_own(self) -> None:
        path = self.classes_set()
        count_units(path)
        for method in ("fork", "spawn"):
            with self.subTest(method), multiprocessing.get_context(method).Pool(2) as pool:
                self.assertEqual(pool.map(count_units, [path] * 3), [self.COUNT] * 3)


if __name__ == "__main__":
    unittest.main()
