"""Retrieval augmentation as the paper's baseline has it: passages in the prompt (ewe.txt 4.3)."""

from ewe.pipelines.steps import Ask, Retrieve, Steps


class RetrievalInPrompt:
    """Retrieves with the question, once, and writes under what was found. passages: how many (the paper: 10)."""

    composes = False

    def __init__(self, passages: int) -> None:
        self._passages = passages

    def run(self, question: str) -> Steps:
        """Two steps."""
        [found] = yield Retrieve((question,), self._passages)
        return Ask(passages=found)
