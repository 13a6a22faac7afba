"""The engine in another process, as the server sees it."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ewe.client import Answer
from ewe.config import Config
from ewe.config.loading import OnLoad
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.inputs.request_tokenizer import RequestTokenizer
from ewe.errors import EngineDeadError
from ewe.server.engine_client.served_engine import OpenedRequest, ServedEngine
from ewe.server.own_process import engine_messages as wire
from ewe.server.own_process.remote_parts import RemoteSentenceModels, RemoteVerifiers
from ewe.server.own_process.token_texts import TokenTexts
from ewe.text.tool_calls.chat_prompts import ChatPrompts

if TYPE_CHECKING:
    from ewe.engine.request import TokenizedRequest
    from ewe.engine.status import EngineStatus
    from ewe.server.own_process.engine_process import EngineProcess

_log = logging.getLogger("ewe.server")


@dataclass(slots=True)
class _UnderWay:
    """A request in the other process: who hears of its events, and, once it is submitted, of the engine's death.

    texts: of the answers whose tokens are told, by their indices.
    """

    request: TokenizedRequest
    listener: Callable[[StreamEvent], None]
    texts: dict[int, TokenTexts] = field(default_factory=dict)
    on_answer: Callable[[Answer], object] | None = None


class RemoteEngine(ServedEngine):
    """Asks the engine's process; listeners are called by the thread that reads what comes from it."""

    def __init__(self, process: EngineProcess, facts: wire.EngineFacts, config: Config, tokenizer: Any) -> None:
        self._process, self._pipe, self._facts = process, process.pipe, facts
        config = config.override([f"scheduler.max_num_seqs={facts.places}"])
        self.prompts = ChatPrompts(config, tokenizer)
        self.tokenizing = RequestTokenizer(config, tokenizer, facts.limits)
        self.summary, self.device, self.memory_lines = facts.summary, facts.device, facts.memory_lines
        self.memories = None
        self.sentence_models = RemoteSentenceModels(self._call, facts.sentence_models)
        self._status, self._told = facts.status, time.monotonic()
        self._under_way: dict[str, _UnderWay] = {}
        self._calls: dict[int, Future[Any]] = {}
        self._numbers = itertools.count()
        self._death: EngineDeadError | None = None
        threading.Thread(target=self._read, name="ewe-engine-pipe", daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Whether requests are still served."""
        return self._death is None

    def status(self) -> EngineStatus:
        """The engine's state as it was told last; what has passed since is added to the time it stands still."""
        return replace(self._status, stalled_s=self._status.stalled_s + time.monotonic() - self._told)

    def admit(self, request: TokenizedRequest) -> OpenedRequest:
        """A request that has been tokenised, ready to run; waits for the other process to check it."""
        arrived = time.monotonic()
        self._under_way[request.id] = _UnderWay(request, request.original.listener or _ignore)
        try:
            self._call("admit", request=wire.plain_request(request))
        except BaseException:
            self._under_way.pop(request.id, None)
            raise
        return OpenedRequest(request, arrived, partial(self._start, request.id))

    def forget(self, request_id: str, abort: bool) -> None:
        """Stops listening to a request; raises EngineDeadError."""
        if self._under_way.pop(request_id, None) is not None:
            self._send({"do": "forget", "id": request_id, "abort": abort})

    def new_verifiers(self) -> RemoteVerifiers:
        """What has the other process check finished texts."""
        return RemoteVerifiers(self._call, self._send, self._facts.has_verifier)

    def warm(self, on_load: OnLoad) -> None:
        """Nothing is left to load: the other process tells that it is ready when all is."""

    def close(self) -> None:
        """Has the other process abort what is under way and end."""
        self._process.close()

    def _start(self, request_id: str, on_answer: Callable[[Answer], object]) -> None:
        under_way = self._under_way.get(request_id)
        if under_way is not None:
            under_way.on_answer = on_answer
            self._send({"do": "start", "id": request_id})

    def _call(self, name: str, **arguments: Any) -> Any:
        """What the other process answers; raises what that raised, or EngineDeadError."""
        number, reply = next(self._numbers), Future[Any]()
        self._calls[number] = reply
        try:
            self._send({"do": name, "number": number, "arguments": arguments})
            return reply.result()
        finally:
            self._calls.pop(number, None)

    def _send(self, message: Mapping[str, Any]) -> None:
        """Raises EngineDeadError, also for what was registered just before the engine died."""
        if self._death is None:
            try:
                self._pipe.send(message)
                return
            except OSError:  # what it has sent before is still read, and then everybody who waits is told
                raise self._process.broken() from None
        raise self._death

    def _read(self) -> None:
        try:
            while (message := self._pipe.receive()) is not None:
                self._take(message)
        except Exception as error:  # must not end silently: whoever waits is told
            self._die(EngineDeadError(f"a message of the engine's process failed: {type(error).__name__}"))
            raise
        self._die(self._process.broken())

    def _take(self, message: Mapping[str, Any]) -> None:
        if "events" in message:
            for plain in message["events"]:
                self._hear(plain)
        elif "status" in message:
            self._status, self._told = wire.STATUS.read(message["status"]), time.monotonic()
        elif "dead" in message:
            self._die(EngineDeadError(message["dead"]))
        elif (reply := self._calls.get(message["reply"])) is not None:
            if "error" in message:
                reply.set_exception(wire.read_error(message["error"]))
            else:
                reply.set_result(message["result"])

    def _hear(self, plain: list[Any]) -> None:
        """Takes in an event of a request, or the next tokens of one of its answers."""
        under_way = self._under_way.get(plain[0])
        if under_way is None:
            return
        if isinstance(plain[1], int):
            (under_way.texts.get(plain[1]) or self._new_texts(under_way, plain[1])).add(plain[2:])
            return
        event = wire.read_event(plain)[1]
        if event.kind == "rewind" and event.index in under_way.texts:
            under_way.texts[event.index].rewind(event.data["kept_chars"], event.data["discarded_tokens"])
        under_way.listener(event)

    def _new_texts(self, under_way: _UnderWay, index: int) -> TokenTexts:
        tokenizer, is_final_at_once = self.prompts.tokenizer, not self._facts.holds_text
        texts = TokenTexts(under_way.request, index, tokenizer, is_final_at_once, under_way.listener)
        under_way.texts[index] = texts
        return texts

    def _die(self, error: EngineDeadError) -> None:
        """Tells everybody who waits, once."""
        if self._death is not None:
            return
        self._death = error
        if not self._process.is_closed:
            _log.error("the engine has stopped", extra={"fields": {"error": str(error)}})
        for under_way in list(self._under_way.values()):
            if under_way.on_answer is not None:
                under_way.on_answer(error)
        for reply in list(self._calls.values()):
            if not reply.done():
                reply.set_exception(error)


def _ignore(event: StreamEvent) -> None:
    """Of a request to whose events nobody listens."""
