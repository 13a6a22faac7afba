"""Reading what a model wrote as one step.

Only what the model itself wrote comes here; observations are never read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic_core import from_json

from ewe.agent.records import Call

FORMS = """\
Thought: what you know, how far it can be believed, and what you do next
Action: {"tool": "the tool's name", "arguments": {"name": "value"}}

or, to end,

Thought: what the answer rests on, and how sure that is
Answer: the answer"""
_LABEL = re.compile(r"(Thought|Action|Observation|Answer):")
_THINKING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)  # Some models think aloud before they reply.
_FENCED = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)


class NoStepError(ValueError):
    """A reply that is no step; the message says why."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A step as the model wrote it: a thought, and either a call or an answer."""

    thought: str
    call: Call | None = None
    answer: str | None = None


def read_step(reply: str) -> Reply:
    """The step that a reply consists of, of one of the two `FORMS`; the thought may be left out.

    An answer goes on to the end of the reply, whatever it holds. Raises NoStepError for anything else: other text
    before or after, two actions, an action with an answer, an observation, or an action that is no such JSON.
    """
    parts = _parts(_THINKING.sub("", reply, count=1) if reply.lstrip().startswith("<think>") else reply)
    labels = [label for label, _ in parts]
    if "Observation" in labels:
        raise NoStepError("it holds an observation; observations are what the tools return, never write one")
    if labels[-1] not in ("Action", "Answer") or labels[:-1] not in ([], ["Thought"]):
        found = ", ".join(f"{label}:" for label in labels)
        raise NoStepError(f"a step is one Thought: with one Action: or one Answer:, this holds {found}")
    thought = parts[0][1] if len(parts) == 2 else ""
    label, text = parts[-1]
    if not text:
        raise NoStepError(f"nothing stands after {label}:")
    return Reply(thought, answer=text) if label == "Answer" else Reply(thought, _call(text))


def _parts(reply: str) -> list[tuple[str, str]]:
    """Label and text of every part; a label stands at the start of a line."""
    parts: list[tuple[str, list[str]]] = []
    for line in reply.strip().split("\n"):
        match = _LABEL.match(line)
        if match and (not parts or parts[-1][0] != "Answer"):
            parts.append((match[1], [line[match.end() :]]))
        elif parts:
            parts[-1][1].append(line)
        else:
            raise NoStepError("it must begin with Thought:, Action: or Answer:")
    return [(label, "\n".join(lines).strip()) for label, lines in parts]


def _call(text: str) -> Call:
    fenced = _FENCED.fullmatch(text)
    try:
        told = from_json(fenced[1] if fenced else text, allow_inf_nan=False)  # refuses deep nesting, too
    except ValueError as error:
        raise NoStepError(f"what stands after Action: must be one JSON object and nothing else: {error}") from error
    if not isinstance(told, dict) or set(told) != {"tool", "arguments"}:
        raise NoStepError('an action is a JSON object with the two keys "tool" and "arguments"')
    if not isinstance(told["tool"], str) or not isinstance(told["arguments"], dict):
        raise NoStepError('"tool" is a string and "arguments" an object')
    return Call(told["tool"], told["arguments"])
