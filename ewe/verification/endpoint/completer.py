"""Chat endpoints that speak OpenAI's protocol (vLLM, SGLang, llama.cpp, this engine's own server) as completers."""

import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tenacity

from ewe.errors import ConfigError
from ewe.text.conversation import Conversation
from ewe.verification.endpoint.protocol import CompletionError
from ewe.verification.endpoint.transport import RefusedError, TransientError, Transport

API_KEY_VARIABLE = "EWE_API_KEY"
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

        Raises CompletionError with the first error in their order, `answers` beside it.
        """
        deadline = time.monotonic() + self._time_limit_s
        prompts = [json.dumps(talk, ensure_ascii=False) for talk in conversations]
        distinct = list(dict.fromkeys(prompts))
        if not distinct:
            return []
        with ThreadPoolExecutor(min(self._max_parallel, len(distinct)), "ewe-endpoint") as pool:
            answer_of = dict(zip(distinct, pool.map(lambda prompt: self._try(prompt, deadline), distinct), strict=True))
        answers = [answer_of[prompt] for prompt in prompts]
        first = next((answer for answer in answers if isinstance(answer, CompletionError)), None)
        if first is not None:
            raise CompletionError(str(first), answers) from first.__cause__
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
        except CompletionError as error:
            tries = retrying.statistics.get("attempt_number", 1)
            return CompletionError(f"{error} (after {tries} tries)" if tries > 1 else str(error))

    def _ask(self, prompt: str, deadline: float) -> str:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise CompletionError(f"no answer within the time limit of {self._time_limit_s:.3g} s")
        request = {"model": self.model, "messages": json.loads(prompt), **self._settings}
        try:
            document = self._transport.post(request, min(self._request_timeout_s, remaining))
        except RefusedError as error:
            if error.status in (401, 403):
                raise CompletionError(f"{error}; the key is read from ${self._key_variable}") from error
            raise
        return _content(document)


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
        detail = document.get("error", sorted(map(str, document)))
        raise CompletionError(f"the answer has no choices[0].message.content; it holds {str(detail)[:200]}") from None
    if not isinstance(content, str):
        raise CompletionError(f"the answer's content is {type(content).__name__}, not text (a refusal, or a tool call)")
    if reason == "length":
        raise CompletionError("the answer was cut at max_tokens; raise it, or shorten the prompt")
    return content.strip()


_BACK_OFF = tenacity.wait_random_exponential(multiplier=0.5, max=_LONGEST_WAIT_S)


def _wait(state: tenacity.RetryCallState) -> float:
    """Seconds before the next try: what the server asks for, else a random time that grows."""
    error = state.outcome.exception() if state.outcome else None
    retry_after_s = error.after_s if isinstance(error, TransientError) else None
    return retry_after_s if retry_after_s is not None else _BACK_OFF(state)
