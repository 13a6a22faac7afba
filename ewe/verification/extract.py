"""All values of a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ewe.verification.dates import find_date
from ewe.verification.mentions import Mention
from ewe.verification.names import find_name, quoted_names
from ewe.verification.quantities import find_number
from ewe.verification.tokens import Token


def find_mentions(sentence: str, tokens: Sequence[Token]) -> list[Mention]:
    """All values of a sentence, in order, without overlaps: quoted titles, dates, numbers, then names."""
    mentions = quoted_names(sentence, tokens)
    taken = {index for mention in mentions for index in range(mention.first, mention.last)}
    index = 0
    finders: tuple[Callable[[Sequence[Token], int], Mention | None], ...] = (find_date, find_number, find_name)
    while index < len(tokens):
        found = None if index in taken else next(filter(None, (find(tokens, index) for find in finders)), None)
        if found is not None and taken.isdisjoint(range(found.first, found.last)):
            mentions.append(found)
            index = found.last
        else:
            index += 1
    return sorted(mentions, key=lambda mention: mention.first)
