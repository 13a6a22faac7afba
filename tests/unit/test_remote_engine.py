"""The engine's process as the server's sees it: what comes back reaches who waits for it, and so does its end."""

from __future__ import annotations

import queue
import socket
import threading
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.config import Config
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.inputs.request_tokenizer import Limits
from ewe.engine.request import Request
from ewe.engine.status import EngineStatus
from ewe.errors import ConfigError, EngineDeadError, InvalidRequestError, SchemaError
from ewe.server.app import create_app
from ewe.server.own_process import engine_messages as wire
from ewe.server.own_process.engine_child import EngineChild
from ewe.server.own_process.engine_process import is_apart, refuse_unservable
from ewe.server.own_process.message_pipe import MessagePipe
from ewe.server.own_process.remote_engine import RemoteEngine
from ewe.server.settings import ServerSettings
from ewe.types import Passage, VerificationRequest
from ewe.types.sampling_params import SamplingParams

STATUS = EngineStatus(1, 0, 0.25, 8, 4, 0, 0, 0, 0, 0, 0, 0)
FACTS = wire.EngineFacts(Limits(64, 100, 9, 16), None, "cpu", (), {}, True, False, 7, STATUS)
PARAMS = SamplingParams(max_tokens=4, n=2)


class Far:
    """The other end, and what it has heard."""

    def __init__(self) -> None:
        self.own, other = socket.socketpair()
        self._other = other
        self.pipe = MessagePipe(other)
        self.process: Any = SimpleNamespace(
            pipe=MessagePipe(self.own), is_closed=False, broken=lambda: EngineDeadError("it was killed"), close=None
        )
        self.engine = RemoteEngine(self.process, FACTS, Config(), None)

    def answer(self, result: Any = None, **more: Any) -> dict[str, Any]:
        """Takes the next message and replies to it."""
        message: dict[str, Any] = self.pipe.receive()
        self.pipe.send({"reply": message["number"], **(more or {"result": result})})
        return message

    def hang_up(self) -> None:
        self.pipe.hang_up()


@pytest.fixture
def far() -> Iterator[Far]:
    found = Far()
    yield found
    found.hang_up()


def test_as_many_places_are_counted_on_as_the_engine_has_found_its_device_to_have(far: Far) -> None:
    assert far.engine.prompts.config.scheduler.places == FACTS.places


def opened(far: Far, listener: Any) -> Any:
    """A request that the other end has admitted."""
    thread = threading.Thread(target=far.answer)
    thread.start()
    found = far.engine.open(Request([1, 2, 3], PARAMS, listener=listener))
    thread.join()
    return found


def test_events_reach_their_listener_and_no_other(far: Far) -> None:
    heard: queue.SimpleQueue[StreamEvent] = queue.SimpleQueue()
    one, other = opened(far, heard.put), opened(far, None)
    assert (one.request.num_prompt_tokens, one.request.max_tokens) == (3, 4)
    one.submit(print)
    assert far.pipe.receive() == {"do": "start", "id": one.request.id}
    far.engine.forget(other.request.id, abort=True)
    assert far.pipe.receive() == {"do": "forget", "id": other.request.id, "abort": True}
    far.engine.forget(other.request.id, abort=True)  # once more tells nobody
    told = [StreamEvent("draft", {"text": "a", "start": 0}, None, 1), StreamEvent("text", {"text": "a"}, None, 1)]
    far.pipe.send(
        {"events": [wire.plain_event(id_, event) for id_ in (other.request.id, one.request.id) for event in told]}
    )
    assert [heard.get(timeout=60), heard.get(timeout=60)] == told
    far.engine.forget(one.request.id, abort=False)
    assert far.pipe.receive()["abort"] is False
    assert heard.empty()


def test_what_the_other_end_refuses_is_refused_here_and_what_is_wrong_here_never_gets_there(far: Far) -> None:
    refuse = threading.Thread(target=far.answer, kwargs={"error": wire.plain_error(SchemaError("no such schema"))})
    refuse.start()
    with pytest.raises(SchemaError, match="no such schema"):
        far.engine.open(Request([1], PARAMS))
    refuse.join()
    for wrong in (Request([100], PARAMS), Request([], PARAMS), Request([1] * 64, PARAMS)):
        with pytest.raises(InvalidRequestError, match="prompt"):
            far.engine.open(wrong)
    checking = threading.Thread(target=far.answer, args=([],))
    checking.start()
    own = far.engine.new_verifiers().own()
    assert own is not None
    assert own.verify([VerificationRequest("", "", "It rains.")]) == []
    checking.join()


def test_documents_are_sent_once_for_all_their_checks_and_closed(far: Far) -> None:
    heard: list[dict[str, Any]] = []

    def serve() -> None:
        heard.append(far.answer(7))
        heard.extend(far.answer([]) for _ in range(2))

    serving = threading.Thread(target=serve)
    serving.start()
    verifier = far.engine.new_verifiers().against([Passage("a", "It rains.")])
    for _ in range(2):
        assert verifier.verify([VerificationRequest("", "", "It rains.")]) == []
    verifier.close()
    serving.join()
    assert [one["do"] for one in heard] == ["open documents", "verify", "verify"]
    assert [one["id"] for one in heard[0]["arguments"]["documents"]] == ["a"]
    assert [one["arguments"]["documents"] for one in heard[1:]] == [7, 7]
    assert far.pipe.receive() == {"do": "close documents", "number": 7}


