"""Training the built-in judge: swaps change values, contrasts change labels, splits stay apart, exports come back."""

import re
import sys
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_data import SHARED, require
from transformers import BertConfig, BertForSequenceClassification

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from judge_training.batches import Encoded, collate, training_batches
from judge_training.contrasts import negated_from, refuted_from, settled_no_more, supported_from
from judge_training.export import quantize
from judge_training.figures import fever_mix, fool_me_twice_mix
from judge_training.made import made_pairs, shorten
from judge_training.metrics import balanced_accuracy, calibrate, calibration_error, macro_f1, softmax
from judge_training.model import build_optimizer, mean_weights, rate_at
from judge_training.pairs import Label, Pair, clean, grouped, key_of, sentences_of, share_of
from judge_training.sources import read_bios, read_fever, read_fool_me_twice, read_symmetric
from judge_training.swaps import contains, find_values, negate, other_value, replace_value
from judge_training.world_pairs import judge_facts, world_pairs

from ewe.evaluation.world.people import Fact
from ewe.verification.judges.builtin_judge import dequantise

NAMES = ("Ada Lovelace", "Paris Match", "Karl Benz", "Nokia")
PAIR = Pair(
    "Ann Bell is a Scottish singer who won 3 prizes in 1988.", "Ann Bell is a Scottish singer.", Label.SUPPORTED
)


def test_values_are_found_with_their_kinds() -> None:
    text = "The Beatles gave 3,000 concerts in July 1969, the largest sale of a German film."
    found = [(value.text, value.kind) for value in find_values(text)]
    assert found == [
        ("Beatles", "name"),
        ("3,000", "amount"),
        ("July", "month"),
        ("1969", "year"),
        ("largest", "opposite"),
        ("German", "nationality"),
        ("film", "work"),
    ]
    assert all(text[value.start : value.end] == value.text for value in find_values(text))


@given(
    st.integers(0, 10**6), st.sampled_from(["in 1969", "for 12 days", "3,000 men", "2.5 km", "a German", "by Ann Bell"])
)
def test_another_value_is_never_the_same(seed: int, text: str) -> None:
    value = find_values(text)[0]
    other = other_value(Random(seed), value, text, NAMES)
    assert other is None or (other != value.text and not contains(text, other))
    if other is not None and value.kind in ("year", "amount"):
        assert find_values(other)[0].kind in ("year", "amount")


def test_articles_fit_the_new_value() -> None:
    assert replace_value("She is an actress.", "actress", "singer") == "She is a singer."
    assert replace_value("It is a German film.", "German", "Italian") == "It is an Italian film."
    assert replace_value("Manly men", "man", "woman") == "Manly men"


@pytest.mark.parametrize(
    ("claim", "negated"),
    [
        ("She was born in Rome.", "She was not born in Rome."),
        ("He did not sing.", "He did sing."),
        ("Stars shine.", None),
    ],
)
def test_negation_goes_both_ways(claim: str, negated: str | None) -> None:
    assert negate(claim) == negated


@given(st.integers(0, 10**6))
def test_refuted_contrasts_differ_in_a_shared_value(seed: int) -> None:
    changed = refuted_from(Random(seed), PAIR, NAMES)
    assert changed is not None
    assert changed.label is Label.REFUTED
    assert (changed.evidence == PAIR.evidence) != (changed.claim == PAIR.claim)
    missing = [value.text for value in find_values(changed.claim) if not contains(changed.evidence, value.text)]
    assert missing
    assert "Ann Bell" in changed.claim


def test_supported_contrasts_need_one_clear_value() -> None:
    refuted = Pair("Easy A is a 2010 American film.", "Easy A is a 2009 film.", Label.REFUTED)
    claims = {(c.evidence, c.claim) for s in range(20) if (c := supported_from(Random(s), refuted)) is not None}
    assert claims == {
        ("Easy A is a 2009 American film.", "Easy A is a 2009 film."),
        ("Easy A is a 2010 American film.", "Easy A is a 2010 film."),
    }
    unclear = Pair("It ran from 2001 to 2010.", "It ran in 1999.", Label.REFUTED)
    assert supported_from(Random(0), unclear) is None


