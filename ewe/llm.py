"""LLM: the Python interface of the engine.

Owns: the public calls and the way of a request into the engine thread and back. Knows the assembly of the parts.
"""

from __future__ import annotations

import itertools
import queue
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Batch
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any

from ewe.assembly import build_engine, make_components
from ewe.config import Config, load_yaml
from ewe.engine.intake import Document, Prompt
from ewe.engine.loader import LoadedModel
from ewe.engine.loop import EngineLoop
from ewe.engine.sequence import Sequence, StreamEvent
from ewe.errors import ConfigError, EngineDeadError, InvalidRequestError
from ewe.protocols import Retriever, Verifier
from ewe.retrieval.datastore import Datastore
from ewe.sampling import SamplingParams
from ewe.types import Generation, Passage

Message = Mapping[str, str]
_Answer = tuple[str, Generation] | EngineDeadError


class LLM:
    """A model with its working memory, retriever and verifier, ready to write.

    model: "builtin", a directory or a hub id. datastore: "builtin", a JSONL file, a Datastore or a Retriever. verifier:
    "builtin" or a Verifier. config: a Config, a YAML file or a mapping; without one the built-in model brings its own
    settings. loaded: a model that is already in memory. Raises ConfigError or UnsupportedModelError.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        datastore: str | Path | Datastore | Retriever | None = None,
        verifier: str | Verifier | None = None,
        config: Config | str | Path | Mapping[str, Any] | None = None,
        loaded: LoadedModel | None = None,
    ) -> None:
        self.config = resolve_config(model, config)
        components = make_components(self.config, datastore, verifier)
        self._engine = build_engine(self.config, components, self._deliver, loaded)
        self._waiting: dict[str, queue.SimpleQueue[_Answer]] = {}
        self._request_numbers = itertools.count(1)
        self._loop = EngineLoop(self._engine.core, self._engine.changed, self._report_death)

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer, None if it has none."""
        return self._engine.loaded.tokenizer

    def generate(
        self,
        prompts: Prompt | Batch[Prompt],
        params: SamplingParams | Batch[SamplingParams] | None = None,
        documents: Batch[Document] | None = None,
        on_result: Callable[[int, Generation], None] | None = None,
    ) -> list[Generation]:
        """Answers to one prompt or many, in order; with n > 1 a prompt's answers follow each other.

        prompts: strings or token ids. params: one for all or one per prompt. documents: texts or passages that fill the
        memory of every prompt at the start. on_result: called with the prompt's number and each answer as it finishes.
        Raises InvalidRequestError before anything is computed.
        """
        listed = _as_prompts(prompts)
        per_prompt = _as_params(params, len(listed))
        jobs = list(zip(listed, per_prompt, strict=True))
        return self._run([self._build(prompt, each, documents) for prompt, each in jobs], on_result)

    def chat(
        self,
        messages: Batch[Message],
        params: SamplingParams | None = None,
        documents: Batch[Document] | None = None,
    ) -> list[Generation]:
        """Answers to a conversation: [{"role": ..., "content": ...}, ...] goes through the model's chat template."""
        prompt = self.apply_chat_template(messages)
        sequence = self._build(prompt, params or SamplingParams(), documents, add_special_tokens=False)
        return self._run([sequence], None)

    def stream(
        self,
        prompt: Prompt,
        params: SamplingParams | None = None,
        documents: Batch[Document] | None = None,
        add_special_tokens: bool = True,
    ) -> Iterator[StreamEvent]:
        """Events of one answer as it is written; "text" events are final and add up to the answer's text.

        Leaving the iterator early aborts the request. Raises InvalidRequestError at once, before the first event.
        """
        params = params or SamplingParams()
        if params.n != 1:
            raise InvalidRequestError("a stream carries one answer: set n to 1")
        events: queue.SimpleQueue[StreamEvent | EngineDeadError] = queue.SimpleQueue()
        sequence = self._build(prompt, params, documents, events.put, add_special_tokens)
        return self._events(sequence, events)

    def apply_chat_template(self, messages: Batch[Message]) -> str:
        """The prompt that the model's chat template makes of a conversation; it already holds its BOS."""
        if getattr(self.tokenizer, "chat_template", None) is None:
            raise InvalidRequestError(f"the model {self.config.model.name!r} has no chat template: use generate()")
        if not messages:
            raise InvalidRequestError("messages is empty: give at least one message")
        return str(self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True))

    def unit_token_ids(self, document: Document) -> list[int]:
        """The tokens that the memory unit of a text or passage holds."""
        if self._engine.unit_tokenizer is None:
            raise InvalidRequestError("this model has no tokenizer, so it can hold no units")
        passage = document if isinstance(document, Passage) else Passage(id="document", text=document)
        return list(self._engine.unit_tokenizer.encode(passage).token_ids)

    def check_integrity(self) -> None:
        """Raises AssertionError unless every KV block is accounted for; for tests, when no request is under way."""
        engine = self._engine
        holders = [sequence.table.blocks for sequence in engine.core.sequences]
        engine.manager.check_integrity([*holders, *engine.keeper.cache.holders()])

    def close(self) -> None:
        """Aborts what is under way and ends the engine's threads."""
        self._loop.close()
        self._engine.core.close()

    def __enter__(self) -> LLM:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _build(
        self,
        prompt: Prompt,
        params: SamplingParams,
        documents: Batch[Document] | None,
        listener: Callable[[StreamEvent], None] | None = None,
        add_special_tokens: bool = True,
    ) -> Sequence:
        request_id = f"request-{next(self._request_numbers)}"
        return self._engine.intake.build(request_id, prompt, params, documents, listener, add_special_tokens)

    def _run(
        self, sequences: list[Sequence], on_result: Callable[[int, Generation], None] | None
    ) -> list[Generation]:
        answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
        numbers = {sequence.request_id: number for number, sequence in enumerate(sequences)}
        left = sum(1 + len(sequence.siblings) for sequence in sequences)
        found: dict[tuple[int, int], Generation] = {}
        self._waiting.update(dict.fromkeys(numbers, answers))
        try:
            for sequence in sequences:
                self._submit(sequence)
            while left:
                answer = answers.get()
                if isinstance(answer, EngineDeadError):
                    raise answer
                request_id, generation = answer
                found[numbers[request_id], generation.index] = generation
                left -= 1
                if on_result is not None:
                    on_result(numbers[request_id], generation)
        finally:
            for request_id in numbers:
                self._waiting.pop(request_id, None)
            if left:
                self._abort(list(numbers))
        return [found[key] for key in sorted(found)]

    def _events(
        self, sequence: Sequence, events: queue.SimpleQueue[StreamEvent | EngineDeadError]
    ) -> Iterator[StreamEvent]:
        finished = False
        self._waiting[sequence.request_id] = events  # type: ignore[assignment]  # the loop's death reaches it too
        try:
            self._submit(sequence)
            while not finished:
                event = events.get()
                if isinstance(event, EngineDeadError):
                    raise event
                if isinstance(event, StreamEvent):
                    finished = event.kind == "finish"
                    yield event
        finally:
            self._waiting.pop(sequence.request_id, None)
            if not finished:
                self._abort([sequence.request_id])

    def _submit(self, sequence: Sequence) -> None:
        self._loop.do(lambda core: core.add(sequence))

    def _abort(self, request_ids: list[str]) -> None:
        for request_id in request_ids:
            self._loop.do(lambda core, name=request_id: core.abort(name))

    def _deliver(self, sequence: Sequence, generation: Generation) -> None:
        waiting = self._waiting.get(sequence.request_id)
        if waiting is not None:
            waiting.put((sequence.request_id, generation))

    def _report_death(self, error: EngineDeadError) -> None:
        for waiting in list(self._waiting.values()):
            waiting.put(error)


