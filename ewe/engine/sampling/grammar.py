"""Texts that must be JSON of a given schema: which tokens may come next."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from ewe.errors import SchemaError
from ewe.text.json_schema import WRITTEN_FORM, check_schema

_KEPT = 32  # compiled schemas
_LONGEST = 100_000  # characters of a schema
_STACK_BYTES = 1 << 28  # llguidance follows references by recursion: 2500 in a row overflow the usual 8 MiB
_LEAST_S, _MOST_S_PER_TOKEN = 0.5, 0.002  # of a processor: large schemas take 0.04 ms, and first tokens longer
_STARTING = threading.Lock()
_MOST_EXPRESSIONS = 200_000  # a fifth of llguidance's own limit, which takes seconds to reach


class Costs:
    """What following one grammar has taken, in all of its texts: some take a thousand times as long as others."""

    def __init__(self) -> None:
        self._seconds, self._tokens = 0.0, 0

    def add(self, seconds: float) -> None:
        """Notes the processor time of one token."""
        self._seconds += seconds
        self._tokens += 1

    @property
    def problem(self) -> str:
        """What is wrong with it; empty if it is no dearer than it may be."""
        if self._seconds <= max(_LEAST_S, _MOST_S_PER_TOKEN * self._tokens):
            return ""
        return f"it takes {1000 * self._seconds / self._tokens:.0f} ms for each token, and holds up all other answers"


class Grammar:
    """Where one text stands. `follow` moves it to any list of tokens, so that a rewind needs no state to be restored.

    allowed: bool [vocab], the tokens that may come next; EOS alone where the text is complete. costs: of all texts.
    """

    def __init__(self, matcher: Any, vocab_size: int, costs: Costs | None = None) -> None:
        self._costs = costs or Costs()
        self.allowed: npt.NDArray[np.bool_] = np.zeros(vocab_size, dtype=np.bool_)
        self._matcher = matcher
        self._ids: list[int] = []
        self._bits = np.zeros((vocab_size + 31) // 32, dtype=np.int32)

    def copy(self) -> Grammar:
        """The same grammar at its beginning, for another text."""
        matcher = self._matcher.deep_copy()
        matcher.reset()
        return Grammar(matcher, len(self.allowed), self._costs)

    def follow(self, ids: list[int]) -> str:
        """Moves to the end of `ids` and computes `allowed`; returns what went wrong, empty if nothing did.

        ids: of a text that has not ended, so without EOS. It goes wrong for ids that the grammar does not allow, and
        where the grammar outgrows llguidance's limits or takes too long.
        """
        begun = time.thread_time()
        common = _common(self._ids, ids)
        self._matcher.rollback(len(self._ids) - common)
        self._matcher.consume_tokens(ids[common:])
        self._ids = list(ids)
        self._matcher.unsafe_compute_mask_ptr(self._bits.ctypes.data, self._bits.nbytes)
        bits = np.unpackbits(self._bits.view(np.uint8), bitorder="little")
        self.allowed = bits[: len(self.allowed)].astype(np.bool_)
        self._costs.add(time.thread_time() - begun)
        # Behind an error of its own the state of the parser follows.
        return str(self._matcher.get_error()).partition("\n")[0] or self._costs.problem

    def allowed_but(self, banned: Sequence[int]) -> npt.NDArray[np.bool_]:
        """`allowed` without the banned tokens; with them where nothing else may come."""
        rest = self.allowed.copy()
        rest[list(banned)] = False
        return rest if rest.any() else self.allowed


class Grammars:
    """Makes grammars of schemas for one tokenizer; the same schema is compiled once."""

    def __init__(self, tokenizer: Any | None, vocab_size: int, eos_token_ids: frozenset[int]) -> None:
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._eos_token_ids = sorted(eos_token_ids)
        self._tokens: Any = None
        self._compiled = lru_cache(maxsize=_KEPT)(self._compile)

    def of_schema(self, schema: Mapping[str, Any]) -> Grammar:
        """The grammar of JSON that satisfies a schema; raises as `of_lark` does, and as `check_schema`."""
        check_schema(schema)
        try:
            text = json.dumps(schema)
        except (TypeError, ValueError, RecursionError) as error:
            raise SchemaError(f"the JSON schema is not JSON: {error}") from error
        return self._of_text(text, is_schema=True)

    def of_lark(self, text: str) -> Grammar:
        """A grammar at its beginning, from llguidance's form of Lark; raises SchemaError for one that cannot be kept
        to, and without llguidance or a tokenizer that it reads.
        """
        return self._of_text(text, is_schema=False)

    def _of_text(self, text: str, is_schema: bool) -> Grammar:
        if len(text) > _LONGEST:
            raise SchemaError(f"{_what(is_schema)} has {len(text)} characters; {_LONGEST} is the most")
        return self._compiled(text, is_schema).copy()

    def _compile(self, text: str, is_schema: bool) -> Grammar:
        library = _import_llguidance()
        if self._tokens is None:
            self._tokens = self._read_tokenizer()
        if is_schema:
            try:
                grammar = library.LLMatcher.grammar_from_json_schema(text, overrides=WRITTEN_FORM)
            except ValueError as error:  # Python's JSON has infinities and halves of surrogate pairs
                raise SchemaError(f"the JSON schema is not JSON: {error}") from error
        else:
            grammar = library.LLMatcher.grammar_from_lark(text)
        limits = library.LLParserLimits(initial_lexer_fuel=_MOST_EXPRESSIONS, verbose_errors=False)
        matcher = _on_deep_stack(partial(library.LLMatcher, self._tokens, grammar, log_level=0, limits=limits))
        compiled = Grammar(matcher, self._vocab_size)
        problems = [matcher.get_error() or self._first_problem(compiled), *matcher.get_grammar_warnings()]
        if any(problems):
            raise SchemaError(f"{_what(is_schema)} cannot be kept to: {'; '.join(filter(None, problems))}")
        return compiled

    def _first_problem(self, grammar: Grammar) -> str:
        """What goes wrong within the first token: most of what is too much does, and here it holds up nobody."""
        problem = grammar.follow([])
        first = [token for token in map(int, grammar.allowed.nonzero()[0]) if token not in self._eos_token_ids]
        return problem or grammar.follow(first[:1])

    def _read_tokenizer(self) -> Any:
        from llguidance.hf import from_tokenizer
        from transformers import PreTrainedTokenizerFast

        if not isinstance(self._tokenizer, PreTrainedTokenizerFast) or not self._eos_token_ids:
            raise SchemaError("a JSON schema needs a model with a fast tokenizer and a token that ends a text")
        return from_tokenizer(self._tokenizer, n_vocab=self._vocab_size, eos_token=self._eos_token_ids)


def _on_deep_stack(call: Callable[[], Any]) -> Any:
    """What a call gives that needs more stack than threads have."""
    with ThreadPoolExecutor(1) as pool:
        with _STARTING:  # the size is that of all threads that start meanwhile
            usual = threading.stack_size(_STACK_BYTES)
            try:
                running = pool.submit(call)
            finally:
                threading.stack_size(usual)
        return running.result()


def _common(known: list[int], ids: list[int]) -> int:
    """How many leading tokens two lists have in common."""
    if ids[: len(known)] == known:  # nearly always: nothing was taken back
        return len(known)
    pairs = enumerate(zip(known, ids, strict=False))
    return next((place for place, (one, other) in pairs if one != other), len(ids))


def _what(is_schema: bool) -> str:
    return "this JSON schema" if is_schema else "this grammar"


def _import_llguidance() -> ModuleType:
    try:
        import llguidance
    except ModuleNotFoundError as error:
        raise SchemaError("a JSON schema needs llguidance: pip install 'ewe-engine[structured]'") from error
    return llguidance
