"""Chat endpoints that speak OpenAI's protocol (vLLM, SGLang, llama.cpp, this engine's own server) as completers."""

import json
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tenacity

from ewe.conversation import Conversation
from ewe.errors import ConfigError
from ewe.verification.endpoint.protocol import BudgetError, CompletionError
from ewe.verification.endpoint.transport import RefusedError, TransientError, Transport


class Budget:
    """Counts requests and tokens over the life of a completer; safe to share between threads.

    max_requests: HTTP requests, retries included; max_tokens: prompt and answer tokens as the endpoint reports them.
    None means without a limit. Raises ConfigError for a negative limit.
    """

    def __init__(self, max_requests: int | None = None, max_tokens: int | None = None) -> None:
        for name, limit in (("max_requests", max_requests), ("max_tokens", max_tokens)):
            if limit is not None and limit < 0:
                raise ConfigError(f"{name} must not be negative, got {limit}")
        self._max_requests = max_requests
        self._max_tokens = max_tokens
        self._lock = threading.Lock()
        self.requests = 0
        self.tokens = 0

    def take_request(self) -> None:
        """Counts one request that is about to be sent; raises BudgetError if it may not be."""
        with self._lock:
            if self._max_requests is not None and self.requests >= self._max_requests:
                raise BudgetError(f"the budget of {self._max_requests} requests is used up; raise max_requests")
            if self._max_tokens is not None and self.tokens >= self._max_tokens:
                raise BudgetError(
                    f"the budget of {self._max_tokens} tokens is used up ({self.tokens}); raise max_tokens"
                )
            self.requests += 1

    def add_tokens(self, count: int) -> None:
        """Counts the tokens of an answer that came; the last answer may pass the limit."""
        with self._lock:
            self.tokens += count


API_KEY_VARIABLE = "EWE_API_KEY"
_CHARACTERS_PER_TOKEN = 4
_LONGEST_WAIT_S = 30.0


