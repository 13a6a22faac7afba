"""Texts that speak to whatever reads them instead of about something.

Owns: the tell-tale wordings. Knows nobody. A help for readers and a caution before language models; no proof of
anything: a text may steer in words that are not here.
"""

from __future__ import annotations

import re

_EARLIER = r"(?:the\s+|all\s+|any\s+|your\s+|these\s+|of\s+|my\s+)*(?:above|previous|prior|earlier|preceding|foregoing)"
_ORDERS = r"(?:instructions?|prompts?|rules|directions|guidelines|directives)"
_PATTERNS = (
    rf"\b(?:ignore|disregard|forget|override|bypass)\s+{_EARLIER}\b",
    rf"\b(?:ignore|disregard|forget|override)\s+(?:\w+\s+){{0,3}}{_ORDERS}\b",
    rf"\b(?:new|updated|revised|real|following)\s+(?:system\s+)?{_ORDERS}\s*:",
    r"\b(?:as|you\s+are)\s+(?:an?\s+)?(?:ai|language\s+model|assistant|chat\s?bot|fact[\s-]?checker|judge|verifier)\b"
    r"[^.]{0,40}\byou\b",
    r"\b(?:answer|reply|respond|output|return|print|say)\s+(?:only\s+|always\s+|with\s+|that\s+)*[\"'“:]?\s*(?:the\s+"
    r"(?:claim|verdict|answer)\s+is\s+)?(?:supported|contradicted|refuted|inconclusive|verdict|entailment)\b",
    r"\b(?:verdict|label)\s*:\s*(?:supported|contradicted|refuted|inconclusive)\b",
    r"<\|[^|>]{1,40}\|>|\[/?INST\]|<</?SYS>>|</?(?:s|system|assistant|user)>|^\s*(?:system|assistant|user)\s*:",
)
_ADDRESS = re.compile("|".join(_PATTERNS), re.IGNORECASE | re.MULTILINE)


def addresses_the_reader(text: str) -> bool:
    """Whether the text gives orders to its reader, names a verdict to give, or spells control tokens of a chat."""
    return _ADDRESS.search(text) is not None
