"""Pairs made from running text without labels: a claim is a sentence cut shorter, true, changed or from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

from judge_training.contrasts import refuted_from, settled_no_more
from judge_training.pairs import Label, Pair

_BRACKETED = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_CUT = re.compile(
    r",? (?:which|who|where|while|although|because|when|until|after|before|but|and|with|including)\b|;|, |: "
)
_PRONOUN = re.compile(r"^(?:He|She|It|They)\b(?!')")
_NO_STATEMENT = re.compile(
    r"\b(?:I|[Mm]y|[Mm]e|[Ww]e|[Oo]ur|[Uu]s|[Yy]ou|[Yy]our|[Cc]lick|[Ss]ubscribe|[Cc]ookies?)\b|\?|!"
)
_WORDS = (5, 28)


def shorten(rng: Random, sentence: str, title: str) -> str | None:
    """What a sentence says first: without brackets, cut at one of its joints; a pronoun that begins it stands for the
    title. None if nothing of 5 to 28 words is left, or the sentence speaks to its reader.
    """
    text = _BRACKETED.sub("", sentence).strip().rstrip(".")
    if title and rng.random() < 0.8:
        text = _PRONOUN.sub(lambda _: title, text)
    ends = [match.start() for match in _CUT.finditer(text) if len(text[: match.start()].split()) >= _WORDS[0]]
    if _NO_STATEMENT.search(text):
        return None
    if ends and rng.random() < 0.8:
        text = text[: rng.choice(ends)]
    if not _WORDS[0] <= len(text.split()) <= _WORDS[1] or not text[0].isalnum():
        return None
    return text[0].upper() + text[1:] + "."


def made_pairs(rng: Random, texts: Sequence[tuple[str, list[str]]], names: Sequence[str]) -> Iterator[Pair]:
    """Endless pairs from (title, sentences) texts: about a third of each label.

    names: what names in claims may be replaced by. Evidence is the claim's sentence with up to two neighbours; of an
    inconclusive pair, other sentences of the same text or the same sentence about somebody else.
    """
    while True:
        title, sentences = rng.choice(texts)
        place = rng.randrange(len(sentences))
        claim = shorten(rng, sentences[place], title)
        if claim is None:
            continue
        start = max(0, place - rng.randint(0, 1))
        evidence = " ".join(sentences[start : place + 1 + rng.randint(0, 1)])
        pair = Pair(evidence, claim, Label.SUPPORTED, title)
        draw = rng.random()
        if draw < 0.33:
            yield pair
        elif draw < 0.66:
            changed = refuted_from(rng, pair, names)
            yield from (changed,) if changed else ()
        elif draw < 0.9:
            others = [text for number, text in enumerate(sentences) if number != place]
            if others:
                chosen = rng.sample(others, min(len(others), rng.randint(1, 3)))
                yield Pair(" ".join(chosen), claim, Label.INCONCLUSIVE, title)
        else:
            changed = settled_no_more(rng, pair, names)
            yield from (changed,) if changed else ()
