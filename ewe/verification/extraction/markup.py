"""What stands around a claim and is no part of it: list marks, speakers' labels, titles, connectives, emphasis."""

import re
from dataclasses import dataclass

from ewe.text.english import FUNCTION_WORDS, words_of
from ewe.verification.extraction.verbs import has_finite_verb

_MARKER = re.compile(r"\s*(?:(?:[-*•–#>]+|\(?\d{1,3}[.)]|\([a-z]\)|[a-z]\))\s+)+")
_LABEL = re.compile(
    r"(?:\*\*|__)?(?:assistant|answer|final answer|short answer|a|ai|bot|response|user|human|summary|conclusion|fact)"
    r"(?:\*\*|__)?:(?:\*\*|__)?\s+",
    re.IGNORECASE,
)
_TITLE = re.compile(r"(?:\*\*|__)?([^:.?!;\n*]{2,60}?)(?:\*\*|__)?(?::|\s[-–—])(?:\*\*|__)?\s+(?=\S)")
_SOURCES = r"(?:passages?|texts?|context|articles?|documents?|sources?|excerpts?|evidence|information|search results?)"
_GIVEN = r"(?: (?:provided|given|above))?"
_THE = r"(?:the |these |this )?(?:(?:provided|given|above|first|second|third|retrieved) )*"
_ACCORDING = (
    r"(?:according to|based on|as (?:stated|mentioned|noted|described) in|from) "
    rf"{_THE}{_SOURCES}{_GIVEN}(?: ?\[?\d+\]?)?{_GIVEN}(?: (?:in|from|by) {_THE}{_SOURCES}{_GIVEN})?"
)
_CONNECTIVE = re.compile(
    r"(?:however|in conclusion|in summary|to summari[sz]e|to conclude|therefore|moreover|furthermore|additionally"
    r"|in addition|overall|finally|also|thus|hence|consequently|nevertheless|nonetheless|for example|for instance"
    r"|in fact|indeed|as a result|on the other hand|in contrast|by contrast|conversely|similarly|likewise|meanwhile"
    r"|in short|in other words|notably|interestingly|importantly|specifically|yes|no|sure|certainly|of course|well"
    r"|so|besides|lastly|unfortunately|as (?:mentioned|noted) (?:above|earlier)|to answer your question"
    rf"|{_ACCORDING}),\s+",
    re.IGNORECASE,
)
_IMPORTANT = r"it (?:is|should be|must be)(?: also)? (?:important |worth |interesting |essential )?"
_NOTING = r"(?:to note|to mention|to remember|noted|noting|mentioning)(?: here)?"
_REMARK = re.compile(rf"(?:{_IMPORTANT}{_NOTING}|(?:please )?note|keep in mind) that,?\s+", re.IGNORECASE)
_JOINED = re.compile(r"(?:And|But|So|Yet)\s+(?=(?:he|she|it|they|the|a|an|his|her|its|their|in)\s)")
_LOW = re.compile(r"[^\W\d_]+")
_EMPHASIS = re.compile(
    r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*]*[^\s*])\1(?![\w*])|(?<!\w)(_{1,2})(?=[^\s_])(.*?[^\s_])\3(?!\w)"
)
_LINK = re.compile(r"\[([^\[\]]+)\]\([^()\s]+\)")
_CITATION = re.compile(r"\s?\[\d{1,3}(?:\s?[,–-]\s?\d{1,3})*\]")
_MARK = re.compile(r"(?<![\w*])\*{2,3}(?=\S)|(?<=\S)\*{2,3}(?![\w*])|`")
_MOST_TITLE_WORDS = 8
_SUBJECTS = words_of("he she it they his her its their the a an this these")


@dataclass(frozen=True, slots=True)
class Lead:
    """end: the code point at which the claim begins; title: what stands in front of it as its title."""

    end: int
    title: str = ""


def lead_of(sentence: str) -> Lead:
    """What stands in front of the claim of a sentence; each part may follow another."""
    end, title = 0, ""
    marker = _MARKER.match(sentence)
    end = marker.end() if marker else len(sentence) - len(sentence.lstrip())
    while True:
        match = _LABEL.match(sentence, end) or _CONNECTIVE.match(sentence, end)
        match = match or _REMARK.match(sentence, end) or _JOINED.match(sentence, end)
        if match is None and not title:
            match = _title_at(sentence, end)
            title = plain(match[1]).strip() if match else ""
        if match is None or match.end() >= len(sentence.rstrip()):
            return Lead(end, title)
        end = match.end()


def _title_at(sentence: str, start: int) -> re.Match[str] | None:
    """A title in front of a statement that has its own subject ("Paris: It is ...")."""
    match = _TITLE.match(sentence, start)
    if match is None or not match[1].strip() or has_finite_verb(match[1]):
        return None
    words = match[1].split()
    small = [word for word in words if word[0].islower() and word.lower() not in FUNCTION_WORDS]
    opens_small = words[0].lower() in FUNCTION_WORDS - {"the", "a", "an"}
    is_bold = sentence.startswith(("**", "__"), start)  # without it "Alien: Covenant is ..." may be a name
    if len(words) > _MOST_TITLE_WORDS or not words[0][0].isupper() or opens_small or (small and not is_bold):
        return None
    rest = sentence[match.end() :]
    first = _LOW.search(rest)
    has_subject = first is not None and (
        first[0].lower() in _SUBJECTS or (is_bold and rest[0].isupper() and _is_subject(rest))
    )
    return match if has_subject and has_finite_verb(rest) else None


def _is_subject(text: str) -> bool:
    """Whether a capitalised beginning is a subject: a name, followed by its verb within a few words."""
    return has_finite_verb(" ".join(text.split()[1:6])) and text.split()[0].lower() not in FUNCTION_WORDS


def plain(text: str) -> str:
    """A text without Markdown's emphasis and links, and without the numbers of citations."""
    text = _CITATION.sub("", _LINK.sub(r"\1", text))
    for _ in range(3):  # bold in italics
        text = _EMPHASIS.sub(lambda match: match[2] or match[4], text)
    return _MARK.sub("", text)
