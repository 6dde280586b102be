"""Every conformance test of the ledger runs on every kind of store."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ledger_samples import KINDS_OF_STORES, HandClock, Stores, World

from tidegate.ledger import Terms


@pytest.fixture(params=sorted(KINDS_OF_STORES))
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    made = KINDS_OF_STORES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def time() -> HandClock:
    return HandClock()


@pytest.fixture
def world_of(stores: Stores, time: HandClock) -> Callable[[Terms], World]:
    """A world on the test's store under given terms."""
    return lambda terms: World(stores.open(terms, time.clock, random.Random(1)), time, terms)


@pytest.fixture
def world(world_of: Callable[[Terms], World]) -> World:
    return world_of(Terms(claim_for_s=300.0, settle_s=2.0, attempts=3))
