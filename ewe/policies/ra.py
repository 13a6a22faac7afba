"""Retrieval augmentation as the paper's baseline has it: passages in the prompt (ewe.txt 4.3)."""

from ewe.policies.steps import Ask, Retrieve, Steps
from ewe.text.search_text import is_small_talk, subject_of


class RetrievalInPrompt:
    """Retrieves with the question, once, and writes under what was found. passages: how many (the paper: 10)."""

    composes = False

    def __init__(self, passages: int) -> None:
        self._passages = passages

    def run(self, question: str) -> Steps:
        """Two steps; one for small talk, which passages only distract."""
        if is_small_talk(question):
            return Ask()
        [found] = yield Retrieve((subject_of(question),), self._passages)
        return Ask(passages=found)
