"""A folder in memory, for tests that publish hundreds of times: there every sync would wait for a disk that proves
nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from index_samples import MEMORY


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    with TemporaryDirectory(dir=MEMORY or tmp_path) as folder:
        yield Path(folder)
