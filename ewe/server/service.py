"""What all routes share: the engine, the settings, the gate, the metrics, and the way of a request into the engine.

Owns: what must hold before a request is begun (model, limits, room) and its resources until it has ended. Knows `LLM`.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from fastapi import Request

from ewe.engine.intake import Prompt
from ewe.engine.sequence import Sequence as EngineSequence
from ewe.engine.status import EngineStatus
from ewe.errors import InvalidRequestError, PromptTooLongError, SchemaError
from ewe.llm import LLM
from ewe.server.checks import Checks
from ewe.server.errors import RefusedError
from ewe.server.gate import Gate
from ewe.server.mailbox import Mailbox
from ewe.server.metrics import Metrics, RunMeter
from ewe.server.run import Letter, Run
from ewe.server.settings import ServerSettings
from ewe.server.tenants import Tenants
from ewe.server.wire import Document
from ewe.server.wire_sampling import SamplingRequest
from ewe.tool_calls.use import ToolUse
from ewe.types import Passage

_T = TypeVar("_T")

_TEXT_EVENTS = frozenset({"text"})
_LIVE_EVENTS = frozenset({"draft", "sentence", "rewind", "retrieval", "verification", "refresh", "evict", "restore"})


@dataclass(frozen=True, slots=True)
class Order:
    """What a request asks of the engine: `count` prompts, made by `prompts` in a thread of its own.

    question: what retrieval and verification are told in place of a prompt that holds more. tools: what may be called.
    """

    wanted: SamplingRequest
    prompts: Callable[[LLM], Sequence[Prompt]]
    count: int = 1
    max_tokens: int | None = None
    logprobs: int | None = None
    special_tokens: bool = True
    question: str = ""
    tools: ToolUse | None = None


class Service:
    """One engine and its users. llm is None until `open` is called with the loaded engine."""

    def __init__(self, llm: LLM | None, settings: ServerSettings) -> None:
        self.settings = settings
        self.created = int(time.time())
        self.tenants = Tenants(settings.users_per_key and len(settings.keys()) > 1)
        self.metrics = Metrics(self.status, self._memory_counts)
        self._builders = _thread()
        self._llm: LLM | None = None
        self._checks: Checks | None = None
        self._mailbox: Mailbox[Letter] | None = None
        self.gate = Gate(settings.max_waiting + 1, settings.max_per_key)
        if llm is not None:
            self.open(llm)

    def open(self, llm: LLM) -> None:
        """Begins to serve with this engine."""
        self._checks = Checks(llm.config, llm.client.components.verifier)
        self.gate = Gate(llm.config.scheduler.max_num_seqs + self.settings.max_waiting, self.settings.max_per_key)
        self._llm = llm  # last: from here on requests are let in

    @property
    def llm(self) -> LLM:
        """The engine; raises RefusedError while it is loading."""
        if self._llm is None:
            raise _loading()
        return self._llm

    @property
    def model_name(self) -> str:
        """What clients call the model; raises RefusedError while the engine is loading."""
        # A folder's place on this machine is nobody's business.
        return self.settings.model_name or _public_name(self.llm.config.model.name)

    @property
    def checks(self) -> Checks:
        """The verifiers for finished texts; raises RefusedError while the engine is loading."""
        if self._checks is None:
            raise _loading()
        return self._checks

    def status(self) -> EngineStatus | None:
        """The engine's state, None while it is loading."""
        return None if self._llm is None else self._llm.client.status()

    def _memory_counts(self) -> Mapping[str, int]:
        memories = None if self._llm is None else self._llm.client.components.memories
        return {} if memories is None else memories.counts

    def check_alive(self) -> None:
        """Raises RefusedError if the engine has stopped for good."""
        if self._llm is not None and not self._llm.client.is_alive:
            raise RefusedError(503, "the engine has stopped; restart the server", code="engine_dead", may_retry=False)

    def check_ready(self) -> None:
        """Raises RefusedError unless requests can be served now."""
        self.check_alive()
        stalled_s = self.llm.client.status().stalled_s
        if self.gate.is_draining:
            raise RefusedError(503, "the server is shutting down", code="shutting_down")
        if stalled_s > self.settings.stalled_after:
            raise RefusedError(503, f"the engine has not moved for {stalled_s:.0f} s", code="stalled")

    def check_model(self, name: str | None) -> None:
        """Raises RefusedError for a model that is not served here; None is the one that is."""
        if name is not None and name != self.model_name:
            raise RefusedError(
                404, f"there is no model {name!r} here; {self.model_name!r} is", param="model", code="model_not_found"
            )

    async def begin(self, request: Request, order: Order) -> Run:
        """Submits what is asked for; `close` of the run must be called in the end.

        Raises RefusedError or InvalidRequestError, and then holds nothing.
        """
        llm, wanted, key = self.llm, order.wanted, key_of(request)
        self.check_model(wanted.model)
        params = wanted.sampling_params(self._max_tokens(order), order.logprobs, self.settings.deadline)
        if params.n > self.settings.max_n:
            raise RefusedError(400, f"n: at most {self.settings.max_n} answers here, got {params.n}", param="n")
        build = partial(
            llm.client.build,
            params=params,
            documents=passages_of(wanted.documents),
            add_special_tokens=order.special_tokens,
            salt=_salt(key, wanted.cache_salt),
            question=order.question,
            memory=self.tenants.options(key, wanted.memory, llm.config.longterm),
            tools=order.tools,
        )
        count = order.count * params.n
        self.gate.enter(key, count)
        meter, leave = RunMeter(self.metrics), partial(self.gate.leave, key, count)
        loop = asyncio.get_running_loop()
        if self._mailbox is None or self._mailbox.loop is not loop:
            self._mailbox = Mailbox(loop)
        own_deadline = (wanted.ewe.deadline_s or self.settings.deadline) < self.settings.deadline
        run = Run(llm.client, self._mailbox, _events(wanted), meter.see, leave, own_deadline)
        try:
            await loop.run_in_executor(self._builders, lambda: run.build(build, order.prompts(llm)))
            self._check_prompts(run.sequences)
            run.submit()
        except SchemaError as error:
            run.close()
            field = wanted.format_field if order.tools is None else "tools"
            raise RefusedError(400, str(error), param=field, code="invalid_json_schema") from error
        except BaseException:
            run.close()
            raise
        return run

    async def in_thread(self, call: Callable[[], _T]) -> _T:
        """What a call that takes long gives, made where it does not hold up others' streams."""
        return await asyncio.get_running_loop().run_in_executor(self._builders, call)

    def close(self) -> None:
        """Ends the service's own threads; an app that is started once more gets new ones. The engine is its owner's."""
        self._builders.shutdown(wait=False, cancel_futures=True)
        self._builders = _thread()
        if self._checks is not None:
            self._checks.close()
            self._checks = Checks(self.llm.config, self.llm.client.components.verifier)

    def _max_tokens(self, order: Order) -> int:
        most = self.settings.max_tokens
        if order.max_tokens is not None and order.max_tokens > most:
            raise RefusedError(400, f"max_tokens: at most {most} here, got {order.max_tokens}", param="max_tokens")
        return order.max_tokens or most

    def _check_prompts(self, sequences: Sequence[EngineSequence]) -> None:
        most = self.settings.max_prompt_tokens
        longest = max(len(sequence.prompt_ids) for sequence in sequences)
        if most is not None and longest > most:
            raise PromptTooLongError(f"the prompt has {longest} tokens; this server takes {most}")


