"""tidegate.toml and the environment, read once into frozen values.

Every setting is one field below, with its key, its default and its meaning in one place; `docs/config.md` and
`tidegate init` follow from them. This is the only reader of the environment. It opens no ledger and looks at no pool.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import os
import re
import socket
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tidegate.errors import ConfigError

FILE_NAME: Final = "tidegate.toml"

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB)?")
_BYTES = {None: 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


# --- how one value is read -------------------------------------------------------------------------------------------


def duration(value: object) -> float:
    """`"2s"`, `"5m"`, `"1h"`, `"365d"` in seconds; raises ValueError."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('a duration such as "2s", "5m", "1h" or "30d"')
    return float(match[1]) * _SECONDS[match[2]]


def size(value: object) -> int:
    """`"512MB"`, `"2GB"` or a plain number, in bytes; raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('a size such as "512MB" or "2GB"')
    return int(float(match[1]) * _BYTES[match[2]])


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text that is not empty")
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _path(value: object) -> Path:
    return Path(_text(value)).expanduser()


def _count(least: int, most: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return value

    return read


def _one_of(*words: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in words:
            raise ValueError(" or ".join(f'"{word}"' for word in words))
        return str(value)

    return read


def _setting(default: Any, read: Callable[[object], Any], doc: str, *, key: str = "") -> Any:
    metadata = {"read": read, "doc": doc, "key": key}
    if default is dataclasses.MISSING:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


# --- the settings ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FolderConfig:
    """`[[pool.folder]]`: a part of the pool; the first one that matches a file counts."""

    match: str = _setting(dataclasses.MISSING, _text, "pattern (as in .gitignore) of the files that belong to it")
    priority: int = _setting(1, _count(1, 9), "1 is worked off first (active), 2 next (archive), 3 last (old)")
    kept_for_s: float | None = _setting(
        None,
        duration,
        "how long the camera's loop keeps a file; the earliest overwritten is taken first",
        key="kept_for",
    )
    digest: str | None = _setting(
        None, _one_of("sha256", "off"), '"off" for files that should be read once only, or not at all'
    )


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """`[pool]`: the shared folder."""

    path: Path = _setting(dataclasses.MISSING, _path, "the shared folder")
    name: str = _setting("", _text, "its name, the same for every participant; default: the last part of the path")
    state: Path | None = _setting(
        None, _path, "where ledger and index live, on a local disk, never inside the pool; default: your state folder"
    )
    settle_s: float | None = _setting(
        None, duration, "how long a file must rest before it is read; default: 2s, 10s on a network mount", key="settle"
    )
    settle_max_s: float = _setting(
        3600.0, duration, "a file that keeps changing this long is blocked (growing) until it rests", key="settle_max"
    )
    folder: tuple[FolderConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanConfig:
    """`[scan]`: looking for new and changed files."""

    every_s: float = _setting(300.0, duration, "how often `watch` scans", key="every")
    pause_above: int = _setting(
        20_000, _count(100, 10**9), "the scan waits while more tasks than this are settling or ready"
    )


@dataclass(frozen=True, slots=True)
class LedgerConfig:
    """`[ledger]`: where the state of every file is kept."""

    url: str = _setting("sqlite", _one_of("sqlite"), '"sqlite": a file in the state folder')


@dataclass(frozen=True, slots=True)
class WorkConfig:
    """`[work]`: how files are worked off."""

    workers: int = _setting(2, _count(1, 4), "child processes that read and extract")
    claim_for_s: float = _setting(
        300.0, duration, "length of a claim; it is renewed while work goes on", key="claim_for"
    )
    attempts: int = _setting(3, _count(1, 100), "claims of one task before it is blocked")
    digest: str = _setting("sha256", _one_of("sha256", "off"), 'content digest of every file; "off" to not read for it')
    deadline_s: float = _setting(
        120.0, duration, "a child without progress this long is ended (timeout)", key="deadline"
    )
    memory: int = _setting(2 * 10**9, size, "address space of a child; above it the file fails (memory)")
    replace_after: int = _setting(500, _count(1, 10**6), "files after which a child is replaced by a fresh one")


@dataclass(frozen=True, slots=True)
class ProcessConfig:
    """`[[process]]`: which processor runs on which files; without a match the built-in choice applies."""

    match: str = _setting(dataclasses.MISSING, _text, "pattern (as in .gitignore) of the files it concerns")
    run: str = _setting(dataclasses.MISSING, _text, "name of a processor: text, checksum or register")


@dataclass(frozen=True, slots=True)
class OutputsConfig:
    """`[outputs]`: where results live."""

    path: Path | None = _setting(None, _path, "folder of the results; default: `outputs` in the state folder")


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """`[index]`: the search index."""

    build: bool = _setting(True, _truth, "whether this participant builds an index")
    publish_every_s: float = _setting(
        900.0, duration, "how often a long round publishes a snapshot", key="publish_every"
    )


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that was set, completed by defaults."""

    pool: PoolConfig
    scan: ScanConfig = ScanConfig()
    ledger: LedgerConfig = LedgerConfig()
    work: WorkConfig = WorkConfig()
    process: tuple[ProcessConfig, ...] = ()
    outputs: OutputsConfig = OutputsConfig()
    index: IndexConfig = IndexConfig()
    participant: str = ""
    source: Path | None = None

    @property
    def state(self) -> Path:
        """The state folder."""
        assert self.pool.state is not None
        return self.pool.state

    @property
    def outputs_path(self) -> Path:
        """The folder of the results."""
        return self.outputs.path or self.state / "outputs"


