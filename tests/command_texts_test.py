#!/usr/bin/env python3
"""The help of the l3 command fits a screen, and its manual and completion scripts agree with the help.

Usage: command_texts_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from command_testing import FAILED, USAGE, CommandTest, main

SHELLS = ("bash", "zsh", "fish")
OPTIONS = ("Options", "Interruptions and errors", "Data sets", "Training", "Limits")  # headings of options in help
MOST_LINES, MOST_COLUMNS = 57, 110

# Calls the completion with the words "$@", of which the last one is being typed.
BASH_DRIVER = """
source "$0"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_l3
[ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\\n' "${COMPREPLY[@]}"
"""


@dataclass
class Help:
    """What --help shows of a command."""

    options: dict[tuple[str, ...], str] = field(default_factory=dict)  # names, and the description as one line
    choices: dict[str, list[str]] = field(default_factory=dict)  # of the options that take names
    positionals: list[str] = field(default_factory=list)

    def names(self) -> set[str]:
        return {name for names in self.options for name in names}


def read_help(text: str) -> Help:
    found, place, names_go_on = Help(), "", False
    for line in text.splitlines():
        heading = re.fullmatch(r"([\w ]+):", line)
        if heading:
            place = heading[1]
        elif names_go_on:
            more = line.strip().split(" ", 1)[0]
            names_go_on = more.endswith("|")
            found.choices[next(reversed(found.choices))] += more.removesuffix(",...").strip("|").split("|")
        elif place == "Arguments" and (positional := re.match(r"  (\w+)", line)):
            found.positionals.append(positional[1])
        elif place in OPTIONS and (option := re.match(r"  (-\S+)(?: (\S+))?(?:  +(.*))?$", wide(line))):
            names = tuple(option[1].split(","))
            found.options[names] = option[3] or ""
            if "|" in (option[2] or ""):
                names_go_on = option[2].endswith("|")
                found.choices[names[-1]] = option[2].removesuffix(",...").strip("|").split("|")
        elif place in OPTIONS and line.startswith(" " * 28):
            last = next(reversed(found.options))
            found.options[last] = f"{found.options[last]} {line.strip()}".strip()
        elif line and not line.startswith(" "):
            place = ""
    return found


def wide(line: str) -> str:
    """A line of help with two blanks at least before the description, which begins at column 28."""
    return line[:28] + "  " + line[28:] if len(line) > 28 and line[27] == " " else line


def unescaped(roff: str) -> str:
    for escape, text in {r"\-": "-", r"\fB": "", r"\fI": "", r"\fR": "", r"\(ga": "`", r"\(aq": "'", r"\&": "",
                         r"\(ti": "~", r"\(ha": "^", r"\:": "", r"\e": "\\"}.items():
        roff = roff.replace(escape, text)
    return roff


class TextsTest(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        whole = self.l3("--help").stdout.decode()
        self.commands = re.findall(r"^  (\w+) ", whole.split("\nCommands:\n")[1].split("\n\n")[0], re.MULTILINE)
        self.assertLessEqual({"encode", "decode", "completion", "manual"}, set(self.commands))
        self.helps = {name: read_help(self.l3(name, "--help").stdout.decode()) for name in self.commands}
        self.helps[""] = read_help(whole)
        self.assertEqual(self.helps["encode"].choices, {"--method": ["auto", "fast", "dense"]}, "help is read rightly")
        self.assertEqual(self.helps["encode"].positionals, ["IN", "OUT"])
        self.assertGreater(len(self.helps["encode"].names()), 10)

    def script(self, shell: str) -> Path:
        return self.write(f"completion.{shell}", self.l3("completion", shell).stdout)

    def skip_unless_installed(self, program: str) -> None:
        if shutil.which(program) is None:
            print(f"command_texts: {program} is not installed, so it was not tried", file=sys.stderr)
            self.skipTest(f"{program} is not installed")


class HelpTexts(TextsTest):
    def helps_as_printed(self) -> dict[str, str]:
        return {name: self.l3(*name.split(), "--help").stdout.decode() for name in ("", *self.commands)}

    def test_fit_a_screen_and_a_half(self) -> None:
        for name, text in self.helps_as_printed().items():
            with self.subTest(command=name):
                self.assertLessEqual(len(text.splitlines()), MOST_LINES)
                self.assertLessEqual(max(map(len, text.splitlines())), MOST_COLUMNS)

    def test_examples_come_before_options(self) -> None:
        for name, text in self.helps_as_printed().items():
            with self.subTest(command=name):
                self.assertIn(f"l3 {name}", text.split("\nExamples:\n")[1].split("\n\n")[0])
                self.assertLess(text.index("\nUsage: l3"), text.index("\nExamples:\n"))
                self.assertLess(text.index("\nExamples:\n"), text.index("\nOptions:\n"))

    def test_name_all_formats(self) -> None:
        # What info lists for an unknown file is formats::readable_formats().
        said = self.l3("info", self.write("text", b"no image"), code=FAILED).stderr.decode()
        formats = re.search(r"\(L3, (.+)\)\n$", said)[1].split(", ")
        self.assertGreater(len(formats), 10)
        for command in ("encode", "convert"):
            text = " ".join(self.l3(command, "--help").stdout.decode().split())
            for name in formats:
                self.assertIn(name, text, command)


class Manual(TextsTest):
    def test_has_all_options_of_help(self) -> None:
        page = self.l3("manual").stdout.decode()
        chapters = dict(re.findall(r"^\.SS \\fBl3 (\w+)\\fR\n(.*?)(?=^\.S[HS] )", page, re.MULTILINE | re.DOTALL))
        chapters[""] = page.split(".SH OPTIONS\n")[1]
        self.assertEqual(set(chapters), {*self.commands, ""})
        for command, text in chapters.items():
            entries = dict(re.findall(r"^\.TP\n(.+)\n(.+)$", unescaped(text), re.MULTILINE))
            said = {tuple(name.split(" ")[0] for name in names.split(", ")): words.removesuffix(".")
                    for names, words in entries.items()}
            with self.subTest(command=command):
                options = {names: words for names, words in said.items() if names[0].startswith("-")}
                self.assertEqual(options, self.helps[command].options)
                self.assertEqual([names[0] for names in said if names not in options], self.helps[command].positionals)

    def test_has_the_parts_of_a_manual(self) -> None:
        page = unescaped(self.l3("manual").stdout.decode())
        for part in ("NAME\nl3 - ", "SYNOPSIS\n", "DESCRIPTION\n", "COMMANDS\n", "OPTIONS\n", "EXIT STATUS\n",
                     "ENVIRONMENT\n"):
            self.assertIn(f"\n.SH {part}", page)
        self.assertIn("L3_CPU=", page.split(".SH ENVIRONMENT")[1])
        version = self.l3("--version").stdout.decode().splitlines()[0]
        self.assertIn(f'"{version}"', page.splitlines()[1])
        for command in self.commands:
            help_text = self.l3(command, "--help").stdout.decode()
            for line in help_text.split("\nExamples:\n")[1].split("\n\n")[0].strip().splitlines():
                self.assertIn(line.strip(), page, "every example")

    def test_renders_without_warnings(self) -> None:
        page = self.l3("manual").stdout
        if shutil.which("groff") is not None:
            words = ["groff", "-man", "-Tutf8", "-ww", "-z", "-"]
        else:
            self.skip_unless_installed("man")
            words = ["man", "--warnings", "-l", "-"]
        result = subprocess.run(words, input=page, capture_output=True, timeout=60)
        self.assertEqual((result.returncode, result.stderr.decode()), (0, ""))


class Completion(TextsTest):
    def test_unknown_shell(self) -> None:
        self.assertIn(b"tcsh", self.l3("completion", "tcsh", code=USAGE).stderr)
        self.l3("completion", code=USAGE)

    def test_shells_can_read_the_scripts(self) -> None:
        for shell in SHELLS:
            with self.subTest(shell=shell):
                self.skip_unless_installed(shell)
                result = subprocess.run([shell, "-n", self.script(shell)], capture_output=True, timeout=60)
                self.assertEqual((result.returncode, result.stderr), (0, b""))

    def test_zsh_has_every_option(self) -> None:
        text = self.script("zsh").read_text()
        for command in self.commands:
            with self.subTest(command=command):
                self.assertIn(f"'{command}:", text, "the list of commands")
                part = text.split(f"\n        {command}) _arguments")[1].split(" ;;\n")[0]
                self.assertEqual(set(re.findall(r"'\([^)]*\)(--?[\w-]*\w)", part)), self.helps[command].names())
                for choices in self.helps[command].choices.values():
                    self.assertIn(" ".join(choices), part)

    def test_fish_has_every_option(self) -> None:
        lines = self.script("fish").read_text().splitlines()
        for command in self.commands:
            with self.subTest(command=command):
                self.assertTrue(any(f"-a {command} " in line for line in lines), "the list of commands")
                part = "\n".join(line for line in lines if f"'__fish_seen_subcommand_from {command}'" in line)
                named = {f"--{name}" for name in re.findall(r" -l ([\w-]+)", part)}
                named |= {f"-{name}" for name in re.findall(r" -s (\w)", part)}
                self.assertEqual(named, self.helps[command].names())
                for choices in self.helps[command].choices.values():
                    self.assertIn(" ".join(choices), part)

    def test_fish_completes(self) -> None:
        self.skip_unless_installed("fish")
        script = self.script("fish")
        self.write("a folder/an image.png", b"")

        def offered(line: str) -> list[str]:
            words = f"source {script}; complete -C '{line}'"
            result = subprocess.run(["fish", "--no-config", "-c", words], cwd=self.folder / "a folder",
                                    capture_output=True, timeout=60, env={"HOME": str(self.folder), "PATH": "/usr/bin"})
            self.assertEqual(result.stderr, b"")
            return sorted(line.split("\t")[0] for line in result.stdout.decode().splitlines())

        self.assertEqual(offered("l3 "), sorted(self.commands))
        self.assertEqual(offered("l3 encode --method "), ["auto", "dense", "fast"])
        self.assertEqual(offered("l3 encode --me"), ["--method"])
        self.assertEqual(offered("l3 encode an"), ["an image.png"])
        self.assertEqual(offered("l3 completion "), sorted(SHELLS))


class Bash(TextsTest):
    def setUp(self) -> None:
        super().setUp()
        self.skip_unless_installed("bash")
        self.path = self.script("bash")
        self.work = self.folder / "work"
        self.write("work/an image.png", b"")
        self.write("work/another.png", b"")
        self.write("work/folder/x.png", b"")

    def offered(self, *words: str) -> list[str]:
        """What bash is told to offer for the last of `words`, which come as bash parts them."""
        result = subprocess.run(["bash", "--norc", "-c", BASH_DRIVER, str(self.path), "l3", *words], cwd=self.work,
                                capture_output=True, timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        return sorted(result.stdout.decode().splitlines())

    def test_commands(self) -> None:
        self.assertEqual(self.offered(""), sorted(self.commands))
        self.assertEqual(self.offered("en"), ["encode"])
        self.assertEqual(self.offered("--"), ["--help", "--version"])
        self.assertEqual(self.offered("nonsense", ""), [])

    def test_options(self) -> None:
        for command in self.commands:
            with self.subTest(command=command):
                self.assertEqual(self.offered(command, "-"), sorted(self.helps[command].names()))
        self.assertEqual(self.offered("encode", "in.png", "out.l3", "--max-p"), ["--max-pixels"])

    def test_choices(self) -> None:
        for command in self.commands:
            for option, choices in self.helps[command].choices.items():
                with self.subTest(command=command, option=option):
                    self.assertEqual(self.offered(command, option, ""), sorted(choices))
                    self.assertEqual(self.offered(command, option, "="), sorted(choices))
                    begun = choices[-1][:2]
                    fitting = sorted(choice for choice in choices if choice.startswith(begun))
                    self.assertEqual(self.offered(command, option, "=", begun), fitting)
                    whole = f"{option}={begun}"  # where = parts no words
                    self.assertEqual(self.offered(command, whole), [f"{option}={choice}" for choice in fitting])
        self.assertEqual(self.offered("bench", "--codecs", "png,l3-f"), ["png,l3-fast"])
        self.assertEqual(self.offered("completion", ""), sorted(SHELLS))

    def test_files(self) -> None:
        everything = ["an image.png", "another.png", "folder"]
        self.assertEqual(self.offered("encode", ""), everything)
        self.assertEqual(self.offered("encode", "an"), everything[:2])
        self.assertEqual(self.offered("encode", "an image.png", "fol"), ["folder"])
        self.assertEqual(self.offered("encode", "--quiet", "an i"), ["an image.png"])
        self.assertEqual(self.offered("decode", "folder/"), ["folder/x.png"])
        self.assertEqual(self.offered("verify", "--against", "an "), ["an image.png"])
        self.assertEqual(self.offered("encode", "--", "-"), [], "no options after --")
        self.assertEqual(self.offered("encode", "--tile", ""), [], "a number is due")
        self.assertEqual(self.offered("manual", ""), [])


if __name__ == "__main__":
    main()
