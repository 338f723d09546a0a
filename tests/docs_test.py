#!/usr/bin/env python3
"""Every command on the Markdown pages exists and works, every link leads somewhere, and lines are short.

Programs of the pages are compiled by install_test.sh, and their Python is run by python/tests/test_docs.py.
docs_blocks.py describes how blocks are marked.

Usage: docs_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import errno
import functools
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path

sys.dont_write_bytecode = True
import docs_blocks
from command_testing import l3_command, main, png
from docs_blocks import ROOT, Block

# Pages whose blocks and commands are checked.
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "examples/README.md",
         *sorted(ROOT.glob("docs/*.md"))]
# Pages whose lines must be short.
SHORT = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "bench/README.md", ROOT / "kernels/NOTES.md"]
LONGEST_LINE = 120
LONGEST_README = 120

SHELL_WORDS = ("do", "then", "else", "if", "while", "until", "time", "!", "{", "exec", "env", "sudo")
# What commands of ./run pass their options to.
RUN_SCRIPTS = {"fuzz": ["tests/fuzz/soak.py"], "soak": ["tests/fuzz/soak.py"],
               "mutate": ["tests/mutation_check.py", "tests/oracle_mutation.py"],
               "resume-soak": ["tests/resume_soak.py"], "bench": ["bench/gate.py", "bench/headline.py"]}
SCRIPT = re.compile(r"(?:\./)?(?:bench|examples|kernels|python|spec|tests|codec|build)/[\w./-]+\.(?:py|sh|slurm)")


def relative(page: Path) -> str:
    return str(page.relative_to(ROOT))


# ------------------------------------------------------------------------------------------------------- commands


@functools.cache
def help_of(command: str) -> str:
    """What l3 prints of a subcommand; of "" what it prints of all."""
    words = [l3_command(), *([command] if command else []), "--help"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@functools.cache
def subcommands() -> set[str]:
    listed = help_of("").split("\nCommands:\n")[1].split("\n\n")[0]
    return {*re.findall(r"^  ([\w-]+) ", listed, re.MULTILINE), "help"}


def options_in(text: str) -> set[str]:
    """The options that a help text explains: words at the beginning of its lines."""
    found = re.findall(r"^ +((?:--?[A-Za-z0-9][\w-]*,?)+)(?= |=|$)", text, re.MULTILINE)
    return {name for names in found for name in names.split(",") if name}


@functools.cache
def run_commands() -> dict[str, str]:
    """The commands that ./run explains at its beginning, and the lines about each."""
    head = (ROOT / "run").read_text().split("\nset -euo", 1)[0]
    found: dict[str, str] = {}
    for line in head.splitlines():
        named = re.match(r"# +\./run ([\w-]+)", line)
        if named:
            name = named[1]
            found[name] = found.get(name, "") + line + "\n"
        elif found:
            found[name] += line + "\n"
    return found


def commands_in(text: str) -> Iterator[list[str]]:
    """The simple commands of a shell script, as lists of words."""
    text = re.sub(r"\\\n\s*", " ", text)
    for line in text.splitlines():
        line = re.sub(r"""(^|\s)#(?=[^'"]*$).*""", "", line)
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set(";|&()<>"):
                if words and word[0] not in "<>":
                    yield words
                    words = []
            else:
                words += [word] if words or not (word in SHELL_WORDS or re.match(r"\w+=", word)) else []


def unknown_options(words: list[str], known: set[str]) -> list[str]:
    wrong = []
    for word in words[: words.index("--")] if "--" in words else words:
        option = word.split("=")[0]
        # Also -j4, where -j is an option.
        if re.match(r"--?[A-Za-z0-9]", word) and option not in known and not (
                not word.startswith("--") and word[:2] in known):
            wrong.append(option)
    return wrong


def fault_of_l3(words: list[str]) -> str:
    if len(words) < 2 or words[1].startswith("-"):
        wrong = unknown_options(words[1:], options_in(help_of("")))
        return f"l3 has no option {wrong[0]}" if wrong else ""
    if words[1].isupper():  # a placeholder
        return ""
    if words[1] not in subcommands():
        return f"l3 has no command {words[1]}"
    if words[1] == "help":
        return "" if all(word in subcommands() or word.isupper() for word in words[2:]) else f"no help: {words[2:]}"
    wrong = unknown_options(words[2:], options_in(help_of(words[1])))
    return f"l3 {words[1]} has no option {wrong[0]}" if wrong else ""


