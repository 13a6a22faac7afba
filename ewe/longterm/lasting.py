"""Which statements of a chat are worth keeping: what lasts or happened, not advice, hearsay, errands or moods."""

import re

from ewe.text.english import FUNCTION_WORDS, words_of
from ewe.text.words import words

_ADVERBS = (
    r"(?:(?:so|really|very|a bit|a little|kind of|just|too|still|super|both|all|quite|pretty|not|already|now|more|"
    r"\w+ly) )*"
)
_MOODS = (
    r"(?:tired|exhausted|annoyed|bored|confused|curious|hungry|nervous|angry|mad|sad|worried|lost|excited|stressed|"
    r"overwhelmed|frustrated|shocked|jealous|proud|keen|convinced|glad|happy|sorry|grateful|thankful|stoked|pumped|"
    r"thrilled|blessed|honou?red|lucky|great|good|fine|better|impressed|speechless|freezing|sleepy|wondering|asking|"
    r"joking|serious|aware|inspired|motivated|here|there|listening|done|sure|looking forward|over the moon)"
)
_THINKS = (
    r"(?:says?|said|thinks?|thought|believes?|reckons?|claims?|swears?|complain(?:s|ed)?|insists?|heard|rumou?r\w*)"
)
_OF_NOW = (
    r"(?:know|understand|find|figure|follow|remember|tell|believe|say|agree|mind|care|(?:get|make) (?:it|that)|"
    r"see (?:why|how|it))"
)
_ASKED = r"(?:asked|said|meant|mentioned|googled|searched|typed|clicked|pasted|tried|forgot|keep getting)"
_AT_WORK = r"(?:apps?|code|scripts?|tests?|builds?|programs?|functions?|query|server|page|screen|files?)"
_I = r"\b(?:I|we)"

_PATTERNS = (
    # Advice, and what others say.
    rf"{_I} (?:should|ought to|must|had better|might|may|could)\b|['’]d better\b",
    r"\b(?:was|been|were) (?:told|advised|recommended)\b|\btold (?:me|us)\b.*\bshould\b",
    r"\b(?:recommend|suggest|advise)(?:s|ed)?\b|\b(?:my|our) (?:advice|guess|question|point|idea|opinion)\b",
    rf"\b{_THINKS}\b(?! (?:that )?(?:I|my)\b)",
    # Moods, and what is asked for, not known or tried in the talk itself.
    rf"{_I}(?:['’]m| am|['’]re| are| was| were| feel| felt) {_ADVERBS}{_MOODS}\b(?! to\b)",
    rf"{_I}(?:['’]m| am) (?:a bit|a little|kind of|kinda) \w+",
    rf"{_I} need (?:help|ideas|advice|some|to (?:know|understand|check|ask|go|think))\b",
    rf"{_I} (?:don|didn|can|couldn)['’]t (?:really |even |quite )?{_OF_NOW}\b",
    rf"{_I} (?:have |['’]ve )?(?:{_ASKED}|get (?:an? |this |the )?(?:error|message))\b",
    rf"{_I}(?: would|['’]d) (?:like|love|want|appreciate) (?:to (?:know|hear)|you|some|your|it)\b",
    rf"{_I} (?:want to (?:know|ask)|was wondering|just wanted|wanted to (?:ask|say|know)|look forward)\b",
    rf"^(?:my|our) (?:\w+ )?{_AT_WORK}\b|\b(?:have|has|got|own|owns) nothing\b",
    r"\bsince (?:we|I) (?:last )?(?:talked|chatted|spoke|met)\b",
    # What is about nobody or something that was not named, and what is no whole statement.
    r"^(?:his|her|their|its|they|he|she|it|hopefully|gotta|got to|need to)\b",
    r"^(?:knowing|being|seeing|having|bringing|making|starting|relaxing|sharing|hearing|feeling)\b",
    r"^\S+(?: \S+){1,3} (?:it|them|him|her(?= (?:every|on|in|at|to|for|with|and)\b))\b(?! (?:is|was|has)\b)",
    r"^\W*\d+[.)]\s|\s\d\)\s",
    r"^(?:\S+ ){0,5}(?:it|that|this|them|there)[\s.!…]*$|\b(?:so|did|do|does|too|any|\w+n['’]t)[\s.!…]*$",
    r"^(?:I|we) (?:(?:always|never|often|still|just) )?\w+(?:n['’]t)?(?:,|[\s.!…]*$)",
)
_PASSING = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS), re.IGNORECASE)
_VAGUE = FUNCTION_WORDS | words_of(
    """dream dreams happen happens happened going keep keeps pushing push forward positive anything everything
    something nothing way thing things stuff vibes journey moment moments make makes made making get gets got gonna
    want wants wanna great good awesome amazing feel feeling feels best better real really lot lots give gives up
    try trying hard handle reach goal goals difference support matter matters help helps remember believe sure
    excited talked spoke some pretty cool can't don't i'm i'll we're we'll i've we've it's idea fun let dont nice
    means mean take challenge challenges staying stay ahead looking chasing chase won't living stop anyone come true
    ready everyone focus success chance for"""
)


def lasts(statement: str) -> bool:
    """Whether a statement is worth keeping beyond the talk in which it was said."""
    return not set(words(statement)) <= _VAGUE and _PASSING.search(statement) is None
