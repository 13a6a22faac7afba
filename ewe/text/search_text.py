"""What a request is about, without the words that only ask for it."""

from __future__ import annotations

import re

from ewe.text.english import DETERMINERS, FUNCTION_WORDS, PREPOSITIONS, PRONOUNS, words_of
from ewe.text.words import words

_POLITE = r"(?:(?:please|hi|hello|hey|so|now|ok|okay)\b[,!]?\s+)*"
_LENGTH = r"(?:in\s+(?:\w+\s+){1,3}(?:sentences?|words?|paragraphs?|lines?)\s*[,:]\s*)?"
_MAY = (
    r"(?:(?:can|could|would|will)\s+you\s+(?:please\s+)?|i\s+(?:want|would\s+like|need)\s+(?:you\s+)?to\s+|"
    r"i'd\s+like\s+(?:you\s+)?to\s+|let\s+us\s+|let's\s+)?"
)
_TEXTS = (
    r"overview|summary|article|paragraph|description|introduction|essay|text|biography|account|report|story|history|"
    r"timeline|chronology|outline|profile|sketch|bio|rundown|(?:brief|short)\s+life|"
    r"information|info|facts?|details?|sentences?|words|lines|everything|something|more|bit|lot|all"
)
_TEXT = rf"(?:\s+(?:(?!how|what|why|who|when|where|about|of|on)[\w-]+\s+){{0,3}}?(?:{_TEXTS}))?"
_VERB = r"(?:tell|give|write|explain|describe|summari[sz]e|introduce|talk|read|hear|find\s+out)"
_TELL = rf"{_MAY}{_VERB}(?:\s+(?:to\s+)?(?:me|us))?{_TEXT}"
_KNOW = (
    r"(?:what\s+(?:do|can|could|would)\s+(?:you|i)|what\s+is\s+there\s+to|i\s+want\s+to|i(?:'d|\s+would)\s+like\s+to|"
    r"all\s+(?:that\s+)?you)"
    r"\s+(?:know|tell|say)(?:\s+(?:me|us))?"
)
_ASKING = re.compile(
    rf"{_POLITE}{_LENGTH}{_POLITE}(?:(?:{_TELL}|{_KNOW})\s+(?:about|of|on|regarding|concerning)|{_TELL}(?<=introduction)\s+to)\s+",
    re.IGNORECASE,
)


def subject_of(request: str) -> str:
    """The request without a beginning that only asks, like "Tell me about"; the whole of it if there is none.

    In an encyclopedia "tell" and "me" are rare words: in a search by words they would weigh as much as a name. Of a
    request of two lines, a topic and what is asked of it, the last begins so.
    """
    topic, line, last = request.strip().rpartition("\n")
    match = _ASKING.match(last)
    subject = last[match.end() :].rstrip(" .!?") if match else ""
    return topic + line + subject if subject else request


# Fewer than the function words: "first", "born" or "founded" may be what a question is about.
IN_ANY_QUESTION = (
    PRONOUNS
    | PREPOSITIONS
    | DETERMINERS
    | words_of(
        """i you we me us and or but if than when where which while what why how because am is are was were been being
        be have has had did do does will would can could may might shall should must"""
    )
)
"""Words that say little of what is looked for; among few texts they are as rare as names, and would weigh as much."""

_TALK = words_of(
    """hi hello hey hiya greetings thanks thank thx bye goodbye good morning afternoon evening night day nice great cool
    fine welcome sorry wow lol haha say speak talk name called help assist joke continue go stop repeat wait start
    doing feel feeling think like love know understand got ask asked said told
    you your yours i my mine i'm you're i'll"""
)
_BESIDE = FUNCTION_WORDS | words_of("what's how's who's don't")
_OTHERS = words_of("it he she they him her them his its their theirs that this these those there")


def is_small_talk(request: str) -> bool:
    """Whether a request names nothing that could be looked up: a greeting, thanks, "What is my name?", "Go on".

    "Where was she born?" is none: it may follow what was said of someone.
    """
    tokens = set(words(request))
    return bool(tokens & _TALK) and tokens <= _TALK | _BESIDE and not tokens & _OTHERS
