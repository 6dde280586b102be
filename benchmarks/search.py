"""How long does a search take in the process itself, by kind of query, and how much of that is tantivy's?

  python benchmarks/search.py
  python benchmarks/search.py --documents 100000 --json

One published snapshot of generated texts (documents.py, without files), kept in the work folder. `ours` is
Searcher.search(): parse, plan, query, 20 hits with snippets and marks. `tantivy` runs the same query object, planned
before, with the same limit and reads no document. Both go over the same queries in turn, after one round that does not
count. Queries are drawn from the words of the documents with a fixed seed.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import documents
import measure
import tantivy

from tidegate.index import Change, Document, Filters, Searcher, current, publish, query
from tidegate.index.layout import build_schema
from tidegate.index.plan import Plan
from tidegate.pool import PoolPath

WORK: Final = Path(".bench/search")
LIMIT: Final = 20
P50_TARGET_MS: Final = 1.0
P99_TARGET_MS: Final = 20.0


def texts(count: int) -> Iterator[Change]:
    """The documents as the ledger's changes."""
    writer = documents.Writer(7)
    for number in range(count):
        title, *rest = writer.paragraphs(number)
        path = PoolPath(f"{2019 + number // 100 % 7}/部门{number // 100:04d}/合同-{number:06d}.docx".encode())
        moment = (documents.FIRST_S + writer.chance.randrange(documents.SPAN_S)) * 10**9
        text = "\n".join([title, *rest])
        yield number + 1, Document(number + 1, path, moment, len(text), text, title, "docx")


def queries(each: int) -> dict[str, list[str]]:
    """That many queries of every kind: frequent and seldom words alike."""
    writer, chance = documents.Writer(7), random.Random(11)
    ranks = [int(10 ** chance.uniform(0, 4)) for _ in range(each)]
    english = [writer.english[rank] for rank in ranks]
    chinese = [writer.chinese[rank] for rank in ranks]
    two, some = [word for word in writer.chinese if len(word) == 2], writer.chance.sample
    sentences = [_sentence(writer, language) for language in ("en", "zh") for _ in range(each)]
    return {
        "English word": english,
        "two characters": [two[rank % len(two)] for rank in ranks],
        "one character": [word[0] for word in chinese],
        "Chinese phrase": ["".join(line)[:5] for line in sentences[each:]],
        "English phrase": [f'"{" ".join(line[:2])}"' for line in sentences[:each]],
        "two words": [f"{one} {other}" for one, other in zip(english, some(english, each), strict=True)],
        "Chinese and English": [f"{one} {other}" for one, other in zip(chinese, english, strict=True)],
        "prefix": [f"{word[:4]}*" for word in english],
        "either, not": [
            f"({one} OR {other}) -{one[:3]}" for one, other in zip(english, some(english, each), strict=True)
        ],
        "in every document": [documents.PROBE] * each,
    }


def _sentence(writer: documents.Writer, language: str) -> list[str]:
    line = writer.sentence(language).rstrip(".。")
    return line.lower().split() if language == "en" else list(line)


def made_index(root: Path, count: int) -> float:
    """Seconds it took to publish, 0 where the index is there already."""
    snapshot = current(root)
    if snapshot is not None and snapshot.documents == count:
        return 0.0
    measure.note(f"publishing {count} documents in {root}")
    began = time.perf_counter()
    publish(measure.fresh(root), texts(count), now_ns=0)
    return time.perf_counter() - began


def times_ms(act: Callable[[Any], object], asked: Sequence[Any]) -> list[float]:
    """How long each took."""
    times = []
    for one in asked:
        began = time.perf_counter()
        act(one)
        times.append((time.perf_counter() - began) * 1e3)
    return times


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which that part of all lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def measured(root: Path, each: int, rounds: int) -> list[dict[str, Any]]:
    """For every kind: p50 and p99 of both, and how many hits the queries had."""
    index = tantivy.Index.open(str(_path(root)))
    bare, schema, rows = index.searcher(), build_schema(), []
    with Searcher(root) as searcher:
        for kind, asked in queries(each).items():
            planned = [_planned(schema, bare, text) for text in asked]
            hits = [searcher.search(text, limit=LIMIT).total for text in asked]
            cases = {
                "ours": lambda asked=asked: times_ms(lambda one: searcher.search(one, limit=LIMIT), asked),
                "tantivy": lambda planned=planned: times_ms(lambda one: bare.search(one, LIMIT), planned),
            }
            cases["tantivy"]()
            answers = {
                name: list(itertools.chain(*parts)) for name, parts in measure.interleaved(cases, rounds).items()
            }
            row: dict[str, Any] = {"kind": kind, "hits": measure.median(hits)}
            for name, values in answers.items():
                row |= {f"{name}_p50_ms": percentile(values, 0.5), f"{name}_p99_ms": percentile(values, 0.99)}
            rows.append(row | {"times_tantivy": row["ours_p50_ms"] / row["tantivy_p50_ms"]})
    return rows


def _path(root: Path) -> Path:
    snapshot = current(root)
    assert snapshot is not None
    return snapshot.path


def _planned(schema: tantivy.Schema, bare: tantivy.Searcher, text: str) -> tantivy.Query:
    """The query as our plan makes it; the loose one where the strict one asks for too many words."""
    strict = Plan(schema).of(query.parse(text), Filters())
    try:
        bare.search(strict, LIMIT)
    except ValueError:
        return Plan(schema, is_loose=True).of(query.parse(text), Filters())
    return strict


def options() -> argparse.ArgumentParser:
    parser = measure.parser(__doc__, rounds=3)
    parser.set_defaults(work=WORK)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=200, help="of each kind (default 200)")
    return parser


def main() -> None:
    args = options().parse_args()
    with measure.work_folder(args.work) as work:
        root = work / f"index-{args.documents}"
        build_s = made_index(root, args.documents)
        rows = measured(root, args.queries, args.rounds)
    worst = {part: max(row[f"ours_{part}_ms"] for row in rows) for part in ("p50", "p99")}
    about = {"documents": args.documents, "queries": args.queries, "build_s": build_s}
    targets = {"is_p50_met": worst["p50"] <= P50_TARGET_MS, "is_p99_met": worst["p99"] <= P99_TARGET_MS}
    if args.json:
        measure.say(about | {"rounds": args.rounds, "rows": rows} | targets)
        return
    head = ("kind of query", "hits", "p50 ms", "p99 ms", "tantivy p50", "tantivy p99", "x tantivy")
    figures = ("kind", "hits", "ours_p50_ms", "ours_p99_ms", "tantivy_p50_ms", "tantivy_p99_ms", "times_tantivy")
    print(measure.table(head, [[row[figure] for figure in figures] for row in rows]))
    print(f"{args.documents} documents, published in {build_s:.1f} s. Worst kind: p50 {worst['p50']:.2f} ms, target")
    print(f"{P50_TARGET_MS:.0f}; p99 {worst['p99']:.2f} ms, target {P99_TARGET_MS:.0f}.")


if __name__ == "__main__":
    main()
