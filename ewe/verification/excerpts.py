"""What a judge reads for a claim: the best passages together, or as much of them as it has room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ewe.types import Passage
from ewe.verification.selection import CleanSentences, needs_lead, shared_words, under_title


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What is read of one passage (text), and the sentence of it that shares most with the claim (sentence).

    share: how much of the claim's words that sentence has, weighted by how rare they are among all that is read.
    """

    passage: Passage
    text: str
    sentence: str
    share: float

    @property
    def shown(self) -> str:
        """The text as a judge is shown it: "Title: text"."""
        return under_title(self.passage.title, self.text)


class ExcerptSelector:
    """Cuts passages to what a judge has room for: whole sentences, in the order of their passages.

    Passages that fit together are read whole. Of longer ones come the sentences that speak most of the claim, each with
    the one before it if it begins with a pronoun. Control tokens, and sentences that give orders to their reader, are
    left out: they state nothing.
    """

    def __init__(self) -> None:
        self._sentences = CleanSentences()

    def select(self, claim: str, passages: Sequence[Passage], max_characters: int) -> list[Excerpt]:
        """Excerpts of at most max_characters together (one sentence is always left), those without any left out."""
        pairs = [(passage, text) for passage in passages for text in self._sentences.of(passage.text)]
        if not pairs:
            return []
        texts = [text for _, text in pairs]
        shares = shared_words(claim, [f"{passage.title} {text}" for passage, text in pairs])
        chosen = _fitting([passage for passage, _ in pairs], texts, shares, max_characters)
        excerpts = []
        for passage in dict.fromkeys(passages):
            own = [at for at in chosen if pairs[at][0] is passage]
            if own:
                best = max(own, key=lambda at: (shares[at], -at))
                excerpts.append(Excerpt(passage, " ".join(texts[at] for at in own), _led(pairs, best), shares[best]))
        return _without_copies(excerpts)


def _fitting(passages: Sequence[Passage], texts: Sequence[str], shares: Sequence[float], room: int) -> list[int]:
    """Places of the sentences that fit together, in order: all of them, or those with the largest shares."""
    if sum(len(text) + 1 for text in texts) <= room:
        return list(range(len(texts)))
    chosen: set[int] = set()
    for at in sorted(range(len(texts)), key=lambda at: (-shares[at], at)):
        has_lead = at > 0 and passages[at - 1] is passages[at] and needs_lead(texts[at])
        new = {at - 1, at} - chosen if has_lead else {at} - chosen
        length = sum(len(texts[number]) + 1 for number in new)
        if chosen and length > room:
            continue
        chosen |= new
        room -= length
    return sorted(chosen)


def _led(pairs: Sequence[tuple[Passage, str]], at: int) -> str:
    """A sentence; of a passage without a title, led by the one before it that its pronoun needs."""
    passage, text = pairs[at]
    has_lead = at > 0 and pairs[at - 1][0] is passage
    return f"{pairs[at - 1][1]} {text}" if has_lead and not passage.title and needs_lead(text) else text


def _without_copies(excerpts: Sequence[Excerpt]) -> list[Excerpt]:
    """Copies of one text of one source once."""
    return list({(one.shown, one.passage.source): one for one in reversed(excerpts)}.values())[::-1]
