"""Which of a pass's logits belong to which token: those that the next tokens are drawn from, and those of prompts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from ewe.engine.model_runner import ForwardResult
from ewe.engine.sampling_rows import PromptScore
from ewe.engine.scheduler_output import SchedulerOutput
from ewe.engine.sequence import Sequence


def last_tokens(
    plan: SchedulerOutput, result: ForwardResult
) -> Iterator[tuple[Sequence, int, npt.NDArray[np.float32] | None]]:
    """Every sequence whose last token is in the pass, with the place of its logits and its shares of attention.

    Prompts whose tokens are to be scored are scored on the way.
    """
    first, end = len(plan.units), 0
    for sequence, row, shares in zip(plan.sequences, plan.rows[first:], result.attention[first:], strict=True):
        begin, end = end, end + (len(row.token_ids) if row.all_logits else int(row.wants_logits))
        if row.all_logits:
            _score(sequence, row.start_position - sequence.request.start_position, result.logits[begin:end])
        if row.wants_logits:
            yield sequence, end - 1, shares


def _score(sequence: Sequence, begin: int, logits: torch.Tensor) -> None:
    """Notes the scores of the tokens that follow prompt tokens `begin` and on.

    logits: float32 [tokens, vocab], at these tokens. The prompt's last token is followed by the answer's first.
    """
    following = sequence.request.prompt_ids[begin + 1 : begin + 1 + len(logits)]
    if not following:
        return
    logprobs = torch.log_softmax(logits[: len(following)], dim=-1)
    chosen = logprobs.gather(1, torch.tensor(following, device=logits.device).unsqueeze(1)).squeeze(1).tolist()
    count = min(sequence.request.params.prompt_logprobs or 0, logits.shape[-1])
    values, ids = logprobs.topk(count)
    for place, (logprob, top) in enumerate(zip(chosen, zip(ids.tolist(), values.tolist(), strict=True), strict=True)):
        sequence.prompt_scores[begin + 1 + place] = PromptScore(logprob, dict(zip(*top, strict=True)))
