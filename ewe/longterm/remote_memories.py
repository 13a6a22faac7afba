"""The memories of a server of this engine, over HTTP: what `ewe.Memory` needs of them, and nothing of a model."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
from urllib3.exceptions import HTTPError

from ewe.errors import ConfigError, DatastoreError, EWEError, InvalidRequestError
from ewe.longterm.recall import Recall, Recalled
from ewe.longterm.records import Memory, MemorySource, Revision, Scope
from ewe.longterm.scoring.threshold import Action
from ewe.longterm.store import Change
from ewe.longterm.superseded import Superseded, Why

_SAME = (
    *("id", "content", "kind", "created_at", "updated_at", "veracity", "uncertainty", "recall_count", "correct_count"),
    *("incorrect_count", "confirmed_at", "valid_from", "valid_until", "observed_at"),
)
_PAGE = 1000  # the most memories that the server lists at once


class RemoteMemories:
    """The memories behind a URL; satisfies `ewe.longterm.memory_backend.MemoryBackend`. Safe to share between threads.

    api_key: the server's, sent as a bearer token; redirects are not followed, so that they cannot carry it elsewhere.
    timeout_s: seconds that one request may take. Raises ConfigError for a URL that cannot be used; its methods raise
    InvalidRequestError for what the server refuses, DatastoreError where it cannot be reached or fails.
    """

    def __init__(self, url: str, api_key: str | None = None, timeout_s: float = 60.0) -> None:
        parsed = urllib3.util.parse_url(url)
        if parsed.scheme not in ("http", "https") or not parsed.host or parsed.auth:
            raise ConfigError(f"a server's address is http://HOST:PORT without credentials (api_key=...), got {url!r}")
        self._url = f"{url.rstrip('/').removesuffix('/v1')}/v1/memories"
        self._headers = {"content-type": "application/json"}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._pool = urllib3.PoolManager(maxsize=8, retries=False, timeout=timeout_s)

    def add(self, memories: Sequence[Memory]) -> list[Memory]:
        """Has the server remember them, or find the same words."""
        return [self._added(one) for one in memories]

    def _added(self, memory: Memory) -> Memory:
        body = {
            **{"content": memory.content, "kind": memory.kind, "metadata": dict(memory.metadata)},
            **{"source": asdict(memory.source), "valid_from": memory.valid_from, "observed_at": memory.observed_at},
            "created_at": memory.created_at or None,
        }
        return _memory(self._send("POST", "", memory.scope, body))

    def find(self, scope: Scope, memory_id: str, as_of: float | None) -> Memory | None:
        """The memory of this scope, as it was at a time; None if there is none, or it did not hold then."""
        answer = self._ask("GET", _path(memory_id), {**_place(scope), "as_of": as_of}, missing_ok=True)
        return None if answer is None or _scope(answer) != scope else _memory(answer)

    def search(self, query: str, scope: Scope, top_k: int, threshold: float | None, as_of: float | None) -> Recall:
        """What is remembered for a query and may be used."""
        body = {"query": query, "top_k": top_k, "threshold": threshold, "as_of": as_of}
        answer = self._send("POST", "/search", scope, body)
        used, disregarded = (tuple(map(_recalled, answer[name])) for name in ("data", "disregarded"))
        return Recall(used, disregarded, float(answer["threshold"]))

    def page(self, scope: Scope, offset: int, limit: int, as_of: float | None) -> list[Memory]:
        """Memories that the scope sees, as they were added."""
        memories: list[Memory] = []
        while len(memories) < limit:
            place = {**_place(scope), "visible": "true", "as_of": as_of}
            part = {"offset": offset + len(memories), "limit": min(_PAGE, limit - len(memories))}
            answer = self._ask("GET", "", {**place, **part})
            memories += map(_memory, answer["data"])
            if not answer["has_more"]:
                break
        return memories

    def history(self, scope: Scope, memory_id: str) -> list[Revision]:
        """All changes of a memory, the first first."""
        rows = self._ask("GET", f"{_path(memory_id)}/history", _place(scope))["data"]
        return [_revision(memory_id, row) for row in rows]

    def edit(self, scope: Scope, memory_id: str, change: Change) -> Memory:
        """Changes what a memory says, its metadata, or when it holds."""
        return _memory(self._send("PATCH", _path(memory_id), scope, _changes(change)))

    def correct(self, scope: Scope, memory_id: str, content: str, by: MemorySource) -> Memory:
        """Rewrites a source's own word; beside another one's it puts what should have been said."""
        return _memory(self._send("PATCH", _path(memory_id), scope, {"content": content, "by": asdict(by)}))

    def feedback(self, scope: Scope, memory_id: str, correct: bool, by: MemorySource) -> Memory:
        """Somebody says that a memory is right or wrong."""
        body = {"correct": correct, "by": asdict(by)}
        return _memory(self._send("POST", f"{_path(memory_id)}/feedback", scope, body)["memory"])

    def why(self, scope: Scope, memory_id: str) -> Why:
        """Why a memory is there and believed as it is."""
        answer = self._ask("GET", f"{_path(memory_id)}/why", _place(scope))
        supersedes, contradicts = (tuple(map(_memory, answer[name])) for name in ("supersedes", "contradicts"))
        history = tuple(_revision(memory_id, row) for row in answer["history"])
        ended = None if answer["ended"] is None else _superseded(answer["ended"])
        return Why(_memory(answer["memory"]), answer["said"], history, ended, supersedes, contradicts)

    def superseded(self, scope: Scope) -> list[Superseded]:
        """The memories whose place others have taken."""
        return list(map(_superseded, self._ask("GET", "/superseded", _place(scope))["data"]))

    def restore(self, scope: Scope, memory_id: str) -> Memory:
        """Has a memory hold again, or say what it said before."""
        return _memory(self._send("POST", f"{_path(memory_id)}/restore", scope, {}))

    def delete(self, scope: Scope, memory_id: str | None, scrub: bool) -> int:
        """Deletes a memory, or with None all of the scope; how many there were."""
        place = {**_place(scope), "scrub": str(scrub).lower()}
        return int(self._ask("DELETE", _path(memory_id) if memory_id else "", place)["deleted"])

    def close(self) -> None:
        """Ends the connections."""
        self._pool.clear()

    def _send(self, method: str, path: str, scope: Scope, body: Mapping[str, Any]) -> Any:
        """The answer to a request with a body."""
        return self._ask(method, path, {}, {**body, **_place(scope)})

    def _ask(
        self, method: str, path: str, query: Mapping[str, Any], body: Mapping[str, Any] | None = None,
        *, missing_ok: bool = False,
    ) -> Any:  # fmt: skip
        given = {key: value for key, value in query.items() if value is not None}
        address = f"{self._url}{path}" + (f"?{urlencode(given)}" if given else "")
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = self._pool.request(method, address, body=data, headers=self._headers, redirect=False)
        except HTTPError as error:
            raise DatastoreError(f"{self._url} cannot be reached: {error}") from error
        if answer.status == 404 and missing_ok and str(_details(answer.data).get("code", "")) == "memory_not_found":
            return None
        if answer.status != 200:
            raise _error(answer.status, answer.data, self._url)
        return json.loads(answer.data)


def _path(memory_id: str) -> str:
    return f"/{quote(memory_id, safe='')}"


def _place(scope: Scope) -> dict[str, str]:
    return {"user": scope.user, "agent": scope.agent}


def _scope(row: Mapping[str, Any]) -> Scope:
    return Scope() if row["shared"] else Scope(row["user"], row["agent"])


def _memory(row: Mapping[str, Any]) -> Memory:
    lists: dict[str, Any] = {key: tuple(row[key]) for key in ("contradicts", "supersedes")}
    source, same = MemorySource(**row["source"]), {key: row[key] for key in _SAME}
    return Memory(**same, **lists, source=source, scope=_scope(row), metadata=row["metadata"])


def _revision(memory_id: str, row: Mapping[str, Any]) -> Revision:
    return Revision(memory_id, **{**row, "evidence": tuple(row["evidence"])})


def _superseded(row: Mapping[str, Any]) -> Superseded:
    by = None if row["by"] is None else _memory(row["by"])
    return Superseded(_memory(row["memory"]), row["at"], by)


def _recalled(row: Mapping[str, Any]) -> Recalled:
    numbers = {key: row[key] for key in ("belief", "uncertainty", "similarity")}
    instead = None if row["replaced_by"] is None else _memory(row["replaced_by"])
    tried = tuple(map(Action, row["tried"]))
    return Recalled(_memory(row["memory"]), **numbers, action=Action(row["action"]), tried=tried, replaced_by=instead)


def _changes(change: Change) -> dict[str, Any]:
    fields: dict[str, Any] = {"content": change.content} if change.content is not None else {}
    if change.metadata is not None:
        fields["metadata"] = dict(change.metadata)
    return fields if change.valid is None else {**fields, "valid_from": change.valid[0], "valid_until": change.valid[1]}


def _details(data: bytes) -> Mapping[str, Any]:
    """The error that a server answered with, as OpenAI has it; empty for anything else."""
    try:
        error = json.loads(data)["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {}


def _error(status: int, data: bytes, url: str) -> EWEError:
    reason = _details(data).get("message") or data[:300].decode("utf-8", "replace")
    return (
        InvalidRequestError(str(reason))
        if 400 <= status < 500
        else DatastoreError(f"{url} answered {status}: {reason}")
    )
