"""Which configuration, pool and state folder are in force."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidegate.config import Environment, default_state, known_pools, load
from tidegate.errors import ConfigError


def environment(tmp_path: Path, cwd: Path | None = None, **more: object) -> Environment:
    return Environment(cwd or tmp_path, tmp_path / "home", **more)  # type: ignore[arg-type]


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "tidegate.toml"
    file.write_text(text)
    return file


def remember(tmp_path: Path, pool: Path) -> None:
    marker = tmp_path / "home" / pool.name / "pool"
    marker.parent.mkdir(parents=True)
    marker.write_bytes(os.fsencode(pool))


def test_a_path_alone_is_enough(tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    env = environment(tmp_path)
    config = load(env, pool=tmp_path / "share")
    assert config.pool.path == tmp_path / "share"
    assert config.pool.name == "share"
    assert config.state == default_state(tmp_path / "share", env)
    assert config.state.parent == tmp_path / "home"
    assert config.outputs_path == config.state / "outputs"
    assert config.source is None


def test_a_file_is_found_upwards_from_the_working_folder(tmp_path: Path) -> None:
    file = write(tmp_path, '[pool]\npath = "share"\n')
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    config = load(environment(tmp_path, deep))
    assert config.source == file
    assert config.pool.path == tmp_path / "share"


def test_the_nearest_file_upwards_counts(tmp_path: Path) -> None:
    write(tmp_path, '[pool]\npath = "/far"\n')
    write(tmp_path / "a", '[pool]\npath = "/near"\n')
    assert load(environment(tmp_path, tmp_path / "a")).pool.path == Path("/near")


def test_a_found_file_that_speaks_of_another_pool_is_left_aside(tmp_path: Path) -> None:
    write(tmp_path, '[pool]\npath = "/other"\nname = "other"\n')
    config = load(environment(tmp_path), pool=tmp_path / "mine")
    assert config.pool.path == tmp_path / "mine"
    assert config.source is None


def test_a_found_file_counts_for_its_own_pool_under_any_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    (tmp_path / "link").symlink_to("share")
    file = write(tmp_path, f'[pool]\npath = "{tmp_path}/share"\nname = "office"\n')
    config = load(environment(tmp_path), pool=tmp_path / "link")
    assert (config.source, config.pool.name) == (file, "office")


def test_a_named_file_that_speaks_of_another_pool_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, '[pool]\npath = "/other"\n')
    with pytest.raises(ConfigError, match="speaks of the pool /other"):
        load(environment(tmp_path), pool=tmp_path / "mine", file=file)


def test_the_state_folder_is_chosen_by_option_then_environment_then_file_then_default(tmp_path: Path) -> None:
    write(tmp_path, '[pool]\npath = "/p"\nstate = "/from/file"\n')
    plain, told = environment(tmp_path), environment(tmp_path, state=Path("/from/environment"))
    assert load(told, state=Path("/from/option")).state == Path("/from/option")
    assert load(told).state == Path("/from/environment")
    assert load(plain).state == Path("/from/file")
    write(tmp_path, '[pool]\npath = "/p"\n')
    assert load(plain).state == default_state(Path("/p"), plain)


def test_the_environment_is_read_in_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEGATE_STATE", "relative/state")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("TIDEGATE_PARTICIPANT", "scanner-2")
    read = Environment.read()
    assert read == Environment(tmp_path, tmp_path / "xdg" / "tidegate", tmp_path / "relative/state", "scanner-2")
    for name in ("TIDEGATE_STATE", "XDG_STATE_HOME", "TIDEGATE_PARTICIPANT"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("HOME", str(tmp_path))
    read = Environment.read()
    assert read.state is None
    assert read.state_home == tmp_path / ".local" / "state" / "tidegate"
    assert read.participant


def test_without_a_path_the_only_known_pool_is_meant(tmp_path: Path) -> None:
    remember(tmp_path, Path("/srv/one"))
    assert load(environment(tmp_path)).pool.path == Path("/srv/one")


def test_several_known_pools_are_listed_instead_of_guessed(tmp_path: Path) -> None:
    remember(tmp_path, Path("/srv/one"))
    remember(tmp_path, Path("/srv/two"))
    with pytest.raises(ConfigError, match="several pools are known here: /srv/one, /srv/two") as caught:
        load(environment(tmp_path))
    assert caught.value.hint == "name one of them"


def test_without_any_pool_the_first_step_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no pool was named") as caught:
        load(environment(tmp_path))
    assert "tidegate run" in caught.value.hint


def test_a_marker_that_a_crash_left_empty_is_no_pool(tmp_path: Path) -> None:
    (tmp_path / "home" / "x").mkdir(parents=True)
    (tmp_path / "home" / "x" / "pool").touch()
    assert known_pools(environment(tmp_path)) == []


def test_two_names_of_one_folder_share_a_state_folder(tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    (tmp_path / "link").symlink_to("share")
    env = environment(tmp_path)
    assert default_state(tmp_path / "share", env) == default_state(tmp_path / "link", env)
