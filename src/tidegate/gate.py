"""Gate: the front door. Wires the rooms from one Config; does what the commands do.

    with Gate.open("/mnt/share") as gate:
        gate.run()
        for hit in gate.search("合同").hits:
            print(hit.path, hit.snippet)

A Gate belongs to one thread. It holds no lock between calls; while a round runs, it is a participant.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tidegate.config import Config, Environment, load
from tidegate.errors import StateError, UsageError
from tidegate.intake import Rules, reason_for_path
from tidegate.ledger import Clock, Counts, FileView, Ledger, Owner, Selection, SqliteLedger, Terms
from tidegate.ledger import nonce as new_nonce
from tidegate.ledger.sqlite_store import FILE as LEDGER_FILE
from tidegate.ledger.sqlite_store import TICKET
from tidegate.pool import PoolPath, disk, open_pool
from tidegate.pool.mounts import check_outside, check_state_place, filesystem_of, is_network
from tidegate.pool.place import clear_parts, full_disk_named, place_file
from tidegate.pool.settle import Patience
from tidegate.processing.children import ChildTerms
from tidegate.processing.processors import VERSIONS
from tidegate.processing.supervisor import WorkTerms
from tidegate.rounds import Hooks, Phases, Round, Site, Summary

if TYPE_CHECKING:
    from tidegate.index import Filters, Found, Snapshot

SETTLE_LOCAL_S = 2.0
SETTLE_NETWORK_S = 10.0
QUIET = Hooks()


class Gate:
    """See the module. Raises ConfigError, PoolUnavailable, StateError and their kinds before anything is done."""

    def __init__(self, config: Config, clock: Clock | None = None) -> None:
        self.config = config
        self.put_aside: Path | None = None
        self._clock = clock or Clock.of_host()
        self._ledger: SqliteLedger | None = None
        self._root = -1

    @classmethod
    def open(
        cls, pool: str | Path | None = None, *, config: str | Path | None = None, state: str | Path | None = None
    ) -> Gate:
        """The gate of a pool; all that is not given comes from `tidegate.toml` and the environment."""
        pool, config, state = (Path(given) if given is not None else None for given in (pool, config, state))
        return cls(load(Environment.read(), pool=pool, file=config, state=state))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back what is open."""
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None
        self._drop_root()

    def _drop_root(self) -> None:
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    # --- doing -------------------------------------------------------------------------------------------------------

    def prepare(self) -> Path | None:
        """Open pool and ledger before anything is done; where a damaged ledger was put aside, else None."""
        self._site()
        return self.put_aside

    def run(self, hooks: Hooks = QUIET, phases: Phases = Phases()) -> Summary:  # noqa: B008 - frozen
        """One round: recover, scan, settle, process, publish; what it did. Ends within seconds once told to stop."""
        self._drop_root()  # a share that was mounted anew meanwhile is reached by its path only
        site = self._site()
        owner = Owner(self.config.state, self._clock, self.config.participant)
        try:
            return Round(site, owner, hooks, phases).run()
        finally:
            owner.close()

    def watch(self, hooks: Hooks = QUIET) -> Iterator[Summary]:
        """Rounds without end, each yielded when it is over; the next begins `scan.every` after the last began."""
        while not hooks.should_stop():
            began = time.monotonic()
            yield self.run(hooks)
            while not hooks.should_stop() and time.monotonic() - began < self.config.scan.every_s:
                time.sleep(0.2)

    def retry(self, selection: Selection = Selection()) -> int:  # noqa: B008 - frozen
        """Free failed and blocked tasks for the next round; how many."""
        return self._known_ledger.retry(selection)

    # --- reading -----------------------------------------------------------------------------------------------------

    def search(self, query: str, filters: Filters | None = None, *, limit: int = 20, offset: int = 0) -> Found:
        """What the newest snapshot holds for the query, best first. Raises QueryError, IndexMissing."""
        from tidegate.index import Filters, Searcher

        with Searcher(self.config.state / "index") as searcher:
            return searcher.search(query, filters or Filters(), limit=limit, offset=offset)

    def snapshot(self) -> Snapshot | None:
        """The newest snapshot, None before the first."""
        from tidegate.index import current

        return current(self.config.state / "index")

    def counts(self) -> Counts:
        """The pool at a glance."""
        return self._known_ledger.counts()

    def why(self, name: str) -> FileView:
        """State, reason and history of one file, named by its path in the pool, from here, or as it is displayed."""
        for path in self._candidates(name):
            view = self._known_ledger.find_file(path)
            if view is not None:
                return view
        found = self._known_ledger.find_displayed(name, limit=2)
        if len(found) == 1:
            return self.why_path(found[0])
        if found:
            raise UsageError(f"several files end in {name}", f"say more of the path, such as {found[0]}")
        raise UsageError(f"{name}: not known", self._hint_for(name))

    def why_path(self, path: PoolPath) -> FileView:
        """The same for a path that the ledger gave."""
        view = self._known_ledger.find_file(path)
        if view is None:
            raise UsageError(f"{path}: not known", "is it in this pool? run: tidegate scan")
        return view

    def stuck(self, limit: int) -> Sequence[FileView]:
        """Files that failed or are blocked."""
        return self._known_ledger.stuck(limit)

    def pool_path(self, name: str) -> PoolPath:
        """The path in the pool that a person means: relative to the pool, or a path of this machine inside it."""
        return next(iter(self._candidates(name)))

    def _candidates(self, name: str) -> list[PoolPath]:
        given, pool = Path(name), self.config.pool.path.resolve()
        # The folder's links are resolved, the file's own name is not: a link is known under its name.
        meant = Path(os.path.normpath(Path.cwd() / given))
        inside = meant.parent.resolve() / meant.name
        candidates = []
        if inside.is_relative_to(pool):
            candidates.append(PoolPath.parse(os.fsencode(inside.relative_to(pool))))
        if not given.is_absolute() and ".." not in given.parts:
            candidates.append(PoolPath.parse(os.fsencode(name)))
        if not candidates:
            raise UsageError(f"{name}: not inside the pool {pool}", "give a path relative to the pool")
        return candidates

    def _hint_for(self, name: str) -> str:
        reason = reason_for_path(self._candidates(name)[0])
        return f"it is ignored ({reason})" if reason else "is it in this pool? run: tidegate scan"

    # --- wiring ------------------------------------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """The ledger of this pool, opened at the first use."""
        if self._ledger is None:
            state = self.config.state
            try:
                with full_disk_named(state):
                    self._prepare_state(state)
                    terms = Terms(self.config.work.claim_for_s, self._settle_s(), self.config.work.attempts)
                    self._ledger, self.put_aside = SqliteLedger.open(state, terms, self._clock)
            except OSError as error:
                raise StateError(
                    f"the state folder {state} cannot be used: {error.strerror or error}",
                    "check its rights, or choose another with --state DIR",
                ) from error
        return self._ledger

    def _prepare_state(self, state: Path) -> None:
        pool = self.config.pool.path
        existing = next(folder for folder in (state, *state.parents) if folder.exists())
        check_state_place(state, pool, filesystem_of(existing))
        check_outside("outputs folder", self.config.outputs_path, pool)
        disk.make_folder(state)
        remember_pool(state, pool)

    @property
    def _known_ledger(self) -> Ledger:
        """The ledger, for commands that only look; raises UsageError where the pool was never scanned."""
        if self._ledger is None and not (self.config.state / LEDGER_FILE).exists():
            pool = self.config.pool.path
            raise UsageError(f"nothing is known of {pool} yet", f"start with: tidegate run {pool}")
        return self.ledger

    def _settle_s(self) -> float:
        given = self.config.pool.settle_s
        if given is not None:
            return given
        try:
            is_remote = is_network(filesystem_of(self.config.pool.path))
        except OSError:
            is_remote = True
        return SETTLE_NETWORK_S if is_remote else SETTLE_LOCAL_S

    def _site(self) -> Site:
        config, work = self.config, self.config.work
        if self._root < 0:
            self._root = open_pool(config.pool.path)
        return Site(
            root=self._root,
            state=config.state,
            outputs=config.outputs_path,
            name=config.pool.name,
            ledger=self.ledger,
            clock=self._clock,
            rules=Rules(config, VERSIONS),
            patience=Patience(self._settle_s(), config.pool.settle_max_s),
            work=WorkTerms(
                work.workers, ChildTerms(work.deadline_s, work.memory, work.replace_after), work.claim_for_s
            ),
            pause_above=config.scan.pause_above,
            builds_index=config.index.build,
            publish_every_s=config.index.publish_every_s,
        )


def remember_pool(state: Path, pool: Path) -> None:
    """Write down in `<state>/pool` whose state this is; raises StateError where it is another pool's."""
    marker, path = state / "pool", os.fsencode(pool.resolve())
    known = _known_pool(marker) or _write_marker(state, marker, path)
    if known != path:
        raise StateError(
            f"the state folder {state} belongs to the pool {os.fsdecode(known)}",
            "choose another with --state DIR, or remove that folder if the pool has moved for good",
        )


def _known_pool(marker: Path) -> bytes:
    return marker.read_bytes() if marker.exists() else b""


def _write_marker(state: Path, marker: Path, path: bytes) -> bytes:
    """Write the marker whole, unless somebody was faster; what it says."""
    ticket = disk.open_lock(state / TICKET)
    try:
        disk.lock(ticket)
        if known := _known_pool(marker):
            return known
        clear_parts(state)
        disk.remove(marker)  # an empty one
        place_file(marker, [path], new_nonce())
        return path
    finally:
        os.close(ticket)
