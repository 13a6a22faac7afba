"""What is there now, new, or found: signs in a newer clause that what an older one says is over."""

import re
from functools import lru_cache

from ewe.longterm.change.change_clauses import Clause, owner_of, stems
from ewe.longterm.change.change_endings import OBJECT, denied_by, head_of
from ewe.longterm.change.change_words import SINGLE, kind_of, kinds_of, normal
from ewe.text.english import PREPOSITIONS, words_of

_MOST_CLAUSE_WORDS = 16
_SWITCHED_TO = re.compile(
    r"\b(?:switched|changed|moved|went|migrated|gone|upgraded|traded up) (?:over |back |completely )?to (?:an? |the |"
    r"my |our )?(?P<head>[\w-]+)"
)
_NEW = re.compile(
    r"(?:\b(?P<owner>my|our|his|her|their|[\w]+(?:'s [\w]+)?'s) |"
    r"\b(?P<the>the) )(?:brand )?new (?P<object>(?:[\w-]+ ){0,2}?)"
    r"(?P<head>[\w-]+)(?=$| (?:is|are|was|has|have|does|do|did|can|makes?|came|arrived|says?|said|sounds?|looks?|"
    r"feels?|takes?|"
    r"fixed|started|starts|at|in|with|from|and|to|for|on|called|who|that|just|finally|already|chewed|runs|works|"
    r"lets|wants|"
    r"brings|comes|sings|barks|shows|gives|pays|plays|rides|talks|asks|calls|hates|loves|likes|thinks|treats|"
    r"tells|speaks|cooks|charges|saves|cleans|hums|rings|tracks|closes|leaves|ends|goes|keeps|smells|fits|drives|"
    r"costs|gets|really|teaches|knows|lives|sleeps|begins|will|of|chew\w*|\w+ed)\b)"
)
_SEEKING = re.compile(
    r"\b(?:looking for|searching for|hunting for|in search of|saving (?:up )?for|waiting for|waiting on|need (?=an? |"
    r"new )|"
    rf"needs (?=an? |new )|want (?=an? )|wants (?=an? )|hoping for|training for|learning to|renovating|"
    rf"practising for|studying for|writing|working on|on the waiting list for) {OBJECT}"
)
_BROKEN = re.compile(
    r"(?P<object>(?:[\w'&-]+ ){1,4}?)(?:is|are) (?:still )?(?:being \w+|under construction|broken|out of order|"
    r"at the garage|"
    r"in repair|not working|not finished|unfinished|a building site)\b"
)
_FOUND = re.compile(
    r"\b(?:got|found|bought|arrived|came|finally|passed|finished|ran|fits|picked up|adopted|given|medal|signed|ready|"
    r"done|works|"
    r"working again|fixed|repaired|completed?|first (?:day|week|night)|back|open again)\b"
)
_BY_WORK = re.compile(r"\b(?:working on|writing|renovating|practising|studying|planning|training|learning)\b")
_DONE = re.compile(
    r"\b(?:finished|passed|published|completed?|handed in|done|ready|top mark|graded|accepted|printed|defended|"
    r"medal|diploma|licen[cs]e|ran|submitted)\b"
)
_HAVING = re.compile(r"(?:^|\b)(?:my|our|his|her|their|\w+'s|the new) (?:\w+ )?$")
_CALLS_SOMEBODY = re.compile(r"\b(?:am|is|are|as) $")  # "I am a manager" has none
_HAVE = re.compile(
    r"\b(?:have|has|had|owns?|got|adopted|bought|born|passed|plays?|speaks?|started|taken up|took up|drinks?|drinking|"
    r"eats?|uses?|with|there is|there are|only have|keeps?)(?: \w+){0,3} $"
)
_NOT_OWN = re.compile(
    r"\b(?:hired?|rent(?:ed|al)?|borrow\w*|lent|need|want|look(?:ing|s)? after|friend|neighbour|walk(?:ed|s|"
    r"ing) past|saw|"
    r"miss(?:es|ed)?|hates?|loves?|likes?|dog-?sit\w*|cat-?sit\w*|share[ds]?|company)\b"
)
_FOLLOWS = PREPOSITIONS | words_of(
    """is are was am has have can does do did will who that which and or because said now needs called never always
    hurts still really luca"""
)


