"""What people leave out when they type: "Allergic to nuts", "Wife's a nurse", "Been vegan since May"."""

import re

from ewe.text.english import DETERMINERS, NUMBER_WORDS, PREPOSITIONS, is_past, words_of

_WHEN = r"(?:(?:just|finally|recently|already|currently|still|now|also|only|previously|always|never|usually|mostly) )*"
_HAS_VERB = re.compile(
    r"\b(?:am|is|are|was|were|does|did|has|have|had|can|could|will|would|should|must|might)\b|n['’]t\b|"
    r"['’](?:s|re|ve|m|ll|d)\b(?! [\w-]+$)",
    re.IGNORECASE,
)
_HAS_SUBJECT = re.compile(r"\b(?:I|we|you|he|she|it|they)\b(?!$)", re.IGNORECASE)
# Verbs that begin a sentence of their own subject; as an order hardly anybody uses them.
_VERB = re.compile(
    rf"^{_WHEN}(?:used to|(?:have|has)n['’]t|(?:could|did|was|would)n['’]t|can['’]t|"
    r"don['’]t (?:eat|drink|like|have|want|own|drive|speak|smoke|need|work|live|use|get on|really)|"
    r"can (?:only |also )?(?!you|I|we|he|she|it|they|any|some|this|that|the|a\b|my|your|u\b)\w+|"
    r"hate|live|own|prefer|love (?!it|you|this|that|to (?:hear|know|see))|"
    r"work (?:as|at|in|for|from|part|full|nights|shifts)|"
    r"have (?:(?:got )?(?:an?|two|three|four|no|\d+)|been|had|already|never)(?! (?:look|go|read|nice|good|great)\b)) ",
    re.IGNORECASE,
)
_MINE = re.compile(rf"^{_WHEN}(?:hate|live|own|prefer|love|have|work|(?:don|haven)['’]t)\b", re.IGNORECASE)
_PERFECT = re.compile(rf"^{_WHEN}(?:been|done|gone|had to) ", re.IGNORECASE)
_PAST = re.compile(rf"^{_WHEN}(?P<verb>[a-z]+) (?P<next>[\w'’£$€]+)", re.IGNORECASE)
_NO_PAST = words_of(
    """put set cut read hit let need feed speed based retired married divorced diagnosed stuck supposed mixed lies lives
    goes does wives children men women been being done said fixed tired bored excited confused interested worried
    thought told asked is are am was were has have made"""
)
# With any object, and with a place or time at once; of others "adopted from Spain" may be said of a dog.
_TAKES = words_of("had lost bought sold passed did won spent got left")
_GOES = words_of(
    """moved worked lived went came left started retired graduated grew flew drove studied trained travelled traveled
    switched used quit signed applied volunteered"""
)
_OBJECTS = DETERMINERS | NUMBER_WORDS.keys() | words_of("up out off down back me them us here home engaged pregnant")
_GOING_ON = re.compile(
    rf"^{_WHEN}(?:thinking (?:of|about)|planning|looking for an?|working|living|running|using|flying|staying|moving|"
    r"learning|studying|training|saving|expecting|going|travelling|traveling|driving|cycling|competing|doing|building|"
    r"writing|teaching|renting|raising|trying|starting|getting|caring|recovering|selling|buying|hosting|coaching|"
    r"visiting|coming|waiting|hiking|taking|off to|based in|born in|supposed to|about to) ",
    re.IGNORECASE,
)
# What somebody is: behind at most three words of how, and up to the first comma without a verb.
_STATES = (
    r"(?:allergic to|vegetarian|vegan|pescatarian|coeliac|celiac|diabetic|asthmatic|dyslexic|autistic|pregnant|married|"
    r"single|divorced|widowed|engaged|retired|self[- ]employed|unemployed|freelance|left[- ]handed|right[- ]handed|"
    r"(?:lactose|gluten)[- ]intolerant|gluten[- ]free|sober|deaf|blind|colou?r[- ]?blind|bilingual|semi[- ]retired|"
    r"diagnosed|born|based|raised|new to|fluent in|scared of|terrified of|addicted to|off (?:the|my)|"
    r"ex-\w+|on (?:\w+ )?(?:tablets|medication|meds|statins|antidepressants|insulin|warfarin|\d+k?\b))"
)
_ROLES = (
    r"(?:mum|mom|mother|dad|father|parent|grand(?:mother|father|parent|ma|pa|ad)|student|teacher|tutor|nurse|doctor|"
    r"engineer|developer|dev|programmer|founder|farmer|driver|chef|cook|carer|caregiver|widow|widower|pensioner|retiree|"
    r"freelancer|plumber|carpenter|joiner|builder|welder|mechanic|midwife|vet|lawyer|solicitor|barrister|accountant|"
    r"librarian|translator|writer|author|painter|singer|photographer|designer|postdoc|professor|lecturer|researcher|"
    r"architect|manager|owner|leader|runner|cyclist|swimmer|climber|beekeeper|baker|gardener|hairdresser|barber|"
    r"bartender|waiter|waitress|barista|introvert|veteran|sailor|pilot|firefighter|apprentice|intern|undergrad|"
    r"graduate|expat|immigrant|refugee|paramedic|worker|consultant|assistant|director|volunteer|"
    r"\w{3,}(?:ist|ician))"
)
_NO_ROLE = (
    r"(?:the|my|our|your|his|her|their|this|that|any|some|no|every|another|for|as|to|with|from|at|in|on|by|of|what|"
    r"which|how|best|good|find|need|want|write|make|give|like|dear|hi|hello|thanks|and|or|not a)\b"
)
_BEHIND_ROLE = r"(?=[\s.!…]*$|[,;(]|\.| (?:of|in|at|on|from|with|for|here|since|and|by|living|working|who)\b)"
_STATE = re.compile(
    rf"^(?!{_NO_ROLE})(?:not )?{_WHEN}(?:(?:\d+|[\w-]+) (?!{_NO_ROLE})){{0,3}}?{_STATES}\b"
    r"(?:(?<= to)|(?! \w+s\b(?! old)))",
    re.IGNORECASE,
)
# "Anna married Tom", "Dan retired in May": not "Happily married".
_OF_ANOTHER = re.compile(
    r"(?!\w+ly\b|(?:not|now|both|never|twice|thrice|long|semi|half|just|still)\b)"
    r"(?-i:[A-Z])[a-z]+ (?:married|divorced|engaged|retired|born|raised)\b",
    re.IGNORECASE,
)
_ROLE = re.compile(
    rf"^(?P<when>{_WHEN})(?P<article>an? )?(?:(?!{_NO_ROLE})[\w'’-]+ ){{0,3}}?{_ROLES}{_BEHIND_ROLE}", re.IGNORECASE
)
_YEAR_OF = re.compile(
    r"^(?:first|second|third|fourth|fifth|final|last|\d\w\w)[- ]year (?:of|at|in|into)\b", re.IGNORECASE
)
_NUMBER = rf"(?:\d+|{'|'.join(NUMBER_WORDS)})"
_AGED = re.compile(
    rf"^(?:(?P<age>{_NUMBER})(?: ?[mf]| here|[ -]?y/?o|[ -]years?[ -]old)+\b|\d\d(?=, (?!\d)))", re.IGNORECASE
)
_CONDITION = (
    r"(?:adhd|migraines?|asthma|ibs|pcos|eczema|epilepsy|diabetes|arthritis|endometriosis|hay ?fever|dyslexia|tinnitus|"
    r"psoriasis|(?:bad|dodgy) (?:knees?|back|hips?))"
)
_OWNED = re.compile(
    rf"^(?:{_CONDITION}\b|(?:{_NUMBER}|no) (?:[\w-]+ ){{0,2}}?(?:kids?|child(?:ren)?|boys?|girls?|sons?|"
    r"daughters?|cats?|dogs?|hens|chickens|hives|horses?|rabbits?|car|garden|oven|freezer|pets|allergies|balcony|teenagers?|toddlers?)\b)",
    re.IGNORECASE,
)

