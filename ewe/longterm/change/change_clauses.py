"""Statements cut into clauses: of whom each speaks, and whether it says what is, was, could be, or is not."""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ewe.longterm.change.change_owners import SPEAKER, TOKEN, bare, owners_of
from ewe.longterm.change.change_words import FILLERS, PEOPLE, SINGLE, normal, sides_of
from ewe.longterm.plain_writing import plainly_written
from ewe.text.english import is_irregular_past, words_of
from ewe.text.words import fold

_SAID_BY = re.compile(r"^([A-Z]\w+(?: [A-Z]\w+)?): ")
_TITLES = re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof|St)\.")
# "my wife's pregnant", not "my wife's car"
_IS_SHORT = (
    r"\b((?:my|our|his|her) (?:\w+ )?\w+|(?-i:[A-Z][a-z]+))['’]s (?=(?:an?|the|not|now|still|called|named|back|"
    r"pregnant|retired|single|engaged|married|divorced|dead|gone|going|working|living|studying|doing|moving|getting|seeing|"
    r"expecting|(?:\w+ )?(?:weeks?|months?|years?)|\d+)\b)"
)
_CONTRACTIONS = tuple(
    (re.compile(pattern, re.IGNORECASE), text)
    for pattern, text in (
        (r"\b(i)['’]m\b", r"\1 am"), (r"\bwon['’]t\b", "will not"), (r"\bcan['’]t\b|\bcannot\b", "can not"),
        (r"n['’]t\b", " not"), (r"['’]re\b", " are"), (r"['’]ve\b", " have"), (r"['’]ll\b", " will"),
        (r"\b(i|we|he|she|they|you)['’]d\b", r"\1 would"), (r"\blet['’]s\b", "let us"),
        (r"\b(it|that|he|she|there|what|here|who)['’]s\b", r"\1 is"), (_IS_SHORT, r"\1 is "),
        (r"\banymore\b", "any more"),
        (r"\b(?:stand-up)\b", "standup"), (r"['’]", "'"), (r"\bthe user(?='s| )", "The_user"),
    )
)  # fmt: skip
_CUT = re.compile(
    r"(?<=[.!?])\s+|[;:–—]\s*|,\s+|\s-\s|\s+(?:and|but|so|because|while|although|though|after|when)\s+"
    r"(?=(?:i|we|my|our|she|he|they|it|the|there|now|am|is|have|has)\b)",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"\b(?:would|could|might|should|maybe|perhaps|probably|"
    r"if(?! (?:you|anyone|anybody) (?:need|want|ask|wonder|care))|unless|wish|hop(?:e|es|ing)|wants?|wanted|"
    r"thinking (?:of|about)|"
    r"consider(?:s|ed|ing)?|dream(?:s|ed|ing)?|almost|nearly|suppos(?:e|ed)|interview|appl(?:y|ied|ying)|offer(?:ed)?|"
    r"tempted|imagine|let us|looking (?:at|into)|rumou?rs?|toying|planning(?! (?:our|my|their|his|her) wedding)|"
    r"plans? (?:to|is to)|"
    r"(?:i|we|they|he|she|still|also|had) plan(?:s|ned)?|sounds? like|pretend|fantasy|"
    r"someone|somebody|recommend(?:s|ed)?|ask(?:s|ed)?)\b|\?"
)
_AHEAD = re.compile(r"\b(?:going to|will|about to|tomorrow|next (?:year|month|summer|winter|spring|autumn))\b")
_PAST = re.compile(
    r"(?<!getting )(?<!get )(?<!got )\bused to\b|\bin (?:19|20)\d\d\b|\b(?:years?|decades?|ages) ago\b|\bas (?:a|"
    r"an) (?:child|kid|student|teenager|"
    r"teen|boy|"
    r"girl|young|little)\b|\bwhen (?:i|we|he|she|they) (?:was|were)\b|"
    r"(?<!where i )(?<!where we )(?<!where he )(?<!where she )\bgrew up\b|\bgrowing up\b|\bback (?:then|in|"
    r"when)\b|"
    r"\bformerly\b|\bin the past\b|\bmy old\b|\bmy first\b(?! (?:day|week|month|night|shift|salary|pay))|"
    r"\bonce (?:lived|worked|had|played)\b|\bborn in\b"
)
_BRIEF = re.compile(
    r"\b(?:for (?:a|the|this) (?:weekend|week|night|day|few|couple|bit|while|conference|wedding|concert|trip)|"
    r"this (?:week|weekend)|until|till|on holiday|on vacation|holidays?|trip|tonight|"
    r"visit(?:s|ed|ing)?|temporar(?:y|ily)|for now|rent(?:ed|ing)? (?:a|an) (?:car|van|bike)|hir(?:ed?|ing)|"
    r"borrow(?:s|ed|ing)?|"
    r"hotel|airbnb|hostel|campsite|sometimes|except|usually|wedding present)\b"
)
NEGATED = re.compile(
    r"\b(?:not|never|no(?! (?:doubt|wonder|problem|idea))|nobody|nothing|none|without|nor|hardly|haven't|free of)\b"
    r"|\b\w+-free\b"
)
MARKED = re.compile(
    r"\b(?:now|nowadays|these days|no longer|any ?more|any longer|instead|from now on|new|since|as of|again|"
    r"this (?:term|year)|"
    r"chang(?:ed?|es)|switch(?:ed|es)?|mov(?:ed|es)|push(?:ed)?|postponed|rescheduled|brought forward|raised|lowered|"
    r"reduced|"
    r"increased|cut|upped|renamed|became|become|went (?:up|down)|g[oe](?:ne|t|es)? (?:up|down)|down to|up to|"
    r"dropped to|"
    r"rose to|replaced|swapped|upgraded|promoted|turned|beat|in the end|after all|turns out|record|from next|starting|"
    r"so much (?:better|nicer))\b"
)
_OPENING = re.compile(
    # "Since the film I am vegan"
    r"^(?:(?:since|after|before|in|on|at|with|for|from|by) (?:[\w'-]+ ){1,4}(?=(?:i|we)\b)|(?:since|when|after|now|"
    r"at home|these days|in the end|finally|just|yesterday|today|so|and|but|then|last \w+|luckily|sadly|"
    r"by the way|apparently|well|oh|yes|okay|also|actually),? )+"
)
_THINGS = words_of("the a an this that these those it its there here no")
_OUTRIGHT = re.compile(
    r"\b(?:now|nowadays|these days|moved|changed|switched|instead|any ?more|no longer|from now on)\b"
)
_MAIN_PAST = words_of(
    """went bought saw met had did made took gave got found ran flew wrote read built sold told spent caught won came
    drove rode swam sang ate drank brought taught lost left sent hit cut put said thought felt kept threw wore"""
)
_ARTICLES = words_of("a an the my our his her their")
_BEFORE_VERB = words_of("i we he she they it you who that")
_NO_NAMES = FILLERS | SINGLE | words_of("i i'm ok tv gp uk us it")


