"""General English word lists behind the value comparison: relations, kinds of names, function words, numbers.

Owns: which words speak of the same relation, and what kind of thing a name's head noun makes of it. Knows nobody.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache


def words_of(text: str) -> frozenset[str]:
    """The words of `text` as a set."""
    return frozenset(text.split())


class NameKind(StrEnum):
    """What a name stands for, as far as its head noun, quotes or its place in the sentence tell."""

    PERSON = "person"
    PLACE = "place"
    ORGANISATION = "organisation"
    AWARD = "award"
    WORK = "work"
    EVENT = "event"
    THING = "thing"
    UNKNOWN = "unknown"


def _forms(table: str) -> dict[str, str]:
    """{inflected form: base form} from lines "base form form"."""
    return {form: line.split()[0] for line in table.strip().splitlines() for form in line.split()[1:]}


_IRREGULAR = _forms("""
be am is are was were been being
have has had having
become became
begin began begun
bear bore borne
bring brought
build built
buy bought
choose chose chosen
come came
die died dies dying
do did done does
draw drew drawn
earn earned
fall fell fallen
fight fought
find found
fly flew flown
get got gotten
give gave given
go went gone goes
grow grew grown
hold held
keep kept
know knew known
lay laid
lead led
leave left
lie lay lain lying lies
lose lost
make made
marry married marries
meet met
pay paid
put
read
rise rose risen
run ran
say said
see saw seen
sell sold
send sent
set
shoot shot
sing sang sung
sink sank sunk
speak spoke spoken
spend spent
stand stood
strike struck
swim swam
take took taken
teach taught
tell told
think thought
wed wedded
win won
write wrote written
child children
man men
woman women
wife wives
life lives
""")
# "found" is far more often the verb of foundation in descriptive prose ("he found" is caught by the comparison).
del _IRREGULAR["found"]


def is_irregular_past(word: str) -> bool:
    """Whether a folded word is an irregular past tense or participle."""
    return word in _IRREGULAR


_TRADE = re.compile(r"(?:er|or|ist|ian|man|woman|smith|wright|monger|maker|eer)$")
_TRADES = words_of(
    """poet nurse monk nun priest chef scribe spy judge clerk architect cook pilot surgeon physician scholar mason
    merchant critic diplomat mechanic guide"""
)
_NO_TRADES = words_of(
    """member leader pioneer winner founder father mother brother sister daughter number supporter follower teacher
    human lover settler traveler traveller author mentor holder owner christian civilian prisoner volunteer woman man"""
)


def is_trade(word: str) -> bool:
    """Whether a folded noun names a trade or profession ("chemist", "weaver")."""
    return word in _TRADES or (len(word) > 4 and bool(_TRADE.search(word)) and word not in _NO_TRADES)


_SUFFIX = re.compile(r"(?:ings?|ies|ied|ers?|ors?|ed|es|s|e|y)$")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A crude stem of a folded word; inflections of one verb or noun fall together ("studied" and "study")."""
    word = _IRREGULAR.get(word, word)
    if len(word) <= 3 or not word.isalpha():
        return word
    match = _SUFFIX.search(word)
    base = word if match is None or match.start() < 3 else word[: match.start()]
    return base[:-1] if len(base) > 3 and base[-1] == base[-2] else base


# One line per relation: its name, then words that speak of it. A word may belong to several relations.
_RELATIONS = """
birth: born birth birthplace birthdate native birthday childhood
death: die died death dead perish killed executed assassinated deathplace
burial: buried burial grave interred cemetery tomb
study: study student educate education graduate attend enrol enroll degree doctorate thesis alumnus alumna alma pupil
study: read teacher taught tutor mentor teach
teach: teach lecture professor professorship lecturer teacher instructor chair docent
work: work worker employ employee join staff serve service career post position appoint job hire researcher
lead: lead head direct director chair chairman president preside leader rector dean chief manage manager command govern
create: write writer author authored publish publication pen compose composer composition paint painter painting novel
create: book poem
create: play symphony opera essay sculpt sculptor sculpture film movie album song release premiere appear debut treatise
create: produce producer creator masterpiece volume monograph memoir story
found: founded founder foundation establish establishment create creator set-up inaugurate launch incorporate
found: institute open start began
build: build builder construct construction design designer architect erect complete completion
discover: discover discovery discoverer identify isolate pioneer describe
devise: invent invention inventor devise develop pioneer build builder construct construction design designer create
devise: creator patent
award: win winner award prize medal laureate receive recipient honour honor bestow confer earn accolade decorate
marry: marry marriage wife husband spouse wed wedding bride widow widower
parent: father mother parent son daughter child sire raise
sibling: brother sister sibling twin
member: member membership join elect belong fellow
place: locate location situate lie stand base headquarters headquarter seat site capital home
place: house
live: live reside settle residence settle move dwell inhabit resident emigrate relocate home
name: name call rename nickname known title
population: population inhabitant populate
measure: height tall length long area elevation depth deep wide width weigh weight cover measure stretch
direct: direct director
act: star role portray cast actor actress act appear
language: speak spoken language
play: play player football club team
nationality: citizen nationality national citizenship
retire: retire retirement resign resignation
occupation: occupation profession trade vocation
travel: part participate participant join accompany travel journey expedition voyage sail explore visit
flow: flow river tributary
border: border adjoin neighbour neighbor
hold: host held organise organize celebrate take-place occur happen
succeed: succeed successor replace follow predecessor precede
"""


def _relation_table() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for line in _RELATIONS.strip().splitlines():
        name, _, entries = line.partition(":")
        for word in entries.split():
            table.setdefault(stem(word), set()).add(name)
    return {word: frozenset(names) for word, names in table.items()}


