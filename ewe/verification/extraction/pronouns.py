"""The name that the first pronoun of a sentence stands for, where prompt and text before make it clear."""

import re
from dataclasses import dataclass, field

from ewe.text.english import FUNCTION_WORDS, PERSONAL, PREPOSITIONS, words_of
from ewe.text.search_text import subject_of
from ewe.types import VerificationRequest
from ewe.verification.extraction.context import sentences_of
from ewe.verification.extraction.expletives import is_expletive
from ewe.verification.extraction.markup import lead_of, plain
from ewe.verification.extraction.name_mentions import Name, names_of

_LOOKBACK = 6
_MOST_TITLE_WORDS = 10
_PEOPLE = PERSONAL - words_of("who whom whose")
_THINGS = words_of("it its")
_OWNERS = words_of("his her its")
_FEMALE = words_of("she her hers herself")
_MALE = words_of("he him his himself")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_DEFINITE = re.compile(r"(?:The|This) ([a-z]+)\b")
_GENDERED = (
    (
        re.compile(
            r"\b(?:is|was) an? (?:[\w-]+ )*?(?:actress|queen|woman|princess|nun|duchess|empress|businesswoman)\b"
        ),
        "f",
    ),
    (re.compile(r"\b(?:is|was) an? (?:[\w-]+ )*?(?:king|prince|duke|emperor|priest|monk|businessman)\b"), "m"),
)
_PERSONAL_TRAIT = re.compile(
    r"\b(?:he|she|him|her|his|hers|who|whose)\b|\b(?:was|were|is) born\b|\(born |\(née ", re.IGNORECASE
)
_ASKS_WHO = re.compile(r"\b(?:who|whose|whom)\b|\bbiograph|\bbio of\b|\blife of\b", re.IGNORECASE)
_LEAD_PHRASE = re.compile(
    r"(?:In|On|At|By|Since|During|After|Before|From|As|With|Under|When|While|Although|Because|Contrary"
    r"|Unlike|Like|Despite"
    r"|Along|Together|Following|Upon|Until|Though)\b[^,.;]{1,60}, "
)


@dataclass(slots=True)
class _Topic:
    """The subject at hand: its name, its gender where the text shows it, and the other people of its last sentence.

    is_fresh: whether the last sentence was about it, or there is none.
    """

    name: Name | None = None
    gender: str = ""
    is_person: bool = False
    rivals: list[Name] = field(default_factory=list)
    is_fresh: bool = True


def named(request: VerificationRequest, text: str, title: str = "") -> str:
    """A text of the request's sentence with its first pronoun named, if it is clear what that stands for.

    title: what stands in front of the sentence and is its subject. An "it" without a referent is left as it is.
    """
    match = open_pronoun(text)
    if match is None or is_expletive(text):
        return text
    pronoun = match[0].lower()
    name = title or _believed(request, pronoun)
    if not name:
        return text
    follows = _WORD.search(text, match.end())
    owner = pronoun in _OWNERS and follows is not None and follows[0].lower() not in PREPOSITIONS
    name = f"T{name[1:]}" if match.start() == 0 and name.startswith("the ") else name
    return f"{text[: match.start()]}{name}{chr(39) + 's' if owner else ''}{text[match.end() :]}"


def open_pronoun(text: str) -> re.Match[str] | None:
    """The pronoun that what came before must explain: before any name, and for a thing, the very first word."""
    for at, match in enumerate(_WORD.finditer(text)):
        word = match[0].lower()
        if word in _PEOPLE or (word in _THINGS and at == 0):
            return match
        if at > 0 and match[0][0].isupper():
            return None
    return None


def _believed(request: VerificationRequest, pronoun: str) -> str:
    """The name of a pronoun, or nothing: one word may be a place or a thing, and a wrong name is worse than none."""
    topic = _topic(request)
    name = _referent(topic, pronoun)
    if name is None or not (len(name.words) > 1 or name.text in request.prompt):
        return ""
    return name.text


