"""From one statement to those that it holds: examples, lists, appositions, brackets, places and dates of birth.

Owns: which parts of a statement are statements of their own. Knows statements, coordination and noun phrases; no
pronouns, and no spelling of the result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ewe.verification.extraction import verbs
from ewe.verification.extraction.clauses import Kind
from ewe.verification.extraction.coordination import split_lists
from ewe.verification.extraction.lists import DROPPED_LEADS
from ewe.verification.extraction.nouns import noun_phrase, singular
from ewe.verification.extraction.statements import Statement
from ewe.verification.extraction.words import Tag, Word, put_in
from ewe.verification.wordlists import words_of

_SPAN_OF_YEARS = re.compile(r"(\d{3,4})\s*[-–—]\s*(\d{3,4})")
_NAMED = (Tag.NAME, Tag.DATE, Tag.QUOTE, Tag.NUMBER)
_MANY = words_of("several numerous many various few some other different multiple notable")
_BINDING_LEADS = words_of("without if unless except contrary according despite instead")
_LIVED = words_of("born died passed")


def expand(statement: Statement) -> list[list[Word]]:
    """The statements that `statement` holds, as words, the plainest first."""
    found: list[list[Word]] = []
    subject, asides = _bare_subject(statement)
    lead = _kept_lead(statement.lead)
    aside = _occupied(statement.lead, subject) if not lead else []
    front = [*lead, *([put_in(",", Tag.COMMA)] if lead else []), *subject, *statement.verb]
    rest, apposition = _without_apposition(statement)
    for part in _with_examples(front, rest, statement):
        found.extend(part)
    if statement.tail and found:
        found[-1] = [*found[-1], *statement.tail]
    return [*found, *asides, *apposition, *aside]


def _occupied(lead: Sequence[Word], subject: Sequence[Word]) -> list[list[Word]]:
    """What "in addition to his work as a weaver" or "beside her career in law" says of the subject."""
    at = next((k for k, word in enumerate(lead) if word.tag is Tag.POSSESSIVE), None)
    if at is None or at + 1 >= len(lead) or len(lead) <= at + 2 or lead[0].norm in ("throughout", "during", "despite"):
        return []
    name = [word.borrowed() for word in subject]
    if lead[at + 1].norm == "work" and lead[at + 2].tag is Tag.PREPOSITION:
        return split_lists([*name, replace(lead[at + 1], text="worked", tag=Tag.PAST)], lead[at + 2 :], copular=True)
    if "career" in (word.norm for word in lead[at + 1 :]):
        article = "an" if lead[at + 1].norm[:1] in "aeiou" else "a"
        return [[*name, put_in("has", Tag.HAVE), put_in(article, Tag.DETERMINER), *lead[at + 1 :]]]
    return []


def _kept_lead(lead: Sequence[Word]) -> list[Word]:
    """An introductory phrase, if it says something that the statement needs."""
    text = " ".join(word.norm for word in lead)
    if any(text == dropped or text.startswith(dropped + " ") for dropped in DROPPED_LEADS):
        return []
    told = any(word.tag in (*_NAMED, Tag.ING, Tag.ED, Tag.PAST, Tag.BE) for word in lead)
    return list(lead) if told or (lead and lead[0].norm in _BINDING_LEADS) else []


def _with_examples(front: list[Word], rest: list[Word], statement: Statement) -> list[list[list[Word]]]:
    """The lists of the rest; of "films such as A and B", each example in the place of "films"."""
    at = next((k for k, word in enumerate(rest) if _opens_examples(rest, k)), None)
    if at is None:
        if any(word.norm in _LIVED for word in statement.verb[-1:]):
            parts = _places_and_dates(rest)
            return [[[*(word.borrowed() if k else word for word in front), *part]] for k, part in enumerate(parts)]
        return [split_lists(front, rest, statement.copular)]
    general = rest[:at]
    while general and general[-1].tag is Tag.COMMA:
        general.pop()
    examples = rest[at + (2 if rest[at].norm == "such" else 1) :]
    examples, behind = _end_of_examples(examples)
    if not examples or not general:
        return [split_lists(front, rest, statement.copular)]
    told = split_lists(front, [*general, *behind], statement.copular)
    borrowed = [word.borrowed() for word in front]
    if examples[0].tag is Tag.ING:
        past = verbs.past_of_ing(examples[0].norm)
        subject = [word.borrowed() for word in statement.subject]
        verb = replace(examples[0], text=past or "", tag=Tag.PAST)
        return [told, split_lists([*subject, verb], examples[1:], False)] if past else [told]
    place = _place_of_examples(general, examples[0].tag is Tag.PREPOSITION)
    items = split_lists([], examples, copular=False)
    before = [*borrowed, *(word.borrowed() for word in general[:place])]
    return [told, [[*before, *_category(general[place:], item[0]), *item] for item in items]]


def _category(general: Sequence[Word], item: Word) -> list[Word]:
    """ "the film" before a title that is an example of "several films"; nothing before other examples."""
    nouns = [
        word for word in general if word.tag in (Tag.NOUN, Tag.BASE, Tag.THIRD, Tag.NAME) and word.norm not in _MANY
    ]
    if item.tag not in (Tag.NAME, Tag.QUOTE) or not nouns or any(word.tag is Tag.PREPOSITION for word in general):
        return []
    one = singular(nouns[-1].norm)
    if one is None or nouns[-1].tag is Tag.NAME or any(word.possessive for word in general):
        return []
    kept = [word.borrowed() for word in nouns[:-1]]
    return [put_in("the", Tag.DETERMINER), *kept, replace(nouns[-1].borrowed(), text=one, norm=one, tag=Tag.NOUN)]


def _end_of_examples(words: list[Word]) -> tuple[list[Word], list[Word]]:
    """The examples, and what goes on behind them with a preposition or "to"."""
    joints = [at for at, word in enumerate(words) if word.tag is Tag.AND]
    first = joints[-1] if joints and words[joints[-1] - 1].tag is Tag.COMMA else 0
    for at in range(first, len(words) - 1):
        if words[at].tag is Tag.COMMA and words[at + 1].tag in (Tag.PREPOSITION, Tag.TO):
            return words[:at], words[at + 1 :]
    return words, []


def _opens_examples(words: Sequence[Word], at: int) -> bool:
    follows = words[at + 1].norm if at + 1 < len(words) else ""
    return at > 0 and (
        (words[at].norm == "including" and bool(follows)) or (words[at].norm == "such" and follows == "as")
    )


def _place_of_examples(general: Sequence[Word], with_preposition: bool) -> int:
    """Where the examples go: the start of the phrase of many things that they are examples of."""
    starts = [
        at for at, word in enumerate(general) if word.norm in _MANY or word.norm in ("number", "variety", "range")
    ]
    start = starts[0] if starts else noun_phrase(general, len(general))[0]
    while start > 0 and general[start - 1].tag in (Tag.DETERMINER, Tag.POSSESSIVE, Tag.ADVERB, Tag.NOUN):
        start -= 1
    while start > 0 and general[start - 1].norm in ("over", "more", "than", "about", "around", "least"):
        start -= 1
    if with_preposition and start > 0 and general[start - 1].tag is Tag.PREPOSITION:
        start -= 1
    return start


def _places_and_dates(rest: list[Word]) -> list[list[Word]]:
    """ "born on May 3, 1901, in Ulm" as two; every other rest as it is."""
    parts: list[list[Word]] = [[]]
    for word in rest:
        if word.tag is Tag.PREPOSITION and word.norm not in ("of", "as", "to", "away") and parts[-1]:
            parts.append([])
        parts[-1].append(word)
    for part in parts:
        while part and part[-1].tag is Tag.COMMA:
            part.pop()
    dated = [any(word.tag is Tag.DATE for word in part) for part in parts]
    if parts[0] and parts[0][0].norm == "away":
        adverb = parts[0][:1]
        parts = [[*adverb, *part] if k else part for k, part in enumerate(parts)]
        parts = parts[1:] if len(parts[0]) == 1 else parts
        return parts
    return [part for part in parts if part] if any(dated) and not all(dated) else [rest]


def _bare_subject(statement: Statement) -> tuple[list[Word], list[list[Word]]]:
    """The subject without brackets and appositions, and what those state."""
    subject, bracket = _without_bracket(statement.subject)
    asides = _lifetime(subject, bracket) if bracket and statement.kind is Kind.MAIN else []
    commas = [at for at, word in enumerate(subject) if word.tag is Tag.COMMA]
    if (
        not commas
        or statement.kind is not Kind.MAIN
        or any(word.tag is Tag.AND for word in subject[commas[0] : commas[0] + 2])
    ):
        return subject, asides
    name, behind = subject[: commas[0]], subject[commas[0] + 1 :]
    while behind and behind[-1].tag is Tag.COMMA:
        behind.pop()
    if not behind:
        return name, asides
    if behind[0].tag is Tag.DETERMINER and name and name[-1].tag in (Tag.NAME, Tag.QUOTE):
        present = any(word.norm in ("is", "are", "has", "have") or word.tag is Tag.THIRD for word in statement.verb)
        verb = put_in("is" if present else "was", Tag.BE)
        asides += split_lists([*(word.borrowed() for word in name), verb], behind, copular=True)
        return name, asides
    return [*subject, put_in(",", Tag.COMMA)], asides


def _without_bracket(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """The words outside the first pair of brackets, and those inside."""
    opening = next((at for at, word in enumerate(words) if word.tag is Tag.OPEN), None)
    closing = next((at for at, word in enumerate(words) if word.tag is Tag.CLOSE), None)
    if opening is None or closing is None or closing < opening or opening == 0:
        return list(words), []
    return [*words[:opening], *words[closing + 1 :]], list(words[opening + 1 : closing])


def _lifetime(subject: Sequence[Word], bracket: Sequence[Word]) -> list[list[Word]]:
    """What a bracket behind a name says of birth and death; nothing for any other bracket."""
    name = [word.borrowed() for word in subject]
    was, born, died, inside = (
        put_in("was", Tag.BE), put_in("born", Tag.ED), put_in("died", Tag.ED), put_in("in", Tag.PREPOSITION)
    )  # fmt: skip
    dates = [word for word in bracket if word.tag is Tag.DATE]
    if bracket[0].norm == "born" and len(bracket) > 1 and len(dates) < 2:
        lead = (
            []
            if bracket[1].tag is Tag.PREPOSITION
            else [put_in("on" if " " in bracket[1].text else "in", Tag.PREPOSITION)]
        )
        return [[*name, was, *bracket[:1], *lead, *bracket[1:]]]
    years = _SPAN_OF_YEARS.fullmatch(" ".join(word.text for word in bracket))
    if len(dates) == 2 and len(bracket) <= 4:
        first, last = dates
    elif years:
        first, last = (replace(bracket[0], text=year, norm=year, tag=Tag.DATE) for year in years.groups())
    else:
        return []
    lead = [
        put_in("on", Tag.PREPOSITION) if " " in first.text else inside,
        put_in("on", Tag.PREPOSITION) if " " in last.text else inside,
    ]
    return [[*name, was, born, lead[0], first], [*name, died, lead[1], last]]


def _without_apposition(statement: Statement) -> tuple[list[Word], list[list[Word]]]:
    """The rest without ", a ..." behind a name at its end, and what that states of the name."""
    rest = list(statement.rest)
    while rest and rest[-1].tag in (Tag.COMMA, Tag.AND):
        rest.pop()
    commas = [at for at, word in enumerate(rest) if word.tag is Tag.COMMA]
    if not commas or statement.tail or any(word.tag is Tag.AND or word.norm in ("including", "such") for word in rest):
        return rest, []
    at = commas[-1]
    behind = rest[at + 1 :]
    if at == 0 or rest[at - 1].tag not in (Tag.NAME, Tag.QUOTE) or not behind or behind[0].tag is not Tag.DETERMINER:
        return rest, []
    start, end = noun_phrase(rest, at)
    return rest[:at], [[*(word.borrowed() for word in rest[start:end]), put_in("is", Tag.BE), *behind]]
