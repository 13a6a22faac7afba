"""What the log says: one bounded line for each event, and nothing that users wrote."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from fastapi.testclient import TestClient

from ewe.server.app import create_app
from ewe.server.batch import batches
from ewe.server.observability.log_lines import LogFormatter, OnceAMinute, shown_method, shown_path
from ewe.server.request_handling.middleware import AccessMiddleware, RequestLogMiddleware
from ewe.server.settings import ServerSettings

SECRET = "alice is ill"


def record(message: str = "an event", error: BaseException | None = None, **fields: Any) -> logging.LogRecord:
    told = None if error is None else (type(error), error, error.__traceback__)
    made = logging.LogRecord("ewe.server", logging.WARNING, "a.py", 7, message, (), told)
    made.fields = fields
    return made


def dig(levels: int) -> None:
    """Raises an error whose message is what a user sent, as deep as told, because of another one."""
    if levels:
        dig(levels - 1)
    try:
        int(SECRET)
    except ValueError as error:
        raise KeyError(SECRET) from error


def error_of(levels: int) -> BaseException:
    with pytest.raises(KeyError) as caught:
        dig(levels)
    return caught.value


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("wrap", [lambda error: error, lambda error: ExceptionGroup(SECRET, [error])])
def test_an_error_is_told_by_its_type_and_place_on_one_short_line(form: Any, wrap: Any) -> None:
    line = LogFormatter(form).format(record("request x failed", wrap(error_of(500))))
    assert "KeyError at " in line
    assert f"; from ValueError at {__name__}:" in line
    assert SECRET not in line
    assert line.count("\n") == 0
    assert len(line) < 2500


@pytest.mark.parametrize("form", ["text", "json"])
def test_lines_are_bounded(form: Any) -> None:
    line = LogFormatter(form).format(record("m" * 10_000, text="x" * 1_000_000, number=1))
    assert len(line) < 5000
    if form == "json":
        assert json.loads(line)["number"] == 1


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        *((path, path) for path in ("/", "/v1/chat/completions", "/v1/memories", "/page/page.js", "/ping")),
        *((path, path) for path in ("/v1/messages/count_tokens", "/v2/embed", "/v1/responses/input_tokens")),
        ("/v1/memories/alice is ill/history", "/v1/memories/*/history"),
        ("/v1/models/org/alice", "/v1/models/*/*"),
        *((f"/v1/{SECRET}", "/v1/*"), (SECRET, "*"), ("/Health", "/*"), ("//", "//"), ("*", "*")),
    ],
)
def test_of_a_path_only_what_routes_spell_is_shown(path: str, shown: str) -> None:
    assert shown_path(path) == shown
    assert len(shown_path("/alice" * 10_000)) < 100
    assert (shown_method("POST"), shown_method("ALICE")) == ("POST", "*")


def test_every_route_is_shown_as_it_is_spelled(tmp_path: Any) -> None:
    app = create_app(None, ServerSettings(batch_folder=tmp_path))
    for path in {str(getattr(route, "path", "")) for router in (app, batches.router) for route in router.routes}:
        shown = shown_path(path).split("/")
        assert [a == b for a, b in zip(shown, path.split("/"), strict=True) if "{" not in b].count(False) == 0


def test_repeated_warnings_are_told_once_a_minute_with_their_number() -> None:
    now = [0.0]
    keep = OnceAMinute(lambda: now[0]).filter
    assert [keep(record()) for _ in range(5)] == [True, False, False, False, False]
    other = record()
    other.lineno = 8
    assert keep(other)
    error = record()
    error.levelno = logging.ERROR
    assert keep(error)
    now[0] = 61.0
    later = record()
    assert keep(later)
    assert later.fields == {"left_out_before": 4}


def test_a_request_that_fails_has_two_lines_without_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    async def failing(scope: Any, receive: Any, send: Any) -> None:
        raise error_of(300)

    logger = logging.getLogger("ewe.server")
    kept = list(logger.handlers), logger.level, logger.propagate
    logger.handlers[:] = [logging.StreamHandler()]
    logger.handlers[0].setFormatter(LogFormatter("text"))
    logger.setLevel(logging.INFO)
    try:
        app = RequestLogMiddleware(AccessMiddleware(failing, (), 100))
        assert TestClient(app).get(f"/v1/memories/{SECRET}").status_code == 500
    finally:
        logger.handlers[:], logger.level, logger.propagate = kept
    log = capsys.readouterr().err
    assert SECRET not in log
    assert log.count("\n") == 2
    assert "path=/v1/memories/* status=500" in log