SECTIONS: Final[Mapping[str, type]] = {
    "pool": PoolConfig,
    "scan": ScanConfig,
    "ledger": LedgerConfig,
    "work": WorkConfig,
    "process": ProcessConfig,
    "outputs": OutputsConfig,
    "index": IndexConfig,
}
REPEATED: Final = frozenset({"process", "pool.folder"})


def settings_of(section: type) -> Mapping[str, dataclasses.Field[Any]]:
    """The settings of a section class by their key in the file."""
    fields = dataclasses.fields(section)
    return {entry.metadata["key"] or entry.name: entry for entry in fields if "read" in entry.metadata}


# --- the environment -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Environment:
    """What the process was started with, as far as it matters."""

    cwd: Path
    state_home: Path
    state: Path | None = None
    participant: str = ""

    @classmethod
    def read(cls) -> Environment:
        """`TIDEGATE_STATE`, `TIDEGATE_PARTICIPANT` and `XDG_STATE_HOME` of this process."""
        state = os.environ.get("TIDEGATE_STATE")
        home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return cls(
            cwd=Path.cwd(),
            state_home=Path(home) / "tidegate",
            state=Path(state).absolute() if state else None,
            participant=os.environ.get("TIDEGATE_PARTICIPANT") or socket.gethostname(),
        )


def known_pools(environment: Environment) -> list[Path]:
    """The pools that this user's state folder knows, by path; an unreadable or empty entry is left out."""
    pools = []
    for marker in sorted(environment.state_home.glob("*/pool")):
        try:
            path = marker.read_bytes()
        except OSError:
            continue
        if path:
            pools.append(Path(os.fsdecode(path)))
    return pools


def default_state(pool: Path, environment: Environment) -> Path:
    """The state folder of a pool that names none: one per real path."""
    return environment.state_home / hashlib.blake2b(os.fsencode(pool.resolve()), digest_size=8).hexdigest()


# --- reading a file --------------------------------------------------------------------------------------------------


def load(
    environment: Environment, *, pool: Path | None = None, file: Path | None = None, state: Path | None = None
) -> Config:
    """The configuration in force.

    A configuration file counts if it was named, or if it is found upwards and speaks of the wanted pool. Without one
    the pool alone is enough. Raises ConfigError for an unknown key (with the nearest known one), a value of the wrong
    form, no pool, or several pools to choose from.
    """
    found = file or _find_upwards(environment.cwd)
    config = read_file(found) if found is not None else None
    if config is not None and pool is not None and not _is_same(config.pool.path, pool):
        if file is not None:
            raise ConfigError(
                f"{file} speaks of the pool {config.pool.path}, not of {pool}",
                "leave the path out, or change [pool] path",
            )
        config = None
    if config is None:
        config = Config(PoolConfig(path=(pool or _only_known_pool(environment)).absolute()))
    return _completed(config, environment, state)