def test_a_claim_about_somebody_else_is_not_settled() -> None:
    changed = settled_no_more(Random(1), PAIR, NAMES)
    assert changed is not None
    assert changed.label is Label.INCONCLUSIVE
    assert "Ann Bell" not in changed.claim
    assert changed.claim.endswith("is a Scottish singer.")


def test_negation_turns_the_label_round() -> None:
    changed = negated_from(PAIR)
    assert changed is not None
    assert (changed.claim, changed.label) == ("Ann Bell is not a Scottish singer.", Label.REFUTED)
    assert negated_from(Pair("x", "It is so.", Label.INCONCLUSIVE)) is None


def test_made_pairs_have_all_labels_and_no_claim_without_evidence() -> None:
    texts = [("Ann Bell", ["She was born in Leeds in 1950, the first of 4 children.", "She moved to Paris in 1971."])]
    pairs = list(islice(made_pairs(Random(4), texts, NAMES), 80))
    assert {pair.label for pair in pairs} == set(Label)
    for pair in pairs:
        assert pair.evidence
        if pair.label is Label.SUPPORTED:
            assert shorten(Random(0), pair.claim, "") is not None
            assert pair.claim.startswith(("Ann Bell", "She"))


def test_world_pairs_agree_with_the_facts() -> None:
    pairs = list(islice(world_pairs(Random(3)), 300))
    assert {pair.label for pair in pairs} == set(Label)
    born, other_year = Fact("A B", "birth_year", "1900"), Fact("A B", "birth_year", "1901")
    works = (Fact("A B", "work", "The Sea"), Fact("A B", "work_year", "1930", "The Sea"))
    assert judge_facts((born,), (other_year, *works)) is Label.REFUTED
    assert judge_facts((born,), (Fact("C D", "birth_year", "1901"),)) is Label.INCONCLUSIVE
    assert judge_facts((Fact("A B", "work", "The Land"),), works) is Label.INCONCLUSIVE
    assert judge_facts((works[0], Fact("A B", "work_year", "1931", "The Sea")), works) is Label.REFUTED
    assert judge_facts(works, works) is Label.SUPPORTED


def test_world_pairs_take_one_thing_for_another_without_settling_it() -> None:
    pairs = list(islice(world_pairs(Random(5)), 600))
    confused = [pair for pair in pairs if re.search(r"won (the )?\w+ (Congress|Crossing|Survey|Voyage)", pair.claim)]
    assert confused
    assert {pair.label for pair in confused} == {Label.INCONCLUSIVE}


def test_text_is_cleaned_and_cut_into_sentences() -> None:
    text = clean("Kenneth `` Babyface '' Edmonds -LRB- born 1959 -RRB- did n't sing . J. Smith did , in St. Louis .")
    assert "-LRB-" not in text
    assert "(born 1959)" in text
    assert len(sentences_of(text)) == 2


def test_groups_join_through_shared_keys() -> None:
    groups = grouped([{"a"}, {"b"}, {"a", "c"}, {"c"}, {"d"}])
    assert groups[0] == groups[2] == groups[3]
    assert len(set(groups)) == 3
    assert share_of("page") == share_of("page") != share_of("page", "other")


def test_no_text_of_fever_symmetric_or_of_the_test_is_trained_on() -> None:
    require("fever/claims.jsonl")
    require("fever_symmetric/claims.jsonl")
    fever, symmetric = read_fever(SHARED), read_symmetric(SHARED)

    def texts(pairs: object) -> set[str]:
        sentences = {key_of(s) for pair in pairs for s in sentences_of(pair.evidence)}  # type: ignore[attr-defined]
        return {key_of(pair.claim) for pair in pairs} | {s for s in sentences if len(s) > 25}  # type: ignore[attr-defined]

    assert len(fever.train) > 4500
    assert len(fever.test) > 1200
    assert not texts(fever.train) & (texts(fever.test) | texts(symmetric))
    assert {pair.label for pair in fever_mix(fever.test[:200])} == set(Label)


