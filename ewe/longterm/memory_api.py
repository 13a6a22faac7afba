"""`ewe.Memory`: long-term memories by one name, in a folder, in PostgreSQL or on a server of this engine."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from ewe.config.config_evidence import SEARCH_TOP_K, LongTermConfig
from ewe.errors import ConfigError, InvalidRequestError
from ewe.longterm import records
from ewe.longterm.default_memory import DEFAULTS, default_memory
from ewe.longterm.extraction import Extractor, taken_from
from ewe.longterm.local_memories import LocalMemories
from ewe.longterm.memory_arguments import check_count, check_described, check_share, check_text, check_verdict
from ewe.longterm.memory_backend import MemoryBackend
from ewe.longterm.memory_search import visible
from ewe.longterm.query_time import Time, seconds
from ewe.longterm.recall import Recall, Recalled
from ewe.longterm.records import MemorySource, Revision, Scope
from ewe.longterm.remote_memories import RemoteMemories
from ewe.longterm.rule_facts import facts_by_rules
from ewe.longterm.scoring.threshold import VeracityThreshold
from ewe.longterm.scoring.verimem import source_of
from ewe.longterm.service import MemoryService
from ewe.longterm.store import Change
from ewe.longterm.superseded import Superseded, Why
from ewe.text.conversation import check_conversation
from ewe.verification.judges.protocol import Judge

Messages = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A text, a message as OpenAI has it ({"role": "user", "content": ...}), or several."""
_ROLES = ("user", "assistant", "system", "developer", "tool", "function")


