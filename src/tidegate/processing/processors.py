"""The built-in processors and their versions: a new version is a new task for every file that it concerns.

register    nothing is read; the file is only known
checksum    SHA-256 of the content
text        SHA-256 and the text, in one reading
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tidegate.processing.text import VERSION as TEXT_VERSION

REGISTER: Final = "register"
CHECKSUM: Final = "checksum"
TEXT: Final = "text"

VERSIONS: Final[Mapping[str, str]] = {REGISTER: "1", CHECKSUM: "1", TEXT: TEXT_VERSION}
