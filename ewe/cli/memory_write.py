"""`ewe memory add`, `remember` and `mcp`: what writes memories, in a store that is made if there is none."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from ewe.cli import options
from ewe.cli.engine import open_llm, settings_of
from ewe.cli.options import EncoderName, JudgeName, MemoryPlace, Owner
from ewe.cli.prompts import json_lines, read_text
from ewe.cli.terminal import clean, say
from ewe.config import LongTermConfig
from ewe.conversation import Message, check_conversation
from ewe.errors import InvalidRequestError
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.text.words import counted

if TYPE_CHECKING:
    from ewe.longterm.service import MemoryService
    from ewe.longterm.store import MemoryStore
    from ewe.verification.judges.protocol import Judge


def add(
    store: MemoryPlace,
    content: Annotated[
        str, typer.Argument(help="What to remember; '-' reads one memory per line from standard input.")
    ],
    owner: Owner,
    memory_id: Annotated[str | None, typer.Option("--id", help="Its id.", show_default="made up")] = None,
    kind: Annotated[str, typer.Option(help="What sort of memory it is.")] = "fact",
    source: Annotated[str, typer.Option(help="Where it comes from: a kind, or KIND:ID.")] = "user",
    reliability: Annotated[float, typer.Option(min=0, max=1, help="How far that source can be believed.")] = 0.5,
    veracity: Annotated[
        float | None, typer.Option(min=0, max=1, help="How far the memory can be believed.", show_default="0.5")
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="Score it, and mark what it contradicts, by this judge: builtin, base, a folder or hub id, or "
            "openai:MODEL@URL.",
            show_default="as it is given",
        ),
    ] = None,
) -> None:
    """Add a memory, or one per line; makes the store if there is none. Prints their ids."""
    from ewe.longterm.open_memories import open_or_create
    from ewe.verification.judges.load import load_judge

    if content == "-" and memory_id is not None:
        raise typer.BadParameter("--id names one memory, not the lines of standard input")
    if judge is not None and (memory_id is not None or veracity is not None):
        raise typer.BadParameter("with --judge the id comes from the words and the veracity from the scores")
    loaded = load_judge(judge) if judge is not None else None
    contents = [line.strip() for line in sys.stdin if line.strip()] if content == "-" else [content]
    said = _source(source, reliability)
    given = (
        [] if loaded else _memories(contents, owner.scope, said, kind, memory_id, 0.5 if veracity is None else veracity)
    )
    with open_or_create(store) as opened:
        if loaded is not None:
            _judged(opened, loaded, contents, owner.scope, said, kind)
        else:
            _given(opened, given)


def _memories(
    contents: Sequence[str], scope: Scope, source: MemorySource, kind: str, memory_id: str | None, veracity: float
) -> list[Memory]:
    from ewe.longterm.scoring.verimem import veracity_uncertainty

    now, uncertainty = time.time(), veracity_uncertainty(veracity)
    return [
        Memory(
            memory_id or uuid4().hex, text, kind, source, scope, created_at=now, updated_at=now, veracity=veracity,
            uncertainty=uncertainty,
        )
        for text in contents
    ]  # fmt: skip


def _given(store: MemoryStore, memories: Sequence[Memory]) -> None:
    """Adds memories as they are. Raises InvalidRequestError if the id of one stands for another memory."""
    result = store.add(memories)
    for each in memories:
        print(each.id)
    if result.conflicts:
        raise InvalidRequestError(f"the id {memories[0].id!r} stands for another memory there: choose another one")


def _judged(
    store: MemoryStore, judge: Judge, contents: Sequence[str], scope: Scope, source: MemorySource, kind: str
) -> None:
    """Adds memories one by one, each compared with those before it; says what contradicts what."""
    from ewe.longterm.service import MemoryService

    service = MemoryService(store, judge=judge)
    for text in contents:
        memory = service.add(text, scope, source, kind)
        print(memory.id)
        for other in memory.contradicts:
            say(f"{memory.id} contradicts {clean(other)}: both are kept and marked")


def remember(
    store: MemoryPlace,
    file: Annotated[
        Path, typer.Argument(help="Messages as OpenAI has them: a JSON list, or one per line (JSONL).", exists=True)
    ],
    owner: Owner,
    model: Annotated[
        str | None, typer.Option(help="A chat model that takes the facts.", show_default="rules of English")
    ] = None,
    settings: options.Settings = None,
    judge: JudgeName = "builtin",
    encoder: EncoderName = None,
) -> None:
    """Keep the facts that a conversation's users tell, unverified; makes the store if there is none. Prints them."""
    from ewe.longterm.extraction import ConversationMemory, FactExtractor, facts_by_rules
    from ewe.verification.endpoint.protocol import CompletionError

    messages = [message for message in read_messages(file) if message["role"] == "user"]
    failed = 0
    with (
        _service(store, judge, encoder) as service,
        nullcontext() if model is None else open_llm(settings_of(model, assignments=settings)) as llm,
    ):
        extract = facts_by_rules if llm is None else FactExtractor(llm.chat_plainly, service.judge)
        memory = ConversationMemory(service, extract)
        for message in messages:
            try:
                found = memory.remember(message["content"], owner.scope, message.get("name") or "The user")
            except CompletionError as error:
                failed += 1
                say(str(error))
                continue
            for one in found:
                print(f"{one.id} {clean(one.content)}")
    unanswered = f", {failed} without an answer of the model" if failed else ""
    say(f"{counted(len(messages), 'message')} read{unanswered}")
    if failed:
        raise typer.Exit(1)


def read_messages(file: Path) -> list[Message]:
    """The messages of a file: a list, an object with `messages`, or either of them on each line.

    Raises InvalidRequestError for anything else.
    """
    text = read_text(file, "messages from")
    try:
        parts: list[Any] = [json.loads(text)]
    except ValueError:
        parts = [value for _, value in json_lines(text, str(file))]
    found: list[Any] = []
    for part in parts:
        inner = part.get("messages", part) if isinstance(part, dict) else part
        found += inner if isinstance(inner, list) else [inner]
    return list(check_conversation(found, str(file)))


def mcp(
    store: MemoryPlace,
    owner: Owner,
    source: Annotated[str, typer.Option(help="Whose word new memories are: a kind, or KIND:ID.")] = "model:mcp",
    reliability: Annotated[float, typer.Option(min=0, max=1, help="How far that source can be believed.")] = 0.5,
    judge: JudgeName = "builtin",
    encoder: EncoderName = None,
) -> None:
    """Serve this user's memories over MCP on standard input and output; makes the store if there is none."""
    from ewe.agent.memory_mcp import MemoryServer, mcp_app

    with _service(store, judge, encoder) as service:
        mcp_app(MemoryServer(service, owner.user, owner.agent, _source(source, reliability))).run("stdio")


@contextmanager
def _service(store: str, judge: str, encoder: str | None) -> Iterator[MemoryService]:
    from ewe.longterm.open_memories import open_service
    from ewe.verification.judges.load import load_judge

    service = open_service(store, LongTermConfig(), load_judge(judge), encoder=encoder)
    try:
        yield service
    finally:
        service.close()
        service.store.close()


def _source(name: str, reliability: float) -> MemorySource:
    kind, _, id_ = name.partition(":")
    return MemorySource(kind, id_, reliability)
