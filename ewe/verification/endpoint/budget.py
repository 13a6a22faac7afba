"""What a completer may spend.

Owns: the counters of requests and tokens. Knows the errors of completers; no HTTP.
"""

from __future__ import annotations

import threading

from ewe.errors import ConfigError
from ewe.verification.endpoint.protocol import BudgetError


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
