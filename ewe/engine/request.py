"""What is asked of the engine: a request as callers state it, and as it runs once it has been checked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ewe.config.memory_mark import PlacedPrompt
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.errors import InvalidRequestError
from ewe.text.tool_calls.use import ToolUse
from ewe.types import MemoryOptions, Passage
from ewe.types.sampling_params import SamplingParams

Prompt = str | Sequence[int] | PlacedPrompt
Document = str | Passage
_TEXTS = ("title", "source", "url", "date")


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt and all that goes with it.

    documents: texts or passages that fill the memory at the start. question: what retrieval and verification are told
    in place of the prompt, if it is not empty; topic: what it is about, where it follows up on earlier turns. memory:
    whose long-term memories it may use; None: those that the settings name. tools: what may be called, and how.
    listener: hears of all `n` answers, in the engine's thread. on_tokens: hears, there, of tokens in place of the texts
    that follow from them: which answer's, and their ids. salt: requests with different salts share no encoded
    units. adapter: the name of the LoRA adapter that computes it; empty for none. shared_prefix: how the prompt begins,
    if others do, too: without memory, this is encoded once for all. kept: special tokens whose texts are not left out,
    by id. is_plain: only decoding, whatever the policy. label_token_ids: the answer is the likeliest of these tokens,
    its `top_logprobs` those of all of them (if `logprobs` are asked for); the prompt goes before all others.
    closed_world: whether what the datastore does not bear is refuted as unsupported; None: as the settings say. tenant:
    who asks; tenants whose requests wait take turns. reasons: whether what the model reasons before it answers is told
    apart from its text. prefill: how the answer begins, with which the prompt ends; its sentences are given.
    """

    prompt: Prompt
    params: SamplingParams = field(default_factory=SamplingParams)
    documents: Sequence[Document] | None = None
    question: str = ""
    topic: str = ""
    memory: MemoryOptions | None = None
    tools: ToolUse | None = None
    listener: Callable[[StreamEvent], None] | None = None
    on_tokens: Callable[[int, Sequence[int]], None] | None = None
    add_special_tokens: bool = True
    salt: str = ""
    adapter: str = ""
    shared_prefix: str = ""
    kept: Mapping[int, str] = field(default_factory=dict)
    is_plain: bool = False
    label_token_ids: tuple[int, ...] = ()
    closed_world: bool | None = None
    tenant: str = ""
    reasons: bool = True
    prefill: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.params, SamplingParams):
            raise _not_params(self.params)
        if not isinstance(self.memory, MemoryOptions | None):
            raise InvalidRequestError(f"memory must be ewe.MemoryOptions, got {type(self.memory).__name__}")

    def passages(self, capacity: int, has_tokenizer: bool) -> list[Passage]:
        """The documents as passages, those without a name numbered.

        capacity: how many units they have room in. Raises InvalidRequestError.
        """
        documents = self.documents or ()
        if isinstance(documents, str) or not isinstance(documents, Sequence):
            given = "one string" if isinstance(documents, str) else type(documents).__name__
            raise InvalidRequestError(f"documents: this must be a list of texts or passages, not {given}")
        if len(documents) > capacity:
            raise InvalidRequestError(
                f"documents: {len(documents)} do not fit into {capacity} units: raise memory.retrieval_units, or put "
                "them into a datastore"
            )
        if documents and not has_tokenizer:
            raise InvalidRequestError("documents: they need a tokenizer, and this model has none")
        for document in documents:
            if not isinstance(document, str | Passage):
                given = type(document).__name__
                raise InvalidRequestError(f"documents: each must be a text or an ewe.Passage, got {given}")
        passages = [
            document if isinstance(document, Passage) else Passage(id=f"document-{number}", text=document)
            for number, document in enumerate(documents, 1)
        ]
        for passage in passages:
            if not passage.text.strip():
                raise InvalidRequestError(f"documents: {passage.id!r} is empty")
            wrong = next((name for name in _TEXTS if not isinstance(getattr(passage, name), str)), "")
            if wrong:
                raise InvalidRequestError(f"documents: {passage.id!r}: {wrong} must be a string, empty for none")
            check_unicode(f"documents: {passage.id!r}", passage.text)
        return passages


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedRequest:
    """A request that has been checked; its `n` answers share it.

    original: the request as it was stated. prompt: its text; question: what retrieval and verification are told of it,
    under its topic. prefix_ids: the prompt up to its memory, which is encoded apart and shared, empty where
    units are bare; prompt_ids: the rest. start_position: the rotary position of the rest's first token. max_tokens: how
    many may be generated. memory: whose long-term memories it may use.
    """

    id: str
    original: Request
    prompt: str
    question: str
    prefix_ids: tuple[int, ...]
    prompt_ids: tuple[int, ...]
    seed: int
    start_position: int
    max_tokens: int
    memory: MemoryOptions

    @property
    def params(self) -> SamplingParams:
        """How its tokens are chosen."""
        return self.original.params

    @property
    def has_memory(self) -> bool:
        """Whether positions are left free for units; without them they would stand where the text stands."""
        return self.start_position > len(self.prefix_ids)

    @property
    def user_text(self) -> str:
        """What the user says in it, without its topic."""
        return self.original.question if self.original.question.strip() else self.prompt

    @property
    def passages(self) -> Sequence[Passage]:
        """Its documents, which are passages since it was checked."""
        return cast(Sequence[Passage], self.original.documents or ())

    @property
    def num_prompt_tokens(self) -> int:
        """Tokens of the whole prompt."""
        return len(self.prefix_ids) + len(self.prompt_ids)


