"""Models that reason before they answer: the marks around that, and prompts that leave it out."""

from dataclasses import dataclass
from typing import Any

# Qwen, DeepSeek, SmolLM, GLM, Phi; Magistral; Seed-OSS
_MARKS = (("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<seed:think>", "</seed:think>"))


@dataclass(frozen=True, slots=True)
class ReasoningMarks:
    """The tokens that stand before and behind what a model reasons, as texts and ids."""

    begin: str
    end: str
    begin_id: int
    end_id: int

    def is_open(self, prompt: str) -> bool:
        """Whether a prompt ends where the model is to begin to reason."""
        return prompt.rstrip().endswith(self.begin)

    def is_unclosed(self, text: str) -> bool:
        """Whether a text has begun to reason, and not ended that."""
        return text.rfind(self.begin) > text.rfind(self.end)

    def closed(self, prompt: str) -> str:
        """A prompt after which the model answers at once: reasoning that it has opened ends without a word."""
        return f"{prompt.rstrip()}\n\n{self.end}\n\n" if self.is_open(prompt) else prompt


def reasoning_marks(tokenizer: Any | None) -> ReasoningMarks | None:
    """Those of a transformers tokenizer; None if none are among its added tokens."""
    added = getattr(tokenizer, "added_tokens_encoder", {})
    return next(
        (ReasoningMarks(begin, end, added[begin], added[end]) for begin, end in _MARKS if {begin, end} <= added.keys()),
        None,
    )
