"""A sentence with its quotations and brackets hidden, so that nothing inside them is cut."""

import re

_QUOTED = re.compile(r"\"[^\"]*\"|“[^“”]*”|«[^«»]*»|(?<!\w)‘[^‘’]*’(?!\w)|(?<!\w)'[^']{2,80}'(?!\w)")
_INNER_BRACKET = re.compile(r"\([^()\[\]]*\)|\[[^()\[\]]*\]")
_LEFT_OPEN = re.compile(r"[()\[\]\"“”«»]")
_FILLER = "_"


def masked(text: str) -> str | None:
    """The text with quotations and brackets replaced by as many underscores; None if one of them is not closed."""
    text = _QUOTED.sub(_hide, text)
    while True:
        hidden = _INNER_BRACKET.sub(_hide, text)
        if hidden == text:
            return None if _LEFT_OPEN.search(text) else text
        text = hidden


def _hide(match: re.Match[str]) -> str:
    return _FILLER * len(match[0])
