"""Nearest-neighbour speculative decoding against the paper's own form: whole spans, proposed and then cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from e2e.llm_rig import loaded, model, tiny_llm

from ewe import Generation, Passage, SamplingParams
from ewe.engine.sampling import neighbours
from ewe.errors import ConfigError
from ewe.types import ScoredPassage

PASSAGES = [
    Passage("river", "The river flows past the city, then to the sea. It was named in the end.", title="The river"),
    Passage("city", "She wrote of the city. The end came twice, and the river rose to the city."),
    Passage("words", "one two three four five six seven eight nine ten, then the sea"),
]
PROMPT = "The city by the river"
SPAN = 6


class Shelf:
    """Finds all passages for every query."""

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        return [[ScoredPassage(passage, 1.0) for passage in PASSAGES[:top_k]] for _ in queries]


def nest(params: SamplingParams, prompts: Sequence[str] = (PROMPT,), **feedback: Any) -> list[Generation]:
    config = {"policy": "nest", "feedback": {"nest_span": SPAN, **feedback}, "memory": {"unit_tokens": 48}}
    with tiny_llm(config, datastore=Shelf()) as llm:
        return llm.generate(list(prompts), params)


class Reference:
    """The paper's algorithm on transformers' own model: greedy, no cache, every pass from the start."""

    def __init__(self, alpha: float, gamma: float, nearest: int = 1024) -> None:
        self.alpha, self.gamma, self.nearest = alpha, gamma, nearest
        self.keys, self.values, self.ends = [], [], []
        tokenizer = loaded().tokenizer
        for passage in PASSAGES:
            text = f"{passage.title}: {passage.text}" if passage.title else passage.text
            ids = tokenizer(text)["input_ids"]
            states = self.run(ids).hidden_states[-2][0].double()
            self.keys += list(states[1:-1])
            self.values += ids[2:]
            self.ends.append(len(self.values))
        self.free = set(range(len(self.values)))

    def run(self, ids: Sequence[int]) -> Any:
        return model("eager")(input_ids=torch.tensor([list(ids)]), output_hidden_states=True, use_cache=False)

    def mixture(self, ids: Sequence[int]) -> tuple[torch.Tensor, float, int]:
        """The distribution after these tokens, lambda, and the place whose span is proposed."""
        output = self.run(ids)
        query = output.hidden_states[-2][0, -1].double()
        score = {place: -float((self.keys[place] - query).square().sum()) for place in self.free}
        chosen = sorted(score, key=lambda place: -score[place])[: self.nearest]
        weights = torch.tensor([score[place] for place in chosen], dtype=torch.float64)
        ratio = max(score[place] for place in chosen) / min(score[place] for place in chosen)
        share = float(torch.sigmoid(torch.tensor((ratio - self.alpha) / 0.1, dtype=torch.float64)))
        p = share * torch.softmax(output.logits[0, -1].double() / 0.7, -1)
        for place, weight in zip(chosen, torch.softmax(weights / len(query) ** 0.5, -1), strict=True):
            p[self.values[place]] += (1 - share) * weight
        return p, share, max(chosen, key=lambda place: (float(p[self.values[place]]), score[place]))

    def write(self, prompt_ids: Sequence[int], count: int) -> tuple[list[int], list[float], list[tuple[int, float]]]:
        """Tokens, their log-probabilities, and the length and lambda of every span that was proposed."""
        ids, logprobs, spans = list(prompt_ids), [], []
        while len(ids) < len(prompt_ids) + count:
            p, share, place = self.mixture(ids)
            proposed = []
            if share < 0.5:
                end = min(end for end in self.ends if end > place)
                proposed = self.values[place : min(end, place + SPAN)]
            accepted = 0
            for token in proposed:
                if accepted:
                    p, *_ = self.mixture(ids)
                if not p[token] > 0.5 * self.gamma * p.max():
                    break
                self.free.discard(place + accepted)
                accepted += 1
                ids.append(token)
                logprobs.append(float(p[token].log()))
            if proposed:
                spans.append((accepted, share))
            if accepted == 0 or accepted < len(proposed):
                if accepted:
                    p, *_ = self.mixture(ids)
                ids.append(int(p.argmax()))
                logprobs.append(float(p.max().log()))
        return ids[len(prompt_ids) :][:count], logprobs[:count], spans


@pytest.mark.parametrize(
    ("alpha", "gamma", "nearest", "shows"),
    [
        (0.3, 5e-4, 1024, lambda lengths: max(lengths) >= 2),
        (0.5, 0.0, 1024, lambda lengths: SPAN in lengths),
        (0.6, 2.5, 8, lambda lengths: 0 in lengths),
        (0.0, 5e-4, 1024, lambda lengths: not lengths),
    ],
)
def test_texts_spans_and_probabilities_are_the_papers(
    alpha: float, gamma: float, nearest: int, shows: Callable[[list[int]], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "_NEAREST", nearest)
    found = nest(SamplingParams(max_tokens=40, ignore_eos=True), nest_alpha=alpha, nest_gamma=gamma)[0]
    ids, logprobs, spans = Reference(alpha, gamma, nearest).write(loaded().tokenizer(PROMPT)["input_ids"], 40)
    events = [event.data for event in found.trace if event.kind == "span"]
    assert list(found.token_ids) == ids
    assert found.logprobs == pytest.approx(logprobs, abs=1e-3)
    # The end of the text cuts the last span, which the paper's form proposes as a whole.
    assert [event["num_tokens"] for event in events][:-1] == [length for length, _ in spans][:-1]
    assert [event["confidence"] for event in events] == pytest.approx([share for _, share in spans], abs=1e-3)
    assert shows([length for length, _ in spans])
    assert sum(event["num_tokens"] for event in events) == found.stats.tokens_copied
    assert {event["id"] for event in events} <= found.sources.keys() == {"river", "city", "words"}
    assert found.stats.units_encoded == len(PASSAGES)
    assert found.stats.retrievals == 1


def test_many_answers_at_once_are_those_of_one_at_a_time() -> None:
    params = SamplingParams(max_tokens=12, temperature=1.0, seed=3, n=2, ignore_eos=True)
    prompts = [f"{PROMPT} {word}" for word in ("one", "two", "three", "four", "five", "six", "ten", "ends")]
    together = nest(params, prompts, nest_alpha=0.4)
    alone = [generation for prompt in prompts[:3] for generation in nest(params, [prompt], nest_alpha=0.4)]
    assert [item.token_ids for item in together[: len(alone)]] == [item.token_ids for item in alone]
    assert len({item.token_ids for item in together}) > len(prompts)


def test_without_passages_the_model_writes_alone() -> None:
    with tiny_llm({"policy": "plain"}) as llm:
        plain = llm.generate([PROMPT], SamplingParams(max_tokens=8, ignore_eos=True))[0]
    with tiny_llm({"policy": "nest", "feedback": {"retrieval_threshold": 2.0}}, datastore=Shelf()) as llm:
        found = llm.generate([PROMPT], SamplingParams(max_tokens=8, ignore_eos=True))[0]
    assert found.token_ids == plain.token_ids
    assert found.stats.tokens_copied == 0


def test_what_may_not_be_drawn_is_not_copied() -> None:
    tokenizer = loaded().tokenizer
    every = {token for passage in PASSAGES for token in tokenizer(passage.text)["input_ids"]}
    params = SamplingParams(max_tokens=8, min_tokens=8, stop_token_ids=tuple(every), ignore_eos=True)
    found = nest(params, nest_alpha=1.0, nest_gamma=0.0)[0]
    assert not every.intersection(found.token_ids)
    assert len(found.token_ids) == 8


def test_precomputed_units_are_refused() -> None:
    with pytest.raises(ConfigError, match="precomputed units hold no hidden states"):
        tiny_llm({"policy": "nest", "memory": {"precomputed": "units"}})
