"""Where chats with one model have their memory: inside the user's last turn, or before everything."""

import logging
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import count
from typing import Any

from ewe.config import Config
from ewe.config.memory_mark import MARK, PROMPT_MARK, PlacedPrompt
from ewe.errors import InvalidRequestError
from ewe.text.conversation import Message
from ewe.text.tool_calls.template import ChatTemplate
from ewe.text.tool_calls.use import ToolUse

_log = logging.getLogger(__name__)
_PROBE = [{"role": "user", "content": "Hello."}]


class MemoryPlace:
    """Prompts of conversations with their place for memory. tokenizer: the model's, with a chat template or without."""

    def __init__(self, template: ChatTemplate, tokenizer: Any | None, config: Config) -> None:
        self._template = template
        self._tokenizer = tokenizer
        self._settings = config.memory
        self._reads_bare_units = config.model.name == "builtin"  # it was trained to

    def prompt(
        self, messages: Sequence[Message], tools: ToolUse | None = None, thinks: bool = False, continues: bool = False
    ) -> PlacedPrompt | str:
        """A conversation's prompt; a text without a place where units are bare, or no user speaks.

        Raises InvalidRequestError as the template does, and where the settings ask for a place that it does not have.
        """
        render = partial(self._template.render, tools=tools, thinks=thinks, continues=continues)
        placed = self._split(messages, render) if self._is_in_prompt else None
        return render(messages) if placed is None else placed

    @cached_property
    def _is_in_prompt(self) -> bool:
        settings = self._settings
        is_bare = settings.placement == "bare" or (settings.placement == "auto" and self._reads_bare_units)
        if is_bare or not settings.num_units or getattr(self._tokenizer, "chat_template", None) is None:
            return False
        reason = self._why_not()
        if reason and settings.placement == "in_prompt":
            raise InvalidRequestError(f"memory.placement: in_prompt will not do, as {reason}: set it to bare")
        if reason:
            _log.warning("memory stands before chats, not in them (memory.placement: bare), as %s", reason)
        return not reason

    def _why_not(self) -> str:
        """Why no prompt of this model can be split; empty if it can."""
        try:
            placed = self._split(_PROBE, self._template.render)
        except InvalidRequestError as error:
            return str(error)
        if placed is None:
            return "the model's chat template changes the text around the memory"
        assert self._tokenizer is not None
        texts = placed.before + placed.after, placed.before, placed.after
        whole, before, after = (self._tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts)
        if self._tokenizer.decode(before + after) != self._tokenizer.decode(whole):
            return "the model's tokenizer changes a text that is cut at the memory"
        return ""

    def _split(self, messages: Sequence[Message], render: Callable[[Sequence[Message]], str]) -> PlacedPrompt | None:
        """The prompt with the memory in the frame around the user's last words; None if it cannot be split there."""
        turns = [place for place, message in enumerate(messages) if message["role"] == "user"]
        if not turns:
            return None
        turn = turns[-1]
        before, _, rest = self._settings.frame.partition(MARK)
        between, _, after = rest.partition(PROMPT_MARK)

        def rendered(mark: str) -> str:
            words = f"{before}{mark}{between}{messages[turn]['content']}{after}"
            framed = {**messages[turn], "content": words}
            return render([*messages[:turn], framed, *messages[turn + 1 :]])

        whole = rendered("")
        mark = next(mark for number in count() if (mark := f"<memory {number}>") not in whole)
        head, separator, tail = rendered(mark).partition(mark)
        if not separator or head + tail != whole:  # templates leave messages out, repeat them, change their text
            return None
        return PlacedPrompt(render(messages), head, tail)
