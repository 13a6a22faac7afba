"""A relative clause that ends a sentence, as a statement of its own: "..., who won the prize in 1931"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ewe.text.english import words_of
from ewe.verification.extraction.name_mentions import names_of
from ewe.verification.extraction.verbs import FINITE, has_finite_verb

_RELATIVE = re.compile(
    r",\s+(?P<word>who|which)\s+(?=(?:[a-z]+ly\s+|also\s+|later\s+|then\s+|first\s+)?(?P<verb>[a-z]+)\b)"
)
_BEFORE_WHO = words_of("by with to and under like including married met succeeded defeated taught replaced joined")
_BEFORE_WHICH = words_of("in at from near to into through on published released joined founded called named")


@dataclass(frozen=True, slots=True)
class Clause:
    """A statement that can be read alone, and the code points of the text that it was taken from."""

    text: str
    start: int
    end: int


def relative_clause(clause: Clause, text: str, hidden: str) -> Iterator[Clause]:
    """The clause, cut before a relative clause that ends it and speaks of the name right before; else as it is."""
    matches = list(_RELATIVE.finditer(hidden, clause.start, clause.end))
    name = _antecedent(text[clause.start : matches[0].start()], matches[0]["word"]) if len(matches) == 1 else ""
    rest = hidden[matches[0].end() : clause.end] if name else ""
    if not name or matches[0]["verb"] not in FINITE or "," in rest or len(rest.split()) < 3:
        yield clause
        return
    at = matches[0].start()
    main = clause.text[: len(clause.text) - (clause.end - at)]
    if not has_finite_verb(main) or len(main.split()) < 3:
        yield clause
        return
    yield Clause(f"{main.rstrip()}.", clause.start, at)
    end = clause.text[-1] if clause.text[-1] in ".!…" else ""
    predicate = text[matches[0].end() : clause.end]
    yield Clause(
        f"{name} {predicate}" + ("" if predicate.endswith(end or predicate[-1]) else end),
        matches[0].start("word"),
        clause.end,
    )


def _antecedent(before: str, word: str) -> str:
    """The name that ends a text, if a "who" or "which" behind it can only mean that name; else empty."""
    names = names_of(before)
    if not names or names[-1].end != len(before) or before.rstrip().endswith("'s"):
        return ""
    last = names[-1]
    if before[: last.start].rstrip().endswith(","):
        return ""
    if word == "who":
        return last.text if last.before in _BEFORE_WHO and not last.is_thing else ""
    listed = (
        len(names) > 1 and re.fullmatch(r"\s(?:in|at|of|and|for)\s", before[names[-2].end : last.start]) is not None
    )
    return "" if listed or last.before not in _BEFORE_WHICH else last.text[0].upper() + last.text[1:]
