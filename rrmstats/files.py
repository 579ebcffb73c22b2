"""Files that are either written completely or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import copy2


def check_target(path: Path) -> None:
    """Raise an error if no file can be written at a path.

    Parameters
    ----------
    path : pathlib.Path
        Path of the file to be written.

    Raises
    ------
    OSError
        If the path is a directory, or if its own directory does not exist.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rrmstats.files import check_target
    >>> check_target(Path("no/such/directory/file.html"))
    Traceback (most recent call last):
        ...
    FileNotFoundError: the directory no/such/directory does not exist; create it first
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory; give the name of a file in it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the directory {path.parent} does not exist; create it first")


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file completely, or leave everything as it was.

    The content goes to a temporary file in the same directory, which then replaces `path`.

    Parameters
    ----------
    path : pathlib.Path
        Path of the file. An existing file is replaced only after the new one has been written
        completely.
    content : str or bytes
        Text is written in UTF-8.

    Raises
    ------
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rrmstats.files import write_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "note.txt"), "weights")
    ...     [(path.name, path.read_text()) for path in Path(folder).iterdir()]
    [('note.txt', 'weights')]
    """
    write_all({path: content})


def write_all(contents: Mapping[Path, str | bytes]) -> None:
    """Write several files completely, or leave everything as it was.

    All contents go to temporary files first, which then take their places. Copies of files that
    are replaced are kept beside them until all are, and put back if one cannot be.

    Parameters
    ----------
    contents : mapping of pathlib.Path to str or bytes
        What each file is to hold; see `write_whole`.

    Raises
    ------
    OSError
        If one of the files cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rrmstats.files import write_all
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_all({Path(folder, "a.txt"): "weights", Path(folder, "b.txt"): b"flags"})
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['a.txt', 'b.txt']
    """
    mark = secrets.token_hex(4)
    parts = {path: path.with_name(f".{path.name}.{mark}.part") for path in contents}
    # Nothing can fail once the last file is in its place.
    olds = {path: path.with_name(f".{path.name}.{mark}.old") for path in list(contents)[:-1]}
    placed: list[Path] = []
    try:
        for path, content in contents.items():
            with _naming(path), parts[path].open("xb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
        for path, part in parts.items():
            with _naming(path):
                if path.is_file() and path in olds:
                    copy2(path, olds[path], follow_symlinks=False)
                part.replace(path)
            placed.append(path)
    except BaseException:
        for path in placed:
            if olds[path].is_file():
                olds[path].replace(path)
            else:
                path.unlink()
        raise
    finally:
        for left in (*parts.values(), *olds.values()):
            if left.is_file():
                left.unlink()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Say which file could not be written."""
    try:
        yield
    except OSError as error:
        raise type(error)(f"cannot write {path}: {error.strerror or error}") from error