_PLACE_FIRST = re.compile(
    r"(?P<place>(?:at|in|on|after|before|during|for|from) (?:my|our) [^,]*?),? (?P<rest>(?:I|we)\b[^,]*?)"
    r"(?P<end>[\s.!…]*)$",
    re.IGNORECASE,
)


def is_of_the_speaker(part: str) -> bool:
    """Whether a verb without a subject agrees with "I", not with somebody named before: "hate Macs", not "hates"."""
    return _MINE.match(part) is not None


def with_subject(part: str) -> str:
    """ "Just got back from Rome" as "I just got back from Rome", "Allergic to nuts" as "I'm allergic to nuts"."""
    small = _small(part)
    if (led := with_verb(part)) is not None:
        return led
    clause = re.split(r"[,;(]", part, maxsplit=1)[0]
    if _HAS_SUBJECT.search(clause) or _HAS_VERB.search(clause):
        return part
    if _YEAR_OF.match(part):
        return f"I'm in the {small}"
    if (role := _ROLE.match(part)) is not None:
        rest = small[len(role["when"]) :]
        return f"I'm {role['when'].lower()}{'' if role['article'] else 'an ' if rest[0] in 'aeiou' else 'a '}{rest}"
    if (aged := _AGED.match(part)) is not None:
        return f"I'm {_small(aged['age'] or aged[0])}{part[aged.end() :]}"
    if _STATE.match(part) and not _OF_ANOTHER.match(part):
        return f"I'm {small}"
    return part


def is_what_somebody_is(part: str) -> bool:
    """Whether words say what somebody is: "a nurse", "vegan", "8 years old"."""
    return any(form.match(part) for form in (_STATE, _ROLE, _AGED))


def with_verb(part: str) -> str | None:
    """What begins with a verb whose subject is left out, or says what one has, with it: "Never eat meat", "No kids"."""
    small = _small(part)
    if _PERFECT.match(part):
        return f"I've {small}"
    if _VERB.match(part) or _is_told_in_the_past(part):
        return f"I {small}"
    clause = re.split(r"[,;(]", part, maxsplit=1)[0]
    if _HAS_VERB.search(clause):
        return None
    return f"I have {small}" if _OWNED.match(part) else f"I'm {small}" if _GOING_ON.match(part) else None


def _small(part: str) -> str:
    return part if part[:2].isupper() else f"{part[:1].lower()}{part[1:]}"


def _is_told_in_the_past(part: str) -> bool:
    """Whether a verb in the past begins it, with what may follow one: "Sold my flat", not "Mixed feelings"."""
    found = _PAST.match(part)
    if found is None:
        return False
    verb, following = found["verb"].lower(), found["next"].lower()
    if verb in _NO_PAST or following.startswith("handed") or not is_past(verb):
        return False
    return (
        following in _OBJECTS
        or following[0].isdigit()
        or (verb in _TAKES and following not in PREPOSITIONS)
        or (verb in _GOES and following in PREPOSITIONS)
    )


def subject_first(part: str) -> str:
    """ "At my last place we used Jira" as "We used Jira at my last place", which begins with whom it is about."""
    found = _PLACE_FIRST.match(part)
    return part if found is None else f"{found['rest']} {found['place'][0].lower()}{found['place'][1:]}{found['end']}"
