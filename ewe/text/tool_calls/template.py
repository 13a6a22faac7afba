"""A model's chat template: conversations become prompts, also with tools, whether the template knows them or not."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from jinja2 import TemplateError

from ewe.errors import InvalidRequestError
from ewe.text.control_marks import Marker
from ewe.text.conversation import Message
from ewe.text.json_values import check_json
from ewe.text.reasoning_marks import ReasoningMarks, reasoning_marks
from ewe.text.tool_calls.formats import FORMATS
from ewe.text.tool_calls.tools import Tool, ToolRequest
from ewe.text.tool_calls.use import ToolUse

_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")
_INTRODUCTION = """\
You may call functions to help with the user's request. The functions are listed here as JSON, one a line:
<tools>
{tools}
</tools>
To call a function, write its name and arguments as a JSON object between tags, and nothing after it:
<tool_call>
{{"name": "the function's name", "arguments": {{"argument": "value"}}}}
</tool_call>
The result comes back between <tool_response> and </tool_response>. If no function is needed, just answer."""
# What gives a format away in a template or among a tokenizer's tokens; the first that is there counts.
_SIGNS = (("mistral", "[TOOL_CALLS]"), ("hermes", "<tool_call>"), ("llama3", "<|python_tag|>"))
_OTHER_SIGNS = ("<function=",)  # tags of the same names around something that is no JSON
_PROBE = Tool("probe", "A tool.")
_HELLO = {"role": "user", "content": "Hello."}


class ChatTemplate:
    """The chat template of a model. tokenizer: the model's, with a template or without."""

    def __init__(self, tokenizer: Any | None, model_name: str) -> None:
        self._tokenizer = tokenizer
        self._model_name = model_name

    def render(self, messages: Sequence[Message], tools: ToolUse | None = None, thinks: bool = False) -> str:
        """The prompt for a conversation; it already holds its BOS. thinks: whether the model may reason first.

        Control tokens that messages and tools spell are marked, so that they stay text. Raises InvalidRequestError,
        also for a template that makes control tokens of texts that spell none.
        """
        if getattr(self._tokenizer, "chat_template", None) is None:
            raise InvalidRequestError(f"the model {self._model_name!r} has no chat template: use generate()")
        if not messages:
            raise InvalidRequestError("messages is empty: give at least one message")
        offered = tools.request.tools if tools is not None else ()
        if self._makes_control_tokens:
            raise InvalidRequestError(
                f"the chat template of the model {self._model_name!r} changes texts so that control tokens come out of "
                "them: use generate(), or give the tokenizer another template"
            )
        if not offered and not _has_tools(messages):
            return self._render([self._marker.message(message) for message in messages], thinks=thinks)
        called = [self._marker.message(message) for message in for_template(messages)]
        offered = tuple(_marked_tool(tool, self._marker) for tool in offered)
        if not (self._shows_tools if tools is None else tools.in_template):
            return self._render(for_plain_template(called, offered), thinks=thinks)
        return self._render(called, [tool.to_openai() for tool in offered] or None, thinks)

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
            changed, plain = (self._marker.num_control(self._render(messages)) for messages in conversations)
        except InvalidRequestError:  # it wants other roles, and is judged by what it makes of them
            return False
        return changed > plain

    @cached_property
    def _shows_tools(self) -> bool:
        if getattr(self._tokenizer, "chat_template", None) is None:
            return False
        try:
            with_tools = self._render([_HELLO], [_PROBE.to_openai()])
        except InvalidRequestError:
            return False
        return with_tools != self._render([_HELLO])

    @cached_property
    def _detected(self) -> str | None:
        """The name of the format that the template, or else the tokenizer, shows."""
        template = str(getattr(self._tokenizer, "chat_template", ""))
        if any(sign in template for sign in _OTHER_SIGNS):
            return None
        tokens = getattr(self._tokenizer, "added_tokens_encoder", {})
        in_either = [name for where in (template, tokens) for name, sign in _SIGNS if sign in where]
        return next(iter(in_either), None)

    def _render(self, messages: list[Any], tools: list[dict[str, Any]] | None = None, thinks: bool = False) -> str:
        prompt = self._rendered(messages, tools, thinks)
        return prompt if thinks or self.reasoning_marks is None else self.reasoning_marks.closed(prompt)

    def _rendered(self, messages: list[Any], tools: list[dict[str, Any]] | None = None, thinks: bool = False) -> str:
        assert self._tokenizer is not None
        more: dict[str, Any] = {"tools": tools} if tools else {}
        if self.reasoning_marks is not None:
            more |= {"enable_thinking": thinks, "thinking": thinks}  # templates call it either
        try:
            return str(
                self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **more)
            )
        except TemplateError as error:  # templates refuse conversations that their model has not been trained on
            raise InvalidRequestError(f"the model's chat template refuses this conversation: {error}") from error


