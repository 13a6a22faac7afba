"""Words that alone give nothing to check."""

from __future__ import annotations

from ewe.verification.wordlists import words_of

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
