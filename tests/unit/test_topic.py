"""What passages are about, as far as later looks of an answer need it."""

import pytest

from ewe.text.topic import is_about
from ewe.types import Passage

STORM = Passage("storm", "Beatriz brushed the western coast of Mexico on 21 June.", title="Hurricane Beatriz (2011)")
EPISODE = Passage("episode", "It was first shown on the Fox network on 30 October 1998.", title="Thirteen Years Later")


@pytest.mark.parametrize(
    ("question", "written", "is_one"),
    [
        ("Give me a timeline of Beatriz with dates.", "", False),
        ("Give me a timeline of Beatriz with dates.", "The Fox network showed Beatriz on 30 October 1998.", False),
        ("Tell me about Beatriz.", "The crew watched Thirteen Years Later.", True),  # it leads there
        ("Tell me about Thirteen Years Later.", "", True),
        ("Summarize the storm.", "", True),  # no name is asked about
        ("how was the show received", "", True),
        ("", "", True),
    ],
)
def test_another_subject_is_one_only_where_the_text_names_it(question: str, written: str, is_one: bool) -> None:
    assert is_about(EPISODE, question, written) is is_one


def test_half_of_the_names_are_enough() -> None:
    assert is_about(STORM, "Tell me about Hurricane Beatriz.", "")
    assert is_about(STORM, "What did Beatriz and Arlene do?", "")
    assert not is_about(STORM, "Compare Arlene, Bret and Cindy with Beatriz.", "")
