"""`ewe memory remember`: facts of a recorded conversation as memories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ewe.cli import options
from ewe.cli.memory_options import Agent, EncoderName, JudgeName, Store, User

if TYPE_CHECKING:
    from ewe.conversation import Message


def remember(
    store: Store,
    file: Annotated[
        Path, typer.Argument(help="Messages as OpenAI has them: a JSON list, or one per line (JSONL).", exists=True)
    ],
    user: User = "",
    agent: Agent = "",
    model: Annotated[str, typer.Option(help="The chat model that takes the facts.")] = "smollm2",
    settings: options.Settings = None,
    judge: JudgeName = "builtin",
    encoder: EncoderName = None,
) -> None:
    """Keep the facts that a conversation's users tell, unverified; makes the store if there is none. Prints them."""
    from ewe.cli.engine import open_llm, settings_of
    from ewe.cli.terminal import clean, say
    from ewe.config import LongTermConfig
    from ewe.longterm.extraction import ConversationMemory
    from ewe.longterm.factory import open_service
    from ewe.longterm.records import Scope
    from ewe.text.words import counted
    from ewe.verification.endpoint.protocol import CompletionError
    from ewe.verification.judges.load import load_judge

    messages = [message for message in read_messages(file) if message["role"] == "user"]
    config = settings_of(model=model, assignments=settings)
    service = open_service(store, LongTermConfig(), load_judge(judge), encoder=encoder)
    failed = 0
    try:
        with open_llm(config) as llm:
            memory = ConversationMemory(service, llm.chat_plainly)
            for message in messages:
                try:
                    found = memory.remember(message["content"], Scope(user, agent), message.get("name") or "The user")
                except CompletionError as error:
                    failed += 1
                    say(str(error))
                    continue
                for one in found:
                    print(f"{one.id} {clean(one.content)}")
    finally:
        service.close()
        service.store.close()
    say(f"{counted(len(messages), 'message')} read, {failed} without an answer of the model")
    if failed:
        raise typer.Exit(1)


def read_messages(file: Path) -> list[Message]:
    """The messages of a file: a list, an object with `messages`, or either of them on each line.

    Raises InvalidRequestError for anything else.
    """
    from ewe.conversation import check_conversation
    from ewe.errors import InvalidRequestError

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"{file} cannot be read: {error}") from error
    try:
        parts: list[Any] = [json.loads(text)]
    except ValueError:
        lines = ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())
        parts = [_line(file, number, line) for number, line in lines]
    found: list[Any] = []
    for part in parts:
        inner = part.get("messages", part) if isinstance(part, dict) else part
        found += inner if isinstance(inner, list) else [inner]
    return list(check_conversation(found, str(file)))


def _line(file: Path, number: int, line: str) -> Any:
    from ewe.errors import InvalidRequestError

    try:
        return json.loads(line)
    except ValueError as error:
        raise InvalidRequestError(f"{file}:{number} is no JSON: {error}") from error
