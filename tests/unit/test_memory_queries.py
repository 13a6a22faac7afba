"""What is searched for among the memories is a question, not a book: the search takes long with its length."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from pydantic import ValidationError

from ewe.longterm.routes.memory_schemas import MemorySearchRequest


def test_a_query_is_as_long_as_a_memory_at_most() -> None:
    assert MemorySearchRequest(query="x" * 8192).query
    with pytest.raises(ValidationError, match="at most 8192 characters"):
        MemorySearchRequest(query="x" * 8193)
