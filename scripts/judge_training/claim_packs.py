"""Claims about passages that a judge reads together: one pack is some passages and all claims about them.

Beside the sources of `claim_corpus` there are near copies, sentences of the passages as they are and edited (`edits`),
and claims beside passages that do not bear them, which leaves them open ("removed"). Of the claims of `entailment`
about a passage an epoch has two of each label: supported ones that share the most words with it, others that share
the fewest, because in all of them together nearness in words tells the label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from ewe.text.topic import share_of, stems_of
from judge_training.claim_corpus import Claim, Corpus, Pack, Text, is_held_out
from judge_training.edits import falsified
from judge_training.pairs import Label, Pair, sentences_of

MAX_CHARACTERS = 1800
"""Of the passages of a pack, and of what a judge is shown."""

_PAIRS = {"fever": (0.3, 6), "fool me twice": (1.0, 6), "wice": (1.0, 3)}
"""Per set the share of it in an epoch, and pairs per pack."""
_ENTAILMENT = 2  # Claims of each label about one of its passages.
_ENTAILMENT_ALONE = 0.3  # Share of its passages that no other source has claims about.


def epoch(corpus: Corpus, seed: int, retrieved: float) -> list[Pack | Claim]:
    """An epoch of packs in random order, and of claims for which passages are still to be found (`retrieved`).

    retrieved: the share of the claims that stand alone, too, beside what is found for them.
    """
    rng = Random(f"epoch/{seed}")
    claims = claims_of(corpus, held_out=False)
    made: list[Pack | Claim] = [*packs(corpus, seed), *rng.sample(claims, round(retrieved * len(claims)))]
    rng.shuffle(made)
    return made


def claims_of(corpus: Corpus, held_out: bool) -> list[Claim]:
    """All claims about passages by themselves, of the articles that are trained on or of those kept apart."""
    everything = [*corpus.claims, *(claim for answer in corpus.answers for claim in answer)]
    return [claim for claim in everything if is_held_out(corpus.texts[claim.home[0]].title) == held_out]


def packs(corpus: Corpus, seed: int, held_out: bool = False) -> list[Pack]:
    """Packs in random order, with each claim once; held_out: of the articles kept apart, without made claims."""
    rng = Random(f"packs/{seed}/{held_out}")
    made = [*_article_packs(rng, corpus, held_out), *_answer_packs(rng, corpus, held_out)]
    if not held_out:
        made += [pack for name in _PAIRS for pack in _pair_packs(rng, corpus.pairs[name], name)]
    rng.shuffle(made)
    return made


def manifest_of(corpus: Corpus) -> dict[str, object]:
    """What training on these packs has seen: articles by title, and how many claims of each source an epoch has."""
    made = packs(corpus, 0)
    sources = Counter(claim.source for pack in made for claim in pack.claims)
    titles = {text.title for pack in made for text in pack.texts if text.title}
    return {"claims": dict(sorted(sources.items())), "articles": sorted(titles)}


def _article_packs(rng: Random, corpus: Corpus, held_out: bool) -> Iterator[Pack]:
    """Passages of one article by twos and threes, or with one of another article, with all of their claims."""
    about: dict[tuple[str, ...], list[Claim]] = {}
    for claim in corpus.claims:
        about.setdefault(claim.home, []).append(claim)
    texts = [text for text in corpus.texts.values() if is_held_out(text.title) == held_out]
    by_title: dict[str, list[tuple[str, ...]]] = {}
    for home in about:
        title = corpus.texts[home[0]].title
        if is_held_out(title) != held_out:
            continue
        if not held_out and _entailment_alone(about[home]) and rng.random() >= _ENTAILMENT_ALONE:
            continue
        by_title.setdefault(title, []).append(home)
    for homes in by_title.values():
        rng.shuffle(homes)
        while homes:
            count = rng.choices((1, 2, 3), (0.65, 0.25, 0.1))[0]
            chosen, homes[:count] = homes[:count], []
            yield _article_pack(rng, corpus, chosen, about, texts, held_out)


def _article_pack(
    rng: Random,
    corpus: Corpus,
    homes: Sequence[tuple[str, ...]],
    about: Mapping[tuple[str, ...], list[Claim]],
    texts: Sequence[Text],
    held_out: bool,
) -> Pack:
    ids = list(dict.fromkeys(name for home in homes for name in home))
    shown = [corpus.texts[name] for name in ids]
    room = MAX_CHARACTERS - sum(len(text.text) for text in shown)
    if rng.random() < 0.25 and (others := [text for text in rng.sample(texts, 8) if len(text.text) < room]):
        shown.append(others[0])
    rng.shuffle(shown)
    claims = [claim for home in homes for claim in (about[home] if held_out else _thinned(rng, corpus, about[home]))]
    if not held_out:
        claims += _near_copies(rng, shown)
        stranger = about[rng.choice(list(about))]
        claims += [
            replace(claim, label=Label.INCONCLUSIVE, source="removed") for claim in _apart(rng, corpus, stranger, shown)
        ]
    return Pack(tuple(shown), tuple(claims))


def _entailment_alone(claims: Sequence[Claim]) -> bool:
    return all(claim.source == "entailment" for claim in claims)


def _thinned(rng: Random, corpus: Corpus, claims: Sequence[Claim]) -> list[Claim]:
    """The claims about a passage; of `entailment` a few, those whose words tell the least about their label."""
    kept = [claim for claim in claims if claim.source != "entailment"]
    known = stems_of(" ".join(corpus.texts[name].text for name in claims[0].home))
    for label in Label:
        own = [claim for claim in claims if claim.source == "entailment" and claim.label is label]
        sign = -1 if label is Label.SUPPORTED else 1
        own.sort(key=lambda claim: sign * share_of(stems_of(claim.text), known) + 0.1 * rng.random())
        kept += own[:_ENTAILMENT]
    return kept


def _apart(rng: Random, corpus: Corpus, claims: Sequence[Claim], shown: Sequence[Text]) -> list[Claim]:
    """At most one of the claims, if none of its own article is shown."""
    titles = {text.title for text in shown}
    fitting = [
        claim
        for claim in claims
        if corpus.texts[claim.home[0]].title not in titles and claim.label is not Label.INCONCLUSIVE
    ]
    return rng.sample(fitting, min(1, len(fitting)))


def _near_copies(rng: Random, shown: Sequence[Text]) -> Iterator[Claim]:
    """Of most passages one sentence as it is, and the same edited where that can be done."""
    sentences = {text.id: [s for s in sentences_of(text.text) if 6 <= len(s.split()) <= 45] for text in shown}
    everything = [sentence for own in sentences.values() for sentence in own]
    for text in shown:
        if not sentences[text.id] or rng.random() < 0.4:
            continue
        sentence = rng.choice(sentences[text.id])
        yield Claim(sentence, Label.SUPPORTED, "near copies", (text.id,))
        edited = falsified(rng, sentence, everything, [])
        if edited is not None:
            yield Claim(edited, Label.REFUTED, "near copies", (text.id,))


def _answer_packs(rng: Random, corpus: Corpus, held_out: bool) -> Iterator[Pack]:
    """Stretches of an answer with the passages that bear them."""
    for answer in corpus.answers:
        if is_held_out(corpus.texts[answer[0].home[0]].title) != held_out:
            continue
        left = list(answer)
        while left:
            claims: list[Claim] = []
            ids: dict[str, None] = {}
            size = 0
            while left:
                new = [name for name in left[0].home if name not in ids]
                added = sum(len(corpus.texts[name].text) for name in new)
                if claims and size + added > MAX_CHARACTERS:
                    break
                claims.append(left.pop(0))
                ids |= dict.fromkeys(new)
                size += added
            shown = [corpus.texts[name] for name in ids]
            rng.shuffle(shown)
            yield Pack(tuple(shown), tuple(claims))


def _pair_packs(rng: Random, pairs: Sequence[Pair], source: str) -> Iterator[Pack]:
    """Pairs of different groups beside each other, each with its own evidence among the others'."""
    share, size = _PAIRS[source]
    order = rng.sample(list(pairs), round(share * len(pairs)))
    for start in range(0, len(order), size):
        chosen = list({pair.group: pair for pair in order[start : start + size]}.values())
        texts = tuple(Text(f"{source}/{start}/{n}", pair.title, pair.evidence[:600]) for n, pair in enumerate(chosen))
        claims = tuple(
            Claim(pair.claim, pair.label, source, (text.id,)) for pair, text in zip(chosen, texts, strict=True)
        )
        yield Pack(tuple(rng.sample(texts, len(texts))), claims)
