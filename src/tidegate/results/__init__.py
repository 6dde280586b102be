"""Results: receipts, and packs of texts. What is here proves work done, whatever becomes of the ledger."""

from tidegate.results.packs import PackEntry, TextRef, all_entries, clear_unfinished, read_entry, write_pack
from tidegate.results.receipts import Receipt

__all__ = ["PackEntry", "Receipt", "TextRef", "all_entries", "clear_unfinished", "read_entry", "write_pack"]
