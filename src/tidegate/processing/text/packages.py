"""Tells which document a zip container is, by its parts, and hands it to the reader for that.

A zip that is no document (an archive of files, a program) holds no text of its own here. Raises ProcessingError.
"""

from __future__ import annotations

from tidegate.processing.text.archives import Archive
from tidegate.processing.text.limits import Text, TextLimits
from tidegate.processing.text.plain import NO_TEXT

_OFFICE_TYPES = "[Content_Types].xml"
_EPUB_CONTAINER = "META-INF/container.xml"
_EPUB, _ODF = b"application/epub+zip", b"application/vnd.oasis.opendocument."
_SUN = b"application/vnd.sun.xml."


def read_package(data: bytes, archive: Archive, limits: TextLimits) -> Text:
    """The text of the document in the container, NO_TEXT where it is none."""
    if archive.holds(_OFFICE_TYPES):
        return _read_office(data, archive, limits)
    media = archive.read("mimetype")[:200].strip()
    if media.startswith(_EPUB) or (archive.holds(_EPUB_CONTAINER) and not media):
        from tidegate.processing.text.epub import read_epub

        return read_epub(archive, limits)
    if media.startswith((_ODF, _SUN)) or (archive.holds("content.xml") and archive.holds("META-INF/manifest.xml")):
        from tidegate.processing.text.open_document import read_odf

        return read_odf(archive, limits)
    return _read_office(data, archive, limits)


def _read_office(data: bytes, archive: Archive, limits: TextLimits) -> Text:
    names = archive.names()
    if any(name.startswith("word/") for name in names):
        from tidegate.processing.text.office_xml import read_docx

        return read_docx(archive, limits)
    if any(name.startswith("ppt/") for name in names):
        from tidegate.processing.text.office_xml import read_pptx

        return read_pptx(archive, limits)
    if any(name.startswith("xl/") for name in names):
        from tidegate.processing.text.spreadsheets import read_xlsx

        return read_xlsx(data, archive, limits)
    return NO_TEXT
