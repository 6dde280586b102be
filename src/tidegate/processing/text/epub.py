"""The text of an EPUB book: its chapters in reading order.

Chapters are read as HTML, which books rarely keep to be XML. A book whose chapters are locked is encrypted; locked
fonts do not matter. Raises ProcessingError.
"""

from __future__ import annotations

from tidegate.processing.text.archives import Archive, resolve
from tidegate.processing.text.gathering import Gathering, finish, tidy
from tidegate.processing.text.html import read_html
from tidegate.processing.text.limits import Text, TextLimits, damaged, encrypted
from tidegate.processing.text.xml_events import Attributes, read_xml

_WHAT = "EPUB"
_CHAPTERS = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document"})


def read_epub(archive: Archive, limits: TextLimits) -> Text:
    """The text of a book."""
    root = _Container()
    read_xml(archive.read("META-INF/container.xml"), root, limits, _WHAT)
    book = _Book()
    if not archive.holds(root.path):
        raise damaged(_WHAT, "its package document is missing")
    read_xml(archive.read(root.path), book, limits, _WHAT)
    chapters = [resolve(root.path, path) for path in book.chapters()]
    locked = _locked(archive, limits)
    out = Gathering(limits)
    for chapter in chapters[: limits.pages]:
        if chapter.lower() in locked:
            raise encrypted(_WHAT)
        if out.is_full:
            break
        out.add(read_html(archive.read(chapter), limits).text)
        out.add("\n\n")
    is_cut = out.is_cut or out.is_full or len(chapters) > limits.pages
    return finish(tidy(out.join()), "epub", limits, title=book.title, is_cut=is_cut)


class _Container:
    def __init__(self) -> None:
        self.is_done = False
        self.path = ""

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "rootfile" and not self.path:
            self.path = attributes.get("full-path", "")

    def end(self, name: str) -> None: ...

    def characters(self, text: str) -> None: ...


class _Book:
    def __init__(self) -> None:
        self.is_done = False
        self.title = ""
        self._items: dict[str, tuple[str, str]] = {}
        self._order: list[str] = []
        self._is_title = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "item":
            self._items[attributes.get("id", "")] = (attributes.get("href", ""), attributes.get("media-type", ""))
        elif name == "itemref":
            self._order.append(attributes.get("idref", ""))
        self._is_title = name == "title" and not self.title

    def end(self, name: str) -> None:
        self._is_title = False

    def characters(self, text: str) -> None:
        if self._is_title:
            self.title += text

    def chapters(self) -> list[str]:
        from urllib.parse import unquote

        found = (self._items[key] for key in self._order if key in self._items)
        return [unquote(href) for href, media in found if media in _CHAPTERS or href.lower().endswith(("html", "htm"))]


class _Locks:
    def __init__(self) -> None:
        self.is_done = False
        self.paths: set[str] = set()

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "CipherReference":
            self.paths.add(resolve("", attributes.get("URI", "")).lower())

    def end(self, name: str) -> None: ...

    def characters(self, text: str) -> None: ...


def _locked(archive: Archive, limits: TextLimits) -> set[str]:
    data = archive.read("META-INF/encryption.xml")
    if not data:
        return set()
    locks = _Locks()
    read_xml(data, locks, limits, _WHAT)
    return locks.paths
