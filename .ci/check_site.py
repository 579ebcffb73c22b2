"""Check a built site: links within it have a target, and no page needs a network to be drawn.

Usage: python check_site.py FOLDER.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a page loads by itself, rather than when a reader follows it.
LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
}
# Relations of a <link> that load nothing.
NAMED = {"canonical", "next", "prev", "search", "index", "author", "genindex", "copyright"}


class Page(HTMLParser):
    """The anchors of a page, what it links to and what it loads.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag names, links to and loads."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        for name in ("href", "src"):
            if name in given and "#" != given[name]:
                self.links.append(given[name])
                if (tag, name) in LOADED and given.get("rel", "") not in NAMED:
                    self.loaded.append(given[name])


def problems(folder: Path) -> list[str]:
    """Return one line for each link without a target and each file from elsewhere."""
    pages = {
        path.resolve(): Page(path)
        for path in folder.rglob("*.html")
        if path.parent.name != "_static"
    }
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        found += [
            f"{name} loads {url}"
            for url in page.loaded
            if urlsplit(url).scheme in ("http", "https")
        ]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{name} links to {link}, which does not exist")
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].anchors
            ):
                found.append(f"{name} links to {link}, which has no such anchor")
    return sorted(set(found))


if __name__ == "__main__":
    lines = problems(Path(sys.argv[1]))
    print("\n".join(lines) or "links within the site: ok")
    sys.exit(bool(lines))
