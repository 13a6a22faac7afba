"""Long-term memories in a running engine: brought to requests, and moved by what the checks of answers found."""

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ewe.config import LongTermConfig
from ewe.errors import InvalidRequestError
from ewe.longterm.evidence import is_memory
from ewe.longterm.extraction import Chat, ConversationMemory, FactExtractor
from ewe.longterm.memory_search import as_passage, scope_and_id, visible
from ewe.longterm.recall import Recalled
from ewe.longterm.records import Scope
from ewe.longterm.reviews import BackgroundReviews
from ewe.longterm.service import MemoryService
from ewe.types import Evidence, Generation, MemoryOptions, Query, ScoredPassage, Verdict

MOST_WAITING = 1000
"""Answers whose checks wait to be learnt from; what comes while there are more is not learnt from."""

_log = logging.getLogger("ewe.longterm")


class RequestMemories:
    """The memories of one engine; satisfies `ewe.types.protocols.Memories`.

    owns_store: whether `close` closes the store. reviews: run from `start` on, until `finish`.
    conversations: keeps what users tell. patience_s: seconds that `finish` gives to what is still to be learnt.
    Learning has a thread of its own. What fails is logged and counted.
    """

    def __init__(
        self,
        service: MemoryService,
        settings: LongTermConfig,
        *,
        reviews: BackgroundReviews | None = None,
        owns_store: bool = False,
        patience_s: float = 30.0,
    ) -> None:
        self.service = service
        self.conversations = ConversationMemory(service)
        self._owns_store = owns_store
        self._reviews = reviews
        self._settings, self._patience_s = settings, patience_s
        self._counts: Counter[str] = Counter()
        self._waiting, self._is_closed = 0, False
        self._changed = threading.Condition()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ewe-memories")

    @property
    def counts(self) -> dict[str, int]:
        """How often each of `MEMORY_EVENTS` happened, so far."""
        with self._changed:
            counts = dict(self._counts)
        if self._reviews is not None:
            counts |= {"reviewed": self._reviews.status.reviewed, "review_failed": self._reviews.status.failed}
        return counts

    def recall(self, queries: Sequence[Query]) -> list[list[ScoredPassage]]:
        """Per query at most `top_k` memories that may be used, the best first; none where looking for them fails."""
        return [self._recalled(query) for query in queries]

    def learn(
        self, generation: Generation, evidence: Sequence[Evidence], options: MemoryOptions, question: str = ""
    ) -> None:
        """Has the memories behind an answer counted, moved, and new ones made, by what was found; returns at once."""
        if options.scope == "none":
            return
        with self._changed:
            if self._is_closed or self._waiting >= MOST_WAITING:
                self._counts["not_learnt"] += 1
                return
            self._waiting += 1
            self._thread.submit(self._learn, generation, tuple(evidence), options, question)

    def wait(self, timeout_s: float) -> bool:
        """Whether everything that was to be learnt is, within this time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, timeout_s)

    def failed(self, what: str, error: Exception) -> None:
        """Logs and counts a failure of "recall", "learning" or a "request" to the memories."""
        self._count(f"{what}_failed")
        _log.warning("%s failed", what, exc_info=error)

    def warm(self) -> None:
        """Loads the models that the first memory would wait for."""
        self.service.warm()

    def extract_with(self, chat: Chat) -> None:
        """Has facts taken from users' messages by a model; chat: its whole answer to a conversation."""
        self.conversations.extract = FactExtractor(chat, self.service.judge)

    def start(self) -> None:
        """Begins the reviews; the engine runs that their judge may need."""
        if self._reviews is not None:
            self._reviews.start()

    def finish(self) -> None:
        """Ends the reviews and learns what is left, within the patience; the engine still runs."""
        if self._reviews is not None and not self._reviews.stop(self._patience_s):
            _log.warning("closed while a memory was reviewed")
        if not self.wait(self._patience_s):
            _log.warning("closed before everything was learnt", extra={"fields": {"answers": self._waiting}})

    def close(self) -> None:
        """Finishes, and closes a store of its own."""
        self.finish()
        with self._changed:
            self._is_closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._owns_store:
            self.service.close()
            self.service.store.close()

    def _recalled(self, query: Query) -> list[ScoredPassage]:
        options, settings = query.memory, self._settings
        threshold = settings.threshold if options.threshold is None else options.threshold
        try:
            scopes = scopes_of(options)
            used = self.service.recall(query.text, scopes, settings.top_k, threshold).used if scopes else ()
        except Exception as error:  # the request goes on without memories, whatever is the matter with them
            self.failed("recall", error)
            return []
        self._count("recalled", len(used))
        return [_as_hit(one) for one in used]

    def _learn(
        self, generation: Generation, evidence: tuple[Evidence, ...], options: MemoryOptions, question: str
    ) -> None:
        """An answer counts as one recall of each memory behind it, however often it looked."""
        scope = Scope(options.user, options.agent)
        try:
            used = retrieved_memories(generation, scopes_of(options))
            self.service.count_recalls(map(scope_and_id, used))
            if evidence and self.service.can_weigh:
                self._count("verified", len(self.service.apply_verdicts(used, evidence)))
            if self._settings.promote:
                supporting = (piece.passage for piece in evidence if piece.stance is Verdict.SUPPORTED)
                proofs = {passage.id: passage for passage in supporting}
                for sentence in generation.sentences:
                    self._count("promoted", len(self.service.promote(sentence, proofs, scope)))
            if question and options.remember and generation.index == 0:
                self._count("remembered", len(self.conversations.remember(question, scope)))
        except Exception as error:  # the answer has gone out: nobody else could be told
            self.failed("learning", error)
        finally:
            with self._changed:
                self._waiting -= 1
                self._changed.notify_all()

    def _count(self, what: str, how_often: int = 1) -> None:
        with self._changed:
            self._counts[what] += how_often


def scopes_of(options: MemoryOptions) -> tuple[Scope, ...]:
    """The scopes that a request may read; none for "none"."""
    if options.scope == "none":
        return ()
    if options.scope == "shared":
        return (Scope(),)
    seen = visible(options.user, options.agent)
    return seen if options.scope == "all" else tuple(scope for scope in seen if not scope.shared)


def retrieved_memories(generation: Generation, seen: Sequence[Scope]) -> list[str]:
    """The memories of the scopes `seen` that retrieval brought to an answer, as ids of passages.

    A request's own documents may have any id, so they do not count.
    """
    retrievals = (event.data["passages"] for event in generation.trace if event.kind == "retrieval")
    ids = (hit["id"] for passages in retrievals for hit in passages)
    return [name for name in dict.fromkeys(ids) if is_memory(name) and _scope_of(name) in seen]


def _scope_of(passage_id: str) -> Scope | None:
    try:
        return scope_and_id(passage_id)[0]
    except InvalidRequestError:  # a datastore's passage with a name like a memory's
        return None


def _as_hit(recalled: Recalled) -> ScoredPassage:
    scope = recalled.memory.scope
    owner = "" if scope.shared else repr((scope.user, scope.agent))
    return ScoredPassage(replace(as_passage(recalled.memory), veracity=recalled.belief), recalled.similarity, owner)
