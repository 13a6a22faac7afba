"""The "it" that stands for nothing: clefts, extraposed clauses, weather and time."""

import re

_BE = (
    r"(?:is|was|['’]s|has been|had been|will be|would be|may be|might be|can be|could be|must be|should be|cannot be"
    r"|is not|was not|isn['’]t|wasn['’]t)"
)
_EASE = (
    r"(?:important|possible|impossible|necessary|difficult|easy|hard|common|useful|worth|best|better|easier|harder|safe"
    r"|dangerous|illegal|legal|customary|usual|unusual|rare|interesting|essential|helpful|advisable|fair|reasonable"
    r"|wrong|right|forbidden|traditional|vital|crucial|unlikely|likely)"
)
_CLAUSE = r"(?:that|whether|how|why|what|who)"
_PATTERNS = (
    rf"{_BE} (?:\w+ly |also |now |not |still |often |well |widely |long )*(?!so\b|such\b|the\b|a\b|an\b"
    rf"|in\b|on\b|at\b)[a-z]+"
    rf" (?:to \w+ )?{_CLAUSE}\b",
    rf"{_BE} (?:\w+ly |also |not |still |often )*(?:known|unknown|clear|unclear|uncertain|recorded)"
    rf" (?:when|where|if)\b",
    rf"{_BE} (?:\w+ly |also |not |very |more |quite |too )*{_EASE} (?:for [^.]{{1,40}} )?to\b",
    rf"{_BE} (?:not )?(?:a|the) (?:fact|myth|misconception|pity|shame|mistake|miracle|coincidence"
    rf"|tradition|custom|case)"
    r"(?: \w+)? (?:that|to)\b",
    rf"{_BE} (?:only |not |not until |because of |thanks to |due to )*"
    r"(?:in|on|at|during|after|before|until|under|from|by|with|through|for|here|there|then|because"
    r"|when)\b[^.;]{0,60}? that\b",
    rf"{_BE} (?:only |not |also )*(?:the |his |her |their |its )?[A-Z][^.;,]{{0,60}}?,? (?:who|that|which"
    rf"|whom|whose)\b",
    rf"{_BE} (?:only |not |also )*(?:his|her|their|my|our|he|she|they)\b[^.;,]{{0,40}}? (?:who|that|whom)\b",
    r"(?:seems?|seemed|appears?|appeared|turns? out|turned out|follows|followed|happens|happened|so happens|emerged"
    r"|transpired|dawned on \w+|occurred to \w+|remains? to be) (?:that|as if|as though|to \w+ that|to be seen|seen)\b",
    r"(?:takes?|took|will take|would take|has taken|had taken) [^.;]{1,50} to [a-z]+\b",
    r"(?:rains?|rained|snows?|snowed|hailed|thundered|drizzled|poured|is raining|was raining|is snowing|was snowing)\b",
    rf"{_BE} (?:\w+ly |very |already |too |still |about |nearly |almost |so )*(?:raining|snowing|sunny"
    rf"|cloudy|windy|rainy|foggy"
    r"|cold|warm|hot|dark|late|early|noon|midday|midnight|dawn|dusk|spring|summer|autumn|winter|morning|evening|night"
    r"|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)(?:[.!,]| (?:in|on|at|when|there|outside"
    r"|that|here|and)\b)",
    rf"{_BE} (?:\w+ly |about |nearly |almost |exactly )*(?:\w+ o['’]clock|\d{{1,2}}:\d\d|time (?:to|for)"
    rf"|(?:\w+ )?(?:years?"
    r"|days?|months?|weeks?|decades?|centuries|hours?) (?:since|before|until|ago))\b",
)
_EXPLETIVES = tuple(re.compile(rf"[Ii]t(?: |(?=['’]s))(?:{pattern})") for pattern in _PATTERNS)


def is_expletive(text: str) -> bool:
    """Whether the "it" that opens a text has no referent ("It is known that ...", "It was Ada Lind who ...")."""
    return any(pattern.match(text) for pattern in _EXPLETIVES)