def _marked_tool(tool: Tool, marker: Marker) -> Tool:
    return replace(tool, description=marker.data(tool.description), parameters=marker.data(tool.parameters))


def _has_tools(messages: Sequence[Message]) -> bool:
    return any(message.get("role") == "tool" or message.get("tool_calls") for message in messages)


def for_template(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """For templates that know tools: arguments as objects, contents as texts, ids of nine characters.

    Raises InvalidRequestError for calls and results that are not in OpenAI's form.
    """
    names: dict[str, str] = {}
    rewritten = []
    for place, message in enumerate(messages):
        converted = {**message, "content": message.get("content") or ""}
        converted.pop("tool_calls", None)
        if message.get("tool_calls"):
            calls = _calls_of(message, f"messages.{place}.tool_calls")
            names.update({call["id"]: call["function"]["name"] for call in calls})
            converted["tool_calls"] = calls
        if message.get("role") == "tool":
            converted["tool_call_id"] = _short_id(str(message.get("tool_call_id") or ""))
            name = message.get("name") or names.get(converted["tool_call_id"])
            converted.update({"name": name} if name else {})
        rewritten.append(converted)
    return rewritten


def for_plain_template(messages: Sequence[Message], tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """For templates that know no tools: tools in the system's message, calls and results in Hermes' form.

    Raises as `for_template` does.
    """
    plain: list[dict[str, Any]] = []
    for message in for_template(messages):
        role, content = message["role"], message["content"]
        if role == "tool":
            response = f"<tool_response>\n{content}\n</tool_response>"
            if plain and plain[-1].get("results"):  # templates want the roles to take turns
                plain[-1]["content"] += f"\n{response}"
            else:
                plain.append({"role": "user", "content": response, "results": True})
            continue
        calls = [_written(call["function"]) for call in message.get("tool_calls", ())]
        plain.append({"role": role, "content": "\n".join([*([content] if content else []), *calls])})
    if tools:
        listed = "\n".join(json.dumps(tool.to_openai(), ensure_ascii=False) for tool in tools)
        introduction = _INTRODUCTION.format(tools=listed)
        if plain and plain[0]["role"] == "system":
            introduction = f"{plain.pop(0)['content']}\n\n{introduction}"
        plain.insert(0, {"role": "system", "content": introduction})
    return [{"role": message["role"], "content": message["content"]} for message in plain]


def _written(function: Mapping[str, Any]) -> str:
    written = json.dumps({"name": function["name"], "arguments": function["arguments"]}, ensure_ascii=False)
    return f"<tool_call>\n{written}\n</tool_call>"


def _calls_of(message: Message, where: str) -> list[dict[str, Any]]:
    calls = []
    for place, call in enumerate(message["tool_calls"]):
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise InvalidRequestError(f"{where}.{place}: a call must be {{id, type, function: {{name, arguments}}}}")
        arguments = _arguments_of(function.get("arguments"), f"{where}.{place}.function.arguments")
        called = {"name": function["name"], "arguments": arguments}
        calls.append({"id": _short_id(str(call.get("id") or "")), "type": "function", "function": called})
    return calls


def _arguments_of(value: Any, where: str) -> dict[str, Any]:
    """Arguments as an object: OpenAI's clients send a string of JSON, and templates write the JSON themselves."""
    try:
        arguments = json.loads(value) if isinstance(value, str) and value.strip() else value or {}
        check_json(arguments)
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError(f"{where}: this is not JSON: {error}") from error
    if not isinstance(arguments, Mapping):
        raise InvalidRequestError(f"{where}: this must be a JSON object, as a string")
    return dict(arguments)


def _short_id(call_id: str) -> str:
    """The same id, or one of nine characters that stands for it: Mistral's templates refuse others."""
    return call_id if _SHORT_ID.fullmatch(call_id) else hashlib.sha256(call_id.encode()).hexdigest()[:9]
