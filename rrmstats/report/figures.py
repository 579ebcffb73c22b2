"""Pictures as SVG."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING

from rrmstats import plotting
from rrmstats.optional import require
from rrmstats.plotting.captions import take_captions
from rrmstats.plotting.catalog import Picture, report_pictures
from rrmstats.report.offers import ReportedResults

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Dots per inch of the parts of a picture that are drawn as an image.
IMAGE_DPI = 150


def figure_texts(results: ReportedResults) -> list[str]:
    """Return the pictures of a fit as HTML, or the reason why there are none."""
    if getattr(results, "weights", None) is None:  # remove_data dropped them
        return ["<p>None: remove_data dropped the data.</p>"]
    try:
        require("matplotlib", "plot")
    except ImportError as error:
        return [f"<p>None: {escape(str(error))}</p>"]
    seen = results.seen_rows
    some = f" ({seen.nobs:,.0f} of {results.nobs:,.0f} rows, at random)"
    note = some if seen.nobs < results.nobs else ""
    return [
        figure_text(seen, picture, number, note if picture.uses_rows else "")
        for number, picture in enumerate(report_pictures(seen), 1)
    ]


def figure_text(results: ReportedResults, picture: Picture, number: int, note: str = "") -> str:
    """Return one picture with its caption and a note, or the reason why it cannot be drawn."""
    explained = []

    def draw(fig: Figure) -> None:
        where = {picture.target: fig.subplots() if picture.target == "ax" else fig}
        getattr(plotting, picture.function)(results, **where, **dict(picture.options))
        explained.append(take_captions(fig))

    try:
        body = svg_text(draw, picture.size, f"picture{number}-", picture.caption)
    except ValueError as error:
        body = f"<p>Not drawn: {escape(str(error))}</p>"
    words = [picture.caption + note, *explained]
    text = ". ".join(word for word in words if word)
    caption = f"<figcaption>{number}. {escape(text)}</figcaption>"
    return f"<figure>\n{body}\n{caption}\n</figure>"


def svg_text(
    draw: Callable[[Figure], None], size: tuple[float, float], prefix: str, name: str
) -> str:
    """Return a picture as an SVG element that can stand in a page beside others.

    Parameters
    ----------
    draw : callable
        Draws on the figure that it is given.
    size : (float, float)
        Width and height in inches.
    prefix : str
        Put before every id, so that ids differ from those of other pictures.
    name : str
        Name of the picture for readers who cannot see it.
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
