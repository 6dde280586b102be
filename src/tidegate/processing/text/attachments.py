"""The callable by which mail readers have the text of what is attached; kept apart so that no reader imports another.

`read_part(data, name)` answers the text of an attached file of any kind. What cannot be read, or nests too deep, is
answered with nothing: a letter is not unreadable because its attachment is.
"""

from __future__ import annotations

from collections.abc import Callable

ReadPart = Callable[[bytes, str], str]