@pytest.mark.parametrize("how", ["dead", "gone"])
def test_its_end_is_told_to_all_who_wait(far: Far, how: str) -> None:
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    opened(far, None).submit(told.put)
    assert far.pipe.receive()["do"] == "start"
    failed: queue.SimpleQueue[Exception] = queue.SimpleQueue()

    def check() -> None:
        try:
            far.engine.new_verifiers().against(())
        except EngineDeadError as error:
            failed.put(error)

    waiting = threading.Thread(target=check)
    waiting.start()
    assert far.pipe.receive()["do"] == "open documents"
    assert far.engine.is_alive
    if how == "dead":
        far.pipe.send({"dead": "it was killed"})
    else:
        far.hang_up()
    assert str(told.get(timeout=60)) == str(failed.get(timeout=60)) == "it was killed"
    waiting.join()
    assert not far.engine.is_alive
    with pytest.raises(EngineDeadError, match="it was killed"):
        far.engine.open(Request([1], PARAMS))


def test_a_status_is_as_old_as_it_is(far: Far) -> None:
    assert far.engine.status().stalled_s >= STATUS.stalled_s
    far.pipe.send({"status": wire.STATUS.plain(EngineStatus(7, 0, 100.0, 8, 4, 0, 0, 0, 0, 0, 0, 0))})
    opened(far, None)  # what came before its answer has been read
    status = far.engine.status()
    assert status.running == 7
    assert status.stalled_s >= 100


def test_answers_that_the_end_of_the_engine_aborts_are_told_before_it() -> None:
    child: Any = object.__new__(EngineChild)
    sent: list[Any] = []
    child._pipe = SimpleNamespace(send=sent.append)
    child._events, child._flushing = deque(), threading.Lock()
    child._note("served-1", StreamEvent("draft", {"text": "a", "start": 0}))
    child._note("served-2", StreamEvent("finish", {"reason": "abort"}))
    child._take(EngineDeadError("the engine was closed"))
    child._flush()
    assert [list(message) for message in sent] == [["events"], ["dead"]]
    assert [event[:2] for event in sent[0]["events"]] == [["served-1", "draft"], ["served-2", "finish"]]


def test_an_engine_that_is_closed_is_not_told_dead_before_its_answers_have_ended() -> None:
    child: Any = object.__new__(EngineChild)
    sent: list[Any] = []
    child._closing = threading.Event()

    def status() -> EngineStatus:
        child._closing.set()  # while this thread is between two looks
        return STATUS

    child._pipe = SimpleNamespace(send=sent.append)
    child._engine = SimpleNamespace(status=status, is_alive=False)
    child._tell_status()
    assert [list(message) for message in sent] == [["status"]]


def test_what_it_sent_before_it_went_is_heard_before_its_end(far: Far) -> None:
    heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
    hears_one, may_go_on = threading.Event(), threading.Event()

    def listen(event: StreamEvent) -> None:
        hears_one.set()
        assert may_go_on.wait(60)
        heard.put(event)

    one = opened(far, listen)
    one.submit(heard.put)
    assert far.pipe.receive()["do"] == "start"
    for kind in ("text", "finish"):
        far.pipe.send({"events": [wire.plain_event(one.request.id, StreamEvent(kind, {"text": "a"}))]})
    assert hears_one.wait(60)
    far.hang_up()
    with pytest.raises(EngineDeadError, match="it was killed"):
        far.engine.new_verifiers().against(())
    assert heard.empty()
    may_go_on.set()
    assert [heard.get(timeout=60).kind, heard.get(timeout=60).kind] == ["text", "finish"]
    assert str(heard.get(timeout=60)) == "it was killed"


@pytest.mark.parametrize(
    ("gpu", "values", "chosen", "apart"),
    [
        (True, {}, None, True),
        (False, {}, None, False),
        (True, {"model": {"device": "cpu"}}, None, False),
        (True, {"longterm": {"path": "memories"}}, None, False),
        (True, {}, False, False),
        (False, {}, True, True),
    ],
)
def test_on_a_gpu_the_engine_has_a_process_of_its_own_unless_the_settings_say_otherwise(
    monkeypatch: pytest.MonkeyPatch, gpu: bool, values: dict[str, Any], chosen: bool | None, apart: bool
) -> None:
    monkeypatch.setattr("ewe.server.own_process.engine_process.has_gpu_driver", lambda: gpu)
    assert is_apart(Config.from_mapping(values), ServerSettings(engine_process=chosen)) == apart


def test_what_cannot_be_served_so_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"server\.engine_process: longterm\.path does not go with it"):
        refuse_unservable(Config.from_mapping({"longterm": {"path": "memories"}}))
    parts = Config.from_mapping({"model": {"tensor_parallel": 2}})
    refuse_unservable(parts)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    with pytest.raises(ConfigError, match=r"model\.tensor_parallel does not go with it"):
        refuse_unservable(parts)
    here: Any = object()
    with pytest.raises(ConfigError, match=r"only `ewe serve` can"):
        create_app(here, ServerSettings(engine_process=True))
