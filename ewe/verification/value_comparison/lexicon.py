"""Words by the relation that they speak of, nouns by the kind of thing they name, and the names of countries."""

import re
from enum import StrEnum

from ewe.text.english import stem, words_of


class NameKind(StrEnum):
    """What a name stands for, as far as its head noun, quotes or its place in the sentence tell."""

    PERSON = "person"
    PLACE = "place"
    ORGANISATION = "organisation"
    AWARD = "award"
    WORK = "work"
    EVENT = "event"
    UNKNOWN = "unknown"


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


# One line per relation: its name, then words that speak of it. A word may belong to several relations.
_RELATIONS = """
birth: born birth birthplace birthdate native birthday childhood
death: die died death dead perish killed executed assassinated deathplace
burial: buried burial grave interred cemetery tomb
study: study student educate education graduate attend enrol enroll degree doctorate thesis alumnus alumna alma pupil
study: read teacher taught tutor mentor teach
learn: study student educate graduate attend enrol enroll pupil
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


def _past(word: str) -> str:
    """The regular past tense; harmless for nouns, which then stand in a query as words that no text has."""
    if word.endswith("y") and word[-2] not in "aeou":
        return word[:-1] + "ied"
    return word + ("d" if word.endswith("e") else "ed")


RELATIONS: dict[str, frozenset[str]] = {}
"""{stem: relations that it speaks of}."""
WORDS_OF_RELATION: dict[str, str] = {}
"""{relation: the words that speak of it}, for queries."""
for _line in _RELATIONS.strip().splitlines():
    _name, _, _entries = _line.partition(": ")
    for _word in _entries.split():
        RELATIONS[stem(_word)] = RELATIONS.get(stem(_word), frozenset()) | {_name}
        WORDS_OF_RELATION[_name] = f"{WORDS_OF_RELATION.get(_name, '')} {_word} {_past(_word)}".strip()
# Things that happen once to the one they happen to, so that a second time or place of them is a contradiction.
ONCE_IN_A_LIFE = frozenset({"birth", "death", "burial"})
# Things that happen once to what they bring forth; the one who does them may do many.
ONCE_PER_RESULT = frozenset({"create", "found", "build", "discover", "devise"})
# Relations whose place is one place.
ONE_PLACE = ONCE_IN_A_LIFE | {"place", "found", "build"}
# Relations whose two people must not be exchanged: the pupil is the subject.
ONE_WAY = ONCE_IN_A_LIFE | {"study"}
# Relations that hold the other way round too.
SYMMETRIC = frozenset({"be", "marry", "sibling", "border", f"~{stem('met')}"})
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


_MEASURES = """
m metre metres meter meters
km kilometre kilometres kilometer kilometers
mi mile miles
ft foot feet
inch inches
cm centimetre centimetres centimeter centimeters
mm millimetre millimetres millimeter millimeters
kg kilogram kilograms kilogramme kilogrammes
tonne tonnes ton tons
lb lbs pound pounds
ha hectare hectares
acre acres
year years
month months
week weeks
day days
hour hours
minute minutes
"""
MEASURES = {stem(word): line.split()[0] for line in _MEASURES.strip().splitlines() for word in line.split()}
"""{stem: the measure that it means}; numbers of two measures cannot be compared."""

_CONTINENTS = (
    "africa|antarctica|asia|europe|north america|south america|oceania|america|scandinavia|balkans|middle east"
)
_COUNTRIES = """\
afghanistan|albania|algeria|andorra|angola|argentina|armenia|australia|austria|azerbaijan|bahamas|bahrain|bangladesh|
barbados|belarus|belgium|belize|benin|bhutan|bolivia|bosnia|botswana|brazil|brunei|bulgaria|burkina faso|burma|burundi|
cambodia|cameroon|canada|cape verde|central african republic|chad|chile|china|colombia|comoros|congo|costa rica|
croatia|cuba|cyprus|czech republic|czechia|czechoslovakia|denmark|djibouti|dominica|dominican republic|ecuador|egypt|
el salvador|england|eritrea|estonia|eswatini|ethiopia|fiji|finland|france|gabon|gambia|georgia|germany|ghana|
great britain|greece|grenada|guatemala|guinea|guyana|haiti|honduras|hungary|iceland|india|indonesia|iran|iraq|ireland|
israel|italy|ivory coast|jamaica|japan|jordan|kazakhstan|kenya|kiribati|korea|kosovo|kuwait|kyrgyzstan|laos|latvia|
lebanon|lesotho|liberia|libya|liechtenstein|lithuania|luxembourg|madagascar|malawi|malaysia|maldives|mali|malta|
mauritania|mauritius|mexico|moldova|monaco|mongolia|montenegro|morocco|mozambique|myanmar|namibia|nauru|nepal|
netherlands|holland|new zealand|nicaragua|niger|nigeria|north korea|north macedonia|northern ireland|norway|oman|
ottoman empire|pakistan|palau|palestine|panama|papua new guinea|paraguay|persia|peru|philippines|poland|portugal|
prussia|qatar|romania|russia|russian empire|rwanda|samoa|san marino|saudi arabia|scotland|senegal|serbia|seychelles|
sierra leone|singapore|slovakia|slovenia|somalia|south africa|south korea|soviet union|spain|sri lanka|sudan|suriname|
sweden|switzerland|syria|taiwan|tajikistan|tanzania|thailand|togo|tonga|trinidad|tunisia|turkey|turkmenistan|uganda|
ukraine|united arab emirates|united kingdom|uk|united states|united states america|us|usa|uruguay|ussr|uzbekistan|
vanuatu|venezuela|vietnam|wales|yemen|yugoslavia|zambia|zimbabwe"""
_PARTS = """\
alabama|alaska|arizona|arkansas|california|colorado|connecticut|delaware|florida|hawaii|idaho|illinois|indiana|iowa|
kansas|kentucky|louisiana|maine|maryland|massachusetts|michigan|minnesota|mississippi|missouri|montana|nebraska|nevada|
new hampshire|new jersey|new mexico|new york|north carolina|north dakota|ohio|oklahoma|oregon|pennsylvania|
rhode island|south carolina|south dakota|tennessee|texas|utah|vermont|virginia|washington|west virginia|wisconsin|
wyoming|ontario|quebec|british columbia|alberta|bavaria|saxony|silesia|catalonia|andalusia|tuscany|lombardy|sicily|
provence|brittany|normandy|cornwall|kent|essex|sussex|yorkshire|devon|bengal|punjab|kerala|new south wales|queensland|
tasmania"""

_LEVELS: dict[tuple[str, ...], int] = {
    tuple(name.strip().split()): level
    for level, names in enumerate((_CONTINENTS, _COUNTRIES, _PARTS), 1)
    for name in names.split("|")
}


def level(words: tuple[str, ...]) -> int:
    """1 for a continent, 2 for a country, 3 for a part of one, 0 for any other name (folded words)."""
    return _LEVELS.get(words, 0)
