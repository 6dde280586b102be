"""The text of documents: bytes in, text out, for every kind of file that holds words.

`extract` is all there is; readers are imported when a file needs them. It opens no file and no socket, and raises
nothing but ProcessingError and MemoryError.
"""

from tidegate.processing.text.extraction import VERSION, extract
from tidegate.processing.text.limits import Text, TextLimits

__all__ = ["VERSION", "Text", "TextLimits", "extract"]
