"""This engine as a model of lm-evaluation-harness, named "ewe": `python -m ewe.evaluation.lm_eval_model run ...`."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import yaml
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.models.utils import normalize_gen_kwargs
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from ewe.config import resolve_config
from ewe.llm import LLM
from ewe.types import Generation
from ewe.types.sampling_params import SamplingParams

_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed")


@register_model("ewe")
class EweLM(TemplateLM):  # type: ignore[misc]  # the harness has no types
    """A model whose answers and log-likelihoods come from `LLM`.

    model, config: as LLM's. Any other argument is a setting, also with its group: `policy=rag`, `datastore=my-notes`.
    device: `model.device`. batch_size and max_batch_size, which the harness always gives, change nothing.
    """

    def __init__(
        self,
        model: str = "builtin",
        config: str | None = None,
        device: str | None = None,
        batch_size: int | str = 1,
        max_batch_size: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        named = {"model.device": device, **settings} if device is not None else settings
        assignments = [f"{key}={yaml.safe_dump(value)}" for key, value in named.items()]
        self.llm = LLM(config=resolve_config(model, config).override(assignments))
        self.tokenizer = self.llm.tokenizer
        self.max_length = self.llm.client.engine.loaded.max_model_len

    @property
    def eot_token_id(self) -> int:
        """The token that ends a text."""
        return int(self.tokenizer.eos_token_id)

    @property
    def prefix_token_id(self) -> int:
        """What stands before a text whose first token is to be scored."""
        first = self.tokenizer.bos_token_id
        return self.eot_token_id if first is None else int(first)

    @property
    def tokenizer_name(self) -> str:
        """What tells the cached requests of this tokenizer from others'."""
        return str(self.tokenizer.name_or_path).replace("/", "__")

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """The prompt of a conversation; without add_generation_prompt its last message is to be continued."""
        options = {"add_generation_prompt": add_generation_prompt, "continue_final_message": not add_generation_prompt}
        return str(self.tokenizer.apply_chat_template(chat_history, tokenize=False, **options))

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **_: Any) -> list[int]:
        """Token ids; unless told, special tokens are added where the text does not begin with one of its own."""
        first = self.tokenizer.bos_token
        add = not (first and string.startswith(first)) if add_special_tokens is None else add_special_tokens
        return list(self.tokenizer.encode(string, add_special_tokens=add))

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """The answers to prompts; a prompt that leaves no room for its answer loses its beginning."""
        prompts, params = [], []
        for context, options in (request.args for request in requests):
            requested = normalize_gen_kwargs(options)
            chosen = {name: requested[name] for name in _SAMPLING if requested.get(name) is not None}
            stop = tuple(text for text in requested["until"] if text)
            params.append(SamplingParams(max_tokens=requested["max_gen_toks"], stop=stop, **chosen))
            prompts.append(self.tok_encode(context)[-(self.max_length - params[-1].max_tokens) :])
        texts = [answer.text for answer in self._run(prompts, params)]
        for request, text in zip(requests, texts, strict=True):
            self.cache_hook.add_partial("generate_until", request.args, text)
        return texts

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        """The log-likelihood of whole texts, in windows where they are longer than the model's length."""
        windows = [self._windows(request.args[0]) for request in requests]
        scored = self._loglikelihood_tokens([(None, *window) for own in windows for window in own])
        ends = accumulate(map(len, windows), initial=0)
        totals = [sum(score for score, _ in scored[first:end]) for first, end in pairwise(ends)]
        for request, total in zip(requests, totals, strict=True):
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, total)
        return totals

    def _windows(self, text: str) -> list[tuple[list[int], list[int]]]:
        longest = self.max_length - 2  # a window holds one token more than it predicts, and one more is written
        windows = get_rolling_token_windows(self.tok_encode(text), self.prefix_token_id, longest, 1)
        return [make_disjoint_window(window) for window in windows]

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[Any, list[int], list[int]]], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        """Per (key, context, continuation) the continuation's log-likelihood, and whether it is the greedy one."""
        prompts = [(context + continuation)[-(self.max_length - 1) :] for _, context, continuation in requests]
        answers = self._run(prompts, [SamplingParams(max_tokens=1, prompt_logprobs=1)] * len(prompts))
        scores = []
        for (key, _, continuation), prompt, answer in zip(requests, prompts, answers, strict=True):
            count = min(len(continuation), len(prompt) - 1)
            logprobs, likeliest = answer.prompt_logprobs, answer.prompt_top_logprobs
            last = range(len(logprobs) - count, len(logprobs))
            greedy = all(prompt[at + 1] == max(likeliest[at], key=likeliest[at].__getitem__) for at in last)
            scores.append((sum(logprobs[at] for at in last), greedy))
            if key is not None:
                self.cache_hook.add_partial("loglikelihood", key, scores[-1])
        return scores

    def _run(self, prompts: Sequence[list[int]], params: Sequence[SamplingParams]) -> list[Generation]:
        """The answers in order; raises RuntimeError for one that failed, which the harness has no word for."""
        answers = self.llm.generate(prompts, params) if prompts else []
        failed = next((answer.error for answer in answers if answer.finish_reason == "error"), "")
        if failed:
            raise RuntimeError(f"the engine could not answer: {failed}")
        return answers


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
