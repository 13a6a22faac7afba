"""A model's chat template: conversations become prompts, also with tools, whether the template knows them or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from jinja2 import TemplateError

from ewe.conversation import Message
from ewe.errors import InvalidRequestError
from ewe.tool_calls.format import CallFormat
from ewe.tool_calls.hermes import HermesFormat
from ewe.tool_calls.llama3 import Llama3Format
from ewe.tool_calls.messages import for_plain_template, for_template, has_tools
from ewe.tool_calls.mistral import MistralFormat
from ewe.tool_calls.tools import Tool, ToolRequest
from ewe.tool_calls.use import ToolUse

FORMATS: dict[str, CallFormat] = {form.name: form for form in (HermesFormat(), Llama3Format(), MistralFormat())}
# What gives a format away in a template or among a tokenizer's tokens; the first that is there counts.
_SIGNS = (("mistral", "[TOOL_CALLS]"), ("hermes", "<tool_call>"), ("llama3", "<|python_tag|>"))
_OTHER_SIGNS = ("<function=",)  # tags of the same names around something that is no JSON
_PROBE = Tool("probe", "A tool.")


class ChatTemplate:
    """The chat template of a model. tokenizer: the model's, with a template or without."""

    def __init__(self, tokenizer: Any | None, model_name: str) -> None:
        self._tokenizer = tokenizer
        self._model_name = model_name

    def render(self, messages: Sequence[Message], tools: ToolUse | None = None) -> str:
        """The prompt for a conversation; it already holds its BOS. Raises InvalidRequestError."""
        if getattr(self._tokenizer, "chat_template", None) is None:
            raise InvalidRequestError(f"the model {self._model_name!r} has no chat template: use generate()")
        if not messages:
            raise InvalidRequestError("messages is empty: give at least one message")
        offered = tools.request.tools if tools is not None else ()
        if not offered and not has_tools(messages):
            return self._render(list(messages))
        if not (self._shows_tools if tools is None else tools.in_template):
            return self._render(for_plain_template(messages, offered))
        return self._render(for_template(messages), [tool.to_openai() for tool in offered] or None)

    def tool_use(
        self, request: ToolRequest | None, parser: str = "auto", answer_schema: Mapping[str, Any] | None = None
    ) -> ToolUse | None:
        """How a request uses its tools; None without any.

        parser: auto, none, or the name of a format. Raises InvalidRequestError for none and for unknown ones.
        """
        if parser not in ("auto", "none", *FORMATS):
            raise InvalidRequestError(f"tool_parser: there is {', '.join(FORMATS)}, auto and none, got {parser!r}")
        if request is None:
            return None
        if parser == "none":
            raise InvalidRequestError("tools: tool calling is off here (tool_parser is none)")
        name = self._found if parser == "auto" else parser
        in_template = name is not None and self._shows_tools
        form = FORMATS[name if name is not None and in_template else "hermes"]  # the form of `for_plain_template`
        added = getattr(self._tokenizer, "added_tokens_encoder", {})
        token_ids = {text: added[text] for text in form.tokens if text in added}
        return ToolUse(request, form, in_template, token_ids, answer_schema)

    @cached_property
    def _shows_tools(self) -> bool:
        """Whether the template tells the model of tools."""
        if getattr(self._tokenizer, "chat_template", None) is None:
            return False
        message = [{"role": "user", "content": "Hello."}]
        try:
            with_tools = self._render(message, [_PROBE.to_openai()])
        except InvalidRequestError:
            return False
        return with_tools != self._render(message)

    @cached_property
    def _found(self) -> str | None:
        """The name of the format that the template, or else the tokenizer, shows."""
        template = str(getattr(self._tokenizer, "chat_template", ""))
        if any(sign in template for sign in _OTHER_SIGNS):
            return None
        tokens = getattr(self._tokenizer, "added_tokens_encoder", {})
        in_either = [name for where in (template, tokens) for name, sign in _SIGNS if sign in where]
        return next(iter(in_either), None)

    def _render(self, messages: list[Any], tools: list[dict[str, Any]] | None = None) -> str:
        assert self._tokenizer is not None
        more = {"tools": tools} if tools else {}
        try:
            return str(
                self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **more)
            )
        except TemplateError as error:  # templates refuse conversations that their model has not been trained on
            raise InvalidRequestError(f"the model's chat template refuses this conversation: {error}") from error