class EndpointCompleter:
    """Completes prompts through POST {url}/chat/completions, each prompt as one user message.

    url: the base with its version ("http://127.0.0.1:8000/v1"; without a path, /v1 is assumed). max_tokens: per
    answer; an answer that is cut there is an error. stop: texts before which an answer ends. attempts: tries per
    prompt, at 408, 425, 429, 5xx and broken connections, with random exponential waits or as long as Retry-After says.
    request_timeout_s: for one try; time_limit_s: for one call of `complete`, waits included. The key is taken from the
    environment variable `api_key_variable` when the completer is made, and sent to this URL only. Raises ConfigError.
    """

    def __init__(
        self,
        model: str,
        url: str,
        *,
        max_tokens: int = 1024,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        attempts: int = 5,
        request_timeout_s: float = 60.0,
        time_limit_s: float = 300.0,
        max_parallel: int = 8,
        budget: Budget | None = None,
        api_key_variable: str = API_KEY_VARIABLE,
    ) -> None:
        if not model:
            raise ConfigError("name the model that the endpoint serves")
        limits: dict[str, float] = {"max_tokens": max_tokens, "attempts": attempts, "max_parallel": max_parallel}
        limits |= {"request_timeout_s": request_timeout_s, "time_limit_s": time_limit_s}
        wrong = [f"{name} must be positive, got {value}" for name, value in limits.items() if value <= 0]
        if wrong:
            raise ConfigError(*wrong)
        self.model = model
        self.budget = budget or Budget()
        self._settings: dict[str, Any] = {"max_tokens": max_tokens, "temperature": temperature}
        if stop:
            self._settings["stop"] = list(stop)
        self._attempts, self._max_parallel = attempts, max_parallel
        self._request_timeout_s, self._time_limit_s = request_timeout_s, time_limit_s
        self._key_variable = api_key_variable
        key = os.environ.get(api_key_variable, "").strip()
        self._transport = Transport(
            chat_url(url), {"Authorization": f"Bearer {key}"} if key else {}, connections=max_parallel
        )

    def complete(self, prompts: Sequence[str]) -> list[str]:
        """One answer per prompt, each as one user message; as `chat`."""
        return self.chat([[{"role": "user", "content": prompt}] for prompt in prompts])

    def chat(self, conversations: Sequence[Conversation]) -> list[str]:
        """One answer per conversation in OpenAI's form; equal ones are sent once.

        Raises BudgetError or CompletionError with the first error in their order, `answers` beside it.
        """
        deadline = time.monotonic() + self._time_limit_s
        prompts = [json.dumps(talk, ensure_ascii=False) for talk in conversations]
        distinct = list(dict.fromkeys(prompts))
        if not distinct:
            return []
        with ThreadPoolExecutor(min(self._max_parallel, len(distinct)), "ewe-endpoint") as pool:
            found = dict(zip(distinct, pool.map(lambda prompt: self._try(prompt, deadline), distinct), strict=True))
        answers = [found[prompt] for prompt in prompts]
        first = next((answer for answer in answers if isinstance(answer, CompletionError)), None)
        if first is not None:
            raise type(first)(str(first), answers) from first.__cause__
        return [answer for answer in answers if isinstance(answer, str)]

    def _try(self, prompt: str, deadline: float) -> str | CompletionError:
        """The answer to one conversation (as JSON) after as many tries as it takes, or the error that ended them."""
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self._attempts)
            | tenacity.stop_before_delay(max(0.0, deadline - time.monotonic())),
            wait=_wait,
            retry=tenacity.retry_if_exception_type(TransientError),
            reraise=True,
        )
        try:
            return retrying(self._ask, prompt, deadline)
        except BudgetError as error:
            return error
        except CompletionError as error:
            tries = retrying.statistics.get("attempt_number", 1)
            return CompletionError(f"{error} (after {tries} tries)" if tries > 1 else str(error))

    def _ask(self, prompt: str, deadline: float) -> str:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise CompletionError(f"no answer within the time limit of {self._time_limit_s:.3g} s")
        self.budget.take_request()
        request = {"model": self.model, "messages": json.loads(prompt), **self._settings}
        try:
            document = self._transport.post(request, min(self._request_timeout_s, remaining))
        except RefusedError as error:
            if error.status in (401, 403):
                raise CompletionError(f"{error}; the key is read from ${self._key_variable}") from error
            raise
        answer = _content(document)
        self.budget.add_tokens(_tokens(document, prompt, answer))
        return answer


def chat_url(url: str) -> str:
    """The address of the chat endpoint under a base URL."""
    base = url.strip().rstrip("/")
    if base.endswith("/chat/completions"):
        return base
    scheme, mark, rest = base.partition("://")
    return f"{base}/chat/completions" if "/" in rest or not mark else f"{scheme}://{rest}/v1/chat/completions"


def _content(document: dict[str, Any]) -> str:
    """The text of the first choice; raises CompletionError for any other shape, and for an answer that was cut."""
    try:
        choice = document["choices"][0]
        content, reason = choice["message"]["content"], choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError):
        told = document.get("error", sorted(map(str, document)))
        raise CompletionError(f"the answer has no choices[0].message.content; it holds {str(told)[:200]}") from None
    if not isinstance(content, str):
        raise CompletionError(f"the answer's content is {type(content).__name__}, not text (a refusal, or a tool call)")
    if reason == "length":
        raise CompletionError("the answer was cut at max_tokens; raise it, or shorten the prompt")
    return content.strip()


def _tokens(document: dict[str, Any], prompt: str, answer: str) -> int:
    usage = document.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    if isinstance(total, int) and not isinstance(total, bool) and total >= 0:
        return total
    return (len(prompt) + len(answer)) // _CHARACTERS_PER_TOKEN + 1


_BACK_OFF = tenacity.wait_random_exponential(multiplier=0.5, max=_LONGEST_WAIT_S)


def _wait(state: tenacity.RetryCallState) -> float:
    """Seconds before the next try: what the server asks for, else a random time that grows."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.after_s if isinstance(error, TransientError) else None
    return asked if asked is not None else _BACK_OFF(state)
