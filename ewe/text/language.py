"""Whether a text is plainly in another language than English."""

import re
import unicodedata
from collections.abc import Iterator

from ewe.text.english import words_of

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_FEWEST_WORDS = 5  # With fewer a Latin text may be a name or a title.
_FEWEST_LETTERS = 12  # The same for letters of another script, some of which write no spaces.
_ENGLISH = words_of(
    """the of and with by from to that which he she it his her its their they were has had been for at as this are be or
    not but have who also after when into more than between about"""
)
_FOREIGN = words_of(
    """der das und ist ein eine einer eines einem einen im dem den des nicht mit von zu zum zur auf für auch wurde sich
    ich sie er es wir als nach bei aus über oder aber sind
    le les une et est dans du des pour qui que par avec sur pas il elle sont été au aux ce cette l'une nous vous où
    el los las y en una es por con su fue del al lo como más se para pero son era muy
    il gli della delle dei nel nella è di che per una sono stato anche più con dal alla
    o os um uma do dos da na no não em foi ao pelo pela mais com
    de het een van op te voor met zijn niet ook aan bij werd naar heeft deze
    och att det som på är av till från ett inte var har og på af til fra ikke er jeg
    w z na się jest nie do był była i że przez oraz ve bir bu için ile olarak"""
) - words_of("no do i on so me an in")
"""Function words that no English text has but in names and titles."""


def is_english(text: str) -> bool:
    """Whether a text is English, as far as its script and its function words tell; what is too short to say is."""
    letters = [letter for letter in text if letter.isalpha()]
    foreign = sum(not _is_latin(letter) for letter in letters)
    if foreign >= _FEWEST_LETTERS and foreign > len(letters) / 2:
        return False
    words = [match[0].replace("’", "'") for match in _WORD.finditer(text)]
    if len(words) < _FEWEST_WORDS:
        return True
    english = sum(word.lower() in _ENGLISH for word in words)
    num_foreign = sum(1 for _ in _foreign_words(words))
    return num_foreign < 2 or num_foreign < 2 * english + 1


def _is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith(("LATIN", "MODIFIER"))


def _foreign_words(words: list[str]) -> Iterator[str]:
    """The small foreign function words, but for those inside names ("Juan de la Cruz")."""
    for at, word in enumerate(words):
        if word in _FOREIGN or (at == 0 and word.lower() in _FOREIGN):
            before = next((other for other in reversed(words[:at]) if other not in _FOREIGN), "")
            after = next((other for other in words[at + 1 :] if other not in _FOREIGN), "")
            if not (before[:1].isupper() and after[:1].isupper()):
                yield word
