"""Whether a text states what evidence could settle, and if not, why."""

import re
from collections.abc import Sequence
from itertools import starmap

from ewe.text.check_result import LOOPS
from ewe.text.english import AUXILIARIES, DETERMINERS, FUNCTION_WORDS, is_irregular_past, stem, words_of
from ewe.verification.extraction import reasons
from ewe.verification.extraction.abstentions import abstains
from ewe.verification.extraction.repeats import loops
from ewe.verification.extraction.value_lines import is_table, is_value_line
from ewe.verification.extraction.verbs import FINITE, PLAIN_VERBS

EMPTY_NOUNS = words_of(
    """legacy impact influence inspiration talent skill skills ability abilities dedication passion contribution
    contributions work works career life achievements accomplishments reputation success generation generations
    place mark way ways world people figure figures fan fans audience audiences individual person man woman hearts
    heart memory history time times years day reader readers many millions lives others testament force name part
    role qualities quality things it"""
)
"""Nouns that alone give nothing to check."""
OPINIONS = words_of(
    """beautiful brave brilliant compelling captivating charismatic dedicated determined distinctive dynamic enduring
    engaging exceptional extraordinary fascinating gifted greatest icon iconic impressive incredible indelible
    inspiring invaluable kind lasting legend legendary memorable passionate powerful profound promising remarkable
    respected rich significant strong talented timeless tireless true unique unforgettable versatile vibrant
    visionary warm wonderful important influential notable great famous renowned celebrated prominent well-known
    successful outstanding immense tremendous great valuable beloved admired inspirational influential vital crucial
    essential integral interesting amazing best"""
)
OPINION_VERBS = words_of(
    "inspire remember miss celebrate admire love respect remain continue cherish resonate captivate"
)

_LEADS_ON = DETERMINERS | words_of("is are was were and or of to from by as at with than which who whose")
_SUBJECTS = DETERMINERS | words_of("he she it they")
_MIN_WORDS = 3
_MANY = 4  # Words that say something even behind a hedge.
_QUESTION = re.compile(r"[?？][)\]*_\s]*\Z|\A\s*[\"“].*[?？][\"”]\s*\Z", re.DOTALL)
_GREETING = re.compile(
    r"(?:hello|hi|hey|good (?:morning|afternoon|evening|day)|welcome|greetings|goodbye|bye|you['’]re"
    r" welcome|sure|thanks"
    r"|certainly|of course|absolutely|great question|no problem|congratulations)(?: there| again| everyone)?[,!.\s]*\Z"
    r"|(?:hello|hi|hey|dear)(?: there)?,.{0,40}[!.]\Z|(?:many )?thanks (?:for|so|very|again)\b|I hope"
    r" (?:this|that) helps"
    r"|(?:that['’]s |what )?an? (?:great|good|excellent|interesting) question\b",
    re.IGNORECASE,
)
_THANKS = re.compile(r"\b[Tt]hank you(?! [A-Z])(?=$|[\s,.!])|\bhope this helps\b", re.MULTILINE)
_OFFER = re.compile(
    r"\b(?:let me know|feel free|i can (?:help|also|provide|tell|give|try)|i(?:['’]d| would) be (?:happy"
    r"|glad) to|happy to"
    r" help|if you(?:['’]d like| would like| have (?:any|more|other|further)| need| want| wish)|you have"
    r" (?:any|more|questions))\b",
    re.IGNORECASE,
)
_TO_THE_READER = re.compile(
    r"\b(?:(?:be|make) sure (?:to|you)"
    r"|you(?:['’]\w+)?(?: may| might| would| are| also| be)* (?:should|want|wish|like|interested|looking))\b",
    re.IGNORECASE,
)
_META = re.compile(
    r"\b(?:as an ai|language model|my (?:knowledge|training)|cut-?off|the above"
    r"|this (?:answer|article|essay|list|summary)|here (?:is|are) (?:a|an|the|some)\b"
    r"|in this (?:article|essay|answer|section|response))\b",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"(?:please\s|(?:do not|don['’]t|never|always)\s(?=[a-z])(?!(?:mind|the|a|an|was|were|had|has|before|again)\b)"
    r"|(?:add|mix|stir|heat|visit|try|check|consult|consider|remember|ensure|avoid|use|click|type|press"
    r"|choose|select|keep"
    r"|contact|follow|see|look|read|make|take|go|start|begin|compare|think|imagine|install|download|run"
    r"|enter|refer|verify"
    r"|note|recall|let|be|pour|bake|cook|cut|place|put|turn|wash|write|ask|learn|find|explore|enjoy|stay|stop|wait)"
    r"\s(?:the|a|an|your|to|that|on|in|at|with|for|up|out|off|it|them|some|any|this|these|all|more|into"
    r"|from|about|sure|it's"
    r"|careful|aware|\d+)\b)",
    re.IGNORECASE,
)
_HAS_SUBJECT = re.compile(r"\s(?:is|was|are|were|has|had|have)\s")
_SUBORDINATE = re.compile(
    r",|\b(?:that|if|when|because|which|where|who|how|what|whether|while|before|after|until|as)\b"
)
_OWN_VIEW = re.compile(
    r"\b(?:in my (?:opinion|view)|i (?:personally )?(?:think|believe|feel|guess|suppose|find))\b", re.IGNORECASE
)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ENDED = re.compile(r"[.!…][\"')\]”’*_\s]*\Z")
_HEADING = re.compile(r"\s*#{1,6}\s|[^.!?]*:[*_\s]*\Z")
_HEDGES = words_of("possible possibly unclear unknown uncertain perhaps presumably likely")
_SMALL = FUNCTION_WORDS | words_of("also well way such as including known considered regarded became become has had")
_VAGUE = _SMALL | OPINIONS | EMPTY_NOUNS
_OPINION_STEMS = frozenset(stem(word) for word in OPINION_VERBS)
_SPEAKER = re.compile(r"(?:^|\s)I(?=['’]| [a-z])|(?:^(?:We|My|Our)|\s(?:me|my))(?=['’,.;]| [a-z])")
_NUMBERED = re.compile(r"\b([A-Z]\w+|grade|class|type|part|phase|volume|chapter|stage|level|category) I\b")


