"""What is told of people and animals by their names: "Rohan's my boyfriend", "Amir left the bank"."""

import re

from ewe.longterm.elided import is_what_somebody_is
from ewe.text.english import MONTHS, WEEKDAYS, words_of

_NAME = r"[A-ZÀ-ÖØ-Þ][^\W\d_A-Z]+"
_SAID_OF = re.compile(
    rf"^(?P<name>{_NAME})(?: and (?P<other>{_NAME}))?(?P<is>['’]s| is| are| has| have)? (?P<rest>.+)$", re.DOTALL
)
# Verbs that are said of people, and of few things: with what follows where the verb alone could be of anything.
_A_JOB = r"(?:at|for|as|in|on|from|part|full|nights)"
_THEIR = r"(?:his|her|their)"
_SCHOOL = r"(?:school|nursery|reception|uni\w*|college|work)"
_OF_PEOPLE = re.compile(
    r"(?:now |still |also |just |recently )*(?:"
    r"lives?|grew up|move[ds] (?:to|in|into|out|back|away|from|up|down|house)|"
    rf"studie[ds]|teaches|taught|works? {_A_JOB}|worked {_A_JOB}|joined (?:the|an?|our)|quit|retired|"
    rf"graduated|enrolled|dropped out|became|"
    rf"started (?:{_SCHOOL}|at|as|(?:{_THEIR}|an?))|finished (?:{_SCHOOL}|{_THEIR})|"
    rf"left (?:the|home|{_SCHOOL}|{_THEIR})|got (?:into|an? (?:\w+ )?(?:job|place|offer)|promoted|transferred|laid off|"
    r"married|engaged|divorced|pregnant)|proposed|filed for divorce|passed away|married|"
    r"lost (?:his|her|their) job|turned \d|died (?:on|in|at|last|this|yesterday|before|when|two|of)|"
    rf"had (?:{_THEIR}|twins|an? (?:baby|boy|girl|son|daughter|stroke|fall|miscarriage))|broke (?:up|{_THEIR})|"
    r"will (?:marry|be an?|move|start)|wants (?:an?|to (?:be|become|move|study|learn|take|go|stay))|"
    r"(?:gone (?:to|back|home|away)|grown (?:up|out)|broken (?:up|his|her|their)|stopped \w+ing|"
    r"separated|split|been (?:diagnosed|promoted|offered|given|ill|married))|"
    r"(?:got )?(?:asthma|diabetes|arthritis|adhd|dementia|cancer)|"
    r"(?:can|won|doesn)['’]t (?:eat|have|drink|drive|fly|swim|work|speak|like)"
    r")\b|(?:bought|sold|eats|hates|loves|likes|speaks|plays|owns) "
    r"(?!(?:it|that|this|me|us|when|how|to|out|an? (?:\w+ )?(?:role|part))\b)",
    re.IGNORECASE,
)
# Where somebody is, and what is said of people alone.
_IS_AT = re.compile(
    r"(?:(?:now|still|back) )*(?:(?:in|at|from) (?:(?-i:[A-Z])|hospital)|"
    r"\d{1,2}(?: now| today)?(?=[\s.!…]*$)|"
    r"(?:with an?|an? gp|expecting|allergic to|setting up|getting (?:married|divorced)|"
    r"moving|learning|training|studying|working|living|staying|waiting for)\b)",
    re.IGNORECASE,
)
# What of somebody's is told: "Arjun's wedding has been pushed to January".
_THEIR_MATTER = re.compile(
    rf"{_NAME}['’]s (?:wedding|birthday|surgery|operation|op|cast|funeral|exam|school|flight|party) "
    r"(?:is|was|has|will|went|got)\b"
)
_OTHER_NAME = re.compile(r"(?<!\bin)(?<!\bat)(?<!\bfrom)(?<!\bfor) [A-Z][a-z]")
_KIN = (
    r"(?:(?:little|big|younger|older|eldest|youngest|best|new|twin) )?(?:husband|wife|partner|boyfriend|girlfriend|"
    r"fianc[ée]e?|son|daughter|brother|sister|uncle|aunt|cousin|niece|nephew|grandson|granddaughter|friend|boss|manager|"
    r"flatmate|roommate|housemate|neighbou?r|dog|cat)"
)
_IS_MINE = re.compile(rf"(?:my|our) (?:\w+ )?{_KIN}\b", re.IGNORECASE)
_KIN_NAMED = re.compile(
    rf"\b(?i:my|our) (?P<who>(?i:{_KIN})) (?P<name>{_NAME}(?: {_NAME})?)(?=[\s,.!?;:]|$)(?! and (?:I|me|my|[A-Z]))"
)
_NO_NAMES = (
    WEEKDAYS
    | MONTHS.keys()
    | words_of(
        """we you he she it they this that these those there here my our your his her their its the one both all most
        everyone everybody everything nothing nobody someone somebody anyone people who what which where when why how
        now then also just today tomorrow yesterday tonight work school life home love god christmas easter kids
        children mum mom dad"""
    )
)


def is_of_somebody(statement: str) -> bool:
    """Whether a statement tells by name where somebody lives or works, what they are, or what changed their life.

    The famous are named so, too, but seldom by people who tell of themselves.
    """
    found = _SAID_OF.match(statement)
    if found is None or found["name"].lower() in _NO_NAMES:
        return False
    if _THEIR_MATTER.match(statement):
        return True
    rest, joined = found["rest"], (found["is"] or "").strip()
    if (joined in ("are", "have") and found["other"] is None) or (joined in ("is", "has") and found["other"]):
        return False
    if joined in ("", "has", "have"):
        return _OF_PEOPLE.match(rest) is not None
    is_said = _IS_MINE.match(rest) is not None or _IS_AT.match(rest) is not None or is_what_somebody_is(rest)
    return is_said or (joined != "is" and _OF_PEOPLE.match(rest) is not None)


def name_told_of(statement: str) -> str:
    """By which name a statement tells of somebody, if it is only one and nobody of theirs is named, too."""
    found = _SAID_OF.match(statement)
    is_one = found is not None and found["other"] is None and _OTHER_NAME.search(statement) is None
    return found["name"] if found is not None and is_one and is_of_somebody(statement) else ""


def kin_named(text: str) -> list[str]:
    """What somebody of the speaker's is called, of "my brother Tom" anywhere: "Tom is my brother."."""
    return [
        f"{found['name']} is my {found['who']}."
        for found in _KIN_NAMED.finditer(text)
        if found["name"].lower() not in _NO_NAMES
    ]


def with_whole_verb(statement: str) -> str:
    """ "Hannah's gone back to work" as "Hannah has gone back to work"; "Hannah's a GP" as "Hannah is a GP"."""
    found = _SAID_OF.match(statement)
    if found is None or found["is"] not in ("'s", "’s") or _THEIR_MATTER.match(statement):
        return statement
    verb = "has" if _OF_PEOPLE.match(found["rest"]) else "is"
    return f"{statement[: found.start('is')]} {verb} {found['rest']}"