def read_file(file: Path) -> Config:
    """What one configuration file says; relative paths in it start at its folder. Raises ConfigError."""
    try:
        with file.open("rb") as stream:
            content = tomllib.load(stream)
    except FileNotFoundError as error:
        raise ConfigError(f"{file}: no such configuration file", "write one with: tidegate init PATH") from error
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}", "see docs/config.md for an example") from error
    return parse(content, str(file), file.absolute().parent, file)


def parse(content: Mapping[str, object], origin: str, base: Path, source: Path | None = None) -> Config:
    """The configuration in parsed TOML; `origin` is named in errors, `base` is where relative paths start."""
    _refuse_unknown(content, SECTIONS, origin, "section")
    if "pool" not in content:
        raise ConfigError(f"{origin}: section [pool] is missing", 'add [pool] with path = "/the/shared/folder"')
    sections: dict[str, Any] = {}
    for name, value in content.items():
        sections[name] = _read_section(name, value, origin, base)
    return Config(**sections, source=source)


def _read_section(name: str, value: object, origin: str, base: Path) -> Any:
    if name in REPEATED:
        if not isinstance(value, list):
            raise ConfigError(f"{origin}: [{name}] may come several times", f"write it as [[{name}]]")
        return tuple(_read_table(_class_of(name), name, entry, origin, base) for entry in value)
    return _read_table(_class_of(name), name, value, origin, base)


def _class_of(name: str) -> type:
    return FolderConfig if name == "pool.folder" else SECTIONS[name]


def _read_table(section: type, name: str, value: object, origin: str, base: Path) -> Any:
    if not isinstance(value, dict):
        raise ConfigError(f"{origin}: [{name}] must be a section", f"write [{name}] on a line of its own")
    settings = settings_of(section)
    nested = {"folder": None} if section is PoolConfig else {}
    _refuse_unknown(value, {**settings, **nested}, f"{origin}: [{name}]", "key")
    values: dict[str, Any] = {}
    for key, given in value.items():
        if key in nested:
            values[key] = _read_section("pool.folder", given, origin, base)
            continue
        try:
            read = settings[key].metadata["read"](given)
        except ValueError as error:
            raise ConfigError(f"{origin}: [{name}] {key} = {given!r} is not usable", f"give {error}") from error
        values[settings[key].name] = base / read if isinstance(read, Path) else read
    for key, entry in settings.items():
        if entry.default is dataclasses.MISSING and entry.name not in values:
            raise ConfigError(f"{origin}: [{name}] {key} is missing", f"it is the {entry.metadata['doc']}")
    return section(**values)


def _refuse_unknown(given: Mapping[str, object], known: Mapping[str, object], origin: str, what: str) -> None:
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(sorted(known))}"
            raise ConfigError(f"{origin}: unknown {what} {key}", hint)


def _find_upwards(start: Path) -> Path | None:
    for folder in (start, *start.parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    return None


def _is_same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _only_known_pool(environment: Environment) -> Path:
    pools = known_pools(environment)
    if len(pools) == 1:
        return pools[0]
    if pools:
        listed = ", ".join(str(pool) for pool in pools)
        raise ConfigError(f"several pools are known here: {listed}", "name one of them")
    raise ConfigError("no pool was named and none is known yet", "start with: tidegate run /path/of/the/share")


def _completed(config: Config, environment: Environment, state: Path | None) -> Config:
    path = config.pool.path
    chosen = state or environment.state or config.pool.state or default_state(path, environment)
    pool = dataclasses.replace(
        config.pool, name=config.pool.name or _readable(path.resolve().name) or "pool", state=chosen.absolute()
    )
    return dataclasses.replace(config, pool=pool, participant=environment.participant)


def _readable(name: str) -> str:
    """A name for messages and receipts: bytes that are not UTF-8 as `\\xNN`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
