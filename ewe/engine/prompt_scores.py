"""What the model thinks of a prompt's own tokens.

Owns: which of a pass's logits belong to which token of the prompt. Knows sequences; launches nothing.
"""

from __future__ import annotations

import torch

from ewe.engine.sampling_rows import PromptScore
from ewe.engine.sequence import Sequence

MOST_TOKENS = 256  # of one sequence in one pass: every one has logits of its own


def score_prompt(sequence: Sequence, begin: int, logits: torch.Tensor) -> None:
    """Notes the scores of the tokens that follow prompt tokens `begin` and on.

    logits: float32 [tokens, vocab], at these tokens. The prompt's last token is followed by the answer's first.
    """
    following = sequence.prompt_ids[begin + 1 : begin + 1 + len(logits)]
    if not following:
        return
    logprobs = torch.log_softmax(logits[: len(following)], dim=-1)
    chosen = logprobs.gather(1, torch.tensor(following, device=logits.device).unsqueeze(1)).squeeze(1).tolist()
    count = min(sequence.params.prompt_logprobs or 0, logits.shape[-1])
    values, ids = logprobs.topk(count)
    for place, (logprob, top) in enumerate(zip(chosen, zip(ids.tolist(), values.tolist(), strict=True), strict=True)):
        sequence.prompt_scores[begin + 1 + place] = PromptScore(logprob, dict(zip(*top, strict=True)))