def stream_request(
    prompt: Prompt, params: SamplingParams | None, listener: Callable[[StreamEvent], None], **given: Any
) -> Request:
    """The request of a stream, which carries one answer; given: as `Request` takes it.

    Raises InvalidRequestError for several answers.
    """
    request = Request(prompt, params or SamplingParams(), listener=listener, **given)
    if request.params.n != 1:
        raise InvalidRequestError("a stream carries one answer: set n to 1")
    return request


def as_prompts(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    """One prompt or many, as a list of them; a list of numbers is one prompt of token ids.

    Raises InvalidRequestError for what is neither.
    """
    if isinstance(prompts, str | PlacedPrompt):
        return [prompts]
    listed = listed_prompt(prompts)
    if listed and all(isinstance(item, int) for item in listed):
        return [listed]  # one prompt of token ids
    return listed


def listed_prompt(prompt: object) -> list[Any]:
    """What a list of token ids, or of prompts, holds; raises InvalidRequestError for what is no list.

    Of a mapping, vLLM's form of a prompt, its keys would be answered, and of bytes their numbers.
    """
    if isinstance(prompt, Mapping):
        raise InvalidRequestError(
            "a prompt is a text or a list of token ids, got a mapping: give what it holds under 'prompt' or "
            "'prompt_token_ids'"
        )
    if isinstance(prompt, bytes | bytearray) or not isinstance(prompt, Iterable):
        raise InvalidRequestError(f"a prompt is a text or a list of token ids, got {type(prompt).__name__}")
    return list(prompt)


def as_params(
    params: SamplingParams | Sequence[SamplingParams] | None, count: int, items: str = "prompts"
) -> list[SamplingParams]:
    """One SamplingParams for each; raises InvalidRequestError for another number of them."""
    if params is None or isinstance(params, SamplingParams):
        return [params or SamplingParams()] * count
    if isinstance(params, str) or not isinstance(params, Sequence):
        raise _not_params(params)
    if len(params) != count:
        raise InvalidRequestError(f"{len(params)} SamplingParams for {count} {items}: give one, or one for each")
    return list(params)


def _not_params(given: object) -> InvalidRequestError:
    return InvalidRequestError(f"sampling_params must be SamplingParams, or a list of them, got {type(given).__name__}")


def has_grammar(tools: ToolUse | None, *forms: object) -> bool:
    """Whether an answer must follow a grammar from its first token on; forms: its schema and the like, None for any."""
    return any(form is not None for form in forms) or (tools is not None and tools.grammar is not None)


def check_closed_world(closed_world: object, unchecked: str = "") -> None:
    """Raises InvalidRequestError for what is no bool or None, and for True where nothing is checked, which says why."""
    if closed_world is not None and not isinstance(closed_world, bool):
        raise InvalidRequestError(f"closed_world: this must be True, False or None, got {closed_world!r}")
    if closed_world and unchecked:
        raise InvalidRequestError(f"closed_world: sentences are not checked here: {unchecked}")


def check_unicode(where: str, text: str) -> None:
    """Raises InvalidRequestError for a text that no tokenizer takes; where: what holds it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequestError(f"{where} holds half of a surrogate pair at {error.start}") from error
