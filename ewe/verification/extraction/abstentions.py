"""Sentences that say that nothing is said: an answer that abstains states nothing about the world."""

import re

_SOURCES = (
    r"(?:passages?|texts?|contexts?|documents?|sources?|articles?|excerpts?|snippets?|search results?|information"
    r"|evidence|references?|materials?|data|paragraphs?|content)"
)
_GIVEN = r"(?:provided|given|above|available|supplied|retrieved|following|first|second|third|cited|present)"
_THE_SOURCES = (
    rf"(?:(?:the|these|those|this|that|any|all|none|neither|no|either|your|both|each)(?: of)?(?: the| these| those)? )?"
    rf"(?:{_GIVEN} )*{_SOURCES}(?: (?:that )?(?:is |are |was |were )?(?:{_GIVEN}|I (?:have|was given)|here))?(?: \d+)?"
)
_TELL = (
    r"(?:say|tell|mention|state|specify|provide|contain|include|give|discuss|indicate|reveal|describe|address|answer"
    r"|explain|offer|cover|refer|have|list|name|show|clarify|note|report|identify|confirm)"
)
_NOT = r"(?:do|does|did|is|are|was|were|has|have)(?: not|n['’]t)"
_PATTERNS = (
    rf"^(?:in |from )?{_THE_SOURCES},? (?:alone )?(?:also |simply |unfortunately |explicitly )*{_NOT}"
    rf" (?:\w+ly |even |in fact )*(?:{_TELL}|clear|enough|sufficient|said|told|given)\b",
    rf"^(?:none|neither|nothing|no)\b[^.]{{0,20}}?\b{_SOURCES}(?: \w+ly)* (?:{_TELL}s?|{_TELL}ed|said|says"
    rf"|told|gave)\b",
    rf"^nothing (?:in {_THE_SOURCES} )?(?:(?:is|was) (?:\w+ )?(?:said|mentioned|stated)|says|mentions|indicates)\b",
    rf"^{_THE_SOURCES} (?:has|have|contains?|provides?|gives?|makes?|includes?|offers?) (?:no|insufficient|little)\b",
    rf"^(?:in {_THE_SOURCES},? )?there (?:is|are|was|were|['’]s)(?: currently| simply)? (?:no|not enough|not any"
    r"|insufficient) (?:\w+ )?(?:information|mention|details?)\b",
    rf"^there (?:is|are|was|were)(?: not|n['’]t)? (?:no |any |enough )?.{{1,60}} in (?:the|this|these) "
    rf"(?:{_GIVEN} )*(?:passages?|texts?|contexts?|documents?|excerpts?|snippets?|search results?)\b",
    r"^no (?:\w+ )?(?:information|mention|details?|answer|data)\b.{0,60}(?:given|provided|available"
    r"|found|made|known)\b",
    rf"^(?:it|this|that|the answer|the question|.{{3,80}}) (?:is|was|are|were|can|could)(?: not|n['’]t|not)(?: be)?"
    rf"(?: \w+ly)? (?:clear|known|stated|mentioned|specified|given|provided|found|said|answered|determined|inferred"
    rf"|confirmed|verified|discussed|addressed|included)(?: \w+)? (?:from|in|by|with|within|based on|using) "
    rf"{_THE_SOURCES}",
    r"^(?:this|that|the|your) (?:question|answer) (?:cannot|can['’]t|can not|could not|is not|isn['’]t)\b",
    rf"^it (?:is|['’]s|was) (?:not possible|impossible|unclear|unknown|hard|difficult)\b.{{0,80}}\b{_THE_SOURCES}\W*$",
    r"^it (?:is|['’]s) (?:not possible|impossible) to (?:say|tell|determine|know|answer|confirm|verify)\b",
    r"\bI(?: really| honestly| am afraid I|['’]m afraid I)? ?(?:do not|don['’]t|did not|didn['’]t|cannot|can['’]t|could"
    r" not|couldn['’]t|am unable|['’]m unable|was unable|am not able|['’]m not able|was not able)(?: to)?"
    r" (?:\w+ly )?(?:know|find|answer|determine|confirm|verify|say|tell|have|provide|see|locate|recall"
    r"|remember|access)\b",
    r"\bI(?: am|['’]m) (?:not (?:\w+ly )?(?:sure|certain|aware|familiar)|unsure|uncertain|unaware)\b",
    r"\bI have (?:no|not enough|insufficient) (?:\w+ )?(?:information|idea|knowledge|data|details?)\b",
    r"^(?:we|one) (?:do not|don['’]t|cannot|can['’]t) (?:know|say|tell|determine)(?: \w+)?(?: from .*)?\W*$",
    r"^(?:unknown|not (?:mentioned|stated|given|specified|known|provided|available|enough information)"
    r"|n/a|none given)\b"
    r"[^,]{0,60}$",
)
_ABSTAINS = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS), re.IGNORECASE)
_LEAD = re.compile(
    r"(?:sorry|unfortunately|i apologi[sz]e|i['’]m sorry|i am sorry|regrettably)[,.:]?(?: but)?\s+", re.IGNORECASE
)


def abstains(text: str) -> bool:
    """Whether a text says that its sources do not tell, or that its writer does not know."""
    lead = _LEAD.match(text)
    return _ABSTAINS.search(text[lead.end() if lead else 0 :]) is not None
