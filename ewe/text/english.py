"""Words of English: crude stems, and words by what they do in a sentence (function words, numerals)."""

import re
from functools import lru_cache


def _forms(table: str) -> dict[str, str]:
    """{inflected form: base form} from "base form form|base form"."""
    return {form: verb.split()[0] for verb in table.split("|") for form in verb.split()[1:]}


_IRREGULAR = _forms(
    """\
be am is are was were been being|have has had having|become became|begin began begun|bear bore borne|bring brought|
build built|buy bought|choose chose chosen|come came|die died dies dying|do did done does|draw drew drawn|earn earned|
fall fell fallen|fight fought|find found|fly flew flown|get got gotten|give gave given|go went gone goes|
grow grew grown|hold held|keep kept|know knew known|lay laid|lead led|leave left|lie lay lain lying lies|lose lost|
make made|marry married marries|meet met|pay paid|put|read|rise rose risen|run ran|say said|see saw seen|sell sold|
send sent|set|shoot shot|sing sang sung|sink sank sunk|speak spoke spoken|spend spent|stand stood|strike struck|
swim swam|take took taken|teach taught|tell told|think thought|wed wedded|win won|write wrote written|child children|
man men|woman women|wife wives|life lives"""
)
# "found" is far more often the verb of foundation in descriptive prose ("he found" is caught by the comparison).
del _IRREGULAR["found"]


def is_irregular_past(word: str) -> bool:
    """Whether a folded word is an irregular past tense or participle."""
    return word in _IRREGULAR


def is_past(word: str) -> bool:
    """Whether a word may be a past tense or participle, by its ending or because it is irregular."""
    return (word.endswith("ed") and len(word) > 4) or is_irregular_past(word.lower())


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


def words_of(text: str) -> frozenset[str]:
    """The words of `text` as a set."""
    return frozenset(text.split())


SAME_WORDS = _forms(
    """\
mile mi miles|kilometre km kilometer kilometers kilometres|metre meter meters metres|foot ft feet|inch inches|
kilogram kg kilograms kilo kilos|gram grams|tonne tonnes|ton tons|pound lb lbs pounds|acre acres|hectare ha hectares|
hour hr hrs hours|minute min mins minutes|second sec secs seconds|week wk wks weeks|euro eur euros|dollar usd dollars|
january jan|february feb|march mar|april apr|june jun|july jul|august aug|september sep sept|october oct|november nov|
december dec|monday mon|tuesday tue tues|wednesday wed|thursday thu thur thurs|friday fri|saturday sat|sunday sun|
scotland scottish|england english|wales welsh|ireland irish|britain british|france french|germany german|spain spanish|
portugal portuguese|italy italian|greece greek|turkey turkish|russia russian|ukraine ukrainian|poland polish|
sweden swedish|norway norwegian|denmark danish|finland finnish|iceland icelandic|netherlands dutch|belgium belgian|
switzerland swiss|austria austrian|hungary hungarian|romania romanian|bulgaria bulgarian|serbia serbian|
croatia croatian|america american americans|canada canadian|mexico mexican|brazil brazilian|argentina argentine
argentinian|chile chilean|peru peruvian|colombia colombian|cuba cuban|japan japanese|china chinese|korea korean|
vietnam vietnamese|thailand thai|india indian|pakistan pakistani|iran iranian|iraq iraqi|israel israeli|
egypt egyptian|nigeria nigerian|kenya kenyan|ethiopia ethiopian|australia australian|europe european|africa african|
asia asian"""
)
"""Units, months, days and peoples in the forms that texts use for each other ("mi", "miles"; "Nov", "November"),
folded.
"""

PRONOUNS = words_of("""he she it they him her them his hers its their theirs himself herself itself who whom whose""")
PERSONAL = words_of("he she him her his hers himself herself who whom whose")
PREPOSITIONS = words_of(
    """in at near on within inside from by to with alongside under of for as into about after before since until till
    during between through over against among around towards toward beside via across throughout outside onto
    upon circa along"""
)
NOUNS_IN_ING = words_of(
    """wedding hearing meeting christening evening morning thing nothing anything something everything king ring spring
    string wing ceiling clothing"""
)
"""Nouns that no verb of today is behind, though they end as one."""

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
WEEKDAYS = words_of("monday tuesday wednesday thursday friday saturday sunday")
_BELOW_TWENTY = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
NUMBER_WORDS = {word: value for value, word in enumerate(_BELOW_TWENTY.split())}
NUMBER_WORDS |= {word: value * 10 for value, word in enumerate(_TENS.split(), 2)}
ORDINALS = {word: value for value, word in enumerate(_ORDINALS.split(), 1)}


def normal_form(word: str) -> str:
    """Of a folded word: "1,200" as "1200", "three" as "3", "nov" as "november", anything else by its stem."""
    if word[0].isdigit():
        return word.replace(",", "")
    word = SAME_WORDS.get(word, word)
    return str(NUMBER_WORDS[word]) if word in NUMBER_WORDS else stem(word)