def _referent(topic: _Topic, pronoun: str) -> Name | None:
    name = topic.name
    if pronoun in _THINGS:
        return None if topic.is_person or not topic.is_fresh else name
    gender = "f" if pronoun in _FEMALE else "m"
    rival = topic.rivals[0] if len(topic.rivals) == 1 else None
    if name is None or name.is_thing or (topic.gender and topic.gender != gender):
        return rival
    is_sure = topic.is_fresh or topic.is_person or len(name.words) > 1
    return name if is_sure and (topic.gender or not topic.rivals) else None


def _topic(request: VerificationRequest) -> _Topic:
    """The subject at hand after the prompt and the last sentences before."""
    prompt = request.prompt[-4000:]
    title = _requested_title(prompt)
    prompt_names = [title] if title else names_of(prompt)
    topic = _Topic(max(prompt_names, key=lambda name: len(name.words), default=None))
    topic.is_person = bool(prompt_names) and _ASKS_WHO.search(request.prompt) is not None
    known = list(prompt_names)
    for sentence in sentences_of(request.preceding)[-_LOOKBACK:]:
        lead = lead_of(sentence)
        sentence_text = plain(sentence[lead.end :])
        names = names_of(sentence_text)
        known += names
        _read(topic, sentence_text, names, known)
    return topic


def _requested_title(prompt: str) -> Name | None:
    """What a prompt wants to be told about, where all of it is a name: "Where the Streets Have No Name"."""
    subject = subject_of(prompt)
    subject = subject if subject != prompt else ""
    parts = subject.removeprefix("the ").split()
    is_name = bool(parts) and parts[0][0].isupper() and "," not in subject and len(parts) <= _MOST_TITLE_WORDS
    if is_name and all(part[0].isupper() or part[0].isdigit() or part in FUNCTION_WORDS for part in parts):
        return Name(subject, 0, len(subject))
    return None


def _read(topic: _Topic, sentence_text: str, names: list[Name], known: list[Name]) -> None:
    """Takes one sentence in: a name that is its subject becomes the topic, a pronoun that is tells of it."""
    subject = _subject(sentence_text, names)
    first = open_pronoun(sentence_text)
    if subject is not None:
        full = _full(subject, known)
        if topic.name is None or full.words != topic.name.words:
            topic.name, topic.gender, topic.is_person = full, "", False
    elif topic.name is None and first is None and names:
        topic.name = _full(names[0], known)
    word = first[0].lower() if first is not None and subject is None else ""
    own_noun = _DEFINITE.match(sentence_text)
    is_own = own_noun is not None and topic.name is not None and own_noun[1] in topic.name.text.lower().split()
    topic.is_fresh = subject is not None or is_own or word in _PEOPLE or (word in _THINGS and topic.is_fresh)
    topic.gender = "f" if word in _FEMALE else "m" if word in _MALE else topic.gender
    genders = (gender for pattern, gender in _GENDERED if subject and pattern.search(sentence_text))
    topic.gender = next(genders, topic.gender)
    topic.is_person = topic.is_person or word in _PEOPLE or bool(subject and _PERSONAL_TRAIT.search(sentence_text))
    own = set(topic.name.words) if topic.name else set()
    people = {
        _full(name, known).text: _full(name, known)
        for name in names
        if name.may_be_person and own.isdisjoint(name.words)
    }
    topic.rivals = [name for name in people.values() if len(name.words) > 1]


def _subject(sentence_text: str, names: list[Name]) -> Name | None:
    """The name that a sentence begins with, at once or after a phrase and a comma, unless it owns the subject."""
    lead = _LEAD_PHRASE.match(sentence_text)
    begins = lead.end() if lead else 0
    for name in names:
        if name.start == begins:
            owns = sentence_text.startswith(("'s", "’s"), name.end)
            return None if owns or _is_adjective(name) else name
    return None


def _is_adjective(name: Name) -> bool:
    """Whether one capitalised word stands before a noun ("Norwegian weavers"), as far as the next word tells."""
    return len(name.words) == 1 and name.after.endswith(("ers", "ors", "ists", "ians", "people", "law", "history"))


def _full(name: Name, known: list[Name]) -> Name:
    """The longer form of a name that the text has ("Curie" after "Marie Curie"), or itself."""
    for other in known:
        longer = len(other.words) > len(name.words)
        if (
            longer
            and name.words
            and name.words[-1] in (other.words[0], other.words[-1])
            and set(name.words) <= set(other.words)
        ):
            return other
    return name