class Memory:
    """What is remembered of a user, with an agent or without; nobody named: what everybody shares.

    place: a folder, which is made if it is missing, postgresql://..., the http:// address of a server, a
    `MemoryService` that stays the caller's, or another backend. api_key: the server's. source: whose word new memories
    are (None: the user's own, who is believed 0.7). extract: takes facts from messages. judge, encoder, settings: as
    `default_memory` takes them, of memories in this process. Times: seconds since 1970, ISO dates or datetimes.

    Reads what `search` sees: the user's memories, the agent's, and the shared ones; changes the user's own. Safe to
    call from several threads. Raises InvalidRequestError for what is no memory or not there, DatastoreError as the
    store does, ConfigError for what cannot be had.
    """

    def __init__(
        self,
        place: str | Path | MemoryService | MemoryBackend,
        user: str = "",
        agent: str = "",
        *,
        api_key: str | None = None,
        source: MemorySource | None = None,
        extract: Extractor = facts_by_rules,
        judge: Judge | None = None,
        encoder: str | None = None,
        settings: LongTermConfig = DEFAULTS,
    ) -> None:
        check_described(None, source)
        self._scope, self._source, self._extract = Scope(user, agent), source or source_of("user", user), extract
        if place is None or place == "":
            raise ConfigError('name where memories are to lie: a folder, as Memory("me.db"), or an address')
        if isinstance(place, str) and place.startswith(("http://", "https://")):
            if judge is not None or encoder is not None or settings is not DEFAULTS:
                raise ConfigError("judge, encoder and settings are those of the server: set them there")
            place = RemoteMemories(place, api_key)
        elif isinstance(place, str | Path):
            service = default_memory(place, settings, judge=judge, encoder=encoder)
            place = LocalMemories(service, owns_store=True)
        self._backend: MemoryBackend = LocalMemories(place) if isinstance(place, MemoryService) else place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store or the connections; not those of a service that was given."""
        self._backend.close()

    def of(self, user: str = "", agent: str = "") -> "Memory":
        """The memories of somebody else at the same place; closing either closes it."""
        return Memory(self._backend, user, agent, extract=self._extract)

    def add(
        self,
        messages: Messages,
        *,
        infer: bool = True,
        kind: str | None = None,
        metadata: Mapping[str, str] | None = None,
        source: MemorySource | None = None,
        created_at: Time | None = None,
        observed_at: Time | None = None,
        valid_from: Time | None = None,
    ) -> list[records.Memory]:
        """Remembers a text as it is, or what the user tells in messages; what it `supersedes` is found no more.

        infer: take facts from messages (False: keep each one, as a "turn"). created_at: when it was written down;
        observed_at: when it was said or seen (a message's own "created_at"); valid_from: since when it holds. A text
        that is there already is not added again.
        """
        check_described(metadata, source)
        times = {"created_at": created_at, "observed_at": observed_at, "valid_from": valid_from}
        given: dict[str, Any] = {name: seconds(name, at) for name, at in times.items() if at is not None}
        given |= {"scope": self._scope, "kind": kind or ("fact" if infer or isinstance(messages, str) else "turn")}
        word_of = source or self._source
        if isinstance(messages, str):
            memories = [records.Memory("new", messages, source=word_of, metadata=dict(metadata or {}), **given)]
        else:
            memories = [
                records.Memory("new", text, source=by, metadata={**about, **(metadata or {})}, **{**when, **given})
                for text, by, about, when in self._statements(messages, word_of, infer)
            ]
        return self._backend.add(memories)

    def search(
        self, query: str, top_k: int = SEARCH_TOP_K, *, threshold: float | None = None, as_of: Time | None = None
    ) -> list[Recalled]:
        """What is remembered for a query and may be used, best first: each with `content`, `belief` and `memory`.

        threshold: the veracity to ask for, in [0, 1]. as_of: when it must hold; without it a question about a time ("in
        2024") is answered for that time, any other for now.
        """
        return list(self.recall(query, top_k, threshold=threshold, as_of=as_of).used)

    def recall(
        self, query: str, top_k: int = SEARCH_TOP_K, *, threshold: float | None = None, as_of: Time | None = None
    ) -> Recall:
        """As `search`, with what may not be used and the veracity that was asked for."""
        check_text("query", query)
        check_count("top_k", top_k)
        check_share("threshold", threshold)
        if not query.strip():
            return Recall((), (), VeracityThreshold().base if threshold is None else threshold)
        return self._backend.search(query, self._scope, top_k, threshold, _at(as_of))

    def get(self, memory_id: str, *, as_of: Time | None = None) -> records.Memory | None:
        """A memory in sight, as it is or was; None if there is none, or it did not hold then."""
        return self._find(memory_id, visible(self._scope.user, self._scope.agent), _at(as_of))

    def get_all(self, *, as_of: Time | None = None, offset: int = 0, limit: int = 1000) -> list[records.Memory]:
        """The memories in sight as they were added, ended ones too; as_of: those that held then, as they were."""
        check_count("offset", offset, 0)
        check_count("limit", limit, 0)
        return self._backend.page(self._scope, offset, limit, _at(as_of))

    def history(self, memory_id: str) -> list[Revision]:
        """Every change of a memory with its evidence, the first first."""
        return self._backend.history(self._seen(memory_id).scope, memory_id)

    def why(self, memory_id: str) -> Why:
        """Why a memory is there and believed as it is: its history, what took its place or contradicts it."""
        return self._backend.why(self._seen(memory_id).scope, memory_id)

    def superseded(self) -> list[Superseded]:
        """The user's memories whose place others have taken, as they were added: each with what took it, and why."""
        return self._backend.superseded(self._scope)

    def update(
        self, memory_id: str, content: str | None = None, *, metadata: Mapping[str, str] | None = None
    ) -> records.Memory:
        """Changes what a memory of the user says; what it said before stays in its history."""
        if content is None and metadata is None:
            raise InvalidRequestError("say what is to be changed: content, metadata or both")
        if content is not None:
            check_text("content", content)
        check_described(metadata, None)
        return self._backend.edit(self._own(memory_id).scope, memory_id, Change(content=content, metadata=metadata))

    def correct(self, memory_id: str, content: str) -> records.Memory:
        """Says what a memory should have said: `source`'s own word is rewritten, another one's stays, and both are
        marked as contradicting each other.
        """
        check_text("content", content)
        return self._backend.correct(self._own(memory_id).scope, memory_id, content, self._source)

    def feedback(self, memory_id: str, correct: bool) -> records.Memory:
        """Says that a memory is right or wrong; counts once until it is said otherwise. The memory after it."""
        check_verdict(correct)
        return self._backend.feedback(self._own(memory_id).scope, memory_id, correct, self._source)

    def restore(self, memory_id: str) -> records.Memory:
        """Has a memory that ended, or is contradicted, hold again; any other says what it said before its edit.

        Raises InvalidRequestError where there is nothing to take back.
        """
        return self._backend.restore(self._own(memory_id).scope, memory_id)

    def delete(self, memory_id: str, *, scrub: bool = True) -> None:
        """Deletes a memory with its history, for good. scrub: leave no trace in the files, which takes longer."""
        self._backend.delete(self._own(memory_id).scope, memory_id, scrub)

    forget = delete

    def delete_all(self, *, scrub: bool = True) -> int:
        """Deletes all memories of the user, with every agent unless one is named; how many. Raises for nobody's."""
        if self._scope.shared:
            raise InvalidRequestError("name the user or the agent whose memories are to be deleted")
        return self._backend.delete(self._scope, None, scrub)

    def _statements(
        self, messages: Mapping[str, Any] | Sequence[Mapping[str, Any]], word_of: MemorySource, infer: bool
    ) -> Iterable[tuple[str, MemorySource, dict[str, str], dict[str, float]]]:
        """What messages tell: text, whose word it is, what is to be known about it, and when it was said."""
        for message in check_conversation([messages] if isinstance(messages, Mapping) else messages):
            if message["role"] not in _ROLES:  # of "human" nothing would be remembered, without a word
                raise InvalidRequestError(f"a message's role is one of {', '.join(_ROLES)}, got {message['role']!r}")
            by_user, text, at = message["role"] == "user", message.get("content") or "", message.get("created_at")
            when = {} if at is None else {"observed_at": seconds("created_at", at)}
            if not infer and text.strip():
                yield text, word_of if by_user else MemorySource(message["role"]), {"role": message["role"]}, when
            elif infer and by_user:
                for fact, source, about in taken_from(self._extract, message.get("name") or "The user", text):
                    yield fact, source, about, when

    def _seen(self, memory_id: str) -> records.Memory:
        return _there(self.get(memory_id), memory_id)

    def _own(self, memory_id: str) -> records.Memory:
        """A memory that may be changed: of the user with this agent or without, of the agent where no user is named."""
        scopes = [self._scope, *([Scope(self._scope.user)] if self._scope.user and self._scope.agent else [])]
        return _there(self._find(memory_id, scopes, None), memory_id)

    def _find(self, memory_id: str, scopes: Iterable[Scope], as_of: float | None) -> records.Memory | None:
        hits = (self._backend.find(scope, memory_id, as_of) for scope in scopes)
        return next((one for one in hits if one is not None), None)


def _at(as_of: Time | None) -> float | None:
    return None if as_of is None else seconds("as_of", as_of)


def _there(memory: records.Memory | None, memory_id: str) -> records.Memory:
    if memory is None:
        raise InvalidRequestError(f"no memory {memory_id!r} here that you may use: search or list them first")
    return memory
