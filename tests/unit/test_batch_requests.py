"""Files of requests: what is one, and what is said of a file that is none."""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ewe.errors import InvalidRequestError
from ewe.retrieval.ingest import parquet_files
from ewe.server.batch.requests import LineError, LineLimitError, LineLimits, check_requests, read_requests

GOOD: dict[str, Any] = {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "p"}}


def line(**changes: Any) -> bytes:
    values = {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}
    return json.dumps(values).encode() + b"\n"


def checked(folder: Path, content: bytes, url: str | None = None, most: int | None = None) -> list[LineError]:
    path = folder / "requests.jsonl"
    path.write_bytes(content)
    return check_requests(path, url, most).errors


def test_lines_come_in_order_and_blank_ones_are_passed_over(tmp_path: Path) -> None:
    content = line() + b"\n  \r\n" + line(custom_id="b", extra=1) + line(custom_id="c", url="/v1/embeddings")[:-1]
    assert checked(tmp_path, content) == []
    found = list(read_requests(tmp_path / "requests.jsonl"))
    assert [(one.custom_id, one.url) for one in found] == [
        *(("a", "/v1/completions"), ("b", "/v1/completions"), ("c", "/v1/embeddings")),
    ]
    assert found[0].body == {"prompt": "p"}


@pytest.mark.parametrize(
    ("bad", "code", "param", "words"),
    [
        (b"{\n", "invalid_json_line", None, "JSON"),
        (b"\xff\xfe\n", "invalid_json_line", None, "JSON"),
        (b"[" * 100_000 + b"\n", "invalid_json_line", None, "recursion"),
        (b"[]\n", "invalid_request", None, "object"),
        (line(custom_id=...), "invalid_request", "custom_id", "required"),
        (line(custom_id=""), "invalid_request", "custom_id", "at least 1"),
        (line(custom_id="x" * 513), "invalid_request", "custom_id", "at most 512"),
        (line(custom_id=3), "invalid_request", "custom_id", "string"),
        (line(custom_id="a"), "duplicate_custom_id", "custom_id", "'a' stands on an earlier line"),
        (line(custom_id="b", method="GET"), "invalid_request", "method", "'POST'"),
        (line(custom_id="b", url="/v1/models"), "invalid_request", "url", "'/v1/chat/completions'"),
        (line(custom_id="b", url="/v1/embeddings"), "mismatched_url", "url", "for /v1/completions"),
        (line(custom_id="b", body=...), "invalid_request", "body", "required"),
        (line(custom_id="b", body="{}"), "invalid_request", "body", "object"),
        (line(custom_id="b", body={"stream": True}), "invalid_request", "body.stream", "come whole"),
    ],
)
def test_each_bad_line_is_told_with_its_place(tmp_path: Path, bad: bytes, code: str, param: str, words: str) -> None:
    [error] = checked(tmp_path, line() + b"\n" + bad + line(custom_id="last"), "/v1/completions")
    assert (error.code, error.param, error.line) == (code, param, 3)
    assert words in error.message
    assert str(error).startswith("line 3: ")


def test_empty_files_and_too_many_requests(tmp_path: Path) -> None:
    for empty in (b"", b"\n \n"):
        assert [error.code for error in checked(tmp_path, empty)] == ["empty_file"]
    three = b"".join(line(custom_id=name) for name in "abc")
    assert checked(tmp_path, three, most=3) == []
    [error] = checked(tmp_path, three, most=2)
    assert (error.code, str(error)) == ("too_many_requests", "a batch has at most 2 requests")


def test_of_many_errors_the_first_are_told(tmp_path: Path) -> None:
    errors = checked(tmp_path, b"{\n" * 1000)
    assert [error.line for error in errors] == list(range(1, 101))


LIMITS = LineLimits(lines=6, bytes=300, values=40, containers=8)