def resolve_config(model: str | None, config: Config | str | Path | Mapping[str, Any] | None) -> Config:
    """The settings of an engine: those given, with `model` in place of their model name.

    The built-in model without settings brings its own (`ewe/world/builtin.yaml`).
    """
    if isinstance(config, Config):
        values = config.model_dump(exclude_unset=True)
    elif isinstance(config, Mapping):
        values = dict(config)
    elif config is not None:
        values = load_yaml(config)
    elif model in (None, "builtin"):
        values = load_yaml(Path(str(files("ewe"))) / "world" / "builtin.yaml")
    else:
        values = {}
    if model is not None:
        group = values.get("model", {})
        if not isinstance(group, Mapping):
            raise ConfigError("model must be a group of settings; its name is model.name")
        values["model"] = {**group, "name": model}
    return Config.from_mapping(values)


def _as_prompts(prompts: Prompt | Batch[Prompt]) -> list[Prompt]:
    if isinstance(prompts, str):
        return [prompts]
    listed = list(prompts)
    if listed and all(isinstance(item, int) for item in listed):
        return [listed]  # type: ignore[list-item]  # one prompt of token ids
    return listed  # type: ignore[return-value]


def _as_params(params: SamplingParams | Batch[SamplingParams] | None, count: int) -> list[SamplingParams]:
    if params is None or isinstance(params, SamplingParams):
        return [params or SamplingParams()] * count
    if len(params) != count:
        raise InvalidRequestError(f"{len(params)} SamplingParams for {count} prompts: give one, or one per prompt")
    return list(params)
