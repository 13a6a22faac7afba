"""What a request may ask for: how its tokens are chosen, with vLLM's names, and whose memories it may use."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from numbers import Integral, Real
from operator import index
from typing import Any, Literal, get_args

from ewe.errors import InvalidRequestError

_LEAST_TEMPERATURE = 1e-5  # logits divided by far less are not finite
_KINDS: Mapping[Any, tuple[type, str]] = {
    int: (Integral, "a whole number"),
    int | None: (Integral, "a whole number"),
    float: (Real, "a number"),
    float | None: (Real, "a number"),
    bool: (bool, "True or False"),
}

MemoryScope = Literal["all", "own", "shared", "none"]


def check_no_bar(use_tqdm: object) -> None:
    """Raises InvalidRequestError for who wants a bar, as vLLM draws one."""
    _check(not use_tqdm, "use_tqdm: no bar is drawn here: leave it out, and count answers with on_result")


def _check(ok: bool, message: str) -> None:
    if not ok:
        raise InvalidRequestError(message)


def _of_kind(name: str, value: Any, kind: type, words: str) -> Any:
    """The value, whole numbers as int; raises InvalidRequestError for another type: the engine would stop at it."""
    _check(
        isinstance(value, kind) and isinstance(value, bool) == (kind is bool), f"{name} must be {words}, got {value!r}"
    )
    return index(value) if kind is Integral else value


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How many tokens, how they are drawn, and what ends the text.

    temperature 0 is greedy, and less than 1e-5 becomes 0; top_k 0 or -1, top_p 1 and min_p 0 are off; logprobs: None
    for none, 0 for the chosen token's, n for the n likeliest besides; prompt_logprobs: the same for the prompt's
    tokens. logit_bias: token id -> value added to its logit. deadline_s: seconds after arrival at which the request
    ends with what it has. json_schema: the text is JSON that satisfies this schema; grammar: it follows this one, in
    llguidance's form of Lark (both need llguidance; with "length" as its end it is cut). None is the default of any of
    them. Raises InvalidRequestError for values of another type or out of range.
    """

    max_tokens: int = 256
    min_tokens: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    n: int = 1
    stop: tuple[str, ...] | str = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    deadline_s: float | None = None
    json_schema: Mapping[str, Any] | None = None
    grammar: str | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is None and item.default is not None:  # as null in OpenAI's API
                object.__setattr__(self, item.name, {} if item.default is MISSING else item.default)
            elif value is not None and item.type in _KINDS:
                object.__setattr__(self, item.name, _of_kind(item.name, value, *_KINDS[item.type]))
        self._check_texts()
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)
        _check(all(isinstance(text, str) for text in stop), f"stop must hold texts, got {self.stop!r}")
        object.__setattr__(self, "stop", stop)
        object.__setattr__(self, "stop_token_ids", tuple(self.stop_token_ids))
        _check(self.max_tokens >= 1, f"max_tokens must be at least 1, got {self.max_tokens}")
        _check(0 <= self.min_tokens <= self.max_tokens, "min_tokens must lie between 0 and max_tokens")
        _check(0.0 <= self.temperature < float("inf"), f"temperature must be 0 or more, got {self.temperature}")
        if self.temperature < _LEAST_TEMPERATURE:
            object.__setattr__(self, "temperature", 0.0)
        _check(0.0 < self.top_p <= 1.0, f"top_p must lie in (0, 1], got {self.top_p}")
        _check(self.top_k >= -1, f"top_k must be -1, 0 or more, got {self.top_k}")
        _check(0.0 <= self.min_p <= 1.0, f"min_p must lie in [0, 1], got {self.min_p}")
        _check(self.n >= 1, f"n must be at least 1, got {self.n}")
        _check(all(stop), "stop strings must not be empty")
        _check(-2.0 <= self.presence_penalty <= 2.0, "presence_penalty must lie in [-2, 2]")
        _check(-2.0 <= self.frequency_penalty <= 2.0, "frequency_penalty must lie in [-2, 2]")
        _check(self.repetition_penalty > 0.0, "repetition_penalty must be over 0")
        finite = (isinstance(bias, Real) and math.isfinite(bias) for bias in self.logit_bias.values())
        _check(all(finite), "logit_bias must hold finite numbers")
        _check(self.logprobs is None or self.logprobs >= 0, "logprobs must be 0 or more")
        _check(self.prompt_logprobs is None or self.prompt_logprobs >= 0, "prompt_logprobs must be 0 or more")
        _check(self.deadline_s is None or self.deadline_s > 0, "deadline_s must be over 0")
        _check(self.json_schema is None or self.grammar is None, "json_schema and grammar: there can be one of them")

    def _check_texts(self) -> None:
        """Raises InvalidRequestError for what holds no texts, ids or parts."""
        schema, bias = self.json_schema, self.logit_bias
        _check(isinstance(self.stop, Iterable), f"stop must be a text or a list of texts, got {self.stop!r}")
        _check(isinstance(self.stop_token_ids, Iterable), f"stop_token_ids must be a list, got {self.stop_token_ids!r}")
        _check(isinstance(bias, Mapping), f"logit_bias must be a mapping of token ids to numbers, got {bias!r}")
        _check(
            schema is None or isinstance(schema, Mapping),
            f"json_schema must be a mapping, as json.loads makes one of a text, got {type(schema).__name__}",
        )
        _check(
            self.grammar is None or isinstance(self.grammar, str),
            f"grammar must be a text, got {type(self.grammar).__name__}",
        )


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """Whose long-term memories a request may use, and how far they must be believed.

    user, agent: who asks, with which agent; what the request teaches goes there as well. scope: "all" that they may
    see, "own" (without those that everybody shares), "shared" (those only), or "none". threshold: the veracity to ask
    for, in [0, 1]; None: that of the settings. remember: whether facts of the user's last message become memories.
    Raises InvalidRequestError for values out of range, for "own" of nobody, and for "none" with remember.
    """

    user: str = ""
    agent: str = ""
    scope: MemoryScope = "all"
    threshold: float | None = None
    remember: bool = False

    def __post_init__(self) -> None:
        scope, threshold, scopes = self.scope, self.threshold, get_args(MemoryScope)
        _check(isinstance(self.user, str) and isinstance(self.agent, str), "memory: user and agent must be strings")
        _check(scope in scopes, f"memory: scope must be one of {scopes}, got {scope!r}")
        _check(scope != "own" or bool(self.user or self.agent), "scope: 'own' needs a user or an agent")
        _check(
            scope != "none" or not self.remember,
            "scope: 'none' leaves memories alone, and remember needs another one",
        )
        if threshold is not None:
            _of_kind("memory: threshold", threshold, Real, "a number")
        _check(threshold is None or 0.0 <= threshold <= 1.0, f"memory: threshold must lie in [0, 1], got {threshold}")
