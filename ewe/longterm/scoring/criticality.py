"""How much depends on a right answer to a query."""

from __future__ import annotations

import re

from ewe.text.words import fold

# Per group: how much one sign of it says, and stems of English words; a stem may stop inside a word where it ends in -.
_STAKES: tuple[tuple[float, str], ...] = (
    (
        0.6,
        "dose dosage mg milligram- overdos- medicin- medicat- drug- prescri- symptom- diagnos- treatment- surg- "
        "patient- vaccin- allerg- pregnan- insulin antibiotic- poison- toxic- suicid- seizure- bleed- chest-pain "
        "heart-attack stroke emergency doctor hospital therap-",
    ),
    (
        0.5,
        "lawsuit- legal- illegal- law laws court- contract- liab- visa- immigra- custody testament attorney- lawyer- "
        "sued statut- regulation- complian- gdpr",
    ),
    (
        0.5,
        "invest- mortgage- loan- tax taxes taxed pension- insur- stock stocks bankrupt- salary- transfer-money iban "
        "debt- credit-card budget- invoice-",
    ),
    (
        0.5,
        "safe- danger- hazard- voltage- explos- flammab- evacuat- fire-alarm brake- child-seat security- password- "
        "vulnerab- encrypt- firewall- production-database delete-",
    ),
    (0.25, "deadline- official- certif- evidence- statistic- exact- precise- verify verified guarantee- confirm-"),
)
_DECISION = (
    0.35,
    re.compile(r"\b(should (i|we|he|she|they)|can (i|we) (take|eat|give|mix|use)|is it (safe|legal|ok|okay))\b"),
)
_CASUAL = re.compile(
    r"\b(joke|poem|haiku|story|limerick|brainstorm|fun|favou?rite|small talk|roleplay|pretend|hello|hi|thanks)\b"
)
_CASUAL_FACTOR = 0.4


def _pattern(stems: str) -> re.Pattern[str]:
    parts = []
    for stem in stems.split():
        open_end = stem.endswith("-")
        words = re.escape(stem.rstrip("-")).replace(r"\-", r"\s+")
        parts.append(words + (r"\w*" if open_end else ""))
    return re.compile(rf"\b(?:{'|'.join(parts)})\b")


_SIGNS = (*((weight, _pattern(stems)) for weight, stems in _STAKES), _DECISION)


def estimate_criticality(query: str) -> float:
    """criticality(q) in [0, 1] from the words of an English query (verimem-a.txt, 2.4, which leaves it open).

    Each group of signs (health, law, money, safety, words that ask for exactness, a decision that hangs on it) counts
    with what it says, a second sign of a group with half of that; groups are combined as 1 - prod(1 - w). Words of play
    scale it down. A query without any sign has 0.
    """
    text = fold(query)
    spared = 1.0
    for weight, pattern in _SIGNS:
        found = len({match.group(0) for match in pattern.finditer(text)})
        if found:
            spared *= 1.0 - weight
        if found > 1:
            spared *= 1.0 - weight / 2
    return (1.0 - spared) * (_CASUAL_FACTOR if _CASUAL.search(text) else 1.0)
