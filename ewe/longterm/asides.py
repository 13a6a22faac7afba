"""What stands beside a statement and can be left out: parentheses, and clauses with "who", "which" and "without"."""

import re

_LEADING = re.compile(
    r"^(?:-\s|(?:and|but|so|plus|also|well|oh|ah|ok|okay|hi|hey|hello|ugh|hmm|lol|haha|ha|yes|yeah|yep|no|nope|wait|"
    r"sorry|good morning|morning|good evening|not gonna lie|to be fair|turns out|on the other hand|right|look|thing is|"
    r"(?:the )?(?:thing|trouble|problem) (?:with [\w ]{1,24} )?is,|for the late reply|sure(?!,? because)|"
    r"sadly|btw|by the way|tbh|to be honest|honestly|actually|basically|fyi|anyway|in fact|thanks|thx|unfortunately|"
    r"luckily|because|cause|bc|since you ask|not sure if I ever told you)\b[\s,:!.…]*)+",
    re.IGNORECASE,
)
# Somebody who is spoken to, or a remark on the talk itself, in front of what is told.
_ADDRESS = re.compile(
    r"^(?:(?!\w+ly\b|\w+day\b|to\w+\b|maybe|perhaps|once|then|sometimes)(?-i:[A-Z])[a-z]+, "
    r"(?=(?:I|we|my|our|glad|sorry|since|when)\b)|since (?:we|I) (?:last )?(?:spoke|talked|chatted|met|wrote|saw)"
    r"(?: \w+)?, |in the meantime, )+",
    re.IGNORECASE,
)
_INSERTED = re.compile(
    r"\b(?:honestly|obviously|of course|you know|I think|I mean|tbh),? (?=(?:I|my|we)\b)", re.IGNORECASE
)
_TRAILING = re.compile(
    # What follows for the task at hand: "I can't eat gluten, so no flour".
    r",? so (?:no|the|nothing|everything|it|they|there|please|only|don['’]t|any|not)\b.*$|"
    r"(?:[\s,]+(?:lol|haha+|tbh|though|atm|btw|I know|I guess|but overall|brb|thank god|help|hopefully|"
    r"if that helps|ok|right|sadly|"
    r"[:;]-?[()DP/]+))+(?=[\s.!…]*$)|[\s:;,]+(?=[.!…]*$)",
    re.IGNORECASE,
)
_ASIDES = re.compile(
    r"\s*\([^()]*\)|"
    # "my cousin Lena, who lives in Antwerp, had twins", "a piano, which is odd"
    r",\s+(?:who|whose|which|where)\b[^,.;!?]*(?:,(?=\s+\w)|(?=[.!…]*$))|"
    r",\s+(?:without \w+ing|not that|been \w+ing it|not to mention|let alone)\b[^,.;!?]*(?=[.!…]*$)",
    re.IGNORECASE,
)


def without_asides(sentence: str) -> str:
    """A sentence without what only adds to it, before, inside or behind; what is left says the same of the same."""
    told = _ADDRESS.sub("", without_opening(sentence.strip()))
    return _INSERTED.sub("", _ASIDES.sub("", told))


def without_opening(part: str) -> str:
    """A statement without the words that only lead to it: "Oh, ", "On the other hand, "."""
    return _LEADING.sub("", part)


def without_ending(part: str) -> str:
    """A statement without what follows only for the task at hand, and without smileys and full stops' spaces."""
    return _TRAILING.sub("", part).strip()