def service_of(request: Request) -> Service:
    """The service of the app that a request came to."""
    service: Service = request.app.state.service
    return service


def key_of(request: Request) -> str:
    """Which key a request came with: a name for it that does not tell it; empty without keys."""
    return str(request.scope.get("state", {}).get("key", ""))


def passages_of(documents: Sequence[Document | str] | None) -> list[Passage]:
    """Documents of a request as passages; raises InvalidRequestError if two have the same id."""
    found = []
    for number, item in enumerate(documents or (), 1):
        document = Document(text=item) if isinstance(item, str) else item
        values = document.model_dump(exclude={"id"})
        found.append(Passage(id=document.id or f"document-{number}", **values))
    if len({passage.id for passage in found}) < len(found):
        raise InvalidRequestError("documents: two of them have the same id")
    return found


def _events(wanted: SamplingRequest) -> frozenset[str]:
    """The kinds of events that the run passes on: none to a reader who waits for the whole answer."""
    if not wanted.stream:
        return frozenset()
    return _TEXT_EVENTS | _LIVE_EVENTS if wanted.ewe.events else _TEXT_EVENTS


def _thread() -> ThreadPoolExecutor:
    """A thread that begins with its first call."""
    return ThreadPoolExecutor(1, thread_name_prefix="ewe-server-intake")


def _loading() -> RefusedError:
    return RefusedError(503, "the model is being loaded", code="loading")


def _salt(key: str, cache_salt: str | None) -> str:
    """What separates the encoded texts of different keys, and those that a caller wants apart."""
    return hashlib.sha256(f"{key}\0{cache_salt or ''}".encode()).hexdigest() if key or cache_salt else ""


def _public_name(name: str) -> str:
    return Path(name).name if Path(name).expanduser().is_dir() else name
