"""What a chat is given for a question about a conversation: memories under a scorer, or the last turns."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ewe.config.setting_names import unknown
from ewe.errors import ConfigError
from ewe.longterm.evaluation.locomo_questions import LoCoMoConversation, LoCoMoQuestion
from ewe.longterm.evaluation.memory_systems import memory_rules
from ewe.longterm.evaluation.protocol import Turn
from ewe.longterm.memory_search import as_passage
from ewe.longterm.recall import MemoryRules
from ewe.longterm.records import Memory, Scope
from ewe.longterm.scoring.forms import First
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from ewe.retrieval.encoders import Encoder
from ewe.types import Passage

NOTHING, LAST_TURNS, UNITS = "no memory", "last turns", " units"


@dataclass(frozen=True, slots=True)
class Given:
    """Passages for a question, best first; confidence: the greatest belief among them, cosine: their greatest.

    Both are 0 where nothing was found; the cosine is that of the question and a passage, which needs an encoder.
    """

    passages: tuple[Passage, ...] = ()
    confidence: float = 0.0
    cosine: float = 0.0


@dataclass(slots=True)
class RememberedTexts:
    """An encoder that encodes every passage once, however many stores it is in."""

    encoder: Encoder
    vectors: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The encoder's."""
        return self.encoder.name

    @property
    def dimension(self) -> int:
        """Numbers per vector."""
        return self.encoder.dimension

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension]."""
        return self.encoder.encode_queries(texts)

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension]."""
        new = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        if new:
            self.vectors.update(zip(new, self.encoder.encode_passages(new), strict=True))
        return np.stack([self.vectors[text] for text in texts])


class ConversationMemories:
    """Conversations of a store under one scorer; what is asked is asked when a conversation has ended."""

    def __init__(
        self,
        store: MemoryStore,
        conversations: Sequence[LoCoMoConversation],
        rules: MemoryRules,
        encoder: Encoder | None,
    ) -> None:
        self._now, self._encoder = 0.0, encoder
        self._ended = {one.id: one.ended for one in conversations}
        self._service = MemoryService(store, encoder=encoder, rules=rules, clock=lambda: self._now)

    def given(self, question: LoCoMoQuestion, top_k: int) -> Given:
        """At most `top_k` memories, as the chat with memory gets them: their veracity is the scorer's belief."""
        self._now = self._ended[question.conversation]
        used = self._service.recall(question.text, [Scope(question.conversation)], top_k).used
        passages = tuple(replace(as_passage(one.memory), veracity=one.belief) for one in used)
        confidence = max((one.belief for one in used), default=0.0)
        return Given(passages, confidence, self._cosine(question.text, [one.memory for one in used]))

    def _cosine(self, question: str, memories: Sequence[Memory]) -> float:
        if self._encoder is None or not memories:
            return 0.0
        [query] = self._encoder.encode_queries([question])
        return float((self._encoder.encode_passages([one.content for one in memories]) @ query).max())


def remember(store: MemoryStore, conversations: Sequence[LoCoMoConversation], rules: MemoryRules) -> None:
    """Has every turn remembered as its conversation's own, at the time when it was said."""
    now = 0.0
    writer = MemoryService(store, rules=rules, clock=lambda: now)
    for conversation in conversations:
        for turn in conversation.turns:
            now = turn.at
            writer.add(words_of(turn), Scope(conversation.id), turn.source, "turn")


@contextmanager
def open_memories_of(
    conversations: Sequence[LoCoMoConversation], systems: Sequence[str], encoder: Encoder | None
) -> Iterator[Mapping[str, ConversationMemories]]:
    """The conversations under each scorer that the systems name, in new stores, thrown away at the end.

    Scorers that believe a new memory alike share a store, because asking changes nothing in it.
    """
    cached = None if encoder is None else RememberedTexts(encoder)
    stores: dict[First, MemoryStore] = {}
    opened = {}
    with ExitStack() as stack:
        for name in dict.fromkeys(scorer for system in systems if (scorer := scorer_of(system))):
            rules = memory_rules()[name]()
            if rules.first not in stores:
                folder = Path(stack.enter_context(TemporaryDirectory()))
                store = stores[rules.first] = stack.enter_context(MemoryStore.create(folder / "memories"))
                remember(store, conversations, rules)
                if cached is not None:
                    store.embeddings.embed(cached)
            opened[name] = ConversationMemories(stores[rules.first], conversations, rules, cached)
        yield opened


def scorer_of(system: str) -> str:
    """The scorer of memories that a system names; empty for one without memories. Raises ConfigError."""
    name = system.removesuffix(UNITS)
    if system in (NOTHING, LAST_TURNS):
        return ""
    if name not in memory_rules():
        raise ConfigError(unknown("system", system, [NOTHING, LAST_TURNS, *memory_rules()]))
    return name


def last_turns(conversation: LoCoMoConversation) -> Iterator[Passage]:
    """The turns as passages, the last one first."""
    for number, turn in enumerate(reversed(conversation.turns)):
        memory = Memory(f"turn-{number}", words_of(turn), "turn", turn.source, created_at=turn.at, updated_at=turn.at)
        yield replace(as_passage(memory), veracity=1.0)


def words_of(turn: Turn) -> str:
    """What a turn says, with what its picture shows."""
    return f"{turn.text} (shows {turn.caption})" if turn.caption else turn.text
