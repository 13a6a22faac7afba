"""`ewe memory add`, `remember` and `mcp`: what writes memories, in a store that is made if there is none."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from ewe.cli import options
from ewe.cli.engine import open_llm, settings_of
from ewe.cli.prompts import json_lines, read_text
from ewe.cli.terminal import clean, say
from ewe.config import LongTermConfig
from ewe.config.setting_names import NONE
from ewe.errors import InvalidRequestError
from ewe.longterm.commands.memory_options import EncoderName, JudgeIfAny, MemoryPlace, Owner
from ewe.longterm.records import Memory, MemorySource
from ewe.text.conversation import Message, check_conversation
from ewe.text.words import counted

if TYPE_CHECKING:
    from ewe.longterm.service import MemoryService
    from ewe.longterm.store import MemoryStore
    from ewe.verification.judges.protocol import Judge

Reliability = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Reliability of the source.", show_default="by its kind"),
]


def add(
    store: MemoryPlace,
    content: Annotated[
        str, typer.Argument(help="What to remember; '-' reads one memory per line from standard input.")
    ],
    owner: Owner,
    memory_id: Annotated[
        str | None, typer.Option("--id", help="The memory's id.", show_default="made from the words")
    ] = None,
    kind: Annotated[str, typer.Option(help="Kind of memory.")] = "fact",
    source: Annotated[str, typer.Option(help="Source: a kind, or KIND:ID.")] = "user",
    reliability: Reliability = None,
    veracity: Annotated[
        float | None, typer.Option(min=0, max=1, help="Veracity of the memory.", show_default="scored")
    ] = None,
    judge: JudgeIfAny = None,
    observed_at: Annotated[
        datetime | None, typer.Option("--observed-at", help="When it was said or seen (UTC).", show_default="now")
    ] = None,
    created_at: Annotated[
        datetime | None, typer.Option("--created-at", help="When it was written down (UTC).", show_default="now")
    ] = None,
) -> None:
    """Add a memory, or one per line; creates the store if needed. Prints their ids.

    With --id or --veracity it is taken as it is given, and compared with nothing.
    """
    from ewe.longterm.default_memory import open_or_create

    if content == "-" and memory_id is not None:
        raise typer.BadParameter("--id names one memory, not the lines of standard input")
    as_given = memory_id is not None or veracity is not None
    if judge is not None and as_given:
        raise typer.BadParameter("with --judge the id comes from the words and the veracity from the scores")
    contents = [line.strip() for line in sys.stdin if line.strip()] if content == "-" else [content]
    observed, created = (None if at is None else at.replace(tzinfo=UTC).timestamp() for at in (observed_at, created_at))
    template = Memory(
        memory_id or "new", "told", kind, _source(source, reliability), owner.scope,
        veracity=0.5 if veracity is None else veracity,
        created_at=created or 0.0, observed_at=observed,
    )  # fmt: skip
    memories = [replace(template, content=text) for text in contents]
    with open_or_create(store) as opened:
        if as_given:
            _given(opened, memories)
        else:
            _scored(opened, judge, memories)


def _given(store: MemoryStore, memories: Sequence[Memory]) -> None:
    """Adds memories as they are. Raises InvalidRequestError if the id of one stands for another memory."""
    from ewe.longterm.scoring.verimem import veracity_uncertainty

    now = time.time()
    complete = [
        replace(
            one,
            id=uuid4().hex if one.id == "new" else one.id,
            created_at=one.created_at or now,
            updated_at=now,
            uncertainty=veracity_uncertainty(one.veracity),
        )
        for one in memories
    ]
    result = store.add(complete)
    for one in complete:
        print(one.id)
    if result.conflicts:
        raise InvalidRequestError(f"the id {complete[0].id!r} stands for another memory there: choose another one")


def _scored(store: MemoryStore, judge: str | None, memories: Sequence[Memory]) -> None:
    """Adds memories one by one, each compared with those before it; says what replaces and contradicts what."""
    from ewe.longterm.default_memory import default_memory
    from ewe.longterm.local_memories import LocalMemories

    settings = LongTermConfig(judge_turns=judge is not None)
    service = LocalMemories(default_memory(store, settings, judge=_judge(judge), encoder=NONE))
    for new in memories:
        [memory] = service.add([new])
        print(memory.id)
        for other in memory.supersedes:
            say(f"{memory.id} takes the place of {clean(other)}, which is found for earlier times only")
        for other in memory.contradicts:
            say(f"{memory.id} contradicts {clean(other)}: both are kept and marked")


def remember(
    store: MemoryPlace,
    file: Annotated[
        Path, typer.Argument(help="Messages as OpenAI has them: a JSON list, or one per line (JSONL).", exists=True)
    ],
    owner: Owner,
    model: Annotated[
        str | None, typer.Option(help="A chat model that extracts facts.", show_default="rules of English")
    ] = None,
    settings: options.Settings = None,
    judge: JudgeIfAny = None,
    encoder: EncoderName = None,
) -> None:
    """Extract facts from the user messages of a conversation, unverified; creates the store if needed. Prints them."""
    from ewe.longterm.extraction import ConversationMemory, FactExtractor
    from ewe.longterm.query_time import seconds
    from ewe.longterm.rule_facts import facts_by_rules
    from ewe.verification.endpoint.protocol import CompletionError

    messages = [message for message in read_messages(file) if message["role"] == "user"]
    failed = 0
    with (
        open_service(store, judge, encoder) as service,
        nullcontext() if model is None else open_llm(settings_of(model, assignments=settings)) as llm,
    ):
        extract = facts_by_rules if llm is None else FactExtractor(llm.chat_plainly, service.judge)
        memory = ConversationMemory(service, extract)
        for message in messages:
            try:
                at = None if message.get("created_at") is None else seconds("created_at", message["created_at"])
                added = memory.remember(message["content"], owner.scope, message.get("name") or "The user", at)
            except CompletionError as error:
                failed += 1
                say(str(error))
                continue
            for one in added:
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
    messages: list[Any] = []
    for part in parts:
        inner = part.get("messages", part) if isinstance(part, dict) else part
        messages += inner if isinstance(inner, list) else [inner]
    return list(check_conversation(messages, str(file)))


def mcp(
    store: MemoryPlace,
    owner: Owner,
    source: Annotated[str, typer.Option(help="Source of new memories: a kind, or KIND:ID.")] = "model:mcp",
    reliability: Reliability = None,
    judge: JudgeIfAny = None,
    encoder: EncoderName = None,
) -> None:
    """Serve this user's memories over MCP on standard input and output; creates the store if needed."""
    from ewe.longterm.agent.memory_mcp import MemoryServer, mcp_app
    from ewe.longterm.memory_api import Memory as Memories
    from ewe.verification.endpoint.completer import API_KEY_VARIABLE

    with Memories(
        store, owner.user, owner.agent, api_key=os.environ.get(API_KEY_VARIABLE),
        source=_source(source, reliability), judge=_judge(judge), encoder=encoder,
    ) as memory:  # fmt: skip
        mcp_app(MemoryServer(memory)).run("stdio")


@contextmanager
def open_service(store: str, judge: str | None, encoder: str | None) -> Iterator[MemoryService]:
    """Memories in a folder or behind a URL, for as long as the context lasts; judge: by its name."""
    from ewe.longterm.default_memory import default_memory

    settings = LongTermConfig(judge_turns=judge is not None)
    service = default_memory(store, settings, judge=_judge(judge), encoder=encoder)
    try:
        yield service
    finally:
        service.close()
        service.store.close()


def _judge(name: str | None) -> Judge | None:
    from ewe.verification.judges.load import load_judge

    return None if name is None else load_judge(name)


def _source(name: str, reliability: float | None) -> MemorySource:
    """Where something comes from, believed as such sources are unless somebody says otherwise."""
    from ewe.longterm.scoring.verimem import source_of

    kind, _, id_ = name.partition(":")
    return source_of(kind, id_, reliability)
