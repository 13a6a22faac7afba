"""What has ended, begun, come in place of another thing, or been found: signs of change in what is said of a thing."""

import re
from functools import lru_cache

from ewe.longterm.change.change_clauses import Clause, stems
from ewe.longterm.change.change_words import kinds_of, normal
from ewe.text.english import PREPOSITIONS, words_of

OBJECT = r"(?P<object>(?:[\w'&-]+ ?){1,6})"
_ORGANISATION = (
    r"(?:choir|club|band|team|company|job|school|university|party|church|project|board|group|orchestra|course|gym|firm|"
    r"committee|programme|class|society|chat|\w+ (?:choir|club|band|team|project|group))"
)
_CEASED = re.compile(
    r"\b(?:stop(?:ped|s)?|quit|quits|(?:gave|given|giving|gives) up(?: on)?|drop(?:ped|s)?(?: out of)?(?! (?:off|by|"
    r"in|him|her|them))|cancel(?:l?ed|s)|"
    r"finish(?:ed|es)?(?: with| reading| writing)?(?! (?:an?|another|some|up)\b)|resigned from|sold|scrapped|"
    r"got rid of|gave away|given away|"
    r"donated|traded(?: in)?|swapped|retired from|broke up with|split up with|divorced|threw (?:out|away)|"
    r"outgr(?:own|ew)|(?:moved|switched|migrated|changed|transferred|upgraded) (?:[\w]+ ){0,3}?(?:away |over |on |"
    r"out )?from|"
    r"moved out of|finally out of|took (?:\w+ ){1,3}out of|unsubscribed from|dug up|tore down|took down|ditched|"
    r"deleted|uninstalled|"
    r"handed over|let go of|ran out of|graduated from|got over|recovered from|weaned off|came off|am off|is off|"
    r"replaced|packed in|backed out of|pulled out of|withdrew from|walked away from|stepped back from|"
    r"parted ways with|moved on from|"
    r"cut(?:ting)? out|swore off|chucked(?: out)?|binned|totalled|wrote off|called off|called it quits with|"
    r"said goodbye to|done with|through with|"
    r"terminated|handed back|dumped|kicked out of|expelled from|got (?:my|his|her) \w+ lasered and do not need|"
    r"closed(?= (?:my|our|his|her|the) (?:\w+ )?(?:account|shop|business|bakery|practice))|"
    r"(?:fox|thief|thieves|burglars?|fire|flood|storm) (?:took|got|stole|killed|destroyed)|"
    rf"left(?= (?:the |my |our |his |her )(?:\w+ )?{_ORGANISATION})|last payment on|shaved off|cut off|(?:am|is|are|"
    rf"came|been) off(?= (?:the|my|his|her) )) {OBJECT}"
)
_GIVEN = re.compile(
    r"\b(?:gave|given|giving|threw|thrown|chucked) (?P<object>(?:[\w'&-]+ ){1,3})(?:away|out|up)\b|"
    r"\b(?:sent|took|taken|brought) (?P<object2>(?:[\w'&-]+ ){1,3})back to the (?:shelter|shop|store|breeder)\b"
)
_ONLY_THEN = re.compile(
    r"\b(?:after|before) (?:\d|noon|lunch|dinner|midnight|one|two|three|four|five|six|seven|eight|nine|ten)|"
    r"\b(?:on|at) (?:\w+days|weekends|night|work|home)\b"
)
_OVER = re.compile(
    r"(?P<object>(?:[\w'&-]+ ){1,5}?)(?:has |have |had |was |were |is |are |got |been |finally |just |peacefully |"
    r"be |to |"
    r"in the end |\w+ly )*(?:closed(?: down)?|shut down|stolen|came off|over|cancelled|called off|healed|burned down|"
    r"burnt down|went bankrupt|discontinued|demolished|written off|expired|gone|finally off|dissolved|axed|scrapped|"
    r"disbanded)\b"
    r"(?! (?:the|my|our|his|her|their|an?|[\w]+'s) )(?! (?:to|on|at|until|till|for|from|during|in|today|tomorrow)\b)"
)
_DIED = re.compile(
    r"(?P<late>[\w-]+)'s (?:funeral|grave|death|ashes|urn)\b|"
    r"(?P<object>(?:[\w'&-]+ ){1,5}?)(?:has |have |had |was |were |is |are |got |been |finally |just |peacefully |"
    r"be |to |"
    r"\w+ly )*(?:died|dies|dead|passed away|passed|put down|put to sleep|run over|rehomed|left us|"
    r"ran away)\b(?! (?:the|"
    r"my|an?) )"
)
_OWN = re.compile(r"\b(?:my|our|have an?|has an?|one) ([\w-]+)")
_MOVED_OUT = re.compile(
    r"(?P<object>(?:[\w'&-]+ ){1,4}?)(?:has |have |had |finally |just |\w+ly )*(?:moved out|moves out)\b"
)
_TOGETHER = re.compile(r"\b(?:shar\w+|live[sd]? with|living with|flatmate|flat|room|house|neighbou?rs?)\b")
_FAREWELL = re.compile(rf"\b(?:say goodbye to|bur(?:y|ied)|since losing|we lost|put down|without) {OBJECT}")
_LATE = re.compile(r"\b(?:my|our|his|her|the|\w+'s) (?:late|ex[- ]?(?:\w+)?|former|previous) (?P<object>[\w'-]+)")
_USED_TO = re.compile(r"\b(?:i|we|he|she|they|\w+) used to (?P<object>.+)$")
_STEPPED_DOWN = re.compile(r"\b(?:since \w+ left\b|stepped down|resigned|retired|handed over)\b|\bsuccessor\b")
_NEW_IN_ROLE = re.compile(
    r"\bnew (treasurer|captain|president|secretary|chair\w*|head|director|coach|mayor|goalkeeper|conductor|leader)\b"
)
_ROLE = re.compile(
    r"\b(?:chairs?|leads?|leading|heads?|runs?|running|head of|captain|treasurer|president|secretary|coach(?:es)?|"
    r"looks? after|"
    r"manages?|director|chairman|chairwoman|mayor|works? (?:at|for|as)|teach(?:es)?|in charge)\b"
)
_NO_MORE = re.compile(
    r"\b(?:no longer|any ?more|any longer|(?:for|in) (?:months|years|weeks|ages)|after all|since|at all)\b"
)
_DENIED = re.compile(
    r"\b(?:do not|does not|am not|is not|are not|not|no longer|never|can not|have never|has never|without|no)\b"
    rf"(?: (?:(?:have|has|had)(?! to)|own|been|a|an|any|the|touched|set foot in|been to|gone to|know|knows|speak|"
    rf"speaks|eaten|eat|drunk|drink|"
    rf"need|needs|played|"
    rf"use|uses|word of|single|longer|my|our|his|her))* {OBJECT}"
)
_DOES_SO = re.compile(r"[\w'-]+ (?:it|that|this|them|these|those)\b")  # "have not read that yet"
_LEAST_STEM = 5
_VAGUE = words_of(
    """work day home house today lunch dinner breakfast shift time way thing
    week year place room one it wait believe help imagine stress worry matter
    best luck more others someone chance problem point"""
)
_LINKS = PREPOSITIONS - words_of("of") | words_of("and or but because since that who which when while last yesterday")
_OWNED = words_of("my our his her their")
_DETAIL = words_of("my our his her their the a an this that these those some any new old own up out all")


