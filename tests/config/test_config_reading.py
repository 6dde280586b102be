"""tidegate.toml: what is read, what is refused, and with which words."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from tidegate.config import (
    REPEATED,
    SECTIONS,
    Config,
    FolderConfig,
    PoolConfig,
    duration,
    parse,
    read_file,
    settings_of,
    size,
)
from tidegate.errors import ConfigError

BASE = Path("/somewhere")
ALL_SECTIONS = {**SECTIONS, "pool.folder": FolderConfig}


def read(text: str) -> Config:
    return parse(tomllib.loads(text), "tidegate.toml", BASE)


def with_pool(text: str) -> Config:
    return read('[pool]\npath = "/p"\n' + text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("2s", 2.0), ("5m", 300.0), ("1.5h", 5400.0), ("365d", 31_536_000.0), ("2 s", 2.0)],
)
def test_durations_are_read_in_every_unit(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("value", ["5", "s", "", "-1s", "1w", 5, 2.0, None, True, ["1s"]])
def test_what_is_no_duration_is_refused_with_an_example(value: object) -> None:
    with pytest.raises(ValueError, match="duration such as"):
        duration(value)


@pytest.mark.parametrize(
    ("given", "count"), [("512MB", 512_000_000), ("1.5kB", 1500), ("7", 7), (9, 9), ("2 GB", 2 * 10**9)]
)
def test_sizes_are_read_in_every_unit(given: object, count: int) -> None:
    assert size(given) == count


@pytest.mark.parametrize("value", ["MB", "-1", -1, True, 1.5, None, "5MiB", ""])
def test_what_is_no_size_is_refused_with_an_example(value: object) -> None:
    with pytest.raises(ValueError, match="size such as"):
        size(value)


@pytest.mark.parametrize("name", sorted(set(SECTIONS) - {"pool"}))
def test_an_unknown_section_names_the_nearest_known_one(name: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown section {name}x") as caught:
        with_pool(f"[{name}x]\n")
    assert name in caught.value.hint


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name, section in ALL_SECTIONS.items() for key in settings_of(section)]
)
def test_an_unknown_key_names_the_nearest_known_one(name: str, key: str) -> None:
    header = f"[[{name}]]" if name in REPEATED else f"[{name}]"
    text = f"{header}\n{key}x = 1\n"
    with pytest.raises(ConfigError, match=f"unknown key {key}x") as caught:
        read(text) if name == "pool" else with_pool(text)
    assert caught.value.hint == f"did you mean {key}?"


def test_an_unknown_key_that_resembles_nothing_lists_all_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"tidegate.toml: \[scan\]: unknown key qqqq") as caught:
        with_pool("[scan]\nqqqq = 1\n")
    assert caught.value.hint == "known here: every, pause_above"


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name, section in ALL_SECTIONS.items() for key in settings_of(section)]
)
def test_a_value_of_the_wrong_type_names_section_key_and_what_is_wanted(name: str, key: str) -> None:
    wrong = "[1, 2]"
    header = f"[[{name}]]" if name in REPEATED else f"[{name}]"
    text = f"{header}\n{key} = {wrong}\n"
    with pytest.raises(ConfigError, match=f"{key} = .* is not usable") as caught:
        read(text) if name == "pool" else with_pool(text)
    assert caught.value.hint.startswith("give ")
    assert f"[{name}]" in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "[work]\nworkers = 0",
        "[work]\nworkers = 5",
        "[work]\nworkers = true",
        "[work]\nattempts = 1.5",
        '[work]\ndigest = "md5"',
        "[scan]\npause_above = 99",
        '[index]\nbuild = "yes"',
        '[ledger]\nurl = "redis"',
    ],
)
def test_values_out_of_range_are_refused(line: str) -> None:
    with pytest.raises(ConfigError, match="is not usable"):
        with_pool(line)


def test_a_file_without_a_pool_says_what_to_add() -> None:
    with pytest.raises(ConfigError, match=r"section \[pool\] is missing") as caught:
        read("[scan]\n")
    assert "path =" in caught.value.hint
    with pytest.raises(ConfigError, match=r"\[pool\] path is missing"):
        read('[pool]\nname = "x"\n')


def test_a_section_written_as_a_value_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"\[scan\] must be a section"):
        read('scan = 5\n[pool]\npath = "/p"\n')
    with pytest.raises(ConfigError, match=r"\[process\] may come several times") as caught:
        with_pool('[process]\nmatch = "*"\nrun = "text"\n')
    assert "[[process]]" in caught.value.hint
    with pytest.raises(ConfigError, match=r"\[pool.folder\] may come several times"):
        with_pool('[pool.folder]\nmatch = "*"\n')


def test_repeated_sections_keep_their_order() -> None:
    config = with_pool(
        '[[pool.folder]]\nmatch = "a/**"\nkept_for = "2d"\n[[pool.folder]]\nmatch = "b/**"\npriority = 3\n'
        '[[process]]\nmatch = "*.x"\nrun = "text"\n[[process]]\nmatch = "*.y"\nrun = "register"\n'
    )
    assert [(folder.match, folder.kept_for_s, folder.priority) for folder in config.pool.folder] == [
        ("a/**", 172_800.0, 1),
        ("b/**", None, 3),
    ]
    assert [rule.run for rule in config.process] == ["text", "register"]


def test_relative_paths_start_at_the_file_and_home_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    config = read('[pool]\npath = "share"\nstate = "~/state"\n[outputs]\npath = "../results"\n')
    assert config.pool.path == BASE / "share"
    assert config.pool.state == Path("/home/somebody/state")
    assert config.outputs.path == BASE / "../results"


def test_defaults_are_the_ones_of_the_design() -> None:
    config = with_pool("")
    assert dataclasses.replace(config, source=None) == Config(PoolConfig(Path("/p")))
    assert (config.scan.every_s, config.scan.pause_above) == (300.0, 20_000)
    assert (config.work.workers, config.work.claim_for_s, config.work.attempts) == (2, 300.0, 3)
    assert (config.work.digest, config.index.build, config.index.publish_every_s) == ("sha256", True, 900.0)
    assert (config.pool.settle_s, config.pool.settle_max_s, config.ledger.url) == (None, 3600.0, "sqlite")


@pytest.mark.parametrize("content", [b"[pool\n", b"\xff\xfe", b"path = 1\npath = 2\n"])
def test_a_file_that_does_not_parse_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "tidegate.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"tidegate\.toml: "):
        read_file(file)


def test_a_missing_configuration_file_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such configuration file") as caught:
        read_file(tmp_path / "none.toml")
    assert "tidegate init" in caught.value.hint
