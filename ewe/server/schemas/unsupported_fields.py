"""Fields of OpenAI's and vLLM's that would change an answer, and that this engine does not have.

Any other value is refused, since an answer that ignores it would be wrong.
"""

from __future__ import annotations

from typing import Literal

from ewe.server.schemas.common import RequestModel


class RefusedFields(RequestModel):
    """What every request for an answer may only leave out, or set to what holds anyway."""

    allowed_token_ids: None = None
    bad_words: None = None
    best_of: Literal[1] | None = None
    guided_choice: None = None
    guided_grammar: None = None
    guided_json: None = None
    guided_regex: None = None
    include_stop_str_in_output: Literal[False] | None = None
    logits_processors: None = None
    prompt_logprobs: None = None
    skip_special_tokens: Literal[True] | None = None
    structured_outputs: None = None
    truncate_prompt_tokens: None = None
    use_beam_search: Literal[False] | None = None