@dataclass(frozen=True)
class Clause:
    """A stretch of a statement. owners: of whom it speaks. speaker: whom its "I" means."""

    text: str
    owners: frozenset[str]
    speaker: str

    @cached_property
    def low(self) -> str:
        """The words in lower case, without accents."""
        return fold(self.text)

    @cached_property
    def words(self) -> frozenset[str]:
        """Its words, folded."""
        return frozenset(bare(token) for token in TOKEN.findall(self.low))

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems of the words that say what it is about."""
        return stems(self.low)

    @cached_property
    def names(self) -> frozenset[str]:
        """Words in capitals that do not begin the clause, folded."""
        found = TOKEN.findall(self.text)[1:]
        return frozenset(bare(fold(one)) for one in found if one[0].isupper() and bare(fold(one)) not in _NO_NAMES)

    @cached_property
    def by_person(self) -> bool:
        """Whether somebody does what it says, and not a thing: "my sister moved", not "my dentist's practice moved"."""
        tokens = TOKEN.findall(_OPENING.sub("", self.low))
        if not tokens or tokens[0] in _THINGS:
            return False
        if tokens[0] in ("my", "our", "his", "her", "their") or tokens[0].endswith("'s"):
            heads = [place for place, word in enumerate(tokens[1:4], 1) if word in PEOPLE]
            return bool(heads) and not tokens[heads[0]].endswith("'s")
        return True

    @cached_property
    def real(self) -> bool:
        """Whether it says what is or was, and neither asks, wishes nor supposes."""
        return _UNREAL.search(self.low) is None

    @cached_property
    def ahead(self) -> bool:
        """Whether it speaks of what is to come."""
        return _AHEAD.search(self.low) is not None

    @cached_property
    def past(self) -> bool:
        """Whether it speaks of what was long ago."""
        return _PAST.search(self.low) is not None

    @cached_property
    def brief(self) -> bool:
        """Whether it holds for some days only, or with an exception."""
        return _BRIEF.search(self.low) is not None

    @cached_property
    def negated(self) -> bool:
        """Whether it says what is not."""
        return NEGATED.search(self.low) is not None

    @cached_property
    def marked(self) -> bool:
        """Whether a word of it says that something is otherwise than before."""
        return MARKED.search(self.low) is not None

    @cached_property
    def changes(self) -> bool:
        """Whether it says outright that something is otherwise now."""
        return _OUTRIGHT.search(self.low) is not None

    @cached_property
    def event(self) -> bool:
        """Whether it tells of something that happened once, which no later statement ends."""
        found = TOKEN.findall(self.low)
        for place, word in enumerate(found[:6]):
            if word in ("is", "are", "am", "has", "have", "does", "do", "can"):
                return False
            if word in ("was", "were") or word in _MAIN_PAST:
                return True
            after_subject = (
                place > 0
                and found[place - 1] not in _ARTICLES
                and word.endswith("ed")
                and len(word) > 4
                and word not in ("married", "retired")
            )
            if after_subject or (place > 0 and found[place - 1] in _BEFORE_VERB and is_irregular_past(word)):
                return True
        return False

    @cached_property
    def sides(self) -> tuple[frozenset[int], ...]:
        """Which times of day, purposes and sides it names."""
        return sides_of(self.words)


def stems(text: str) -> frozenset[str]:
    """The stems of a folded text's words that are no fillers."""
    found = (bare(token) for token in TOKEN.findall(text))
    return frozenset(normal(word) for word in found if word not in FILLERS and not word[0].isdigit() and len(word) > 1)


