"""A model's chat template: conversations become prompts, also with tools, whether the template knows them or not."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from jinja2 import TemplateError

from ewe.errors import InvalidRequestError
from ewe.text.control_marks import Marker, unmarked
from ewe.text.conversation import Message
from ewe.text.reasoning_marks import ReasoningMarks, reasoning_marks
from ewe.text.tool_calls.formats import FORMATS
from ewe.text.tool_calls.messages import for_plain_template, for_template
from ewe.text.tool_calls.tools import Tool, ToolRequest
from ewe.text.tool_calls.use import ToolUse

# What gives a format away in a template or among a tokenizer's tokens; the first that is there counts.
_SIGNS = (("mistral", "[TOOL_CALLS]"), ("hermes", "<tool_call>"), ("llama3", "<|python_tag|>"))
_OTHER_SIGNS = ("<function=",)  # tags of the same names around something that is no JSON
_PROBE = Tool("probe", "A tool.")
_HELLO = {"role": "user", "content": "Hello."}
_END = "\ufdd1"  # behind what the model goes on with: a character that Unicode keeps for use inside programs


class ChatTemplate:
    """The chat template of a model. tokenizer: the model's, with a template or without."""

    def __init__(self, tokenizer: Any | None, model_name: str) -> None:
        self._tokenizer = tokenizer
        self._model_name = model_name

    def render(
        self, messages: Sequence[Message], tools: ToolUse | None = None, thinks: bool = False, continues: bool = False
    ) -> str:
        """The prompt for a conversation; it already holds its BOS. thinks: whether the model may reason first.

        continues: whether the last message is the beginning of the answer, with which the prompt then ends; the model
        reasons there only if it has begun to. Control tokens that messages and tools spell are marked, so that they
        stay text. Raises InvalidRequestError, also for a template that makes control tokens of texts that spell none.
        """
        self._check_template(messages)
        if continues:
            return self._begun(messages, tools)
        prompt, marks = self._with_tools(messages, tools, thinks), self.reasoning_marks
        return prompt if thinks or marks is None else marks.closed(prompt)

    def _check_template(self, messages: Sequence[Message]) -> None:
        if getattr(self._tokenizer, "chat_template", None) is None:
            raise InvalidRequestError(f"the model {self._model_name!r} has no chat template: use generate()")
        if not messages:
            raise InvalidRequestError("messages is empty: give at least one message")
        if self._makes_control_tokens:
            raise InvalidRequestError(
                f"the chat template of the model {self._model_name!r} changes texts so that control tokens come out of "
                "them: use generate(), or give the tokenizer another template"
            )

    def _begun(self, messages: Sequence[Message], tools: ToolUse | None) -> str:
        """The prompt that ends as the last message does; raises InvalidRequestError where the template changes that.

        It may leave out white space around it and what was reasoned.
        """
        marks, begun = self.reasoning_marks, messages[-1]["content"]
        marked = [*messages[:-1], {**messages[-1], "content": begun + _END}]
        thinks = marks is not None and marks.is_unclosed(begun)
        before, end, _ = self._with_tools(marked, tools, thinks, continues=True).rpartition(_END)
        said = unmarked(self._marker.message(messages[-1])["content"])
        said = said if marks is None else said.rpartition(marks.end)[2]
        if not end or not unmarked(before).rstrip().endswith(said.strip()):
            raise InvalidRequestError(
                f"messages: the chat template of the model {self._model_name!r} leaves out or changes the beginning of "
                "an answer, so the last message cannot be gone on with"
            )
        return before

    def _with_tools(
        self, messages: Sequence[Message], tools: ToolUse | None, thinks: bool, continues: bool = False
    ) -> str:
        """What the template makes of a conversation and its tools."""
        offered = () if tools is None else tuple(_marked_tool(tool, self._marker) for tool in tools.request.tools)
        if not offered and not _has_tools(messages):
            return self._rendered([self._marker.message(message) for message in messages], None, thinks, continues)
        called = [self._marker.message(message) for message in for_template(messages)]
        if not (self._shows_tools if tools is None else tools.in_template):
            return self._rendered(for_plain_template(called, offered), None, thinks, continues)
        return self._rendered(called, [tool.to_openai() for tool in offered] or None, thinks, continues)

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
        name = self._detected if parser == "auto" else parser
        in_template = name is not None and self._shows_tools
        form = FORMATS[name if name is not None and in_template else "hermes"]  # the form of `for_plain_template`
        added = getattr(self._tokenizer, "added_tokens_encoder", {})
        token_ids = {text: added[text] for text in form.tokens if text in added}
        return ToolUse(request, form, in_template, token_ids, answer_schema)

    @cached_property
    def reasoning_marks(self) -> ReasoningMarks | None:
        """Those around what the model reasons before it answers; None if it has none."""
        return reasoning_marks(self._tokenizer)

    @cached_property
    def must_think(self) -> bool:
        """Whether the template has the model reason before every answer, whatever it is told."""
        if self.reasoning_marks is None or getattr(self._tokenizer, "chat_template", None) is None:
            return False
        with suppress(InvalidRequestError):
            return self.reasoning_marks.is_open(self._rendered([_HELLO], thinks=False))
        return False

    @cached_property
    def _marker(self) -> Marker:
        return Marker(self._tokenizer)

    @cached_property
    def _makes_control_tokens(self) -> bool:
        """Whether the template changes case or white space, so that what is no control token becomes one."""
        texts = self._marker.texts
        spelled = [form for text in texts for form in (text.upper(), text.lower(), " ".join(text)) if form not in texts]
        conversations = [
            [self._marker.message({"role": "user", "content": text})] for text in ("\n".join(spelled), "Hello.")
        ]
        try:
            changed, plain = (self._marker.num_control(self._rendered(messages)) for messages in conversations)
        except InvalidRequestError:  # it wants other roles, and is judged by what it makes of them
            return False
        return changed > plain

    @cached_property
    def _shows_tools(self) -> bool:
        if getattr(self._tokenizer, "chat_template", None) is None:
            return False
        try:
            with_tools = self._rendered([_HELLO], [_PROBE.to_openai()])
        except InvalidRequestError:
            return False
        return with_tools != self._rendered([_HELLO])

    @cached_property
    def _detected(self) -> str | None:
        """The name of the format that the template, or else the tokenizer, shows."""
        template = str(getattr(self._tokenizer, "chat_template", ""))
        if any(sign in template for sign in _OTHER_SIGNS):
            return None
        tokens = getattr(self._tokenizer, "added_tokens_encoder", {})
        in_either = [name for where in (template, tokens) for name, sign in _SIGNS if sign in where]
        return next(iter(in_either), None)

    def _rendered(
        self,
        messages: list[Any],
        tools: list[dict[str, Any]] | None = None,
        thinks: bool = False,
        continues: bool = False,
    ) -> str:
        assert self._tokenizer is not None
        more: dict[str, Any] = {"tools": tools} if tools else {}
        if self.reasoning_marks is not None:
            more |= {"enable_thinking": thinks, "thinking": thinks}  # templates call it either
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    messages, tokenize=False, add_generation_prompt=not continues, **more
                )
            )
        except TemplateError as error:  # templates refuse conversations that their model has not been trained on
            raise InvalidRequestError(f"the model's chat template refuses this conversation: {error}") from error


def _marked_tool(tool: Tool, marker: Marker) -> Tool:
    return replace(tool, description=marker.data(tool.description), parameters=marker.data(tool.parameters))


def _has_tools(messages: Sequence[Message]) -> bool:
    return any(message.get("role") == "tool" or message.get("tool_calls") for message in messages)
