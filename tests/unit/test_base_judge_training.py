"""Training the base judge: edits change what they should, windows keep their sentence, the adapter learns."""

import re
import sys
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from shared_data import SHARED, require
from small_causal import write_causal

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import train_base_judge
from judge_training.base_model import BaseModel, grouped_by_tokens, training_batches
from judge_training.base_sets import is_tuning, read_rows_of_all
from judge_training.edits import CUTS, EDITS, REWORDINGS, falsified, negated, shorter_list, swapped_roles, when_last
from judge_training.metrics import ranking
from judge_training.numbers import NUMBER, other_number, reformat_number
from judge_training.pairs import Label, key_of
from judge_training.passages import Passages, window
from judge_training.running import running_pairs
from judge_training.sources import read_fever

from ewe.verification.judges.base import encode_pairs

NAMES = ("Ada Lovelace", "Paris Match", "Karl Benz", "Nokia")
SENTENCES = [
    "Ann Bell was born in Leeds on 8 March 1943, the first of four children.",
    "She studied physics in Paris, Rome and Vienna before most of her friends.",
    "In 1971, she moved to the 19th arrondissement with Carl Fox.",
    "However, her sister Eve won 1,200 francs in Dublin (her home).",
    "The prize was given by Kurt Benn to some of the members.",
]
PASSAGES = Passages(
    [(1.0, [("Ann Bell", SENTENCES), ("", ["The Danube flows through Ulm.", "It is 2,850 km long."])])], NAMES
)


@given(st.integers(0, 10**6), st.sampled_from(SENTENCES))
def test_edits_change_the_sentence_or_do_not_apply(seed: int, sentence: str) -> None:
    tables = [{kind: edit for kind, (edit, _) in EDITS.items()}, REWORDINGS, CUTS]
    for edit in (edit for table in tables for edit in table.values()):
        changed = edit(Random(seed), sentence, SENTENCES, NAMES)
        assert changed is None or changed.strip()
    assert falsified(Random(seed), sentence, (), NAMES) != sentence


@given(st.integers(0, 10**6), st.sampled_from(["in 1969.", "by 40%", "the 19th.", "1,500 men", "2.5 km", "the 1990s"]))
def test_another_number_looks_alike(seed: int, text: str) -> None:
    change = other_number(Random(seed), text)
    assert change is not None
    changed = change.apply(text)
    assert changed != text
    assert NUMBER.sub("", re.sub(r"(?<=\d)(st|nd|rd|th)", "", changed)) == NUMBER.sub("", text.replace("19th", "19"))


def test_ordinals_keep_their_endings_right() -> None:
    made = {other_number(Random(seed), "the 19th.").apply("the 19th.") for seed in range(60)}  # type: ignore[union-attr]
    assert all(re.fullmatch(r"the \d*(1\dth|[^1]?1st|[^1]?2nd|[^1]?3rd|\d?[04-9]th)\.", text) for text in made)


def test_numbers_are_written_another_way() -> None:
    assert reformat_number(Random(0), "born 8 March 1943") == "born March 8, 1943"
    assert reformat_number(Random(0), "born March 8, 1943") == "born 8 March 1943"
    assert reformat_number(Random(0), "some 1,200 francs") == "some 1200 francs"
    assert reformat_number(Random(0), "no numbers") is None


def test_roles_are_swapped_where_order_matters() -> None:
    assert swapped_roles(Random(0), "In May, Ann Bell beat Carl Benz.", (), ()) == "In May, Carl Benz beat Ann Bell."
    assert swapped_roles(Random(0), "They met Ann Bell and Carl Benz.", (), ()) is None


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("Ann became a nurse.", {"Ann did not become a nurse.", "Ann never became a nurse."}),
        ("It includes tea.", {"It does not include tea.", "It never includes tea."}),
        ("It was built.", {"It was not built.", "It was never built."}),
        ("Stars shine.", {None}),
    ],
)
def test_denials(sentence: str, wanted: set[str | None]) -> None:
    assert {negated(Random(seed), sentence, (), ()) for seed in range(40)} == wanted


def test_what_stays_true() -> None:
    assert when_last(Random(0), "In 1971, she moved.", (), ()) == "She moved in 1971."
    assert shorter_list(Random(0), "In Paris, Rome and Ulm.", (), ()) == "In Paris and Ulm."
    assert shorter_list(Random(0), "In Paris, Rome, and Ulm.", (), ()) == "In Paris and Ulm."


