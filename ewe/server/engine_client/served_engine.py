"""What the server needs of an engine, be that in this process or in one of its own."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ewe.client import Answer
from ewe.config.loading import OnLoad
from ewe.server.engine_client.served_models import OwnSentenceModels, SentenceModels
from ewe.server.engine_client.text_verifiers import OwnTextVerifiers, TextVerifiers

if TYPE_CHECKING:
    from ewe.engine.inputs.request_tokenizer import RequestTokenizer
    from ewe.engine.request import Request, TokenizedRequest
    from ewe.engine.startup.engine_summary import EngineSummary
    from ewe.engine.status import EngineStatus
    from ewe.llm import LLM
    from ewe.text.tool_calls.chat_prompts import ChatPrompts
    from ewe.types.protocols import Memories


_numbers = itertools.count(1)  # of all engines here: several may serve one LLM


@dataclass(frozen=True, eq=False)
class OpenedRequest:
    """A checked request, ready to run. arrived: when it was opened, in seconds of time.monotonic.

    submit: starts it; what it is given is called with each answer, or with the error if the engine breaks, and submit
    itself raises EngineDeadError if that has happened.
    """

    request: TokenizedRequest
    arrived: float
    submit: Callable[[Callable[[Answer], object]], None]


class ServedEngine(ABC):
    """One running engine.

    prompts: of conversations, with the tokenizer. tokenizing: checks requests. summary: what is on. device: where the
    KV pool is; memory_lines: what its memory holds. memories: None where there are none. sentence_models: those of the
    datastore's retrieval.
    """

    prompts: ChatPrompts
    tokenizing: RequestTokenizer
    summary: EngineSummary | None
    device: str
    memory_lines: Sequence[str]
    memories: Memories | None
    sentence_models: SentenceModels

    @property
    def max_model_len(self) -> int:
        """Tokens of a prompt, its answer and a memory unit together."""
        return self.tokenizing.limits.max_model_len

    @property
    @abstractmethod
    def is_alive(self) -> bool:
        """Whether requests are still served."""

    @abstractmethod
    def status(self) -> EngineStatus:
        """The engine's state; from any thread."""

    def open(self, request: Request) -> OpenedRequest:
        """A request, checked and ready to run; from any thread. Raises InvalidRequestError or EngineDeadError."""
        return self.admit(self.tokenizing.prepare(f"served-{next(_numbers)}", request))

    @abstractmethod
    def admit(self, request: TokenizedRequest) -> OpenedRequest:
        """A request that has been tokenised, ready to run; raises as `open` does."""

    @abstractmethod
    def forget(self, request_id: str, abort: bool) -> None:
        """Stops listening to a request; with `abort` it ends now."""

    @abstractmethod
    def new_verifiers(self) -> TextVerifiers:
        """What checks finished texts, to be closed by the caller."""

    @abstractmethod
    def warm(self, on_load: OnLoad) -> None:
        """Loads what would be loaded with the first request."""

    @abstractmethod
    def close(self) -> None:
        """Aborts what is under way and ends the engine."""


class LocalEngine(ServedEngine):
    """The engine of an LLM in this process."""

    def __init__(self, llm: LLM) -> None:
        client = llm.client
        self._llm, self._components = llm, client.components
        self.prompts = llm
        self.tokenizing = client.engine.input_processor
        self.summary = self._components.summary
        self.device = str(client.engine.pool.device)
        budget = client.engine.budget
        self.memory_lines = tuple(budget.lines()) if budget is not None else ()
        self.memories = self._components.memories
        self.sentence_models = OwnSentenceModels(llm.config.retrieval, self._components.retriever)

    @property
    def is_alive(self) -> bool:
        """Whether requests are still served."""
        return self._llm.client.is_alive

    def status(self) -> EngineStatus:
        """The engine's state at this moment."""
        return self._llm.client.status()

    def admit(self, request: TokenizedRequest) -> OpenedRequest:
        """A request that has been tokenised, ready to run."""
        sequence = self._llm.client.sequence(request)
        return OpenedRequest(sequence.request, sequence.arrived, partial(self._llm.client.submit, sequence))

    def forget(self, request_id: str, abort: bool) -> None:
        """Stops listening to a request; raises EngineDeadError."""
        self._llm.client.forget(request_id, abort)

    def new_verifiers(self) -> TextVerifiers:
        """What checks finished texts in this process."""
        return OwnTextVerifiers(self._llm.config, self._components)

    def warm(self, on_load: OnLoad) -> None:
        """Loads the models that retriever, verifier and memories would load with their first request."""
        self._components.warm(on_load)

    def close(self) -> None:
        """Ends the LLM."""
        self._llm.close()
