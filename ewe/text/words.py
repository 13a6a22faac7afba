"""Words and numbers as retrieval and comparison see them, and counts in words for people."""

import re
import unicodedata
from functools import lru_cache

# A number with its inner separators ("1,904", "3.5"), or letters and digits with inner apostrophes.
_WORD = re.compile(r"\d+(?:[.,]\d+)*(?![^\W_])|[^\W_]+(?:['’][^\W_]+)*")
_ASCII_WORD = re.compile(r"\d+(?:[.,]\d+)*(?![a-z0-9])|[a-z0-9]+(?:'[a-z0-9]+)*")  # the same in half of the time
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")

# Thai, Lao, Burmese, Khmer, kana, and Han characters.
_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")


def fold(text: str) -> str:
    """`text` case-folded, compatibility forms resolved and accents removed ("Čapek" and "capek" are the same)."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    for mark in filter(unicodedata.combining, set(decomposed)):
        decomposed = decomposed.replace(mark, "")
    return decomposed


def words(text: str) -> list[str]:
    """Folded words and numbers in order; "'s" is dropped, "1,904" becomes "1904", hyphenated words come apart.

    Then the pairs of neighbouring characters of scripts without spaces, as search engines index them.
    """
    folded = fold(text)
    if folded.isascii():
        return list(map(_normal, _ASCII_WORD.findall(folded)))
    stretches = _WITHOUT_SPACES.findall(folded)
    parts = [_normal(match) for match in _WORD.findall(_WITHOUT_SPACES.sub(" ", folded) if stretches else folded)]
    for stretch in stretches:
        parts += [stretch[place : place + 2] for place in range(max(1, len(stretch) - 1))]
    return parts


# The same few words make up most of a text, and a look-up costs a third of working them out again.
@lru_cache(maxsize=1 << 16)
def _normal(word: str) -> str:
    if word[0].isdigit():
        return _THOUSANDS.sub("", word)
    if word[-2:] in ("'s", "’s"):
        return word[:-2]
    return word.replace("’", "'")


def counted(number: int, noun: str, plural: str = "") -> str:
    """ "1 passage", "1,234 passages"; plural: where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