def why_no_statement(sentence: str, statement: str) -> str:
    """Why a sentence states nothing that evidence could settle; empty if it does.

    statement: the sentence without what stands in front of it (`lead_of`) and without emphasis.
    """
    unquoted = _QUOTED.sub(" ", statement)
    plain = [match[0] for match in _WORD.finditer(unquoted)]
    low = [word.lower().replace("’", "'") for word in plain]
    reason = _address(statement, unquoted)
    if reason:
        return reason
    if loops(statement):
        return LOOPS
    if low and low[-1] in _LEADS_ON and not _ENDED.search(sentence):
        return reasons.CUT_OFF
    if is_table(sentence):
        return reasons.TABLE
    if _HEADING.match(sentence) or (statement.strip() and not (_is_clause(statement, low) or is_value_line(statement))):
        return reasons.HEADING
    if len(_WORD.findall(statement)) < _MIN_WORDS:
        return reasons.NO_STATEMENT
    if any(word[0].isdigit() or word[0].isupper() for word in plain[1:]) or _QUOTED.search(statement):
        return ""
    return _vagueness(low)


def _address(statement: str, unquoted: str) -> str:
    """What a text says to its reader, or of its writer or itself, in place of the world; empty if it does not."""
    if _QUESTION.search(statement):
        return reasons.QUESTION
    if abstains(unquoted):
        return reasons.ABSTENTION
    if _GREETING.match(statement) or _THANKS.search(unquoted):
        return reasons.GREETING
    if _OFFER.search(statement):
        return reasons.OFFER
    if _TO_THE_READER.search(statement) or _is_imperative(statement):
        return reasons.ADVICE
    if _OWN_VIEW.search(unquoted) and _has_a_speaker(unquoted):
        return reasons.OPINION
    return reasons.WRITER if _META.search(statement) or _has_a_speaker(unquoted) else ""


def _is_imperative(statement: str) -> bool:
    """Whether a text tells its reader to do something; "Open the Door is a song" has a verb and a subject."""
    match = _IMPERATIVE.match(statement)
    if match is None:
        return False
    verb = _HAS_SUBJECT.search(statement)
    return verb is None or _SUBORDINATE.search(statement[: verb.start()]) is not None


def _vagueness(low: Sequence[str]) -> str:
    """Why words without names and numbers give nothing to check: too few of them say something."""
    content_words = [
        word for word in low if word not in _VAGUE and stem(word) not in _OPINION_STEMS and not word.endswith("ly")
    ]
    if len(content_words) >= (2 if _HEDGES.isdisjoint(low) else _MANY):
        return ""
    praises = any(word in OPINIONS or stem(word) in _OPINION_STEMS for word in low)
    return reasons.OPINION if praises else reasons.NO_STATEMENT


def _has_a_speaker(text: str) -> bool:
    """Whether a text speaks of its writer; the I of "Elizabeth I" does not, that of "Then I" does."""
    return _SPEAKER.search(_NUMBERED.sub(_without_number, text)) is not None


def _without_number(match: re.Match[str]) -> str:
    return match[0] if match[1].lower() in FUNCTION_WORDS else match[1]


def _is_clause(text: str, low: Sequence[str]) -> bool:
    """Whether a text is more than a heading or a scrap: it ends as sentences do, or has what may be a verb."""
    if _ENDED.search(text) or any(
        stem(word) in AUXILIARIES or word.endswith("ed") or is_irregular_past(word) for word in low
    ):
        return True
    return bool(low) and low[0] in _SUBJECTS and any(starmap(_is_present, zip(low, low[1:], low[2:], strict=False)))


def _is_present(before: str, word: str, following: str) -> bool:
    """Whether a word is a verb in the present tense, as in "The library holds 62,000 books"."""
    has_object = following[:1].isdigit() or following in DETERMINERS
    return before != "to" and (word in PLAIN_VERBS or (word in FINITE and has_object))
