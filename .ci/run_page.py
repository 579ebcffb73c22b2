"""Run the code of a page as a reader would, and compare what it prints with what the page says.

Usage: python run_page.py PAGE. Shell blocks run in the current directory, Python blocks in one
session, in the order of the page. A text block right after a Python block is its output. The line
that runs the tests is left out.
"""

import contextlib
import difflib
import io
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(\S+)(?: python)?\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
PYTHON = ("python", "{code-cell}")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the language and the text of each block."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(language, text) for language, text in found if "-m pytest" not in text]


def same(printed: str, said: str) -> bool:
    """Tell whether two texts agree, but for blanks at the ends of lines and the time of day."""
    one, other = (
        [
            re.sub(r"(Date|Time):\s+\S.*?(?=   |$)", r"\1:", line.rstrip())
            for line in t.splitlines()
        ]
        for t in (printed.strip("\n"), said.strip("\n"))
    )
    return one == other


def run(page: Path) -> int:
    """Run the blocks of a page and return their number."""
    session: dict[str, object] = {"__name__": "__main__"}
    printed = None
    found = blocks(page)
    for language, text in found:
        if language == "bash":
            subprocess.run(["bash", "-euo", "pipefail", "-c", text], check=True)
        elif language in PYTHON:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, str(page), "exec"), session)
            printed = out.getvalue()
        elif language == "text" and printed is not None and not same(printed, text):
            raise SystemExit("\n".join(difflib.ndiff(text.splitlines(), printed.splitlines())))
    return len(found)


if __name__ == "__main__":
    print(f"{sys.argv[1]}: {run(Path(sys.argv[1]))} blocks run")
