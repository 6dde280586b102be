"""The text of docx and pptx, their macro and template kinds, and the loose text (comments, drawings) of xlsx.

Parts are found through the package's relationships, as the programs do. Body first, then headers, footers, notes and
comments; slides in the order of the show, each with its notes, a page end between them. Deleted and moved-away text,
phonetic guides and fallback copies are left out. Raises ProcessingError.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace

from tidegate.processing.text.archives import Archive, resolve
from tidegate.processing.text.gathering import PAGE_END, Gathering, finish, one_line, tidy
from tidegate.processing.text.limits import Text, TextLimits, damaged
from tidegate.processing.text.xml_events import Attributes, read_xml

_SKIPPED = frozenset({"Fallback", "rt", "rPh", "moveFrom", "del"})
_PARAGRAPHS = frozenset({"p", "comment", "si"})
_WORD_EXTRAS = ("header", "footer", "footnotes", "endnotes", "comments", "diagramData", "chart")
_SLIDE_EXTRAS = ("diagramData", "chart", "notesSlide", "comments")
_MAIN = "officeDocument"


@dataclass(frozen=True, slots=True)
class _Link:
    role: str
    target: str


class OfficeReader:
    """The running text of one part of WordprocessingML, DrawingML or SpreadsheetML comments."""

    def __init__(self, out: Gathering) -> None:
        self.out = out
        self.is_done = False
        self.title = ""
        self._skipped = 0
        self._runs = 0
        self._is_text = False
        self._cells: list[int] = []

    def start(self, name: str, attributes: Attributes) -> None:
        """An element begins."""
        if self._skipped or name in _SKIPPED:
            self._skipped += 1
        elif name == "t":
            self._is_text = True
        elif name == "r":
            self._runs += 1
        elif name == "tc":
            self._cells.append(len(self.out.pieces))
        elif name in ("br", "cr"):
            self.out.add("\n")
        elif name in ("tab", "ptab") and self._runs:
            self.out.add("\t")
        elif name == "noBreakHyphen":
            self.out.add("-")

    def end(self, name: str) -> None:
        """An element ends."""
        if self._skipped:
            self._skipped -= 1
        elif name == "t":
            self._is_text = False
        elif name == "r":
            self._runs -= 1
        elif name in _PARAGRAPHS:
            self.out.mark("\n")
        elif name == "tc" and self._cells:
            self.out.close_cell(self._cells.pop())
        elif name == "tr":
            self.out.close_row()

    def characters(self, text: str) -> None:
        """Text, of which only that in `t` is meant for readers."""
        if self._is_text and not self._skipped:
            self.out.add(text)
            self.is_done = self.out.is_full


class _LinkReader:
    def __init__(self) -> None:
        self.is_done = False
        self.links: dict[str, _Link] = {}

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            role = attributes.get("Type", "").rpartition("/")[2]
            self.links[attributes.get("Id", "")] = _Link(role, attributes.get("Target", ""))

    def end(self, name: str) -> None: ...

    def characters(self, text: str) -> None: ...


class _SlideOrder:
    def __init__(self) -> None:
        self.is_done = False
        self.ids: list[str] = []

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "sldId":
            self.ids.append(next((value for key, value in attributes.items() if key.endswith(":id")), ""))

    def end(self, name: str) -> None: ...

    def characters(self, text: str) -> None: ...


class _TitleReader:
    def __init__(self) -> None:
        self.is_done = False
        self.title = ""
        self._is_title = False

    def start(self, name: str, attributes: Attributes) -> None:
        self._is_title = name == "title"

    def end(self, name: str) -> None:
        self.is_done = self.is_done or self._is_title
        self._is_title = False

    def characters(self, text: str) -> None:
        if self._is_title:
            self.title += text


class Package:
    """An office document's container: its parts and the links between them."""

    def __init__(self, archive: Archive, limits: TextLimits, what: str) -> None:
        self.archive, self.limits, self.what = archive, limits, what

    def links(self, part: str) -> dict[str, _Link]:
        """What the part links to, by relationship id, with targets resolved."""
        folder, name = posixpath.split(part)
        data = self.archive.read(posixpath.join(folder, "_rels", name + ".rels"))
        if not data:
            return {}
        reader = _LinkReader()
        read_xml(data, reader, self.limits, self.what)
        return {key: _Link(link.role, resolve(part, link.target)) for key, link in reader.links.items()}

    def linked(self, part: str, roles: tuple[str, ...]) -> list[str]:
        """The parts that `part` links to in one of the roles: by role, then by name."""
        found = {(roles.index(link.role), link.target) for link in self.links(part).values() if link.role in roles}
        return [target for _, target in sorted(found)]

    def main(self, usual: str) -> str:
        """The part that the package is about."""
        found = self.linked("", (_MAIN,))
        name = next((target for target in found if self.archive.holds(target)), usual)
        if not self.archive.holds(name):
            raise damaged(self.what, f"its part {name} is missing")
        return name

    def title(self) -> str:
        """The title among the package's properties."""
        return read_title(self.archive.read("docProps/core.xml"), self.limits, self.what)

    def read_into(self, out: Gathering, part: str) -> None:
        """Gather the text of one part."""
        data = self.archive.read(part)
        if data and not out.is_full:
            read_xml(data, OfficeReader(out), self.limits, self.what)
            out.mark("\n")


def read_title(properties: bytes, limits: TextLimits, what: str) -> str:
    """The `title` in a part that holds properties."""
    if not properties:
        return ""
    reader = _TitleReader()
    read_xml(properties, reader, limits, what)
    return one_line(reader.title)


def read_docx(archive: Archive, limits: TextLimits) -> Text:
    """The text of a Word document."""
    package, out = Package(archive, limits, "Word document"), Gathering(limits)
    main = package.main("word/document.xml")
    for part in (main, *package.linked(main, _WORD_EXTRAS)):
        package.read_into(out, part)
    return finish(tidy(out.join()), "docx", limits, title=package.title(), is_cut=out.is_cut or out.is_full)


def read_pptx(archive: Archive, limits: TextLimits) -> Text:
    """The text of a presentation: one page for each slide."""
    package = Package(archive, limits, "presentation")
    slides = _slides(package)
    pages: list[str] = []
    room, is_cut = limits.text_bytes, len(slides) > limits.pages
    for slide in slides[: limits.pages]:
        out = Gathering(limits)
        for part in (slide, *package.linked(slide, _SLIDE_EXTRAS)):
            package.read_into(out, part)
        pages.append(tidy(out.join()))
        room -= len(pages[-1])
        if out.is_cut or room <= 0:
            is_cut = True
            break
    found = finish(PAGE_END.join(pages), "pptx", limits, title=package.title(), is_cut=is_cut)
    return replace(found, pages=len(slides))


def _slides(package: Package) -> list[str]:
    main = package.main("ppt/presentation.xml")
    order = _SlideOrder()
    read_xml(package.archive.read(main), order, package.limits, package.what)
    links = package.links(main)
    return [links[key].target for key in order.ids if key in links]


def loose_texts(archive: Archive, limits: TextLimits, out: Gathering) -> None:
    """Gather what a workbook says outside its cells: comments and text boxes."""
    package = Package(archive, limits, "workbook")
    for name in archive.names():
        if name.startswith(("xl/comments", "xl/drawings/drawing", "xl/threadedcomments/")) and name.endswith(".xml"):
            package.read_into(out, name)