@lru_cache(maxsize=1 << 14)
def ended_by(clause: Clause) -> tuple[frozenset[str], ...]:
    """The stems of what a clause says has ended, each with all of its words; the last word is what it is."""
    if not clause.real or clause.ahead or "you" in clause.words:
        return ()
    if clause.negated:
        ended = [denied_by(clause)] if _NO_MORE.search(clause.low) is not None else []
    else:
        if _ONLY_THEN.search(clause.low) is not None:
            return ()
        places = [(pattern, found) for pattern in (_CEASED, _OVER) for found in pattern.finditer(clause.low)]
        ended = [head_of(found["object"], last=pattern is _OVER) for pattern, found in places]
        ended += [head_of(found["object"] or found["object2"]) for found in _GIVEN.finditer(clause.low)]
        ended += [stems(found["object"]) for found in _USED_TO.finditer(clause.low)]
    ended = [found - {normal(owner) for owner in clause.owners} for found in ended]
    return tuple(found for found in ended if found)


@lru_cache(maxsize=1 << 14)
def denied_by(clause: Clause) -> frozenset[str]:
    """The stems of what a clause says is not there or not done; none where it denies nothing."""
    found = _DENIED.search(clause.low)
    if found is not None and _DOES_SO.match(found["object"]):
        return frozenset()
    return head_of(found["object"]) if found is not None else frozenset()


