"""What all routes share: engine, settings, admission control, metrics, and the way of a request into the engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import Request

from ewe.engine.request import Prompt
from ewe.engine.request import Request as EngineRequest
from ewe.engine.startup.engine_summary import EngineSummary
from ewe.engine.status import EngineStatus
from ewe.errors import SchemaError
from ewe.server.engine_client.bridge import EngineMessage, EventLoopBridge, Run, RunObserver
from ewe.server.engine_client.served_engine import ServedEngine
from ewe.server.engine_client.served_models import ModelNames, no_model
from ewe.server.engine_client.stream_parts import requested_events
from ewe.server.engine_client.text_verifiers import TextVerifiers
from ewe.server.http.error_responses import RefusedError
from ewe.server.observability.metrics import Metrics, RunMeter
from ewe.server.response_store import ResponseStore
from ewe.server.settings import ServerSettings
from ewe.server.traffic.admission import (
    MOST_DOCUMENT_BYTES,
    AdmissionControl,
    check_prompts,
    check_room,
    most_prompt_bytes,
)
from ewe.server.traffic.affinity import SESSION_HEADER, SeenKeys, affinity_key
from ewe.server.traffic.fair_queue import WorkQueues, holder_of, tenant_of
from ewe.server.traffic.order_checks import checked_documents, sampling_params
from ewe.server.traffic.orders import Order
from ewe.server.traffic.pacing import ANSWER_PATHS, end_turn
from ewe.server.traffic.tenants import Tenants, salt_of
from ewe.types.sampling_params import SamplingParams

if TYPE_CHECKING:
    from ewe.server.observability.tracing import Tracing

_JSON_PER_TEXT = 3  # bytes of JSON for one of text: clients that write ASCII only take 6 for characters of 2 and 3
_MOST_FORM_BYTES = 1 << 18  # of a request for an answer, beside its texts


@dataclass(frozen=True, slots=True)
class Served:
    """A loaded engine, what clients may call its model, and what checks texts of requests."""

    engine: ServedEngine
    names: ModelNames
    verifiers: TextVerifiers


class Service:
    """One engine and its users. engine is None until `open` is called with the loaded one."""

    def __init__(self, engine: ServedEngine | None, settings: ServerSettings, tracing: Tracing | None = None) -> None:
        self.settings = settings
        self._tracing = tracing
        self.has_keys = bool(settings.keys())
        self.created = int(time.time())
        self.tenants = Tenants(settings.users_per_key and len(settings.keys()) > 1)
        self.metrics = Metrics(self.status, self._memory_counts, lambda: self.admission.by_key, self._queued_counts)
        self.queues = WorkQueues(settings.max_queued_per_key)
        self.responses = ResponseStore(settings.response_bytes)
        self._served: Served | None = None
        self._bridge: EventLoopBridge[EngineMessage] | None = None
        self._seen_keys = SeenKeys()
        self.admission = AdmissionControl(settings.max_waiting + 1, settings.max_per_key)
        if engine is not None:
            self.open(engine)

    def open(self, engine: ServedEngine) -> None:
        """Begins to serve with this engine."""
        config, settings = engine.prompts.config, self.settings
        places = config.scheduler.places
        capacity, is_shared = places + settings.max_waiting, len(settings.keys()) > 1
        was_draining = self.admission.is_draining  # a signal may have come while the model was loaded
        self.admission = AdmissionControl(capacity, settings.max_per_key, places, is_shared)
        self.admission.is_draining = was_draining
        names = ModelNames(config.model.name, settings.served_model_name, config.model.adapters or ())
        # Last: from here on requests are let in.
        self._served = Served(engine, names, engine.new_verifiers())

    @property
    def served(self) -> Served:
        """What is served; raises RefusedError while the engine is loading."""
        if self._served is None:
            raise RefusedError(503, "the model is being loaded", code="loading")
        return self._served

    @property
    def engine(self) -> ServedEngine:
        """The engine; raises RefusedError while it is loading."""
        return self.served.engine

    @property
    def max_model_len(self) -> int:
        """Tokens of a prompt, its answer and a memory unit together; raises RefusedError while loading."""
        return self.engine.max_model_len

    def most_body_bytes(self, path: str) -> int:
        """How large a request may be: for an answer no larger than the texts that are taken, however they are written.

        What is larger is refused by its head, before it is read and parsed.
        """
        most = self.settings.max_body_bytes
        if path not in ANSWER_PATHS or self._served is None:
            return most
        texts = most_prompt_bytes(self.settings.max_prompt_bytes, self.max_model_len) + MOST_DOCUMENT_BYTES
        return min(most, _JSON_PER_TEXT * texts + _MOST_FORM_BYTES)

    @property
    def summary(self) -> EngineSummary | None:
        """What is on in the engine; None while it is loading."""
        return None if self._served is None else self.engine.summary

    def status(self) -> EngineStatus | None:
        """The engine's state, None while it is loading."""
        return None if self._served is None else self.engine.status()

    def _memory_counts(self) -> Mapping[str, int]:
        memories = None if self._served is None else self.engine.memories
        return {} if memories is None else memories.counts

    def _queued_counts(self) -> Mapping[tuple[str, str], int]:
        """Works that wait, by kind and key; without keys all together, since tenants are addresses then."""
        counts = self.queues.waiting
        if self.has_keys:
            return counts
        return {(kind, ""): sum(counts[one] for one in counts if one[0] == kind) for kind, _ in counts}

    def check_alive(self) -> None:
        """Raises RefusedError if the engine has stopped for good."""
        if self._served is not None and not self.engine.is_alive:
            raise RefusedError(503, "the engine has stopped; restart the server", code="engine_dead", may_retry=False)

    def check_ready(self) -> None:
        """Raises RefusedError unless requests can be served now."""
        self.check_alive()
        stalled_s = self.engine.status().stalled_s
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
        self.check_alive()
        self.check_model(order.body.model)
        new_request, params = self._new_request(request, order)
        run, prompts = self._enter(request, order, order.count * params.n), self.engine.prompts
        try:
            await self.queues.prompts.submit(run.tenant, lambda: run.open(map(new_request, order.prompts(prompts))))
            check_prompts(run.opened, self.settings.max_prompt_tokens)
            check_room(run.opened, order.max_tokens or 1, order.length_field, self.max_model_len)
            run.submit()
            end_turn(request.scope)
            self._count_key(request.headers.get(SESSION_HEADER, ""), await request.json())
        except SchemaError as error:
            run.close()
            raise RefusedError(400, str(error), param=order.form_field, code="invalid_json_schema") from error
        except BaseException:
            run.close()
            raise
        return run

    def _new_request(self, request: Request, order: Order) -> tuple[Callable[[Prompt], EngineRequest], SamplingParams]:
        """What makes the engine's requests of prompts, and how their answers are drawn.

        Raises RefusedError, InvalidRequestError.
        """
        body, key = order.body, key_of(request)
        documents = checked_documents(order, self.settings, self.max_model_len)
        params = sampling_params(order, self.settings)
        new_request = partial(
            EngineRequest,
            params=params,
            documents=documents,
            add_special_tokens=order.special_tokens,
            salt=salt_of(key, body.cache_salt),
            question=order.question,
            topic=order.topic,
            memory=self.tenants.options(key, body.memory, self.engine.prompts.config.longterm),
            tools=order.tools,
            adapter=self.served.names.adapter(body.model),
            closed_world=body.ewe.closed_world,
            tenant=tenant_of(request.scope),
            reasons=order.reasons,
            prefill=order.prefill,
        )
        return new_request, params

    def _enter(self, request: Request, order: Order, count: int) -> Run:
        """Lets in so many answers, as a run for which nothing is submitted yet; raises RefusedError if it is full."""
        holder = holder_of(request.scope)
        self.admission.enter(holder, count, may_wait=not request.scope["state"].get("in_batch"))
        leave = partial(self.admission.leave, holder, count)
        observers: list[RunObserver] = [RunMeter(self.metrics)]
        if self._tracing is not None:
            observers.append(self._tracing.of_run(request.headers))
        body, tenant = order.body, tenant_of(request.scope)
        own_deadline = (body.ewe.deadline_s or self.settings.deadline) < self.settings.deadline
        # Who waits for the whole answer hears of no event before its end.
        events = requested_events(body.ewe) if body.stream else frozenset()
        return Run(self.engine, self._bridge_here(), events, observers, leave, own_deadline, tenant, order.only_prompts)

    def _bridge_here(self) -> EventLoopBridge[EngineMessage]:
        """The bridge to the event loop that runs."""
        loop = asyncio.get_running_loop()
        if self._bridge is None or self._bridge.loop is not loop:
            self._bridge = EventLoopBridge(loop)
        return self._bridge

    def _count_key(self, session: str, body: Any) -> None:
        """Counts whether a request came to where its like was answered before."""
        if key := affinity_key(session, body):
            self.metrics.see_key(key.partition(" ")[0], self._seen_keys.take(key))

    def close(self) -> None:
        """Ends the service's own threads; an app that is started once more gets new ones. The engine is its owner's."""
        self.queues.close()
        self.queues = WorkQueues(self.settings.max_queued_per_key)
        if self._served is not None:
            self._served.verifiers.close()
            self._served = replace(self._served, verifiers=self.engine.new_verifiers())


def service_of(request: Request) -> Service:
    """The service of the app that a request came to."""
    service: Service = request.app.state.service
    return service


def key_of(request: Request) -> str:
    """Which key a request came with: a name for it that does not tell it; empty without keys."""
    return str(request.scope.get("state", {}).get("key", ""))
