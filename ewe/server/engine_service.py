"""What all routes share: engine, settings, admission control, metrics, and the way of a request into the engine."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from fastapi import Request

from ewe.engine.request import Prompt
from ewe.engine.request import Request as EngineRequest
from ewe.engine.status import EngineStatus
from ewe.errors import InvalidRequestError, SchemaError
from ewe.llm import LLM
from ewe.server.admission import AdmissionControl, check_prompts, check_room, tokens_to_ask
from ewe.server.bridge import EngineMessage, EventLoopBridge, Run
from ewe.server.error_responses import RefusedError
from ewe.server.metrics import Metrics, RunMeter
from ewe.server.schemas.common import Document
from ewe.server.schemas.sampling_schemas import SamplingRequest
from ewe.server.served_models import ModelNames, SentenceModels, no_model
from ewe.server.settings import ServerSettings
from ewe.server.stream_parts import wanted_events
from ewe.server.tenants import Tenants
from ewe.server.text_verifiers import TextVerifiers
from ewe.summary import EngineSummary
from ewe.tool_calls.use import ToolUse
from ewe.types import Passage

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Order:
    """What a request asks of the engine: `count` prompts, made by `prompts` in a thread of its own.

    max_tokens: what the request asks for, in its field `length_field`; without it an answer may have
    default_max_tokens (None: what the context leaves). question: what retrieval and verification are told in place of a
    prompt that holds more. tools: what may be called.
    """

    wanted: SamplingRequest
    prompts: Callable[[LLM], Sequence[Prompt]]
    count: int = 1
    max_tokens: int | None = None
    default_max_tokens: int | None = None
    length_field: str = "max_tokens"
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    special_tokens: bool = True
    question: str = ""
    tools: ToolUse | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """A loaded engine, what clients may call its model, and what encodes and checks texts of requests."""

    llm: LLM
    names: ModelNames
    sentence_models: SentenceModels
    verifiers: TextVerifiers


class Service:
    """One engine and its users. llm is None until `open` is called with the loaded engine."""

    def __init__(self, llm: LLM | None, settings: ServerSettings) -> None:
        self.settings = settings
        self.has_keys = bool(settings.keys())
        self.created = int(time.time())
        self.tenants = Tenants(settings.users_per_key and len(settings.keys()) > 1)
        self.metrics = Metrics(self.status, self._memory_counts)
        self._builders = _thread()
        self._served: Served | None = None
        self._bridge: EventLoopBridge[EngineMessage] | None = None
        self.admission = AdmissionControl(settings.max_waiting + 1, settings.max_per_key)
        if llm is not None:
            self.open(llm)

    def open(self, llm: LLM) -> None:
        """Begins to serve with this engine."""
        components, settings = llm.client.components, self.settings
        places = llm.config.scheduler.max_num_seqs
        self.admission = AdmissionControl(places + settings.max_waiting, settings.max_per_key, places)
        names = ModelNames(llm.config.model.name, settings.served_model_name, llm.config.model.adapters or ())
        models = SentenceModels(llm.config.retrieval, components.retriever)
        # Last: from here on requests are let in.
        self._served = Served(llm, names, models, TextVerifiers(llm.config, components))

    @property
    def served(self) -> Served:
        """What is served; raises RefusedError while the engine is loading."""
        if self._served is None:
            raise RefusedError(503, "the model is being loaded", code="loading")
        return self._served

    @property
    def llm(self) -> LLM:
        """The engine; raises RefusedError while it is loading."""
        return self.served.llm

    @property
    def max_model_len(self) -> int:
        """Tokens of a prompt, its answer and a memory unit together; raises RefusedError while loading."""
        return self.llm.client.engine.loaded.max_model_len

    @property
    def summary(self) -> EngineSummary | None:
        """What is on in the engine; None while it is loading."""
        return None if self._served is None else self.llm.client.components.summary

    def status(self) -> EngineStatus | None:
        """The engine's state, None while it is loading."""
        return None if self._served is None else self.llm.client.status()

    def _memory_counts(self) -> Mapping[str, int]:
        memories = None if self._served is None else self.llm.client.components.memories
        return {} if memories is None else memories.counts

    def check_alive(self) -> None:
        """Raises RefusedError if the engine has stopped for good."""
        if self._served is not None and not self.llm.client.is_alive:
            raise RefusedError(503, "the engine has stopped; restart the server", code="engine_dead", may_retry=False)

    def check_ready(self) -> None:
        """Raises RefusedError unless requests can be served now."""
        self.check_alive()
        stalled_s = self.llm.client.status().stalled_s
        if self.admission.is_draining:
            raise RefusedError(503, "the server is shutting down", code="shutting_down")
        if stalled_s > self.settings.stalled_after:
            raise RefusedError(503, f"the engine has not moved for {stalled_s:.0f} s", code="stalled")

    def check_model(self, name: str | None) -> str:
        """What answers call the model: the name asked for, else its first. Raises RefusedError for one not served."""
        names = self.served.names
        if name is not None and name not in names:
            raise no_model(name, names)
        return names.listed[0] if name is None else name

    async def begin(self, request: Request, order: Order) -> Run:
        """Submits what is asked for; `close` of the run must be called in the end.

        Raises RefusedError or InvalidRequestError, and then holds nothing.
        """
        llm, wanted, key = self.llm, order.wanted, key_of(request)
        self.check_model(wanted.model)
        adapter = self.served.names.adapter(wanted.model)
        settings, field = self.settings, order.length_field
        limit = tokens_to_ask(order.max_tokens, order.default_max_tokens, settings.max_tokens, field)
        params = wanted.sampling_params(limit, order.logprobs, order.prompt_logprobs, settings.deadline)
        if params.n > self.settings.max_n:
            raise RefusedError(400, f"n: at most {self.settings.max_n} answers here, got {params.n}", param="n")
        asked = partial(
            EngineRequest,
            params=params,
            documents=passages_of(wanted.documents),
            add_special_tokens=order.special_tokens,
            salt=_salt(key, wanted.cache_salt),
            question=order.question,
            memory=self.tenants.options(key, wanted.memory, llm.config.longterm),
            tools=order.tools,
            adapter=adapter,
            closed_world=wanted.ewe.closed_world,
        )
        count = order.count * params.n
        in_batch = bool(request.scope["state"].get("in_batch"))
        holder = f"{key} (batches)" if in_batch else key  # a key's batches take no place from its other requests
        self.admission.enter(holder, count, may_wait=not in_batch)
        meter, leave = RunMeter(self.metrics), partial(self.admission.leave, holder, count)
        loop = asyncio.get_running_loop()
        if self._bridge is None or self._bridge.loop is not loop:
            self._bridge = EventLoopBridge(loop)
        own_deadline = (wanted.ewe.deadline_s or self.settings.deadline) < self.settings.deadline
        # Who waits for the whole answer hears of no event before its end.
        events = wanted_events(wanted.ewe) if wanted.stream else frozenset()
        run = Run(llm.client, self._bridge, events, meter.see, leave, own_deadline)
        try:
            await loop.run_in_executor(self._builders, lambda: run.build(map(asked, order.prompts(llm))))
            check_prompts(run.sequences, settings.max_prompt_tokens)
            check_room(run.sequences, order.max_tokens or 1, field, self.max_model_len)
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
        if self._served is not None:
            self._served.verifiers.close()
            self._served = replace(self._served, verifiers=TextVerifiers(self.llm.config, self.llm.client.components))


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


def _thread() -> ThreadPoolExecutor:
    """A thread that begins with its first call."""
    return ThreadPoolExecutor(1, thread_name_prefix="ewe-server-intake")


def _salt(key: str, cache_salt: str | None) -> str:
    """What separates the encoded texts of different keys, and those that a caller wants apart."""
    return hashlib.sha256(f"{key}\0{cache_salt or ''}".encode()).hexdigest() if key or cache_salt else ""
