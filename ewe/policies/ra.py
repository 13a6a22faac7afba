"""Retrieval augmentation as the paper's baseline has it: passages in the prompt (Chen et al. 2024, 4.3)."""

from ewe.config import PipelineConfig
from ewe.engine.effects import policy
from ewe.engine.policy_answer import Answer
from ewe.engine.side_texts import Ask, Asking, Search
from ewe.text.search_text import is_small_talk, subject_of


@policy(asks=True)
def ra(answer: Answer, settings: PipelineConfig) -> Asking:
    """Retrieves with the question, once, and writes under what was found; not for small talk, which that distracts."""
    if is_small_talk(answer.question):
        return Ask()
    [passages] = yield Search((subject_of(answer.question),), settings.passages)
    return Ask(passages=passages)
