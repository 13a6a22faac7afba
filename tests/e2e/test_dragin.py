"""DRAGIN against the paper's rules on transformers' own model: the same words fire, with the same queries and texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from e2e.llm_rig import loaded, model, tiny_llm

from ewe import Generation, Passage, SamplingParams
from ewe.text.sentences import SentenceSplitter
from ewe.types import ScoredPassage
from ewe.verification.wordlists import FUNCTION_WORDS

PASSAGES = [
    Passage("river", "The river flows past the city.", title="River"),
    Passage("city", "She wrote of the city. The end came twice."),
    Passage("sea", "Then to the sea"),
]
PROMPTS = ["Who named the river?", "She wrote of the city by the sea.", "The end came"]
LOOK_AHEAD = 24


class Shelf:
    """Finds all passages for every query, and notes the queries."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        self.queries += queries
        return [[ScoredPassage(passage, 1.0) for passage in PASSAGES[:top_k]] for _ in queries]


def dragin(prompts: Sequence[str], shelf: Any, params: SamplingParams, threshold: float) -> list[Generation]:
    pipeline = {"dragin_threshold": threshold, "dragin_words": 4, "step_tokens": LOOK_AHEAD}
    with tiny_llm({"policy": "dragin", "pipeline": pipeline}, datastore=shelf) as llm:
        return llm.generate(list(prompts), params)


class Reference:
    """Every pass from the start, with transformers' own attention."""

    def __init__(self, threshold: float, max_tokens: int) -> None:
        self.threshold, self.max_tokens = threshold, max_tokens
        self.tokenizer, self.needs = loaded().tokenizer, []

    def generate(self, prompt: str, begin: str) -> tuple[str, list[int], list[int], Any, Any]:
        """What is written greedily after the prompt, its tokens, and entropies and attention of the pass over them."""
        ids = prompt_ids = self.tokenizer(prompt + begin)["input_ids"]
        left = self.max_tokens - len(self.tokenizer(begin, add_special_tokens=False)["input_ids"] if begin else [])
        entropies = []
        while len(ids) - len(prompt_ids) < min(left, LOOK_AHEAD) and (ids is prompt_ids or ids[-1] != 2):
            scores = model("eager")(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)
            entropies.append(float(-(scores.exp() * scores).sum()))
            ids = [*ids, int(scores.argmax())]
        attention = model("eager")(torch.tensor([ids]), output_attentions=True).attentions[-1][0].double()
        text = self.decode(ids)[len(self.decode(prompt_ids)) :]
        return text, prompt_ids, ids, entropies, attention

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def words(self, ids: Sequence[int], first: int, last: int) -> list[tuple[str, int, list[int]]]:
        """Words of the text of tokens first to last, where each starts, and its tokens by place in ids."""
        offset = len(self.decode(ids[:first]))
        text = self.decode(ids[:last])[offset:]
        ends = [len(self.decode(ids[: place + 1])) - offset for place in range(first, last)]
        found = []
        for match in re.finditer(r"\S+", text):
            own = []
            for number, end in enumerate(ends):
                begin = ends[number - 1] if number else 0
                letters = [at for at in range(begin, end) if not text[at].isspace()]
                if letters and match.start() <= letters[-1] < match.end():
                    own.append(first + number)
            if own:
                found.append((match.group(), match.start(), own))
        return found

    def write(self, prompt: str) -> str:
        """The answer; every need that was found is noted."""
        text = ""
        while True:
            before = len(text)
            draft, prompt_ids, ids, entropies, attention = self.generate(prompt, text)
            if not draft:
                return text
            begin, size = len(prompt_ids), len(ids) - 1
            received = attention[:, begin:size, begin:size].amax(1).mean(0) if size > begin else torch.empty(0)
            received = torch.cat([received, torch.zeros(1)]).tolist()  # nothing has read the last token
            hit = self.find(draft, self.words(ids, begin, len(ids)), begin, received, entropies)
            if hit is None:
                is_cut = ids[-1] != 2
                sentences = SentenceSplitter().split(draft)
                text += draft[: sentences[-2][1]] if is_cut and len(sentences) > 1 else draft
                if not is_cut:
                    return text
            else:
                word, start, first, sentence = hit
                self.query(prompt, ids, begin, first, attention)
                listed = "".join(f"{p.title + ': ' if p.title else ': '}{p.text}\n" for p in PASSAGES)
                kept = (text + draft[:start]).rstrip()
                more, *_ = self.generate(f"Context: {listed}\n{prompt}", kept)
                whole = kept + more
                ends = [end + before + sentence for _, end in SentenceSplitter().split(whole[before + sentence :])]
                text = whole[: next((end for end in ends if end > len(kept)), len(kept))]
            full = len(self.tokenizer(text, add_special_tokens=False)["input_ids"]) >= self.max_tokens
            if len(text.strip()) <= before or full:
                return text

    def find(self, text: str, words: Any, begin: int, received: Any, entropies: Any) -> Any:
        for start, end in SentenceSplitter().split(text):
            own = [word for word in words if start <= word[1] < end]
            total = sum(received[token - begin] for _, _, tokens in own for token in tokens)
            for word, place, tokens in own:
                share = sum(received[token - begin] for token in tokens) / total
                entropy = sum(entropies[token - begin] for token in tokens) / len(tokens)
                if share * entropy * len(own) > self.threshold and self.is_content(word):
                    self.needs.append({"word": word, "value": share * entropy * len(own)})
                    return word, place, tokens[0], start
        return None

    def query(self, prompt: str, ids: Sequence[int], begin: int, first: int, attention: Any) -> None:
        """The four content words that the token before `first` attended to most."""
        weights = attention.mean(0)[first - 1]
        before = [
            word for word in self.words(ids, 1, begin) + self.words(ids, begin, first) if self.is_content(word[0])
        ]
        scored = [(float(weights[tokens].sum()), number) for number, (_, _, tokens) in enumerate(before)]
        chosen = sorted(number for _, number in sorted(scored, reverse=True)[:4])
        self.needs[-1]["query"] = " ".join(before[number][0] for number in chosen) or prompt

    def is_content(self, word: str) -> bool:
        parts = re.findall(r"\w+", word.lower())
        return any(part not in FUNCTION_WORDS for part in parts)


@pytest.mark.parametrize(("prompt", "threshold"), [(PROMPTS[0], 2.0), (PROMPTS[1], 3.0), (PROMPTS[2], 1e9)])
def test_needs_queries_and_texts_are_the_papers(prompt: str, threshold: float) -> None:
    shelf, reference = Shelf(), Reference(threshold, 60)
    expected = reference.write(prompt)
    [found] = dragin([prompt], shelf, SamplingParams(max_tokens=60), threshold)
    events = [event.data for event in found.trace if event.kind == "decision"]
    print(repr(expected), reference.needs)
    assert [event["word"] for event in events] == [need["word"] for need in reference.needs]
    assert [event["value"] for event in events] == pytest.approx([need["value"] for need in reference.needs], rel=1e-3)
    assert shelf.queries == [event["query"] for event in events] == [need["query"] for need in reference.needs]
    assert found.text == expected