def fault_of_run(words: list[str]) -> str:
    if len(words) < 2 or words[1] in ("--help", "-h") or words[1].isupper():
        return ""
    name = words[1]
    if name not in run_commands():
        return f"./run has no command {name}"
    known = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", run_commands()[name]))
    if name in subcommands() and not known & set(words):
        known |= options_in(help_of(name))
    if "Google Benchmark" in run_commands()[name]:
        known |= {word.split("=")[0] for word in words if word.startswith("--benchmark_")}
    for script in RUN_SCRIPTS.get(name, ()):
        known |= set(re.findall(r'"(--?[a-z][\w-]*)"', (ROOT / script).read_text()))
    wrong = unknown_options(words[2:], known)
    if wrong:
        return f"./run {name} has no option {wrong[0]}"
    if name == "setup":
        sets = set(re.findall(r"^    ([a-z]+)\)", (ROOT / "run").read_text(), re.MULTILINE))
        missing = [word for word in words[2:] if not word.startswith("-") and word not in sets and not word.isupper()]
        return f"./run setup has no {missing[0]}" if missing else ""
    return ""


def fault_of_command(words: list[str]) -> str:
    """What is wrong with a simple command, or nothing."""
    program = words[0]
    if program == "l3" or program.endswith("/l3"):
        return fault_of_l3(words)
    if program == "./run":
        return fault_of_run(words)
    for word in words:
        if SCRIPT.fullmatch(word):
            script = ROOT / word
            if not script.exists():
                return f"there is no {word}"
            rest = words[words.index(word) + 1:]
            known = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", script.read_text()))
            wrong = unknown_options(rest, known)
            return f"{word} has no option {wrong[0]}" if wrong else ""
        variable = re.match(r"(?:CMAKE_ARGS=)?-D(L3_\w+)=", word)
        if variable and variable[1] not in cmake_options():
            return f"CMake knows no {variable[1]}"
    return ""


@functools.cache
def cmake_options() -> set[str]:
    folders = (".", "bench", "tools", "codec", "kernels", "loader", "python", "extensions/nvimgcodec")
    texts = [path.read_text() for folder in folders
             for path in (ROOT / folder).glob("CMakeLists.txt")]
    return set(re.findall(r"\b(L3_[A-Z_]+)\b", "\n".join(texts)))


