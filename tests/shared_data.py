"""Public data sets that lie beside the checkout, not in it; tests that need one skip where it is missing.

Import with `from shared_data import require, read_jsonl`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def require(name: str) -> Path:
    """The file or folder of that name (e.g. "fever/claims.jsonl"); skips the test if it is not there."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"the data set {name} is not in {SHARED}")
    return path


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """One object per line that is not blank."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]
