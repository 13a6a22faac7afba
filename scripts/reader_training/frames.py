"""The words around memory units in a chat, and their token ids: prefix | units | rest | target.

Prefix, each unit and rest are tokenised alone, as the engine does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from judge_training.pairs import sentences_of
from transformers import PreTrainedTokenizerBase

from reader_training.records import Passage

_MARK = "\u241fmemory\u241f"


@dataclass(frozen=True, slots=True)
class Frame:
    """The words before, in and after the units; system: None for the template's own system turn."""

    opening: str = "Context: "
    unit: str = "{title}: {text}\n"
    ask: str = "\n{question}"
    system: str | None = None


DEFAULT_FRAME = Frame()


@dataclass(frozen=True, slots=True)
class Talk:
    """One example in words: units (in order), which of them are right, earlier turns, the question and the answer.

    taught: whether the untrained model, reading the right passages in its prompt, is a teacher for this example.
    """

    question: str
    target: str
    units: tuple[Passage, ...] = ()
    right: tuple[int, ...] = ()
    turns: tuple[tuple[str, str], ...] = ()
    frame: Frame = DEFAULT_FRAME
    taught: bool = True
    in_memory: bool = True


@dataclass(frozen=True, slots=True)
class Example:
    """Token ids of a talk; right: indices into units. Without `in_memory` the rest follows the prefix directly."""

    prefix: list[int]
    units: list[list[int]]
    right: tuple[int, ...]
    rest: list[int]
    target: list[int]
    taught: bool
    in_memory: bool


class Encoder:
    """Talks as examples; a unit longer than `unit_tokens` loses sentences at its end."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, unit_tokens: int = 256) -> None:
        self.tokenizer, self.unit_tokens = tokenizer, unit_tokens
        self._ids = lru_cache(maxsize=50_000)(self._tokenise)
        self.end = self._end_of_turn()

    def encode(self, talk: Talk) -> Example:
        """The talk's token ids; the target ends with the end of the turn."""
        prefix, rest = self._around(talk)
        units = [list(self._unit(talk.frame, passage)) for passage in talk.units]
        target = [*self._tokenise(talk.target), self.end]
        return Example(list(prefix), units, talk.right, list(rest), target, talk.taught, talk.in_memory)

    def _end_of_turn(self) -> int:
        """The token after an answer in the chat template; what a tokenizer calls eos is not that in every file."""
        turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b."}]
        rendered: str = self.tokenizer.apply_chat_template(turns, tokenize=False)
        token = self._tokenise(rendered.rpartition("b.")[2])[0]
        return token if token in self.tokenizer.added_tokens_decoder else int(self.tokenizer.eos_token_id)

    def _around(self, talk: Talk) -> tuple[Sequence[int], Sequence[int]]:
        """Ids before and after the units, which stand in the first user turn."""
        frame = talk.frame
        opening = frame.opening if talk.in_memory else ""
        asked = [question for question, _ in talk.turns] + [talk.question]
        first = frame.ask.format(question=asked[0]) if talk.in_memory else asked[0]
        messages = [] if frame.system is None else [{"role": "system", "content": frame.system}]
        messages.append({"role": "user", "content": opening + _MARK + first})
        for (_, answer), question in zip(talk.turns, asked[1:], strict=True):
            messages.append({"role": "assistant", "content": answer})
            messages.append({"role": "user", "content": question})
        text = str(self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
        before, _, after = text.partition(_MARK)
        return self._ids(before), self._tokenise(after)

    def _unit(self, frame: Frame, passage: Passage) -> Sequence[int]:
        template = frame.unit if passage.title else "{text}\n"
        ids = self._ids(template.format(title=passage.title, text=passage.text))
        kept = sentences_of(passage.text)
        while len(ids) > self.unit_tokens and len(kept) > 1:
            kept.pop()
            ids = self._ids(template.format(title=passage.title, text=" ".join(kept)))
        return ids[: self.unit_tokens]

    def _tokenise(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer(text, add_special_tokens=False).input_ids)
