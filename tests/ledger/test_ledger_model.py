"""The store and a model of it agree on long random histories; and planted defects are found."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from ledger_machine import LedgerMachine
from ledger_samples import KINDS_OF_STORES

from tidegate.ledger.sqlite_store import SQL

PLAIN = settings(
    max_examples=50,
    stateful_step_count=40,
    deadline=None,
    database=None,
    derandomize=True,
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
HUNT = settings(PLAIN, max_examples=200, phases=(Phase.generate,))

DEFECTS = {
    "finishes without asking for the fence": ("held", "c.fence = json_extract(j.value, '$[1]')", "1"),
    "finishes for any owner": ("held", "c.owner = ?", "? IS NOT NULL"),
    "claims in another order": ("pick", "ORDER BY q.alone, q.priority, q.urgency", "ORDER BY q.alone, q.urgency"),
    "takes back what is alive": ("recover", "c.lease_end <= :now", "c.lease_end <= :now + 400000000000"),
    "does not count a killed attempt": ("recover", "attempts = c.attempts", "attempts = task.attempts"),
    "forgets what it took back": ("queue_recovered", "WHERE t.state", "WHERE 0 AND t.state"),
    "keeps the fence of a changed file": ("outdate_claims", "fence = c.fence + 1", "fence = task.fence"),
    "renews what is lost": ("renew", "AND fence = ? AND owner = ?", "AND (? OR ?) IS NOT NULL"),
}


@pytest.mark.parametrize("kind", sorted(KINDS_OF_STORES))
def test_store_and_model_agree_on_random_histories(kind: str) -> None:
    machine = type("Machine", (LedgerMachine,), {"kind": kind})
    run_state_machine_as_test(machine, settings=PLAIN)


@pytest.mark.parametrize("defect", sorted(DEFECTS))
def test_planted_defect_is_found(defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, sound, broken = DEFECTS[defect]
    assert SQL[name].count(sound) == 1
    monkeypatch.setitem(SQL, name, SQL[name].replace(sound, broken))  # type: ignore[arg-type]
    with pytest.raises(AssertionError):
        run_state_machine_as_test(LedgerMachine, settings=HUNT)
