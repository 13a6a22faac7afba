"""The engine's process: serves one LLM to the process that started it, and ends with that.

It is told its settings over standard input, which is a socket.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NoReturn

from ewe.client import Answer
from ewe.config import Config
from ewe.config.loading import LoadStep
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.errors import EngineDeadError, EWEError
from ewe.llm import LLM
from ewe.server.engine_client.served_engine import LocalEngine, OpenedRequest
from ewe.server.engine_client.text_verifiers import OwnTextVerifiers
from ewe.server.observability.stack_dumps import dump_stacks, end_loading
from ewe.server.own_process import engine_messages as wire
from ewe.server.own_process.child_parts import ChildSentenceModels, ChildVerifiers
from ewe.server.own_process.message_pipe import MessagePipe
from ewe.server.request_handling.middleware import set_up_logs
from ewe.server.traffic.fair_queue import take_short_turns

STATUS_EVERY_S = 0.2
_THREADS = 24  # as many as the other process has for works that end here
_PR_SET_PDEATHSIG = 1

_log = logging.getLogger("ewe.server")


class EngineChild:
    """Does for the other process what it asks of an engine; events of one step go back as one message."""

    def __init__(self, pipe: MessagePipe, llm: LLM) -> None:
        self._pipe, self._llm, self._engine = pipe, llm, LocalEngine(llm)
        self._verifiers = ChildVerifiers(OwnTextVerifiers(llm.config, llm.client.components))
        self._opened: dict[str, OpenedRequest] = {}
        self._events: deque[list[Any]] = deque()
        self._flushing = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ewe-engine-call")
        self._closing = threading.Event()
        self._calls: Mapping[str, Callable[..., Any]] = {
            "admit": self._admit,
            **self._verifiers.calls,
            **ChildSentenceModels(self._engine.sentence_models).calls,
        }
        llm.client.call_after_turns(self._flush)

    def start(self) -> None:
        """Loads what the first request would load, and says that it is ready."""
        self._engine.warm(partial(_tell_step, self._pipe))
        end_loading()
        threading.Thread(target=self._tell_status, name="ewe-engine-status", daemon=True).start()
        self._pipe.send({"ready": wire.FACTS.plain(self._facts())})

    def wait(self) -> None:
        """Serves until the other process says that it is over."""
        self._closing.wait()
        self._engine.close()  # what it aborts is told by the engine's thread as it ends

    def take(self, message: Mapping[str, Any]) -> None:
        """Does what a message says, or has a thread do it."""
        match message["do"]:
            case "start":
                self._start(message["id"])
            case "forget":
                self._opened.pop(message["id"], None)
                with suppress(EngineDeadError):
                    self._engine.forget(message["id"], message["abort"])
            case "close documents":
                self._verifiers.close(message["number"])
            case "close":
                self._closing.set()
            case name:
                self._threads.submit(self._answer, self._calls[name], message["number"], message["arguments"])

    def _facts(self) -> wire.EngineFacts:
        engine = self._engine
        limits, models = engine.tokenizing.limits, engine.sentence_models.listed
        return wire.EngineFacts(
            limits,
            engine.summary,
            engine.device,
            tuple(engine.memory_lines),
            dict(models),
            self._verifiers.has_own,
            self._llm.client.engine.core.policies.holds_text,
            self._llm.config.scheduler.places,
            engine.status(),
        )

    def _answer(self, call: Callable[..., Any], number: int, arguments: Mapping[str, Any]) -> None:
        try:
            reply = {"result": call(**arguments)}
        except Exception as error:  # told to whoever asked; what nobody foresaw is in this process' log too
            if not isinstance(error, EWEError):
                _log.exception("a call of the server's process failed")
            reply = {"error": wire.plain_error(error)}
        self._send({"reply": number, **reply})

    def _admit(self, request: Mapping[str, Any]) -> None:
        tokenized = wire.read_request(request)
        listener, on_tokens = partial(self._note, tokenized.id), partial(self._note_tokens, tokenized.id)
        original = replace(tokenized.original, listener=listener, on_tokens=on_tokens)
        self._opened[tokenized.id] = self._engine.admit(replace(tokenized, original=original))

    def _start(self, request_id: str) -> None:
        opened = self._opened.pop(request_id, None)
        try:
            if opened is not None:
                opened.submit(self._take)
        except EngineDeadError as error:
            self._take(error)

    def _note(self, request_id: str, event: StreamEvent) -> None:
        """Called in the engine's thread, which flushes when its step is done."""
        self._events.append(wire.plain_event(request_id, event))

    def _note_tokens(self, request_id: str, index: int, token_ids: Sequence[int]) -> None:
        """The same of tokens: the other process makes their texts, so that the step need not."""
        self._events.append([request_id, index, *token_ids])

    def _flush(self) -> None:
        with self._flushing:
            if self._events:
                self._send({"events": [self._events.popleft() for _ in range(len(self._events))]})

    def _take(self, answer: Answer) -> None:
        if isinstance(answer, EngineDeadError):
            self._flush()  # an answer that was aborted ends before the engine does
            self._send({"dead": str(answer)})

    def _tell_status(self) -> None:
        while not self._closing.wait(STATUS_EVERY_S):
            self._send({"status": asdict(self._engine.status())})
            if not self._engine.is_alive and not self._closing.is_set():  # one that is closed aborts its answers first
                self._send({"dead": "the engine loop stopped"})
                return

    def _send(self, message: Mapping[str, Any]) -> None:
        with suppress(OSError):  # the other process has gone: whoever reads from it ends this one
            self._pipe.send(message)


def main() -> None:
    """Runs until the other process says that it is over, or is gone."""
    end_with_parent()
    pipe = MessagePipe(socket.socket(fileno=os.dup(0)))
    settings = pipe.receive()
    if settings is None:
        return
    set_up_logs(settings["log_format"])
    take_short_turns()
    dump_stacks()
    made: Future[EngineChild] = Future()
    threading.Thread(target=_read, args=(pipe, made), name="ewe-parent", daemon=True).start()
    try:
        llm = LLM(config=Config.model_validate(settings["config"]), on_load=partial(_tell_step, pipe))
        child = EngineChild(pipe, llm)
        made.set_result(child)
        child.start()
    except Exception as error:
        if not isinstance(error, EWEError | OSError):
            traceback.print_exc()
        with suppress(OSError):
            pipe.send({"failed": wire.plain_error(error)})
        _exit(1)
    child.wait()
    _exit(0)


def end_with_parent() -> None:
    """Has this process end when the thread that started it does, and leaves signals for both to that process."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the other one drains first, then says so
        signal.signal(number, signal.SIG_IGN)
    with suppress(AttributeError, OSError):  # only Linux has it; elsewhere the end of the socket has to do
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _tell_step(pipe: MessagePipe, step: LoadStep) -> None:
    pipe.send({"load": asdict(step)})


def _read(pipe: MessagePipe, made: Future[EngineChild]) -> None:
    """Hands over what comes, to the child once it is made; the end of it ends this process."""
    try:
        while (message := pipe.receive()) is not None:
            made.result().take(message)
    except Exception:  # must not end silently: whoever waits learns of it by the end of this process
        _log.exception("a message of the server's process failed")
    _exit(1)


def _exit(status: int) -> NoReturn:
    """Ends this process whatever threads of components are still at."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
