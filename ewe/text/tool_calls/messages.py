"""Messages with calls of tools and their results, as chat templates take them, whether these know tools or not."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ewe.errors import InvalidRequestError
from ewe.text.conversation import Message
from ewe.text.json_values import check_json
from ewe.text.tool_calls.tools import Tool

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
