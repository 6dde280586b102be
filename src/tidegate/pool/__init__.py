"""Pool: the shared folder. Paths, stamps, walking, settling, placing a file whole; all file I/O of the product."""

from tidegate.pool.paths import PoolPath, display
from tidegate.pool.stamps import Kind, Stamp
from tidegate.pool.walk import Listing, open_pool, walk

__all__ = ["Kind", "Listing", "PoolPath", "Stamp", "display", "open_pool", "walk"]
