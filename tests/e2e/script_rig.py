"""An LLM whose model writes what a script says, with a real tokenizer and chat templates of three kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any
from unittest import mock

import torch
from mock_engine import with_read_token
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast
from unit.engine_tokenizers import byte_level

from ewe import LLM
from ewe.assembly import wire
from ewe.config import Config
from ewe.engine.kvcache.pool import KVPool, LayerShape
from ewe.engine.model_executor.model_runner import ForwardResult, ForwardRow
from ewe.engine.models.loader import LoadedModel

Script = Callable[[str, int], str]
"""From a prompt and the number of units in memory to the whole answer."""

ASSISTANT = "<|assistant|>"
_TOKENS = {
    "hermes": [("<tool_call>", False), ("</tool_call>", False)],
    "llama3": [("<|python_tag|>", True)],
    "mistral": [("[TOOL_CALLS]", True)],
    "mistral-new": [("[TOOL_CALLS]", True), ("[ARGS]", True)],
    "none": [],
    "may-think": [("<think>", False), ("</think>", False)],
    "must-think": [("<think>", False), ("</think>", False)],
}
# What ends a prompt: nothing where the model may choose, as with Qwen3, or the mark, as with DeepSeek-R1.
_THINKS = {
    "may-think": "{% if not enable_thinking | default(true) %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}",
    "must-think": '{{ "<think>\\n" }}',
}
_TURNS = """{% for message in messages %}<|{{ message.role }}|>{{ message.content }}\
{% for call in message.tool_calls or [] %}CALL{% endfor %}\
{% if message.role == "tool" %} ({{ message.tool_call_id }} {{ message.name }}){% endif %}{% endfor %}<|assistant|>"""
_CALLS = {
    "hermes": '<tool_call>{{ {"name": call.function.name, "arguments": call.function.arguments} | tojson }}'
    "</tool_call>",
    "llama3": '<|python_tag|>{{ {"name": call.function.name, "parameters": call.function.arguments} | tojson }}',
    "mistral": '{% if call.id | length != 9 %}{{ raise_exception("ids have 9 characters") }}{% endif %}'
    "[TOOL_CALLS]{{ call.function.name }}{{ call.function.arguments | tojson }}",
    "none": "",
}


def tokenizer_of(kind: str) -> PreTrainedTokenizerFast:
    """Byte-level, with the tokens of a kind of model; those that its detokenizer would drop are special."""
    backend = Tokenizer.from_str(byte_level().backend_tokenizer.to_str())
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<eos>")
    tokenizer.add_tokens([AddedToken(ASSISTANT, special=True, normalized=False)])
    tokenizer.add_tokens([AddedToken(text, special=special, normalized=False) for text, special in _TOKENS[kind]])
    family = kind.removesuffix("-new")
    if kind in _THINKS:
        tokenizer.chat_template = _TURNS.replace("CALL", "") + _THINKS[kind]
        return tokenizer
    tools = "" if kind == "none" else "{% if tools %}TOOLS {{ tools | tojson }}{% endif %}"
    tokenizer.chat_template = tools + _TURNS.replace("CALL", _CALLS[family])
    return tokenizer


class ScriptRunner:
    """Keeps token ids in the pool as its KV, and makes the script's next token nearly certain."""

    def __init__(self, pool: KVPool, tokenizer: PreTrainedTokenizerFast, script: Script) -> None:
        self._pool, self._tokenizer, self._script = pool, tokenizer, script
        self._assistant = tokenizer.convert_tokens_to_ids(ASSISTANT)
        # The prompt and the answer are the same at every token.
        self._text = cache(lambda ids: tokenizer.decode(ids))
        self._ids = cache(lambda text: tokenizer(text)["input_ids"])

    def close(self) -> None:
        pass

    def forward(self, rows: Sequence[ForwardRow], draws: object = None) -> ForwardResult:
        rows = [with_read_token(row) for row in rows]
        for row in rows:
            own = torch.from_numpy(row.context_slots[len(row.context_slots) - len(row.token_ids) :].copy())
            self._pool.keys[0][own, 0, 0] = torch.tensor(list(row.token_ids), dtype=torch.float32)
        logits = [self._logits(row) for row in rows if row.wants_logits]
        empty = torch.empty(0, len(self._tokenizer))
        return ForwardResult(torch.stack(logits) if logits else empty, [None] * len(rows))

    def _logits(self, row: ForwardRow) -> torch.Tensor:
        slots = torch.from_numpy(row.context_slots.copy())
        ids = self._pool.keys[0][slots, 0, 0].int().tolist()
        begin = len(ids) - ids[::-1].index(self._assistant)
        answer = self._ids(self._script(self._text(tuple(ids[:begin])), len(row.unit_slots)))
        place = len(ids) - begin
        logits = torch.zeros(len(self._tokenizer))
        logits[answer[place] if place < len(answer) else self._tokenizer.eos_token_id] = 20.0
        return logits


@contextmanager
def scripted_llm(kind: str, script: Script, config: dict[str, Any] | None = None, **components: Any) -> Iterator[LLM]:
    """kind: hermes, llama3, mistral, mistral-new; none: a template without tools; may-think, must-think: first reasons.

    What a prompt says of reasoning belongs to the script's answer: all that follows the assistant's token.
    """
    tokenizer = tokenizer_of(kind)
    loaded = LoadedModel(None, tokenizer, 8000, frozenset({tokenizer.eos_token_id}), len(tokenizer))
    with mock.patch("ewe.assembly.build_engine", partial(_build, tokenizer, script)):
        llm = LLM("scripted", config={"memory": {"unit_tokens": 16}, **(config or {})}, loaded=loaded, **components)
    with llm:
        yield llm
        llm.check_integrity()


def _build(
    tokenizer: PreTrainedTokenizerFast,
    script: Script,
    config: Config,
    components: Any,
    deliver: Any,
    loaded: Any,
    on_load: Any,
) -> Any:
    pool = KVPool([LayerShape(1, 1, 1)], 2000, config.cache.block_size, torch.float32, "cpu")
    return wire(config, components, deliver, loaded, pool, ScriptRunner(pool, tokenizer, script))  # type: ignore[arg-type]