@lru_cache(maxsize=1 << 14)
def whole(text: str) -> Clause:
    """A statement as one clause, of whom its first clause speaks."""
    plain, speaker = _plain(text)
    parts = clauses(text)
    return Clause(plain.strip(" .!,"), parts[0].owners if parts else frozenset({speaker}), speaker)


@lru_cache(maxsize=1 << 14)
def clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of a statement in order; one that names nobody speaks of whom the one before spoke."""
    text, speaker = _plain(text)
    found: list[Clause] = []
    owners = frozenset[str]()
    for part in _CUT.split(text):
        if not part or not (part := part.strip(" .!,")):
            continue
        owners = owners_of(part, speaker) or owners or frozenset({speaker})
        found.append(Clause(part, owners, speaker))
    return tuple(found)


def owner_of(possessive: str, clause: Clause) -> frozenset[str]:
    """Whose it is: "my" is the speaker's, "my sister's" the sister's, "her" the clause's."""
    tokens = TOKEN.findall(possessive)
    if tokens and fold(tokens[0]) in ("his", "her", "their"):
        return clause.owners
    return owners_of(possessive, clause.speaker)


def _plain(text: str) -> tuple[str, str]:
    """The text with its contractions written out, and who says it."""
    said = _SAID_BY.match(text)
    speaker = SPEAKER
    if said is not None and said[1] not in ("The user", "User"):
        text, speaker = text[said.end() :], fold(said[1])
    text = _TITLES.sub(r"\1", plainly_written(text))
    for pattern, new in _CONTRACTIONS:
        text = pattern.sub(new, text)
    return text, speaker