@lru_cache(maxsize=1 << 14)
def is_open(clause: Clause) -> bool:
    """Whether a clause says that something is not there, sought or broken, so that a later one may say that it is."""
    return clause.negated or (_SEEKING.search(clause.low) or _BROKEN.search(clause.low)) is not None


def is_there_now(older: Clause, newer: Clause) -> bool:
    """Whether the older clause says that there is none of something, and the newer one that there is."""
    if not older.negated or "you" in older.words or not newer.real or newer.ahead or newer.past or newer.brief:
        return False
    missing = denied_by(older)
    if not missing or not missing <= kinds_of(newer.content) or _NOT_OWN.search(newer.low) is not None:
        return False
    before = newer.low[: _first_of(newer.low, missing)]
    can = "can" in older.words and re.search(r"\b(?:first|finally|managed|now)\b", newer.low) is not None
    return can or (not newer.negated and _HAVE.search(before) is not None) or _HAVING.search(before) is not None


def _first_of(text: str, wanted: frozenset[str]) -> int:
    """Where the first word of a kind begins."""
    for found in re.finditer(r"[\w'-]+", text):
        if kinds_of(stems(found[0])) & wanted:
            return found.start()
    return 0


@lru_cache(maxsize=1 << 14)
def new_things(clause: Clause) -> tuple[tuple[frozenset[str], str], ...]:
    """Of what a clause says that it is new: whose, and the stem of the word for it; only what one has one of."""
    if not clause.real or clause.ahead or clause.brief:
        return ()
    new = [
        (owner_of(_as_written(clause, found), clause) if found["owner"] else clause.owners, found["head"])
        for found in _NEW.finditer(clause.low)
    ]
    new += [(clause.owners, found["head"]) for found in _SWITCHED_TO.finditer(clause.low)]
    return tuple((owners, normal(head)) for owners, head in new if head in SINGLE or kind_of(head))


def _as_written(clause: Clause, found: re.Match[str]) -> str:
    """The owner with its capitals."""
    return (
        clause.text[found.start("owner") : found.end("owner")]
        if len(clause.text) == len(clause.low)
        else found["owner"]
    )


def has_one(older: Clause, head: str) -> bool:
    """Whether an older clause speaks of the thing that somebody has: "my laptop is", "I have a laptop"."""
    if older.past or not older.real or older.event:
        return False
    kind = kind_of(head)
    if kind:
        return any(one != head and (kind_of(one) == kind or one == kind) for one in older.content)
    if any(kind_of(one) == head for one in older.content):
        return True
    for found in re.finditer(
        r"(?:\b(?:my|our|his|her|their|the|an?|[\w]+'s) )(?P<between>(?:[\w-]+ ){0,2}?)(?P<head>[\w-]+)", older.low
    ):
        if found[0].startswith(("a ", "an ")) and _CALLS_SOMEBODY.search(older.low[: found.start()]):
            continue
        if normal(found["head"].removesuffix("'s")) == head and _is_head(older.low[found.end() :], found["head"]):
            return True
    return False


def _is_head(behind: str, head: str) -> bool:
    """Whether a noun is no part of a longer one: "laptop bag"."""
    following = re.match(r"\s?([\w'-]+)", behind)
    return (
        head.endswith("'s") or following is None or following[1] in _FOLLOWS or following[1].endswith(("s", "ed", "ly"))
    )


def is_found(older: Clause, newer: Clause) -> bool:
    """Whether somebody looked, waited or trained for what the newer clause says is there or done."""
    if not newer.real or newer.negated or newer.ahead or not older.words.isdisjoint(("not", "never")):
        return False
    sought = _SEEKING.search(older.low) or _BROKEN.search(older.low)
    if sought is None or _SEEKING.search(newer.low) is not None:
        return False
    wanted = head_of(sought["object"])
    if not wanted or not wanted <= kinds_of(newer.content):
        return False
    if len(newer.low.split()) > _MOST_CLAUSE_WORDS:
        return False
    place = _first_of(newer.low, wanted)
    near = " ".join(newer.low[:place].split()[-4:]) + " | " + " ".join(newer.low[place:].split()[:6])
    if _BY_WORK.search(older.low) is not None:
        return _DONE.search(near) is not None
    return _FOUND.search(near) is not None or _HAVING.search(newer.low[:place]) is not None
