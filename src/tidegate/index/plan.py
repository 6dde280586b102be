"""The tree of a query, and filters, as one query of the index. User text never reaches a parser or a pattern of the
index: only terms do, which hold letters, digits and combining marks, and nothing that means something in a pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import tantivy

from tidegate.index import layout
from tidegate.index.query import All, Below, Either, Kind, Node, Not, Word
from tidegate.index.terms import Needle
from tidegate.pool.paths import PoolPath

_EVERYWHERE: Final = (("text", 1.0), ("name", 4.0), ("heading", 3.0))
_NAME_ONLY: Final = (("name", 4.0),)
_STEM_WEIGHT: Final = 0.5

Clause = tuple[tantivy.Occur, tantivy.Query]


@dataclass(frozen=True, slots=True)
class Filters:
    """What hits must be besides matching: below `folder` (its bytes, whole components), of one of `kinds` by what they
    are or by the ending of their name, changed at `since_ns` or later and before `until_ns`. Nothing given is nothing
    asked."""

    folder: bytes = b""
    kinds: Sequence[str] = ()
    since_ns: int | None = None
    until_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Turns trees into queries of `schema`. A loose plan asks for the last, open word of a phrase anywhere in the
    field, which serves where too many words begin so."""

    schema: tantivy.Schema
    is_loose: bool = False

    def of(self, tree: Node, filters: Filters) -> tantivy.Query:
        """The whole query; raises UsageError where the filter's folder is no path inside the pool."""
        asked = [(tantivy.Occur.Must, tantivy.Query.const_score_query(part, 0.0)) for part in self._filters(filters)]
        query = self._node(tree)
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), *asked]) if asked else query

    def _filters(self, filters: Filters) -> list[tantivy.Query]:
        parts = []
        if folder := PoolPath.parse(filters.folder).raw:
            parts.append(self._term("folder", layout.folder_term(folder)))
        if filters.kinds:
            kinds = [term for kind in filters.kinds for term in (layout.kind_term(kind), layout.ending_term(kind))]
            parts.append(tantivy.Query.term_set_query(self.schema, "kind", kinds))
        if filters.since_ns is not None or filters.until_ns is not None:
            parts.append(self._between(filters.since_ns, filters.until_ns))
        return parts

    def _between(self, since_ns: int | None, until_ns: int | None) -> tantivy.Query:
        return tantivy.Query.range_query(
            self.schema,
            "mtime",
            tantivy.FieldType.Integer,
            None if since_ns is None else layout.bounded(since_ns),
            None if until_ns is None else layout.bounded(until_ns - 1),
        )

    def _node(self, node: Node) -> tantivy.Query:
        match node:
            case Word():
                return self._word(node)
            case Kind(kind):
                kinds = [layout.kind_term(kind), layout.ending_term(kind)]
                return tantivy.Query.term_set_query(self.schema, "kind", kinds)
            case Below(folder):
                return self._term("folder", layout.folded_folder_term(folder))
            case Either(parts):
                return tantivy.Query.boolean_query([(tantivy.Occur.Should, self._node(part)) for part in parts])
            case All(parts):
                return self._all(parts)
            case Not():
                return self._all((node,))

    def _all(self, parts: Sequence[Node]) -> tantivy.Query:
        clauses: list[Clause] = [
            (tantivy.Occur.MustNot, self._node(part.part))
            if isinstance(part, Not)
            else (tantivy.Occur.Must, self._node(part))
            for part in parts
        ]
        if all(isinstance(part, Not) for part in parts):
            clauses.append((tantivy.Occur.Must, tantivy.Query.all_query()))
        return tantivy.Query.boolean_query(clauses)

    def _word(self, word: Word) -> tantivy.Query:
        fields = _NAME_ONLY if word.is_name else _EVERYWHERE
        found = [tantivy.Query.boost_query(self._needle(field, word.needle), weight) for field, weight in fields]
        if word.needle.stem and not word.is_name:
            found.append(tantivy.Query.boost_query(self._term("stems", word.needle.stem), _STEM_WEIGHT))
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in found])

    def _needle(self, field: str, needle: Needle) -> tantivy.Query:
        terms = list(needle.terms)
        if needle.open_end is None:
            return self._row(field, terms)
        at, beginning = needle.open_end
        # A single character of a pair script stands first in a pair or alone; a word goes on for as long as it likes.
        pattern = f"{beginning}.?" if needle.runs[-1].is_paired else f"{beginning}.*"
        if not terms:
            return tantivy.Query.regex_query(self.schema, field, pattern)
        if not self.is_loose:
            return tantivy.Query.regex_phrase_query(self.schema, field, [*terms, (at, pattern)])
        parts = (self._row(field, terms), tantivy.Query.regex_query(self.schema, field, pattern))
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, part) for part in parts])

    def _row(self, field: str, terms: list[tuple[int, str]]) -> tantivy.Query:
        if len(terms) == 1:
            return self._term(field, terms[0][1])
        return tantivy.Query.phrase_query(self.schema, field, [*terms])

    def _term(self, field: str, term: str) -> tantivy.Query:
        return tantivy.Query.term_query(self.schema, field, term)
