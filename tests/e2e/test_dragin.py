"""DRAGIN against the paper's rules on transformers' own model: the same words fire, with the same queries and texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pytest
import torch
from e2e import llm_rig
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import ewe.engine.attention.ewe_attention  # noqa: F401  (registers the attention)
from ewe import LLM, Generation, Passage, SamplingParams
from ewe.engine.models.loader import LoadedModel
from ewe.text.english import FUNCTION_WORDS
from ewe.text.sentences import SentenceSplitter
from ewe.types import ScoredPassage

PASSAGES = [
    Passage("river", "The river flows past the city.", title="River"),
    Passage("city", "She wrote of the city. The end came twice."),
    Passage("sea", "Then to the sea"),
]
LISTED = "River: The river flows past the city.\nShe wrote of the city. The end came twice.\nThen to the sea\n"
PROMPTS = ["Who named the river?", "She wrote of the city by the sea.", "The end came"]
WORDS = "the river city sea. named 1897. she wrote of it twice. by past end. and novel flows to was Then The"
LOOK_AHEAD = 24
# Whole words with the space before them, so that every text is read again as it was written.
PIECES = r" ?[^\s]+|\n"


@lru_cache
def tokenizer() -> PreTrainedTokenizerFast:
    """One token per word."""
    written = [f" {word}" for word in WORDS.split()]
    read = [piece for text in (f"Context: {LISTED}", *PROMPTS) for piece in re.findall(PIECES, text)]
    vocabulary = {piece: place for place, piece in enumerate(dict.fromkeys(["<unk>", "<eos>", *written, *read]))}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(PIECES), "isolated")
    words.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", eos_token="<eos>")


def model(attention: str) -> Any:
    """The same weights under either attention."""
    return llm_rig.model(attention, len(tokenizer()))


def unwritten() -> list[int]:
    """Tokens that are no words of an answer: a text that holds them could not be read again."""
    return [0, *range(2 + len(WORDS.split()), len(tokenizer()))]


class Shelf:
    """Finds all passages for every query, and notes the queries."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        self.queries += queries
        return [[ScoredPassage(passage, 1.0) for passage in PASSAGES[:top_k]] for _ in queries]


def dragin(prompts: Sequence[str], shelf: Any, threshold: float, **params: Any) -> list[Generation]:
    config = {
        "policy": "dragin",
        "pipeline": {"dragin_threshold": threshold, "dragin_words": 4, "step_tokens": LOOK_AHEAD},
        "memory": {"unit_tokens": 24},
        "cache": {"num_blocks": 600},
    }
    loaded = LoadedModel(model("ewe"), tokenizer(), 400, frozenset({1}), len(tokenizer()))
    bias = dict.fromkeys(unwritten(), -1000.0)
    with LLM("tiny", config=config, loaded=loaded, datastore=shelf) as llm:
        return llm.generate(list(prompts), SamplingParams(logit_bias=bias, **params))


class Reference:
    """Every pass from the start, with transformers' own attention."""

    def __init__(self, threshold: float, max_tokens: int) -> None:
        self.threshold, self.max_tokens = threshold, max_tokens
        self.needs: list[dict[str, Any]] = []

    def generate(self, prompt: str, begin: str) -> tuple[str, list[int], list[int], Any, Any]:
        """What is written greedily after the prompt, its tokens, and entropies and attention of the pass over them."""
        ids = prompt_ids = self.encode(prompt + begin)
        entropies: list[float] = []
        left = min(self.max_tokens - len(self.encode(begin)), LOOK_AHEAD)
        while len(entropies) < left and (ids is prompt_ids or ids[-1] != 1):
            scores = model("eager")(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)
            entropies.append(float(-(scores.exp() * scores).sum()))
            scores[unwritten()] = -torch.inf
            ids = [*ids, int(scores.argmax())]
        attention = model("eager")(torch.tensor([ids]), output_attentions=True).attentions[-1][0].double()
        return self.decode(ids[len(prompt_ids) :]), prompt_ids, ids, entropies, attention

    def encode(self, text: str) -> list[int]:
        return tokenizer()(text)["input_ids"] if text else []

    def decode(self, ids: Sequence[int]) -> str:
        return tokenizer().decode(ids, skip_special_tokens=True)

    def words(self, ids: Sequence[int], first: int, last: int) -> list[tuple[str, int, list[int]]]:
        """Words of the text of tokens first to last, where each starts, and its token's place in ids."""
        found, start = [], 0
        for place in range(first, last):
            piece = self.decode([ids[place]])
            if piece.strip():
                found.append((piece.strip(), start + len(piece) - len(piece.lstrip()), [place]))
            start += len(piece)
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
                is_cut = ids[-1] != 1
                sentences = SentenceSplitter().split(draft)
                text += draft[: sentences[-2][1]] if is_cut and len(sentences) > 1 else draft
                if not is_cut:
                    return text
            else:
                start, first, sentence = hit
                self.query(prompt, ids, first, attention)
                kept = (text + draft[:start]).rstrip()
                more, *_ = self.generate(f"Context: {LISTED}\n{prompt}", kept)
                whole = kept + more
                ends = [end + before + sentence for _, end in SentenceSplitter().split(whole[before + sentence :])]
                text = whole[: next((end for end in ends if end > len(kept)), len(kept))]
            full = len(self.encode(text)) >= self.max_tokens
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
                    return place, tokens[0], start
        return None

    def query(self, prompt: str, ids: Sequence[int], first: int, attention: Any) -> None:
        """The four content words that the token before `first` attended to most."""
        weights = attention.mean(0)[first - 1]
        before = [word for word in self.words(ids, 0, first) if self.is_content(word[0])]
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
    [found] = dragin([prompt], shelf, threshold, max_tokens=60)
    events = [event.data for event in found.trace if event.kind == "decision"]
    assert [event["word"] for event in events] == [need["word"] for need in reference.needs]
    assert [event["value"] for event in events] == pytest.approx([need["value"] for need in reference.needs], rel=1e-3)
    assert shelf.queries == [event["query"] for event in events] == [need["query"] for need in reference.needs]
    assert found.text == expected
    assert found.stats.retrievals == len(reference.needs)
    assert found.stats.tokens_discarded > 0


def test_many_answers_at_once_are_those_of_one_at_a_time() -> None:
    prompts = [f"{prompt} {word}" for prompt in PROMPTS[:2] for word in WORDS.split()[:8]]
    together = dragin(prompts, Shelf(), 2.5, max_tokens=20, seed=5, temperature=1.0)
    alone = [dragin([prompt], Shelf(), 2.5, max_tokens=20, seed=5, temperature=1.0)[0] for prompt in prompts[::7]]
    assert [item.text for item in together[::7]] == [item.text for item in alone]
    assert any(item.stats.retrievals for item in together)
    assert len({item.text for item in together}) > 10


def test_without_passages_to_find_it_is_plain_decoding() -> None:
    [found] = dragin(PROMPTS[:1], None, 0.0, max_tokens=20)
    [sure] = dragin(PROMPTS[:1], Shelf(), 1e9, max_tokens=20)
    assert found.text == sure.text
    assert found.stats.retrievals == 0
