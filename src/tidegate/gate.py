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
from tidegate.errors import PoolUnavailable, UsageError
from tidegate.intake import Rules, reason_for_path
from tidegate.ledger import Clock, Counts, FileView, Ledger, Owner, Selection, SqliteLedger, Terms
from tidegate.ledger.home import has_ledger, make_home
from tidegate.pool import PoolPath, open_pool
from tidegate.pool.mounts import settle_window_s
from tidegate.pool.naming import meant_by
from tidegate.pool.settle import Patience
from tidegate.processing.children import ChildTerms
from tidegate.processing.processors import VERSIONS
from tidegate.processing.supervisor import WorkTerms
from tidegate.rounds import Hooks, Phases, Round, Site, Summary

if TYPE_CHECKING:
    from tidegate.index import Filters, Found, Snapshot

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
        """Rounds without end, each yielded when it is over; the next begins `scan.every` after the last began.

        A pool that is there at the start and drops out later is waited for.
        """
        self.prepare()
        while not hooks.should_stop():
            began = time.monotonic()
            try:
                yield self.run(hooks)
            except PoolUnavailable as error:
                hooks.note(f"{error}; waiting for it")
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
        ledger, meant = self._known_ledger, self._meant_by(name)
        alike = [] if any(map(ledger.find_file, meant)) else ledger.find_displayed(name, limit=2)
        if len(alike) > 1:
            raise UsageError(f"several files end in {name}", f"say more of the path, such as {alike[0]}")
        for path in (*meant, *alike):
            view = ledger.find_file(path)
            if view is not None:
                return view
        reason = reason_for_path(meant[0])
        hint = f"it is ignored ({reason})" if reason else "is it in this pool? run: tidegate scan"
        raise UsageError(f"{name}: not known", hint)

    def stuck(self, limit: int) -> Sequence[FileView]:
        """Files that failed or are blocked."""
        return self._known_ledger.stuck(limit)

    def pool_path(self, name: str) -> PoolPath:
        """The path in the pool that a person means: relative to the pool, or a path of this machine inside it."""
        return next(iter(self._meant_by(name)))

    def _meant_by(self, name: str) -> list[PoolPath]:
        return meant_by(name, self.config.pool.path, Path.cwd())

    # --- wiring ------------------------------------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """The ledger of this pool, opened at the first use."""
        if self._ledger is None:
            config = self.config
            make_home(config.state, config.pool.path, config.outputs_path)
            terms = Terms(config.work.claim_for_s, self._settle_s, config.work.attempts)
            self._ledger, self.put_aside = SqliteLedger.open(config.state, terms, self._clock)
        return self._ledger

    @property
    def _known_ledger(self) -> Ledger:
        """The ledger, for commands that only look; raises UsageError where the pool was never scanned."""
        if self._ledger is None and not has_ledger(self.config.state):
            pool = self.config.pool.path
            raise UsageError(f"nothing is known of {pool} yet", f"start with: tidegate run {pool}")
        return self.ledger

    @property
    def _settle_s(self) -> float:
        given = self.config.pool.settle_s
        return settle_window_s(self.config.pool.path) if given is None else given

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
            patience=Patience(self._settle_s, config.pool.settle_max_s),
            work=WorkTerms(
                work.workers, ChildTerms(work.deadline_s, work.memory, work.replace_after), work.claim_for_s
            ),
            pause_above=config.scan.pause_above,
            builds_index=config.index.build,
            publish_every_s=config.index.publish_every_s,
        )
