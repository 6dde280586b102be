"""Rules: which processors a file wants, and when its turn comes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tidegate.config import Config, FolderConfig, PoolConfig, ProcessConfig, WorkConfig
from tidegate.errors import ConfigError
from tidegate.intake import Rules
from tidegate.ledger import FilePlan
from tidegate.pool import Kind, PoolPath, Stamp

VERSIONS = {"register": "1", "checksum": "1", "text": "7"}
DAY_NS = 86_400_000_000_000
HOUR_NS = DAY_NS // 24
NOW = 20_000 * DAY_NS


def rules(*folders: FolderConfig, process: tuple[ProcessConfig, ...] = (), digest: str = "sha256") -> Rules:
    config = Config(PoolConfig(Path("/p"), folder=folders), work=WorkConfig(digest=digest), process=process)
    return Rules(config, VERSIONS)


def plan(of: Rules, path: str, *, mtime_ns: int = NOW, size: int = 10, kind: Kind = Kind.FILE) -> FilePlan:
    return of.plan(PoolPath(path.encode()), kind, Stamp(size, mtime_ns, 0, 0))


def processors(of: Rules, path: str, **more: Any) -> list[str]:
    return [task.processor for task in plan(of, path, **more).tasks]


def test_documents_are_extracted_and_films_only_read_for_their_digest() -> None:
    built_in = rules()
    assert processors(built_in, "a/report.pdf") == ["text"]
    assert processors(built_in, "README") == ["text"]
    assert processors(built_in, "a/FILM.MP4") == ["checksum"]
    assert plan(built_in, "a.pdf").key == "text@7"


def test_links_are_only_registered() -> None:
    assert processors(rules(), "a.pdf", kind=Kind.SYMLINK) == ["register"]


def test_with_digest_off_nothing_reads_a_film() -> None:
    assert processors(rules(digest="off"), "a.mp4") == ["register"]
    assert processors(rules(digest="off"), "a.pdf") == ["text"]


def test_digest_may_be_off_for_one_folder_only() -> None:
    chosen = rules(FolderConfig("cameras/**", digest="off"))
    assert processors(chosen, "cameras/1/a.mp4") == ["register"]
    assert processors(chosen, "films/a.mp4") == ["checksum"]
    on = rules(FolderConfig("cameras/**", digest="sha256"), digest="off")
    assert processors(on, "cameras/1/a.mp4") == ["checksum"]


def test_process_rules_replace_the_built_in_choice_and_add_up() -> None:
    chosen = rules(
        process=(
            ProcessConfig("*.mp4", "register"),
            ProcessConfig("a/**", "checksum"),
            ProcessConfig("*.mp4", "register"),
        )
    )
    assert processors(chosen, "b/x.mp4") == ["register"]
    assert processors(chosen, "a/x.mp4") == ["register", "checksum"]
    assert processors(chosen, "b/x.pdf") == ["text"]


def test_an_unknown_processor_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="no such processor") as caught:
        rules(process=(ProcessConfig("*.mp4", "vidoe"),))
    assert "text" in caught.value.hint


def test_a_pattern_that_does_not_parse_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not a pattern"):
        rules(FolderConfig("!"))


def test_the_first_folder_that_matches_counts() -> None:
    chosen = rules(
        FolderConfig("active/old/**", priority=3), FolderConfig("active/**", priority=1), FolderConfig("**", priority=2)
    )
    assert [plan(chosen, path).priority for path in ("active/old/x", "active/x", "else/x")] == [3, 1, 2]
    assert plan(chosen, "active/old/x").folder == "active/old/**"
    assert plan(rules(FolderConfig("a/**", priority=5)), "b").priority == 1


def test_the_newest_day_comes_first_and_hours_of_a_day_tie() -> None:
    built_in = rules()
    today, later, yesterday = (plan(built_in, "a", mtime_ns=at).urgency for at in (NOW, NOW + HOUR_NS, NOW - 1))
    assert today == later < yesterday


def test_where_a_loop_overwrites_the_earliest_overwritten_hour_comes_first() -> None:
    chosen = rules(FolderConfig("loop/**", kept_for_s=86_400.0), FolderConfig("long/**", kept_for_s=10 * 86_400.0))
    old, new = (plan(chosen, "loop/x", mtime_ns=at).urgency for at in (NOW - 5 * HOUR_NS, NOW))
    assert old < new < plan(chosen, "long/x", mtime_ns=NOW).urgency
    assert plan(chosen, "loop/x", mtime_ns=NOW + 1).urgency == new, "nanoseconds tie"


def test_what_a_loop_will_overwrite_comes_before_everything_else_of_its_priority() -> None:
    chosen = rules(FolderConfig("loop/**", kept_for_s=365 * 86_400.0))
    assert plan(chosen, "loop/x").urgency < plan(chosen, "x", mtime_ns=NOW + 10_000 * DAY_NS).urgency


@pytest.mark.parametrize("mtime_ns", [0, -DAY_NS * 400_000, (1 << 63) - 1, (1 << 31) * 1_000_000_000, -(1 << 63)])
def test_any_mtime_gives_an_order_that_a_store_can_hold(mtime_ns: int) -> None:
    chosen = rules(FolderConfig("loop/**", kept_for_s=365 * 86_400.0))
    for path in ("x", "loop/x"):
        assert abs(plan(chosen, path, mtime_ns=mtime_ns).urgency) < 1 << 62


def test_names_of_any_bytes_match_patterns() -> None:
    chosen = rules(FolderConfig("caf*/**", priority=4))
    stamp = Stamp(1, NOW, 0, 0)
    assert chosen.plan(PoolPath(b"caf\xe9/x\xff"), Kind.FILE, stamp).priority == 4


def test_the_fingerprint_changes_with_every_rule_and_with_nothing_else() -> None:
    base = rules(FolderConfig("a/**"))
    others = [
        rules(),
        rules(FolderConfig("a/**", priority=2)),
        rules(FolderConfig("a/**", digest="off")),
        rules(FolderConfig("a/**"), digest="off"),
        rules(FolderConfig("a/**"), process=(ProcessConfig("*", "text"),)),
        Rules(Config(PoolConfig(Path("/p"), folder=(FolderConfig("a/**"),))), VERSIONS | {"text": "8"}),
    ]
    assert len({one.fingerprint for one in (base, *others)}) == 7
    elsewhere = Config(PoolConfig(Path("/other"), name="x", settle_s=9.0, folder=(FolderConfig("a/**"),)))
    assert Rules(dataclasses.replace(elsewhere), VERSIONS).fingerprint == base.fingerprint
