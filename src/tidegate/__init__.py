"""Tidegate turns a shared folder into results: `Gate` does what the commands do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.gate import Gate

__version__ = "0.1.0"
__all__ = ["Gate", "__version__"]


def __getattr__(name: str) -> object:
    """`tidegate.Gate`, imported when it is first asked for."""
    if name == "Gate":
        from tidegate.gate import Gate

        return Gate
    raise AttributeError(f"module 'tidegate' has no attribute {name!r}")
