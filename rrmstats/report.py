"""A fit as one HTML file that needs nothing else to be read."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
from collections.abc import Callable, Iterable
from datetime import datetime
from html import escape
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rrmstats import plotting
from rrmstats.bootstrap import optional

# Rows in the table of small weights.
SMALLEST = 20
# Dots per inch of what is drawn as an image within a picture.
IMAGE_DPI = 150
# The summary has a short table of this title, which the report replaces by a longer one.
OWN_SECTION = "Smallest weights"
PACKAGES = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib")
# What the constructor keeps that is not a choice of the user's, or is shown elsewhere.
NOT_OPTIONS = {"eps_bar", "formula", "model_spec", "design_info", "missing_idx", "weights"}
STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; color: #111; background: #fff;
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; border-top: 2px solid #111; border-bottom: 2px solid #111;
  margin: 0.8rem 0; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: bold; padding: 0.3rem 0; }
th, td { padding: 0.15rem 0.7rem; vertical-align: top; }
thead th { border-bottom: 1px solid #111; text-align: right; }
thead th:first-child { text-align: left; }
tbody th { text-align: left; font-weight: normal; }
td { text-align: right; }
table.words td { text-align: left; overflow-wrap: anywhere; }
figure { margin: 1rem 0 1.5rem; break-inside: avoid; }
figure svg { max-width: 100%; height: auto; display: block; }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
figcaption { font-size: 0.9rem; }
@media print { body { max-width: none; margin: 0; font-size: 10pt; } h2 { break-after: avoid; }
  tr { break-inside: avoid; } .wide { overflow: visible; } }
"""

Picture = tuple[str, tuple[float, float], Callable[[Any], Any]]


def report(results: Any, path: str | os.PathLike[str], title: str | None = None) -> Path:
    """Write a fit as one HTML file: tables, pictures, the call, versions and a hash of the data.

    Nothing is fetched when it is read. Where matplotlib is not installed, the file says so in
    place of the pictures.

    Parameters
    ----------
    results : results of any model
    path : str or path
        The file; one that is there is replaced once the new one is whole.
    title : str, optional
        Title of the page.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    OSError
        If the directory does not exist or cannot be written to.

    Examples
    --------
    >>> import tempfile, rrmstats
    >>> from rrmstats.report import report
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = report(res, f"{folder}/stars.html").read_text(encoding="utf-8")
    >>> text.count("<svg"), text.count("http")
    (4, 0)
    """
    target = Path(path)
    check_target(target)
    write_whole(target, page(results, title))
    return target


