"""What the model reads in place of a request's prompt: the same with passages in it, or a turn of its own."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ewe.config import Config
from ewe.config.memory_mark import MARK, PROMPT_MARK, PlacedPrompt, split_at_mark
from ewe.engine.units.unit_text import UnitTokenizer
from ewe.errors import InvalidRequestError
from ewe.text.tool_calls.template import ChatTemplate
from ewe.types import Passage


class PromptMaker:
    """Prompts of one engine. tokenizer: the model's, with a chat template or without.

    is_marked: whether a raw prompt may hold a mark where its memory stands.
    """

    def __init__(self, tokenizer: Any, units: UnitTokenizer, config: Config) -> None:
        self.has_template = getattr(tokenizer, "chat_template", None) is not None
        self._template = ChatTemplate(tokenizer, config.model.name)
        self._units = units.in_prompt
        self._frame = config.memory.frame
        self.is_marked = config.memory.placement == "in_prompt"

    def own(
        self, prompt: str | PlacedPrompt, passages: Sequence[Passage], begin: str = "", frame: str = ""
    ) -> PlacedPrompt | str:
        """The request's prompt with passages at its memory mark, or framed if it has none, and the text so far."""
        if frame:
            begin, passages = begin + frame.replace("{passages}", self._listed(passages).strip()), ()
        placed = split_at_mark(prompt) if isinstance(prompt, str) and self.is_marked else prompt
        if isinstance(placed, str):
            text = self._framed(placed, passages) + begin
            return PlacedPrompt(text, "", text) if self.is_marked else text  # a passage may hold a mark, too
        if not passages:
            return PlacedPrompt(placed.text + begin, placed.before, placed.after + begin)
        after = self._listed(passages) + placed.after + begin
        return PlacedPrompt(placed.before + after, placed.before, after)

    def at_once(self, prompt: str | PlacedPrompt) -> str | PlacedPrompt:
        """A request's prompt, after which the model answers without reasoning first."""
        marks = self._template.reasoning_marks
        if marks is None:
            return prompt
        if isinstance(prompt, str):
            return marks.closed(prompt)
        return PlacedPrompt(marks.closed(prompt.text), prompt.before, marks.closed(prompt.after))

    def turn(self, text: str, passages: Sequence[Passage], begin: str) -> PlacedPrompt:
        """A prompt that says `text` to the model, through its chat template if it has one; it then holds its BOS."""
        words = self._framed(text, passages)
        whole = (self._template.render([{"role": "user", "content": words}]) if self.has_template else words) + begin
        return PlacedPrompt(whole, "", whole)

    def shared(self, prompt: PlacedPrompt | str, passages: Sequence[Passage], words: str) -> str:
        """A prompt up to the end of these words in it, or of its passages without any; "" where they are not in it."""
        text, last = prompt if isinstance(prompt, str) else prompt.text, words or self._listed(passages).strip()
        return text[: text.find(last) + len(last)] if last in text else ""

    def _framed(self, text: str, passages: Sequence[Passage]) -> str:
        if not passages:
            return text
        before, _, rest = self._frame.partition(MARK)
        between, _, after = rest.partition(PROMPT_MARK)
        return f"{before}{self._listed(passages)}{between}{text}{after}"

    def _listed(self, passages: Sequence[Passage]) -> str:
        """Passages as units say them: cut as units are, without control tokens, a line each."""
        texts = []
        for passage in passages:
            with suppress(InvalidRequestError):  # a passage without text
                texts.append(self._units.prompt_text(passage))
        return "".join(texts)