def test_folds_and_halves_share_no_page() -> None:
    require("fool_me_twice/claims.jsonl")
    rows = read_fool_me_twice(SHARED)
    pages = {fold: {pair.title for number, pair, _ in rows if number == fold} for fold in range(4)}
    assert sum(len(titles) for titles in pages.values()) == len(set.union(*pages.values()))
    assert min(len(mix) for mix in fool_me_twice_mix(rows).values()) > 300
    require("factscore/chatgpt.jsonl")
    assert 60 < len({pair.title for pair in read_bios(SHARED)}) < 120


@given(st.lists(st.integers(4, 60), min_size=8, max_size=200), st.integers(0, 99))
@settings(max_examples=30)
def test_batches_are_whole_and_lose_little(lengths: list[int], seed: int) -> None:
    examples = [Encoded([number] * length, [0] * length, number % 3) for number, length in enumerate(lengths)]
    batches = training_batches(Random(seed), examples, 4)
    assert all(len(batch) == 4 for batch in batches)
    assert len(examples) - 4 < 4 * len(batches) <= len(examples)
    batch = collate(batches[0])
    assert batch["attention_mask"].sum(1).tolist() == [len(example.ids) for example in batches[0]]


def tiny_model() -> BertForSequenceClassification:
    torch.manual_seed(0)
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=64,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            num_labels=3,
        )
    )


def test_quantized_weights_come_back_within_half_a_step() -> None:
    weights = tiny_model().state_dict()
    packed = quantize(weights)
    back = dequantise(packed)
    assert back.keys() == weights.keys()
    assert packed["bert.embeddings.word_embeddings.weight"].dtype == torch.int8
    assert torch.equal(back["classifier.weight"], weights["classifier.weight"])
    for name, weight in weights.items():
        step = weight.abs().amax(-1, keepdim=True) / 127 if packed[name].dtype == torch.int8 else torch.zeros(1)
        assert bool(((back[name] - weight).abs() <= step / 2 + 1e-7).all()), name


def test_lower_layers_learn_slower_and_rates_end_at_zero() -> None:
    optimizer = build_optimizer(tiny_model(), 1e-3, 0.5)
    assert sorted({group["peak_lr"] for group in optimizer.param_groups}) == pytest.approx(
        [1.25e-4, 2.5e-4, 5e-4, 1e-3]
    )
    assert rate_at(0.06) == pytest.approx(1.0)
    assert rate_at(1.0) == pytest.approx(0.0)
    assert rate_at(0.5) > rate_at(0.9)


def test_mean_of_weights() -> None:
    mean = mean_weights([{"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 6.0])}])
    assert mean["w"].tolist() == [2.0, 4.0]


def test_figures_by_hand() -> None:
    probabilities = np.array([[0.5, 0.1, 0.4], [0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]])
    labels = np.array([0, 1, 1, 2])
    assert balanced_accuracy(probabilities[:3], labels[:3]) == pytest.approx(0.75)
    assert macro_f1(probabilities, labels) == pytest.approx((2 / 3 + 0 + 2 / 3) / 3)
    assert calibration_error(np.array([[0.8, 0.2, 0.0]] * 5), np.array([0, 0, 0, 0, 1])) == pytest.approx(0.0)
    assert calibration_error(np.array([[0.9, 0.1, 0.0]] * 2), np.array([0, 1])) == pytest.approx(0.4)


def test_calibration_takes_back_what_was_too_sure_and_too_ready() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4000, 3))
    labels = np.array([rng.choice(3, p=row) for row in softmax(logits)])
    found = calibrate(logits * 2 + np.array([0.0, 1.0, -1.0]), labels)
    assert found.temperature == pytest.approx(2.0, rel=0.1)
    assert found.biases == pytest.approx((0.0, -0.5, 0.5), abs=0.1)
    assert calibration_error(found.probabilities(logits * 2 + np.array([0.0, 1.0, -1.0])), labels) < 0.03