def page(results: Any, title: str | None = None) -> str:
    """Return a fit as the text of an HTML page."""
    summary = results.summary()
    heading = title or summary.tables[0].title
    notes = [line for line in (summary.extra_txt or "").splitlines() if line.strip()]
    parts = [
        f"<h1>{escape(heading)}</h1>",
        section("The call", pairs_table(call(results))),
        section(
            "Summary",
            *(simple_table(table) for table in summary.tables if table.title != OWN_SECTION),
            *(f"<p>{escape(note)}</p>" for note in notes if note != "Notes:"),
        ),
        section(OWN_SECTION, weights_text(results)),
        section("Pictures", *drawings(results)),
        section("Provenance", pairs_table(provenance(results.model))),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(heading)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def section(heading: str, *parts: str) -> str:
    """Return parts under a heading."""
    return "\n".join([f"<section>\n<h2>{escape(heading)}</h2>", *parts, "</section>"])


def call(results: Any) -> list[tuple[str, str]]:
    """Return how the fit was made, by name and value."""
    model = results.model
    formula = getattr(model, "formula", None)
    found = [
        ("Model", type(model).__name__),
        ("Formula", "none: arrays were given" if formula is None else str(formula)),
        ("eps_bar", f"{model.eps_bar:g}"),
        ("Rows", f"{results.nobs:.0f}"),
        ("Prior weights", "given" if model._prior is not None else "equal"),
    ]
    for name in dict.fromkeys(model._init_keys):
        if name not in NOT_OPTIONS and hasattr(model, name):
            found.append((name, repr(getattr(model, name))))
    step = "none: one step" if results.efficiency is None else f"{results.efficiency:g}"
    found += [("efficiency", step), ("Starts", str(len(results.starts)))]
    bootstrap = getattr(results, "bootstrap", None)
    errors = results.cov_type if bootstrap is None else bootstrap.describe()
    found += [("Standard errors", errors), ("use_t", str(results.use_t))]
    return found


def provenance(model: Any) -> list[tuple[str, str]]:
    """Return the date, the hash of the data and the versions of what computed the fit."""
    now = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    versions = [(name, installed_version(name)) for name in PACKAGES]
    return [
        ("Date", now),
        ("SHA-256 of the data", data_hash(model) or "none: remove_data dropped the data"),
        ("rrmstats", import_module("rrmstats").__version__),
        ("Python", platform.python_version()),
        *versions,
    ]


def installed_version(name: str) -> str:
    """Return the version of a package, or that it is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def data_hash(model: Any) -> str | None:
    r"""Return the SHA-256 of the rows of a model, or None where they were dropped.

    It is that of `endog`, `exog` and the prior weights, those that there are: each by its name
    and shape, as in ``"endog (47,)\n"``, and then its values as little-endian doubles, row by
    row.

    Parameters
    ----------
    model : model

    Returns
    -------
    str or None

    Examples
    --------
    >>> import hashlib, numpy as np, rrmstats
    >>> data = np.arange(8.0).reshape(4, 2) ** 2
    >>> expected = hashlib.sha256(b"endog (4, 2)\n" + data.tobytes()).hexdigest()
    >>> data_hash(rrmstats.RRMCov(data, eps_bar=0.1)) == expected
    True
    """
    arrays = {
        "endog": getattr(model, "endog", None),
        "exog": getattr(model, "exog", None),
        "weights": model._prior,
    }
    if arrays["endog"] is None:
        return None
    digest = hashlib.sha256()
    for name, values in arrays.items():
        if values is not None:
            array = np.ascontiguousarray(values, dtype="<f8")
            digest.update(f"{name} {array.shape}\n".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def pairs_table(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and values as a table of two columns."""
    rows = [
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in pairs
    ]
    return table_text(body=rows, kind=' class="words"')


def table_text(head: str = "", body: Iterable[str] = (), caption: str = "", kind: str = "") -> str:
    """Return rows of HTML as a table that scrolls where it is too wide."""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = f"<thead>{head}</thead>" if head else ""
    inner = "\n".join(body)
    return f'<div class="wide"><table{kind}>{title}{top}<tbody>\n{inner}\n</tbody></table></div>'


def simple_table(table: Any) -> str:
    """Return a table of statsmodels as HTML, its texts escaped, which its own are not."""
    rows = [[cell_text(cell) for cell in row] for row in table]
    lines = [f"<tr>{''.join(row)}</tr>" for row in rows]
    headed = any(cell.datatype == "header" for cell in table[0])
    head, body = (lines[0], lines[1:]) if headed else ("", lines)
    return table_text(head, body, table.title or "")


def cell_text(cell: Any) -> str:
    """Return a cell of a statsmodels table as HTML."""
    text = escape(cell.format(0, "txt").strip())
    scope = {"header": "col", "stub": "row"}.get(cell.datatype)
    return f"<td>{text}</td>" if scope is None else f'<th scope="{scope}">{text}</th>'


def weights_text(results: Any) -> str:
    """Return the rows of smallest weight as HTML."""
    if results.weights is None:
        return "<p>None: remove_data dropped the weights.</p>"
    table = smallest_weights(results).rename(columns={"relative_weight": "weight * n"})
    table["weight * n"] = [f"{weight:.4f}" for weight in table["weight * n"]]
    left = int(results.nobs) - len(table)
    return frame_table(table) + (
        f"<p>{left} rows of larger weight are not shown.</p>" * (left > 0)
    )


def smallest_weights(results: Any) -> pd.DataFrame:
    """Return the rows of smallest weight."""
    if hasattr(results, "weight_table"):
        return results.weight_table(SMALLEST)
    relative = plotting.weights_times_n(results)
    frame = pd.DataFrame(
        {
            "loss": np.asarray(results.losses),
            "relative_weight": relative,
            "outlier": plotting.flags(results),
        },
        index=plotting.row_names(results),
    )
    return frame.iloc[np.lexsort((-frame["loss"], relative))[:SMALLEST]]


def frame_table(frame: pd.DataFrame) -> str:
    """Return a data frame as an HTML table."""
    names = "".join(f'<th scope="col">{escape(str(c).replace("_", " "))}</th>' for c in frame)
    head = f'<tr><th scope="col">row</th>{names}</tr>'
    body = []
    for row in frame.itertuples():
        cells = "".join(f"<td>{escape(value_text(value))}</td>" for value in row[1:])
        body.append(f'<tr><th scope="row">{escape(str(row[0]))}</th>{cells}</tr>')
    return table_text(head, body)


def value_text(value: Any) -> str:
    """Return an entry of a table in few digits."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def pictures(results: Any) -> list[Picture]:
    """Return the captions, sizes and makers of the pictures of a fit."""
    kind = {base.__name__ for base in type(results.model).__mro__}
    small, large = (6.4, 4.4), (9.6, 7.6)
    found: list[Picture] = []
    if "RRMOLS" in kind:
        found.append(("Diagnostics", large, _on_figure(plotting.plot_diagnostics, results)))
        if len(plotting.varying_columns(results.model.exog)) == 1:
            found.insert(0, ("Fit", small, _on_axes(plotting.plot_fit, results)))
    if "RRMLogit" in kind:
        found.append(("Separation", (7.2, 3.2), _on_axes(plotting.plot_separation, results)))
        found.append(("Reliability", (5.4, 5.0), _on_axes(plotting.plot_reliability, results)))
    if "RRMCov" in kind:
        found.append(("Distances", small, _on_axes(plotting.plot_distances, results)))
        if len(results.model.variables) > 1:
            found.append(("Tolerance ellipse", small, _on_axes(plotting.plot_ellipse, results)))
    if "RRMPCA" in kind:
        found.append(("Variances", small, _on_axes(plotting.plot_scree, results)))
        if len(results.eigenvals) > 1:
            found.append(("Biplot", small, _on_axes(plotting.plot_biplot, results)))
        found.append(("Outlier map", small, _on_axes(plotting.plot_outlier_map, results)))

    def by_loss(fig: Any) -> None:
        plotting.plot_weights(results, against="losses", ax=fig.subplots())

    found.append(("Weights by loss", small, by_loss))
    found.append(("Risk and lambda", (6.4, 4.8), _on_figure(plotting.plot_trace, results)))
    return found


def _on_axes(draw: Callable[..., Any], results: Any) -> Callable[[Any], Any]:
    return lambda fig: draw(results, ax=fig.subplots())


def _on_figure(draw: Callable[..., Any], results: Any) -> Callable[[Any], Any]:
    return lambda fig: draw(results, fig=fig)


def drawings(results: Any) -> list[str]:
    """Return the pictures of a fit as HTML, or why there are none."""
    if results.weights is None:
        return ["<p>None: remove_data dropped the data.</p>"]
    try:
        optional("matplotlib", "plot")
    except ImportError as error:
        return [f"<p>None: {escape(str(error))}</p>"]
    found = []
    for number, (caption, size, draw) in enumerate(pictures(results), 1):
        try:
            body = svg(draw, size, f"picture{number}-", caption)
        except ValueError as error:
            body = f"<p>Not drawn: {escape(str(error))}</p>"
        text = f"<figcaption>{number}. {escape(caption)}</figcaption>"
        found.append(f"<figure>\n{body}\n{text}\n</figure>")
    return found


def svg(draw: Callable[[Any], Any], size: tuple[float, float], prefix: str, name: str) -> str:
    """Return a picture as an SVG element that can stand in a page beside others.

    Parameters
    ----------
    draw : callable
        Draws on the figure that it is given.
    size : (float, float)
        Width and height in inches.
    prefix : str
        Put before every id, so that they differ from those of other pictures.
    name : str
        What the picture is called to those who do not see it.
    """
    matplotlib = import_module("matplotlib")
    buffer = StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "rrmstats", "svg.fonttype": "path"}):
        fig = import_module("matplotlib.figure").Figure(figsize=size, layout="constrained")
        draw(fig)
        fig.savefig(buffer, format="svg", dpi=IMAGE_DPI)
    text = buffer.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'href="#', f'href="#{prefix}', text).replace("url(#", f"url(#{prefix}")
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(name)}"', 1)


def check_target(path: Path) -> None:
    """Raise where no file can be written at a path."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory; give the name of a file in it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the directory {path.parent} does not exist; create it first")


def write_whole(path: Path, text: str) -> None:
    """Write a text beside a file, then put it in its place: the file is never in part."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        part.replace(path)
    except OSError as error:
        reason = f"cannot write {path.name} in {path.parent}: {error.strerror or error}"
        raise OSError(error.errno, reason) from error
    finally:
        part.unlink(missing_ok=True)
