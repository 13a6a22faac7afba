"""Where prompts and documents come from: the argument, files, standard input."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ewe.errors import InvalidRequestError
from ewe.retrieval.datastore import Datastore
from ewe.text.conversation import Message, check_conversation, question_of
from ewe.types import Passage

_EXPECTED = 'expected an object with a text under "prompt", or a conversation under "messages"'


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with the name under which its result is found again.

    text: what is asked; of a conversation the user's last message. messages: the conversation, if it is one. title: of
    the article that is asked about, for those who grade answers.
    """

    id: str
    text: str
    messages: tuple[Message, ...] = ()
    title: str = ""


def read_prompts(argument: str | None, file: Path | None) -> list[Prompt]:
    """The prompts of the argument, else of the file, else of standard input.

    A file holds one prompt per line; if it ends in .jsonl, or if its first line is a JSON object, one object per line
    with "prompt" or "messages" (a conversation), and perhaps "id" and "title". Blank lines are skipped. Raises
    InvalidRequestError if there is no prompt, a line is not what it should be, or an id comes twice.
    """
    if argument is not None:
        if file is not None:
            raise InvalidRequestError("give the prompt as an argument or in --prompts, not both")
        return [Prompt("0", argument)]
    if file is None and sys.stdin.isatty():
        raise InvalidRequestError("no prompt: give one as an argument, in --prompts FILE or on standard input")
    name = str(file) if file else "standard input"
    text = read_text(file, "prompts from")
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise InvalidRequestError(f"{name} holds no prompt")
    if name.endswith(".jsonl") or _is_object(lines[0]):
        rows = json_lines(text, name)
        prompts = [_from_json(value, place, index) for index, (place, value) in enumerate(rows)]
    else:
        prompts = [Prompt(str(index), line.rstrip("\r")) for index, line in enumerate(lines)]
    twice = next((one for one, count in Counter(prompt.id for prompt in prompts).items() if count > 1), None)
    if twice is not None:
        raise InvalidRequestError(f"{name}: the id {twice!r} stands for two prompts")
    return prompts


def read_text(file: Path | None, what: str) -> str:
    """The text of a file, or of standard input; raises InvalidRequestError with `what` was to be read."""
    try:
        return file.read_text(encoding="utf-8-sig") if file else sys.stdin.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"cannot read {what} {file or 'standard input'}: {error}") from error


def json_lines(text: str, name: str) -> Iterator[tuple[str, Any]]:
    """(place, value) of every line that is not blank; raises InvalidRequestError naming one that is no JSON."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield f"{name}:{number}", json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                raise InvalidRequestError(f"{name}:{number}: not valid JSON: {error}") from error


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (json.JSONDecodeError, RecursionError):
        return False


def _from_json(value: Any, place: str, index: int) -> Prompt:
    if not isinstance(value, dict):
        raise InvalidRequestError(f"{place}: {_EXPECTED}")
    name, text, messages = str(value.get("id", index)), value.get("prompt"), value.get("messages")
    if text is not None and messages is not None:
        raise InvalidRequestError(f'{place}: give "prompt" or "messages", not both')
    if messages is not None:
        talk = check_conversation(messages, f"{place}: messages")
        return Prompt(name, question_of(talk), tuple(talk))
    if not isinstance(text, str):
        raise InvalidRequestError(f"{place}: {_EXPECTED}")
    return Prompt(name, text, title=str(value.get("title") or ""))


def read_documents(files: Iterable[Path] | None) -> list[Passage] | None:
    """The passages of all files in order: a .jsonl file's own, any other file's text as one passage under its name."""
    passages: list[Passage] = []
    for file in files or ():
        if file.suffix == ".jsonl":
            passages.extend(Datastore.from_jsonl(file).passages)
            continue
        text = read_text(file, "the document").strip()
        passages.append(Passage(id=str(file), text=text, title=file.stem, source=str(file)))
    return passages or None
