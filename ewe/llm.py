"""LLM: the Python interface of the engine."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ewe.client import EngineClient
from ewe.components import make_components, memory_store
from ewe.config import Config, resolve_config, with_named
from ewe.config.loading import OnLoad, ignore_step
from ewe.config.registry import verifies
from ewe.engine.request import Document, Prompt, Request, as_params, as_prompts, has_grammar, stream_request
from ewe.engine.startup.preflight import preflight
from ewe.errors import ConfigError, EngineDeadError, InvalidRequestError
from ewe.text.conversation import Conversation, as_conversations, question_of, topic_of
from ewe.text.tool_calls.chat_prompts import ChatPrompts
from ewe.text.tool_calls.tools import ToolChoice, ToolRequest
from ewe.text.tool_calls.use import ToolUse
from ewe.types import Generation, MemoryOptions, Passage
from ewe.types.protocols import Memories, Retriever, Verifier
from ewe.types.sampling_params import SamplingParams, check_no_bar

if TYPE_CHECKING:
    from ewe.engine.answer_text.stream_events import StreamEvent
    from ewe.engine.models.loader import LoadedModel
    from ewe.retrieval.datastore import Datastore


class LLM(ChatPrompts):
    """A model with its working memory, retriever and verifier, ready to write.

    model: "builtin", "smollm2", a directory, a GGUF file or a hub id. datastore: "builtin", "none", a folder made by
    `ewe index build`, a JSONL file, a Datastore or a Retriever. verifier: "auto", "claims", "builtin", "none" or a
    Verifier; without a word as the settings say, whose default "auto" has sentences checked wherever there is a
    datastore. longterm: the folder of a store of memories (as `longterm.path`), or a `MemoryService` over one, which
    stays the caller's. config: a Config, a YAML file or a mapping; without one the built-in model brings its own
    settings. loaded: a model that is already in memory. on_load: called with each `LoadStep` while it opens.

    Settings, folders and names are checked before torch is imported and weights are read. Encoders and judges are
    loaded with the first request; on a GPU before that, lest the KV pool take their memory. Raises ConfigError,
    UnsupportedModelError or DatastoreError.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        datastore: str | Path | Datastore | Retriever | None = None,
        verifier: str | Verifier | None = None,
        longterm: Any = None,
        config: Config | str | Path | Mapping[str, Any] | None = None,
        loaded: LoadedModel | None = None,
        on_load: OnLoad = ignore_step,
    ) -> None:
        service, path = memory_store(longterm)
        self.config = with_named(resolve_config(model, config), datastore=datastore, verifier=verifier, longterm=path)
        preflight(self.config, loaded is not None)
        components = make_components(self.config, datastore, verifier, service, on_load, loaded is not None)
        self.client = EngineClient(self.config, components, loaded, on_load)
        self.config = self.client.engine.config
        super().__init__(self.config, self.client.engine.loaded.tokenizer)
        if (memories := components.memories) is not None and self.config.longterm.extractor == "model":
            if not self.has_chat_template or find_spec("llguidance") is None:
                raise ConfigError("longterm.extractor: model needs a chat model and 'ewe-engine[structured]'")
            memories.extract_with(self.chat_plainly)

    @cached_property
    def verifies(self) -> bool:
        """Whether sentences are checked before they are final."""
        return self.client.components.verifier is not None and verifies(self.config.policy)

    @property
    def memories(self) -> Memories:
        """The long-term memories, a `RequestMemories`; raises ConfigError where there are none."""
        if self.client.components.memories is None:
            raise ConfigError("this engine keeps no memories: set longterm.path to a folder for them")
        return self.client.components.memories

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        documents: Sequence[Document] | None = None,
        on_result: Callable[[int, Generation], None] | None = None,
        memory: MemoryOptions | None = None,
        adapter: str = "",
        closed_world: bool | None = None,
        use_tqdm: bool = False,
    ) -> list[Generation]:
        """Answers to one prompt or many, in order; with n > 1 a prompt's answers follow each other.

        prompts: strings or token ids. sampling_params: one for all or one per prompt. documents: texts or passages that
        fill the memory of every prompt at the start. on_result: called with the prompt's number and each answer as it
        finishes. memory: whose long-term memories they may use; None: those that the settings name. adapter: the name
        of a LoRA adapter of `model.adapters`; empty for none. closed_world: whether what the datastore does not bear is
        refuted as unsupported; None: as `feedback.closed_world` says. use_tqdm: only False, as in programs for vLLM.
        Raises InvalidRequestError before anything is computed.
        """
        check_no_bar(use_tqdm)
        listed = as_prompts(prompts)
        requests = [
            Request(prompt, own, documents, memory=memory, adapter=adapter, closed_world=closed_world)
            for prompt, own in zip(listed, as_params(sampling_params, len(listed)), strict=True)
        ]
        return self.client.run(requests, on_result)

    def chat(
        self,
        messages: Conversation | Sequence[Conversation],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        documents: Sequence[Document] | None = None,
        on_result: Callable[[int, Generation], None] | None = None,
        memory: MemoryOptions | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: ToolChoice = "auto",
        adapter: str = "",
        closed_world: bool | None = None,
        thinking: bool | None = None,
        continue_final_message: bool = False,
        use_tqdm: bool = False,
    ) -> list[Generation]:
        """Answers to one conversation or many, in order, as `generate` gives them.

        messages: [{"role": ..., "content": ...}, ...], or a list of such lists; each goes through the model's chat
        template. sampling_params: one for all or one per conversation. tools, tool_choice: functions that may be
        called, in OpenAI's form; answers then have `tool_calls`. thinking: whether a model that can reason before it
        answers does (`Generation.reasoning`; never where the answer must be JSON or a call); None: as `model.thinking`.
        continue_final_message: whether the last message, the assistant's, begins the answer; what stands there is not
        checked, but for the sentence that goes on. The rest is as in `generate`. Retrieval and verification are told
        the user's last message, without the template's control text. Raises InvalidRequestError before anything is
        computed.
        """
        check_no_bar(use_tqdm)
        use = self.tool_use(tools, tool_choice)
        requests = self.chat_requests(
            messages, sampling_params, documents, memory, use, adapter, closed_world, thinking, continue_final_message
        )
        if use is None:
            return self.client.run(requests, on_result)
        tell = None if on_result is None else lambda number, answer: on_result(number, use.read(answer))
        return [use.read(answer) for answer in self.client.run(requests, tell)]

    def chat_plainly(self, messages: Conversation, params: SamplingParams) -> str:
        """The whole text that the model itself goes on with: no retrieval, checks, memories or policy.

        Raises CompletionError for an answer that is cut or fails; otherwise as `chat`.
        """
        apart = MemoryOptions(scope="none") if self.config.longterm.path is not None else None
        prompt = self.apply_chat_template(messages, thinking=False)
        request = Request(prompt, params, add_special_tokens=False, memory=apart, is_plain=True)
        [answer] = self.client.run([request], None)
        if answer.finish_reason != "stop":
            from ewe.verification.endpoint.protocol import CompletionError

            raise CompletionError(f"the model's answer is not whole: {answer.error or answer.finish_reason}")
        return answer.text

    def chat_requests(
        self,
        messages: Conversation | Sequence[Conversation],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
        documents: Sequence[Document] | None = None,
        memory: MemoryOptions | None = None,
        tools: ToolUse | None = None,
        adapter: str = "",
        closed_world: bool | None = None,
        thinking: bool | None = None,
        continue_final_message: bool = False,
    ) -> list[Request]:
        """The requests of conversations, one each; what `chat` of both interfaces runs."""
        conversations = as_conversations(messages)
        per_conversation = as_params(params, len(conversations), "conversations")
        return [
            Request(
                self.chat_prompt(
                    conversation,
                    tools,
                    False if has_grammar(tools, own.json_schema, own.grammar) else thinking,
                    continue_final_message,
                ),
                own,
                documents,
                question_of(conversation),
                topic_of(conversation),
                memory,
                tools,
                add_special_tokens=False,
                adapter=adapter,
                closed_world=closed_world,
                prefill=str(conversation[-1]["content"]) if continue_final_message else "",
            )
            for conversation, own in zip(conversations, per_conversation, strict=True)
        ]

    def tool_use(self, tools: Sequence[Mapping[str, Any]] | None, tool_choice: ToolChoice = "auto") -> ToolUse | None:
        """How conversations with this model use tools in OpenAI's form; None without any that may be called."""
        return self.chat_template.tool_use(ToolRequest.from_openai(tools, tool_choice))

    def stream(
        self,
        prompt: Prompt,
        sampling_params: SamplingParams | None = None,
        documents: Sequence[Document] | None = None,
        add_special_tokens: bool = True,
        question: str = "",
        memory: MemoryOptions | None = None,
        adapter: str = "",
        closed_world: bool | None = None,
    ) -> Iterator[StreamEvent]:
        """Events of one answer as it is written; "text" events are final and add up to the answer's text.

        question: what retrieval and verification are told in place of a prompt that holds more, like a conversation's.
        Leaving the iterator early aborts the request. Raises InvalidRequestError at once, before the first event.
        """
        events: queue.SimpleQueue[StreamEvent | EngineDeadError] = queue.SimpleQueue()
        request = stream_request(
            prompt, sampling_params, events.put, documents=documents, question=question, memory=memory,
            add_special_tokens=add_special_tokens, adapter=adapter, closed_world=closed_world,
        )  # fmt: skip
        return self.client.events(self.client.build(request), events)

    def unit_token_ids(self, document: Document, in_prompt: bool = False) -> list[int]:
        """The tokens that the memory unit of a text or passage holds; in_prompt: of one that stands inside a prompt."""
        unit_tokenizer = self.client.engine.memory_manager.unit_tokenizer
        if unit_tokenizer is None:
            raise InvalidRequestError("this model has no tokenizer, so it can hold no units")
        passage = document if isinstance(document, Passage) else Passage(id="document", text=document)
        return list((unit_tokenizer.in_prompt if in_prompt else unit_tokenizer).encode(passage).token_ids)

    def check_integrity(self) -> None:
        """Raises AssertionError unless every KV block is accounted for; for tests, when no request is under way."""
        engine = self.client.engine
        holders = [sequence.table.blocks for sequence in engine.core.active.sequences]
        engine.block_manager.check_integrity([*holders, *engine.memory_manager.cache.holders()])

    def close(self) -> None:
        """Aborts what is under way and ends the engine's threads."""
        self.client.close()

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
