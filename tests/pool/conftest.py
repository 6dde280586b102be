"""The harness of faults lies with the results' tests and serves here as well."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))
