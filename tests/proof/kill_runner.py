"""One participant of the kill loop: a round on a pool. With `--without-recovery` a planted defect: the control.

python kill_runner.py POOL STATE [--without-recovery]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tidegate.config import Config, IndexConfig, PoolConfig, WorkConfig
from tidegate.gate import Gate
from tidegate.ledger import Recovered, SqliteLedger


def main(pool: str, state: str, *flags: str) -> None:
    if "--without-recovery" in flags:

        def nothing(self: Any, is_dead: Any) -> Recovered:
            return Recovered(0, 0)

        SqliteLedger.recover = nothing  # type: ignore[method-assign]
    config = Config(
        PoolConfig(Path(pool), "pool", Path(state), 0.05),
        work=WorkConfig(attempts=100, claim_for_s=300.0),
        index=IndexConfig(publish_every_s=0.7),
    )
    with Gate(config) as gate:
        gate.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
