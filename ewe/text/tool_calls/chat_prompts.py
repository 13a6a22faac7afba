"""Prompts of conversations with one model, in any process that has its tokenizer."""

from functools import cached_property
from typing import Any

from ewe.config import Config
from ewe.config.memory_mark import PlacedPrompt
from ewe.text.conversation import Conversation, check_conversation
from ewe.text.tool_calls.memory_place import MemoryPlace
from ewe.text.tool_calls.template import ChatTemplate
from ewe.text.tool_calls.use import ToolUse


class ChatPrompts:
    """What the model's chat template makes of conversations. tokenizer: the model's, None if it has none."""

    def __init__(self, config: Config, tokenizer: Any | None) -> None:
        self.config = config
        self.tokenizer: Any = tokenizer

    @property
    def has_chat_template(self) -> bool:
        """Whether the model takes conversations."""
        return getattr(self.tokenizer, "chat_template", None) is not None

    def apply_chat_template(
        self,
        messages: Conversation,
        tools: ToolUse | None = None,
        thinking: bool | None = None,
        continue_final_message: bool = False,
    ) -> str:
        """The prompt that the model's chat template makes of a conversation; it already holds its BOS.

        thinking: whether a model that can reason before it answers does; None: as `model.thinking` says.
        continue_final_message: whether the last message begins the answer, with which the prompt then ends. Raises
        InvalidRequestError.
        """
        messages = check_conversation(messages, continues=continue_final_message)
        return self.chat_template.render(messages, tools, self._thinks(thinking), continue_final_message)

    def chat_prompt(
        self,
        messages: Conversation,
        tools: ToolUse | None = None,
        thinking: bool | None = None,
        continue_final_message: bool = False,
    ) -> PlacedPrompt | str:
        """The same with a place for memory in the user's last turn, if `memory.placement` and the template allow it.

        Raises InvalidRequestError where the settings ask for that place and the template has none.
        """
        messages = check_conversation(messages, continues=continue_final_message)
        return self._memory_place.prompt(messages, tools, self._thinks(thinking), continue_final_message)

    def _thinks(self, thinking: bool | None) -> bool:
        if thinking is not None:
            return thinking
        setting = self.config.model.thinking
        return self.chat_template.must_think if setting == "auto" else setting == "on"

    @cached_property
    def chat_template(self) -> ChatTemplate:
        """The model's chat template, which also knows how the model calls tools."""
        return ChatTemplate(self.tokenizer, self.config.model.name)

    @cached_property
    def _memory_place(self) -> MemoryPlace:
        return MemoryPlace(self.chat_template, self.tokenizer, self.config)
