"""Files that are either written completely or not at all."""

from __future__ import annotations

import secrets
from pathlib import Path


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
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        part.replace(path)
    except OSError as error:
        raise type(error)(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if part.is_file():
            part.unlink()
