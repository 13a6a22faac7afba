"""Older statements that a new one may take the place of, and how it stands to them."""

from collections.abc import Sequence

from ewe.longterm.change.change_finder import finder
from ewe.longterm.change.change_reading import Stance, Telling, beginning, compare_all
from ewe.longterm.records import Memory
from ewe.longterm.store import MemoryStore
from ewe.longterm.store.memory_rows import Statement
from ewe.text.english import FUNCTION_WORDS, is_past, stem, words_of
from ewe.text.words import words

MOST_READ = 2
"""At most so many older statements are read beside a new one: of those looked through, the closest."""
LOOKED_THROUGH = 256
"""A scope of at most so many statements is looked through whole, of a larger one the first `BY_WORDS` by BM25."""
BY_WORDS = 48
WORDS = 0.02
"""What a point of BM25 counts beside a cosine."""
NEAR = 0.1
"""How close a statement must be to be read."""
_JOINING = FUNCTION_WORDS | words_of("work works working worked employed live lives living")
_DENYING = words_of("no not never none nobody nothing neither nor cannot without hardly")
_DOUBTING = words_of("might may could would should maybe perhaps probably if unless")

Read = dict[int, tuple[Statement, Stance]]
"""Statements that were read beside a new memory, by number, the closest first, and how it stands to each."""


def older_statements(memory: Memory, store: MemoryStore, read: Read | None = None) -> list[tuple[Memory, Stance]]:
    """The memories of the same scope that a new one changes or says again, or that change it, the closest first.

    They hold today, or held when the new one began: a history can be told in any order. read: what `read_stances` found
    when the scope held the same memories; those that were changed since are left out. Raises JudgeError if the model
    that reads them is missing.
    """
    scopes = [memory.scope]
    read = read_stances(memory, store) if read is None else read
    related = {number: both for number, both in read.items() if both[1] is not Stance.APART}
    rows = store.rows(list(related), scopes)
    return [
        (rows[number], stance)
        for number, (statement, stance) in related.items()
        if number in rows
        and (rows[number].content, rows[number].valid_until) == (statement.content, statement.valid_until)
    ]


def read_stances(memory: Memory, store: MemoryStore) -> Read:
    """How a new memory stands to the closest older ones; what was read once is known from then on."""
    with store.seeing([memory.scope]):
        candidates, close = _candidates(memory, store)
    ranked = [one for one in sorted(candidates, key=close.__getitem__, reverse=True) if close[one] >= NEAR]
    chosen = ranked[:MOST_READ]
    read = compare_all([_pair(memory, candidates[one]) for one in chosen], _telling(memory))
    return {number: (candidates[number], stance) for number, stance in zip(chosen, read, strict=True)}


def duplicate_of(memory: Memory, older: Sequence[tuple[Memory, Stance]]) -> Memory | None:
    """Which of its `older_statements` says what a new memory says in other words, which add nothing.

    Turns of a conversation all stay.
    """
    if memory.kind == "turn":
        return None
    return next((other for other in says_again(memory, older) if other.kind == memory.kind), None)


def says_again(memory: Memory, older: Sequence[tuple[Memory, Stance]]) -> list[Memory]:
    """Which of its `older_statements` a new memory says again without a word that tells something else.

    The model alone does not see it: two phone numbers, brick and stone are alike to it.
    """
    again = (other for other, stance in older if stance is Stance.AGAIN)
    return [
        other
        for other in again
        if _content(memory.content) <= _content(other.content)
        and not _is_done(memory.content, other.content)
        and _meant(memory.content) == _meant(other.content)
    ]


def _meant(text: str) -> tuple[bool, frozenset[str]]:
    """Whether a statement denies, and by which words it only may be so: "I might move" is not "I'm not moving"."""
    told = words(text.replace("’", "'"))
    return any(word in _DENYING or word.endswith("n't") for word in told), _DOUBTING.intersection(told)


def _is_done(newer: str, older: str) -> bool:
    """Whether the newer text has behind it what the older one has under way: "is sold", "is selling"."""
    done = {stem(word) for word in words(newer) if is_past(word)}
    return not done.isdisjoint(stem(word) for word in words(older) if word.endswith("ing"))


def _candidates(memory: Memory, store: MemoryStore) -> tuple[dict[int, Statement], dict[int, float]]:
    """The statements that the new one is compared with, by number, and how close each is."""
    within = store.scope_numbers([memory.scope])
    hits = dict(store.lexicon.search(beginning(memory.content), within, BY_WORDS))
    is_small = sum(count for count, _ in store.extent(memory.scope)) <= LOOKED_THROUGH
    there = store.all_statements(within) if is_small else store.statements(list(hits), within)
    candidates = {
        number: other
        for number, other in there.items()
        if other.id != memory.id and (other.valid_until is None or other.holds_at(memory.begins))
    }
    pairs = [
        (beginning(older), beginning(newer)) for older, newer in (_pair(memory, one) for one in candidates.values())
    ]
    if not pairs:
        return {}, {}
    close = finder.get().closeness(pairs).tolist()
    return candidates, {
        number: one + WORDS * hits.get(number, 0.0) for number, one in zip(candidates, close, strict=True)
    }


def _telling(memory: Memory) -> Telling:
    if memory.kind == "turn":
        return "turn"
    return "fact" if "said" in memory.metadata else "statement"  # which holds the turn that it was taken from


def _pair(memory: Memory, other: Statement) -> tuple[str, str]:
    """What both say, the one that began earlier first."""
    one, two = memory.content, other.content
    return (one, two) if other.begins > memory.begins else (two, one)


def _content(text: str) -> frozenset[str]:
    """The stems of what a statement tells, without the words that only join it: works at, is employed at."""
    content = (word for word in words(text) if word.partition("'")[0] not in _JOINING)
    return frozenset(map(stem, content))
