"""The pages on the command line: each command is run, and prints what the page says."""

import doctest
import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from rrmstats.cli import main
from rrmstats.cli.formulas import FUNCTIONS
from rrmstats.cli.model import FAMILIES, LINKS
from rrmstats.cli.run import make_parser

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"
REFERENCE = PAGE.parent / "api" / "command.md"
BLOCK = re.compile(r"^```console\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
# What changes with the time of day, or with rounding from one machine to another.
CHANGING = re.compile(
    r"(Date: +)\w+, \d+ \w+ \d+|(Time: +)[\d:]+|(Iterations: +)\d+|(the minimum: +)\d+ of \d+.*"
)

# A file that the page has, in the manner of a spreadsheet with decimal commas.
PINES = (
    "height;girth\n12,5;0,9\n14,1;1,2\n13,2;1,0\n15,3;1,4\n11,8;\n16,0;1,5\n12,9;1,0\n14,8;1,3\n"
)


def sessions(text):
    """Return the commands of a page and what each is said to print."""
    parts = [part for block in BLOCK.findall(text) for part in block.split("$ ")[1:]]
    return [tuple(part.split("\n", 1)) for part in parts]


class Shell:
    """What a shell does to the commands of the page."""

    def __init__(self):
        self.status = 0

    def run(self, line, capsys, monkeypatch):
        """Run a command and return what a terminal shows."""
        words, places = shlex.split(line), {}
        while len(words) > 2 and words[-2] in ("<", ">"):
            places[words[-2]] = words[-1]
            words = words[:-2]
        if "<" in places:
            given = io.TextIOWrapper(io.BytesIO(Path(places["<"]).read_bytes()))
            monkeypatch.setattr(sys, "stdin", given)
        if words[0] == "rrmstats":
            self.status = main(words[1:])
        elif words == ["echo", "$?"]:
            print(self.status)
        else:
            assert words[:2] == ["head", "-n"]
            print("\n".join(Path(words[3]).read_text().splitlines()[: int(words[2])]))
        shown = capsys.readouterr()
        if ">" in places:
            Path(places[">"]).write_text(shown.out)
        return shown.err + ("" if ">" in places else shown.out)


@pytest.mark.slow
def test_each_command_prints_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("pines.csv").write_text(PINES)
    found, shell = sessions(PAGE.read_text(encoding="utf-8")), Shell()
    assert len(found) > 20
    checker = doctest.OutputChecker()
    for command, expected in found:
        got = shell.run(command, capsys, monkeypatch)
        expected, got = (
            CHANGING.sub(r"\1\2\3\4", text).replace(" \n", "\n") for text in (expected, got)
        )
        flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        assert checker.check_output(expected, got, flags), f"{command}\n{got}"


def test_the_reference_names_each_option_and_function():
    text = REFERENCE.read_text(encoding="utf-8")
    for command in ("fit", "path"):
        parser = make_parser()._subparsers._group_actions[0].choices[command]
        options = [name for action in parser._actions for name in action.option_strings]
        for option in options:
            assert option in ("-h", "--help") or f"`{option}`" in text, option
    listed = re.search(r"of the same arithmetic: (.*?)\.\n", text, flags=re.DOTALL).group(1)
    assert listed.replace(",", "").split() == list(FUNCTIONS)
    for name in (*FAMILIES, *LINKS):
        assert f"`{name}`" in text


def test_the_reference_explains_each_key_of_the_json():
    text = PAGE.read_text(encoding="utf-8")
    printed = next(shown for command, shown in sessions(text) if "--format json" in command)
    keys = re.findall(r'^  "(\w+)":', printed, flags=re.MULTILINE)
    listed = REFERENCE.read_text(encoding="utf-8").partition("| key | meaning |\n")[2]
    table = listed.partition("\n\n")[0]
    cells = [line.split(" | ")[0] for line in table.splitlines()]
    explained = [key for cell in cells for key in re.findall(r"`(\w+)`", cell)]
    assert set(explained) == {*keys, "loadings"}
