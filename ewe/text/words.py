"""Words and numbers as retrieval and comparison see them, and counts in words for people."""

import re
import unicodedata
from functools import lru_cache

# A number with its inner separators ("1,904", "3.5"), or letters and digits with inner apostrophes.
_WORD = re.compile(r"\d+(?:[.,]\d+)*(?![^\W_])|[^\W_]+(?:['’][^\W_]+)*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def fold(text: str) -> str:
    """`text` case-folded, compatibility forms resolved and accents removed ("Čapek" and "capek" are the same)."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def words(text: str) -> list[str]:
    """Folded words and numbers in order; "'s" is dropped, "1,904" becomes "1904", hyphenated words come apart."""
    return [_normal(match) for match in _WORD.findall(fold(text))]


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