def head_of(phrase: str, last: bool = False) -> frozenset[str]:
    """The stems of a phrase up to its first preposition; none where what is left is too vague to be known again."""
    words = phrase.split()
    kept: list[str] = []
    for word in words:
        if word in _LINKS and not last:
            if kept:
                break
            continue
        if last and word in _OWNED:  # "since the operation my back pain is gone"
            kept = []
        if word not in _DETAIL:
            kept.append(word)
    owners = [place for place, word in enumerate(kept[:-1], 1) if word.endswith("'s")]
    kept = kept[owners[-1] :] if owners else kept
    found = stems(" ".join(kept))
    return frozenset() if found <= frozenset(map(normal, _VAGUE)) else found


def is_over(ended: frozenset[str], older: Clause) -> bool:
    """Whether an older clause says of what has ended that it is there."""
    if not ended or older.negated or older.past or not older.real or older.event:
        return False
    said = kinds_of(older.content) | older.owners
    return all(any(_alike(one, other) for other in said) for one in ended)


def _alike(one: str, other: str) -> bool:
    """Whether two stems are of one word: "collect", "collection"."""
    return one == other or (
        min(len(one), len(other)) >= _LEAST_STEM and (one.startswith(other) or other.startswith(one))
    )


def is_gone(newer: Clause, older: Clause) -> bool:
    """Whether somebody, or an animal, of whom the older clause speaks has died, or moved out of the home they share."""
    gone, moved = _gone_by(newer), _moved_out_by(newer)
    if not (gone or moved) or older.event or older.past:
        return False
    named = _as_stems(older.names | older.owners) | _own_pets(older, newer)
    return not gone.isdisjoint(named) or (not moved.isdisjoint(named) and _TOGETHER.search(older.low) is not None)


def _own_pets(older: Clause, newer: Clause) -> frozenset[str]:
    """Animals that both clauses call the speaker's own: "my cat sleeps", "our cat died"."""
    if newer.past or older.owners.isdisjoint(newer.owners):
        return frozenset()
    own, said = ({normal(word) for word in _OWN.findall(clause.low)} for clause in (newer, older))
    return frozenset(one for one in own & said if "pet" in kinds_of(frozenset({one})))


@lru_cache(maxsize=1 << 14)
def _gone_by(clause: Clause) -> frozenset[str]:
    if not clause.real or clause.negated:
        return frozenset()
    found = ((pattern, one) for pattern in (_DIED, _FAREWELL, _LATE) for one in pattern.finditer(clause.low))
    return frozenset(
        stem for pattern, one in found for stem in head_of(one.group(one.lastgroup or 0), last=pattern is _DIED)
    )


@lru_cache(maxsize=1 << 14)
def _moved_out_by(clause: Clause) -> frozenset[str]:
    moved = _MOVED_OUT.search(clause.low) if clause.real and not clause.negated else None
    return head_of(moved["object"], last=True) if moved is not None else frozenset()


def _as_stems(names: frozenset[str]) -> frozenset[str]:
    return frozenset(normal(name.rpartition("/")[2]) for name in names)


@lru_cache(maxsize=1 << 14)
def tells_end(clause: Clause) -> bool:
    """Whether a clause says at all that something has ended, or somebody has gone."""
    return bool(
        ended_by(clause)
        or _NEW_IN_ROLE.search(clause.low) is not None
        or _gone_by(clause)
        or _moved_out_by(clause)
        or _STEPPED_DOWN.search(clause.low) is not None
    )


def has_left(newer: Clause, older: Clause) -> bool:
    """Whether somebody gave up a role that the older clause says is theirs."""
    successor = _NEW_IN_ROLE.search(newer.low)
    if successor is not None and successor[1] in older.words and newer.real and not older.past:
        return bool(re.search(rf"\b(?:am|is|as) (?:the |our )?(?:\w+ )?{successor[1]}\b", older.low))
    if _STEPPED_DOWN.search(newer.low) is None or not newer.real or newer.negated:
        return False
    return _ROLE.search(older.low) is not None and not older.event and not older.past