@pytest.mark.parametrize(
    ("bad", "code", "line_number"),
    [
        (line(custom_id="b", body={"prompt": "x" * 300}), "line_too_long", 2),
        (line(custom_id="b", body={"prompt": "x" * 3_000_000})[:-1], "line_too_long", 2),
        (b"x" * 299 + b"\n", "invalid_json_line", 2),
        (line(custom_id="b", body={"prompt": [1] * 41}), "too_many_values", 2),
        (line(custom_id="b", body={"prompt": [[]] * 8}), "too_many_values", 2),
        (b"\n" * 6, "too_many_lines", None),
    ],
)
def test_a_line_over_the_limits_is_its_own_error(
    tmp_path: Path, bad: bytes, code: str, line_number: int | None
) -> None:
    """What comes after it is read as before."""
    path = tmp_path / "requests.jsonl"
    path.write_bytes(line() + bad + b"\n" + line(custom_id="c", url="/v1/embeddings"))
    found = check_requests(path, "/v1/completions", limits=LIMITS).errors
    assert [(error.code, error.line) for error in found] == [
        (code, line_number),
        *([("mismatched_url", 3 + bad.endswith(b"\n"))] if line_number else []),
    ]


def test_texts_of_brackets_are_no_lists(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(line(body={"prompt": '[{\\"[[[\\', "a\\": '"[[[[[[', "b": [{}]}))
    assert check_requests(path, limits=LIMITS).errors == []
    assert len(list(read_requests(path, LIMITS))) == 1


def test_limits_that_were_higher_when_a_file_was_checked_end_its_reading(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(line() + line(custom_id="b", body={"prompt": "x" * 300}))
    reading = read_requests(path, LIMITS)
    assert next(reading).custom_id == "a"
    with pytest.raises(LineLimitError, match=r"line 2: .*longer than 300 bytes \(server.max_body_bytes\)"):
        next(reading)


def test_of_a_long_line_no_more_is_read_than_it_may_have(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(line(body={"prompt": [[]] * (1 << 22)}))
    tracemalloc.start()
    [error] = check_requests(path, limits=LIMITS).errors
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (error.code, error.line) == ("line_too_long", 1)
    assert peak < 4 << 20, "the rest is passed over a mebibyte at a time"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be read: No such file"):
        check_requests(tmp_path / "none.jsonl")


@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(
    content=st.binary(max_size=60) | st.lists(st.sampled_from([line(), b"\n", b"{", line(custom_id="b")])).map(b"".join)
)
def test_whatever_passes_the_check_can_be_read(tmp_path: Path, content: bytes) -> None:
    errors = checked(tmp_path, content)
    if not errors:
        names = [request.custom_id for request in read_requests(tmp_path / "requests.jsonl")]
        assert names
        assert len(set(names)) == len(names)


def test_parquet_holds_bodies_as_text_or_as_structs(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    path = tmp_path / "requests.parquet"
    for bodies in (
        [{"prompt": "p", "n": None}, {"prompt": "q", "n": 2}],
        ['{"prompt": "p"}', '{"prompt": "q", "n": 2}'],
    ):
        rows = [{**GOOD, "custom_id": name, "body": body, "other": 1} for name, body in zip("ab", bodies, strict=True)]
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        assert check_requests(path).errors == []
        found = [request.body for request in read_requests(path)]
        assert [{key: value for key, value in body.items() if value is not None} for body in found] == [
            {"prompt": "p"},
            {"prompt": "q", "n": 2},
        ]
    parquet.write_table(pyarrow.Table.from_pylist([{**GOOD, "body": "{"}]), path)
    [error] = check_requests(path).errors
    assert (error.param, error.line) == ("body", 1)
    path.write_bytes(b"PAR1")
    with pytest.raises(InvalidRequestError, match="no Parquet file"):
        check_requests(path)


def test_parquet_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "requests.parquet"
    rows = [{**GOOD, "custom_id": str(n), "body": {"messages": [{"content": "x" * 10_000}]}} for n in range(200)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, compression="zstd", use_dictionary=False)
    assert check_requests(path).total == 200
    sizes: list[int] = []
    monkeypatch.setattr(parquet_files, "_MOST_BYTES", 1 << 20)
    batches = parquet.ParquetFile.iter_batches
    monkeypatch.setattr(
        parquet.ParquetFile,
        "iter_batches",
        lambda table, size, **rest: sizes.append(size) or batches(table, size, **rest),
    )
    assert (check_requests(path).total, sizes) == (200, [1])
    monkeypatch.setattr(parquet_files, "LARGEST_WHOLE", 100_000)
    with pytest.raises(InvalidRequestError, match="its pages unpack to 1 MiB at once"):
        check_requests(path)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "requests.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidRequestError, match=r"pip install 'ewe-engine\[documents\]'"):
        check_requests(tmp_path / "requests.parquet")