RELATIONS = _relation_table()
"""{stem: relations that it speaks of}."""


def relation_speaks(relation: str, stems: frozenset[str]) -> bool:
    """Whether a text with these stems has a word that speaks of `relation` ("~" and a stem for an unlisted verb)."""
    if relation.startswith("~"):
        return relation[1:] in stems
    return any(relation in RELATIONS.get(stem, ()) for stem in stems)


WORDS_OF_RELATION: dict[str, str] = {}
"""{relation: the words that speak of it}, for queries."""
for _line in _RELATIONS.strip().splitlines():
    _name, _, _entries = _line.partition(": ")
    WORDS_OF_RELATION[_name] = f"{WORDS_OF_RELATION.get(_name, '')} {_entries}".strip()

# Things that happen once to the one they happen to, so that a second time or place of them is a contradiction.
ONCE_IN_A_LIFE = frozenset({"birth", "death", "burial"})
# Things that happen once to what they bring forth; the one who does them may do many.
ONCE_PER_RESULT = frozenset({"create", "found", "build", "discover", "devise"})
# Relations whose place is one place.
ONE_PLACE = ONCE_IN_A_LIFE | {"place", "found", "build"}
# Relations whose two people must not be exchanged: the pupil is the subject.
ONE_WAY = ONCE_IN_A_LIFE | {"study"}

_KIND_HEADS = {
    NameKind.AWARD: "prize award medal cup fellowship order trophy honour honor ribbon scholarship grant",
    NameKind.ORGANISATION: """university institute college school academy society company museum library hospital
        laboratory observatory association department bank orchestra theatre theater church corporation foundation
        council centre center party club press agency ministry conservatory archive gallery union guild office league
        team band inc ltd committee commission court senate parliament faculty seminary polytechnic""",
    NameKind.PLACE: """river lake mount mountain mountains island islands isle isles bay street avenue road square city
        county valley sea ocean desert coast province district region bridge park forest hill cape peninsula falls
        harbour harbor port village town kingdom republic state station airport palace castle""",
    NameKind.EVENT: """battle war treaty conference festival expedition games championship olympics revolution
        congress voyage crossing survey journey
        tour race campaign mission exhibition fair siege uprising tournament summit symposium""",
    NameKind.WORK: "novel book poem symphony opera sonata concerto painting film play album song treatise",
    NameKind.PERSON: "mr mrs ms dr prof sir lady lord king queen prince princess president pope saint captain general",
}
KIND_OF_NOUN = {noun: kind for kind, nouns in _KIND_HEADS.items() for noun in nouns.split()}
"""{common noun: kind of the things that are called so}, for heads of names and for "the prize"."""

PRONOUNS = words_of("""he she it they him her them his hers its their theirs himself herself itself who whom whose""")
PERSONAL = words_of("he she him her his hers himself herself who whom whose")
PREPOSITIONS = words_of(
    """in at near on within inside from by to with alongside under of for as into about after before since until till
    during between through over against among around towards toward beside via across throughout outside onto
    upon circa along"""
)
DETERMINERS = words_of(
    """a an the this that these those his her its their our my your another each every some any no"""
)
_AUXILIARIES = "be have do will would can could may might shall should must"
AUXILIARIES = frozenset(map(stem, _AUXILIARIES.split()))
"""As stems."""
FUNCTION_WORDS = (
    PRONOUNS
    | PREPOSITIONS
    | DETERMINERS
    | words_of(
        """i you we me us and or but nor so yet not never both either neither if then than when where which while what
    why how because although though however also later earlier soon there here only just even still already
    once again too very more most much many few several all such other same own am is are was were been being
    be have has had did do does will would can could may might shall should must one ones afterwards
    eventually finally initially originally today now according despite besides moreover furthermore
    additionally meanwhile instead thus hence therefore nevertheless nonetheless first second third last next
    previous former latter yes ok well tell write describe explain list compare give who's let's please answer
    question sure certainly indeed overall born died located based known named called among together recently
    currently formerly previously subsequently ultimately nearly almost about during since born educated
    raised founded established"""
    )
)

_MONTHS = """\
january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept|october oct|\
november nov|december dec"""
MONTHS = {name: number for number, names in enumerate(_MONTHS.split("|"), 1) for name in names.split()}
"""{name or short name: 1 to 12}."""
TIME_NOUNS = words_of(
    "year years time times day days month months life age childhood youth spring summer autumn winter century decades"
)
WEEKDAYS = words_of("monday tuesday wednesday thursday friday saturday sunday")

_BELOW_TWENTY = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
NUMBER_WORDS = {word: value for value, word in enumerate(_BELOW_TWENTY.split())}
NUMBER_WORDS |= {word: value * 10 for value, word in enumerate(_TENS.split(), 2)}
ORDINALS = {word: value for value, word in enumerate(_ORDINALS.split(), 1)}
MAGNITUDES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "dozen": 12}
HEDGES = words_of(
    """about around approximately roughly nearly almost over under circa c ca some least most than up fewer estimated"""
)
"""Words before a number that make it a bound or an approximation."""
NEGATIONS = words_of(
    """not never no neither nor without cannot didn't wasn't isn't doesn't hasn't weren't unable incapable failed
    refused"""
)
RESTRICTIONS = words_of(
    """only just barely hardly merely solely rarely no neither nor without unable incapable failed refused"""
)
"""Words that say less, or more, than the sentence without them."""
EVALUATIONS = words_of(
    """famous notable great renowned celebrated prominent influential important distinguished acclaimed popular
    known major leading respected remarkable brilliant beloved legendary noted prolific talented successful"""
)
"""Adjectives that nothing can check."""
