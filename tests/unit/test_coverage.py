"""How much of a sentence one sentence of the passages says."""

from __future__ import annotations

import pytest

from ewe.text.coverage import coverage
from ewe.types import Passage

FORT = Passage("fort", "The fort had no walls. It was built on the prairie in 1842 by soldiers.", title="Fort Scott")
MILL = Passage("mill", "A mill stood two miles from the river.", title="Mill")


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("The fort was built by soldiers.", 1.0),
        ("Fort Scott was built in 1842 by soldiers on the prairie.", 1.0),  # its title counts
        ("The walls were built by soldiers.", 2 / 3),  # two sentences of one passage
        ("The mill was built by soldiers.", 2 / 3),  # of two passages
        ("Generals rode elephants.", 0.0),
        ("It was.", 1.0),  # says nothing that could be looked for
    ],
)
def test_one_sentence_of_a_passage_must_have_the_words(text: str, share: float) -> None:
    assert coverage(text, [FORT, MILL]) == pytest.approx(share)


def test_without_passages_nothing_is_covered() -> None:
    assert coverage("The fort had walls.", []) == 0.0