@given(st.integers(0, 4), st.integers(0, 500), st.booleans(), st.integers(0, 10**6))
def test_windows_hold_their_sentence_in_order(place: int, characters: int, drop: bool, seed: int) -> None:
    found = window(Random(seed), SENTENCES, place, characters, drop)
    assert (SENTENCES[place] in found) is not drop
    assert [text for text in SENTENCES if text in found] == found


@examples(25)
@given(st.integers(0, 10**6))
def test_labels_follow_from_the_texts(seed: int) -> None:
    for pair in islice(running_pairs(Random(seed), PASSAGES), 40):
        if key_of(pair.claim) in key_of(pair.evidence):
            assert pair.label is Label.SUPPORTED


def test_running_pairs_have_all_labels() -> None:
    labels = [pair.label for pair in islice(running_pairs(Random(1), PASSAGES), 300)]
    assert all(labels.count(label) > 30 for label in Label)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(10, 200), st.integers(0, 99))
def test_every_row_is_in_one_batch_within_the_budget(lengths: list[int], most: int, seed: int) -> None:
    batches = training_batches(Random(seed), lengths, most)
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    for rows in [*batches, *grouped_by_tokens(range(len(lengths)), lengths, most)]:
        assert len(rows) == 1 or max(lengths[row] for row in rows) * len(rows) <= most


@examples(25)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=30))
def test_ranking_is_the_share_of_pairs_in_order(items: list[tuple[int, bool]]) -> None:
    good, bad = [score for score, yes in items if yes], [score for score, yes in items if not yes]
    found = ranking(np.array([score for score, _ in items], float), np.array([yes for _, yes in items]))
    wins = [float(one > other) + 0.5 * (one == other) for one in good for other in bad]
    assert np.isnan(found) if not wins else found == pytest.approx(np.mean(wins))


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    return write_causal(tmp_path_factory.mktemp("chat"))


def training(chat_model: Path, run_dir: Path) -> train_base_judge.Training:
    args = train_base_judge.parse_arguments(
        ["--model", str(chat_model), "--run-dir", str(run_dir), "--device", "cpu", "--lr", "0.01", "--dropout", "0"]
    )
    run_dir.mkdir(exist_ok=True)
    model = BaseModel.load(chat_model, rank=4, dropout=0.0, seed=1, device="cpu")
    made = train_base_judge.Training(args, model)
    made.seconds = made.seconds or 60.0
    return made


def test_the_adapter_learns_is_saved_and_goes_on(chat_model: Path, tmp_path: Path) -> None:
    first = training(chat_model, tmp_path / "run")
    words = ("tea", "oil", "ink", "sap", "rum", "ale")
    ids = encode_pairs(first.model.tokenizer, [(f"It is {word}.", "So?") for word in words], 64)
    labels = [0, 1, 2, 2, 1, 0]
    before = first.model.read(ids).argmax(1).tolist()
    for _ in range(60):
        first._train_step(ids, labels, 1.0)
    assert first.model.read(ids).argmax(1).tolist() == labels != before
    first.save()
    second = training(chat_model, tmp_path / "run")
    assert (second.step, second.seconds) == (60, 60.0)
    np.testing.assert_allclose(second.model.read(ids), first.model.read(ids), atol=1e-5)
    for run in (first, second):
        run._train_step(ids, labels, 1.0)
    np.testing.assert_allclose(second.model.read(ids), first.model.read(ids), atol=1e-2)
    first.model.save(tmp_path / "adapter")
    saved = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    assert {tensor.dtype for tensor in saved.values()} == {torch.bfloat16}
    assert len(saved) == len(first.model.trained)


@pytest.mark.slow
def test_what_is_measured_is_not_trained_on() -> None:
    for name in ("squad2", "wice", "fever", "fool_me_twice", "musique", "factscore"):
        require(name)
    passages = Passages.read(SHARED, read_fever(SHARED))
    seen = {key_of(text) for _, texts in passages.sources for _, told in texts for text in told if len(text) > 60}
    rows = read_rows_of_all(SHARED, 0.2)
    measured = {key_of(row.pair.claim) for row in rows if len(row.pair.claim) > 60}
    assert not seen & measured
    titles = {row.pair.title for row in rows if row.name == "squad"}
    assert titles
    assert not any(map(is_tuning, titles))