def code_spans(line: str) -> list[str]:
    return [span.replace("\\|", "|") for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", line)]


class Blocks(unittest.TestCase):
    def blocks(self, kind: str = "") -> Iterator[Block]:
        for page in PAGES:
            yield from docs_blocks.blocks_of(page, kind)

    def test_every_block_says_what_it_is(self) -> None:
        self.assertGreater(len(list(self.blocks())), 20)
        for block in self.blocks():
            with self.subTest(block.place):
                self.assertEqual(block.fault(), "")

    def test_names_are_unique_in_a_page(self) -> None:
        for page in PAGES:
            names = [block.name for block in docs_blocks.blocks_of(page) if block.name]
            self.assertEqual(len(names), len(set(names)), relative(page))

    def test_commands_exist(self) -> None:
        for block in self.blocks("sh"):
            with self.subTest(block.place):
                self.assertEqual([fault for words in commands_in(block.text) if (fault := fault_of_command(words))], [])

    def test_commands_in_prose_exist(self) -> None:
        for page in PAGES:
            # A span may go from one line to the next.
            text = "\n".join(line for _, line in docs_blocks.split(page)[0])
            for span in code_spans(re.sub(r"\n(?=[^\n])", " ", text)):
                if re.match(r"(l3|\./run|cmake|python3|bench/|tests/|examples/)\b", span):
                    with self.subTest(relative(page), span=span):
                        self.assertEqual([fault for words in commands_in(span)
                                          if (fault := fault_of_command(words))], [])
                variable = re.match(r"-D(L3_\w+)", span)
                if variable:
                    self.assertIn(variable[1], cmake_options(), relative(page))

    def test_checks_see_faults(self) -> None:
        faults = {"l3 convert --no-such a b": "l3 convert has no option --no-such",
                  "x=1 && l3 verfy a": "l3 has no command verfy",
                  "l3 convert -j4 --effort=3 a b | l3 decode -q - -": "",
                  "for i in 1 2; do l3 merge --wrong a & done": "l3 merge has no option --wrong",
                  "./run nothing": "./run has no command nothing",
                  "./run test --deeper": "./run test has no option --deeper",
                  "./run test --deep  # and more --words": "",
                  "./run setup lnt": "./run setup has no lnt",
                  "./run bench photos/ --codecs png": "",
                  "./run soak 30 --keep": "",
                  "bench/no_such.py x": "there is no bench/no_such.py",
                  "bench/sizes.py --nothing x": "bench/sizes.py has no option --nothing",
                  "cmake -B b -DL3_NOTHING=ON": "CMake knows no L3_NOTHING"}
        for line, fault in faults.items():
            with self.subTest(line):
                self.assertEqual([found for words in commands_in(line) if (found := fault_of_command(words))],
                                 [fault] if fault else [])


class Shell(unittest.TestCase):
    """Runs the shell blocks of each page in a folder of their own, one after the other."""

    def prepare(self, folder: Path) -> None:
        def write(name: str, data: bytes) -> None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

        write("photo.png", png(640, 480))
        for i in range(8):
            write(f"pngs/{'dogs' if i % 2 else 'cats'}/{i:02}.png", png(160, 144, seed=i))
        for i in range(12):
            write(f"icons/{i}.png", png(24, 20, seed=i))
        for i in range(2):
            write(f"cityscapes/leftImg8bit/a/{i}_leftImg8bit.png", png(96, 64, seed=i))
            write(f"cityscapes/gtFine/a/{i}_gtFine_labelIds.png", png(96, 64, colour=0, seed=i))
        write("scraped/good.png", png(40, 30))
        write("scraped/broken.png", png(40, 30)[:200])
        tar_path = folder / "shards-of-webdataset" / "000.tar"
        tar_path.parent.mkdir()
        with tarfile.open(tar_path, "w") as tar:
            for name, data in (("0001.png", png(40, 30)), ("0001.json", b'{"x": 1}'), ("0001.cls", b"3"),
                               ("0001.txt", b"a caption")):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        for name in ("bin/l3", "build/release/bin/l3"):
            (folder / name).parent.mkdir(parents=True)
            (folder / name).symlink_to(l3_command())
        self.l3(folder, "encode", "photo.png", "photo.l3")
        self.l3(folder, "train", "icons", "icons.l3model")

    def l3(self, folder: Path, *words: str) -> None:
        subprocess.run([l3_command(), *words, "--quiet", "--effort=1"], cwd=folder, check=True)

    def test_blocks_run(self) -> None:
        for page in PAGES:
            blocks = [block for block in docs_blocks.blocks_of(page, "sh") if block.flag != "norun"]
            if not blocks:
                continue
            folder = Path(tempfile.mkdtemp(prefix="l3-docs-test-"))
            self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
            self.prepare(folder)
            # Most pages begin with a data set; others make it.
            made = {word.strip("/") for block in blocks for words in commands_in(block.text)
                    if words[0].endswith("l3") and words[1:2] == ["convert"] for word in words[2:]}
            if "set" not in made:
                self.l3(folder, "convert", "pngs", "set")
            environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
            for block in blocks:
                with self.subTest(block.place):
                    result = subprocess.run(["bash", "-euc", block.text], cwd=folder, env=environment, text=True,
                                            stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
                    self.assertEqual(result.returncode, 0, f"{block.text}\n{result.stdout}\n{result.stderr}")


# --------------------------------------------------------------------------------------------------- lines and links


def is_long_link(line: str) -> bool:
    """Whether a line is a link and nothing else, which cannot be wrapped."""
    return re.fullmatch(r"\s*([-*] )?(\[[^\]]*\]\([^)]*\)|<?https?://\S+>?)[.,:;]?", line) is not None


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them, and those that are written out."""
    found: set[str] = set()
    for _, line in docs_blocks.split(page)[0]:
        found |= set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
        heading = re.match(r"#{1,6} +(.*?)(?: +#+)?$", line)
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            name = re.sub(r"[^\w\- ]", "", text.replace("`", "").lower()).replace(" ", "-")
            number, unique = 0, name
            while unique in found:
                number += 1
                unique = f"{name}-{number}"
            found.add(unique)
    return found


def links_of(page: Path) -> Iterator[tuple[int, str]]:
    for number, line in docs_blocks.split(page)[0]:
        line = re.sub(r"`[^`]*`", "", line)
        for target in [*re.findall(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)", line),
                       *re.findall(r"^\[[^\]]+\]:\s*(\S+)", line),
                       *re.findall(r"(?:src|srcset|href)=\"([^\" ]+)", line)]:
            yield number, target


def all_pages() -> list[Path]:
    """The Markdown files of the repository; of a copy without git those outside of build folders."""
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(words, capture_output=True, text=True)
        if listed.returncode == 0:
            return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).exists()]
    return [path for path in ROOT.rglob("*.md") if "build" not in path.relative_to(ROOT).parts]


def quoted_messages(page: Path) -> Iterator[tuple[int, str]]:
    """The constant parts of messages in the first column of a page's tables, with their lines."""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        cell = re.match(r"\| (`[^|]*)\|", line)
        for message in re.findall(r"`([^`]+)`", cell[1] if cell else ""):
            for part in re.split(r"\.\.\.|[;:] |\. |\([^)]*\)|\b[A-Z]+\b|--[a-z-]+|\d+", message):
                if len(part.strip()) >= 12:
                    yield number, part.strip()


class Messages(unittest.TestCase):
    """docs/debugging.md quotes messages as they are in the code."""

    def test_quoted_messages_exist(self) -> None:
        rooms = ("codec", "formats", "bridge", "loader", "tools", "kernels", "python", "cmake", "CMakeLists.txt")
        done = subprocess.run(["git", "ls-files", *rooms], cwd=ROOT, capture_output=True, text=True)
        files = [ROOT / name for name in done.stdout.split()]
        if not files:
            self.skipTest("not a git repository")
        code = "".join(file.read_text(errors="replace") for file in files if file.is_file())
        code = re.sub(r'"\s*\n\s*"', "", code) + os.strerror(errno.ENOSPC)
        messages = list(quoted_messages(ROOT / "docs/debugging.md"))
        self.assertGreater(len(messages), 15)
        for line, message in messages:
            with self.subTest(line=line, message=message):
                self.assertTrue(message in code, "no message of the code has these words")


class Style(unittest.TestCase):
    maxDiff = None

    def test_lines_are_short(self) -> None:
        for page in SHORT:
            with self.subTest(relative(page)):
                long = [f"{relative(page)}:{number}: {len(line)} characters"
                        for number, line in docs_blocks.split(page)[0]
                        if len(line) > LONGEST_LINE and not line.startswith("|") and not is_long_link(line)]
                self.assertEqual(long, [])

    def test_readme_fits_on_a_screen(self) -> None:
        self.assertLessEqual(len((ROOT / "README.md").read_text().splitlines()), LONGEST_README)

    def test_links_lead_somewhere(self) -> None:
        pages = all_pages()
        self.assertIn(ROOT / "README.md", pages)
        for page in pages:
            for number, target in links_of(page):
                if re.match(r"[a-z]+:", target):  # another place than this repository
                    continue
                with self.subTest(f"{relative(page)}:{number}", target=target):
                    path, _, anchor = target.partition("#")
                    there = (page.parent / path).resolve() if path else page
                    self.assertTrue(there.exists(), f"there is no {path}")
                    self.assertTrue(there.is_relative_to(ROOT), "the link leaves the repository")
                    if anchor and there.suffix == ".md":
                        self.assertIn(anchor, anchors_of(there))

    def test_every_page_of_docs_is_in_its_index(self) -> None:
        listed = {target for _, target in links_of(ROOT / "docs/README.md")}
        for page in ROOT.glob("docs/*.md"):
            if page.name != "README.md":
                self.assertIn(page.name, listed)


if __name__ == "__main__":
    main()
