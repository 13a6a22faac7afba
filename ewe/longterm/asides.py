"""What stands beside a statement and can be left out: parentheses, and clauses with "who", "which" and "without"."""

import re

_LEADING = re.compile(
    r"^(?:-\s|(?:and|but|so|plus|also|well|oh|ah|ok|okay|hi+|hiya|hey+|yo|nah|hello|ugh|hmm|lol|haha|ha|yes|yeah|yep|no|nope|wait|"
    r"sorry|good morning|morning|good evening|not gonna lie|to be fair|turns out|on the other hand|right|look|thing is|"
    r"(?:the )?(?:thing|trouble|problem) (?:with [\w ]{1,24} )?is,|for the late reply|sure(?!,? because)|"
    r"sadly|btw|by the way|tbh|to be honest|honestly|actually|basically|fyi|anyway|in fact|thanks|thx|unfortunately|"
    r"long story short|luckily|because|cause|bc|since you ask|not sure if I ever told you)\b[\s,:!.…]*)+",
    re.IGNORECASE,
)
# Somebody who is spoken to, or a remark on the talk itself, in front of what is told.
_ADDRESS = re.compile(
    r"^(?:(?!\w+ly\b|\w+day\b|to\w+\b|maybe|perhaps|once|then|sometimes)(?-i:[A-Z])[a-z]+, "
    r"(?=(?:I|we|my|our|glad|sorry|since|when)\b)|since (?:we|I) (?:last )?(?:spoke|talked|chatted|met|wrote|saw)"
    r"(?: \w+)?, |in the meantime, )+",
    re.IGNORECASE,
)
# A few words and a comma in front that say neither when, where nor whether: "Fun fact, I ...", "For context, my ...".
_SAYS_WHEN = (
    r"(?:\w*(?:day|time|end|year|month|week|morning|night|summer|winter|spring|autumn|ly)s?|in|at|on|by|from|with|since|after|"
    r"before|during|until|when|if|as|unless|while|because|now|then|once|back|often|sometimes|tomorrow|maybe|perhaps|"
    r"not|never|here|there|to|of|(?:I|we|my|our|he|she|they|it|you|that)(?:['’]\w+)?)"
)
_MINE = re.compile(r"(?:I|we|my|our)\b", re.IGNORECASE)
_WHEN = re.compile(rf"{_SAYS_WHEN}\b|(?:last|next|this|every|my|our|the) ", re.IGNORECASE)
_LEAD_IN = re.compile(
    rf"^(?:[\w-]+ ){{1,3}}here, (?=(?:I|we|my|our)\b)|"
    rf"^(?:(?!{_SAYS_WHEN}\b)[\w'’]+ ){{0,2}}(?!{_SAYS_WHEN}\b)[\w'’]+, (?=(?:I|we|my|our)\b)|"
    r"^(?:so )?(?:for |some )?context[:,]? (?=(?:I|we|my|our)\b)|"
    r"^(?:apparently|funnily enough|luckily|thankfully|sadly|weirdly|admittedly|obviously|personally),? ",
    re.IGNORECASE,
)
_INSERTED = re.compile(r"\b(?:honestly|obviously|of course|you know|I mean|tbh),? (?=(?:I|my|we)\b)", re.IGNORECASE)
_TRAILING = re.compile(
    # What follows for the task at hand: "I can't eat gluten, so no flour".
    r",? so (?:no|the|nothing|everything|it|they|there|please|only|don['’]t|any|not|you|"
    r"keep|make|lots of|(?:s?he|we) can|"
    r"(?:that|this)['’ ](?:s|is|may|might|could|would|was))\b.*$|"
    r",? (?:but|and) (?:not|no one|nobody|nothing) [^,.;]*(?=[.!…]*$)|"
    r", so (?!(?:I|we|my|our|he|she|much|many|far|that)\b)[^,.;]*(?=[.!…]*$)|"
    r"(?:[\s,]+(?:lol|haha+|tbh|though|too|as well|atm|btw|I know|I guess|but overall|brb|thank god|my god|omg|ffs|"
    r"help|hopefully|if (?:that|it) (?:helps|matters)|if I['’]m honest|ok|right|sadly|"
    r"[:;]-?[()DP/]+))+(?=[\s.!…]*$)|[\s:;,]+(?=[.!…]*$)",
    re.IGNORECASE,
)
# What is added behind a comma that is not so: "history, not true crime".
_AFTERTHOUGHT = re.compile(
    r"(?<=\w),\s+(?:not|no|never|nothing|maybe|probably|whatever|perhaps)\b[^.;!?]*(?=[.!…]*$)", re.IGNORECASE
)
# "My daughter's boyfriend, Callum, moved in"
_APPOSITION = re.compile(r"\b((?:[Mm]y|[Oo]ur) (?:[\w'’-]+ ){0,2}[\w-]+), ([A-Z][\w-]+)(?:,| \([^()]*\),)(?= [a-z])")
_ASIDES = re.compile(
    r"\s*\((?!\d)[^()]*\)|"
    r"\s+(?:that )?you (?:suggested|recommended|mentioned|told me about)\b|"
    r"\s+which (?:prob(?:ably)?|doesn['’]t help|helps|sucks)\b[^,.;!?]*(?=[.!…]*$)|"
    # "my cousin Lena, who lives in Antwerp, had twins", "a piano, which is odd"
    r",\s+(?:who|whose|which|where)\b[^,.;!?]*(?:,(?=\s+\w)|(?=[.!…]*$))|"
    r",\s+(?:without \w+ing|not that|been \w+ing it|not to mention|let alone)\b[^,.;!?]*(?=[.!…]*$)",
    re.IGNORECASE,
)


def without_asides(sentence: str) -> str:
    """A sentence without what only adds to it, before, inside or behind; what is left says the same of the same."""
    sentence = _APPOSITION.sub(r"\1 \2", sentence)
    rest = _LEAD_IN.sub("", _ADDRESS.sub("", without_opening(sentence.strip())))
    return _INSERTED.sub("", _ASIDES.sub("", rest))


def without_opening(part: str) -> str:
    """A statement without the words that only lead to it: "Oh, ", "On the other hand, "."""
    return _LEADING.sub("", part)


def without_ending(part: str) -> str:
    """A statement without what follows only for the task at hand, afterthoughts, smileys and full stops' spaces."""
    rest = _TRAILING.sub("", part).strip()
    return _AFTERTHOUGHT.sub("", rest)


def is_remark_in_front(left: str, right: str) -> bool:
    """Whether what stands before "I" or "my" says neither when nor where: "Meal plan for one, I lift four times"."""
    return len(left.split()) > 1 and _MINE.match(right) is not None and _WHEN.match(left) is None
