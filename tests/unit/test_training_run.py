"""The training run: what a kill leaves behind, how lessons become tokens, what is exported."""

import random
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import train_builtin_model as script
from builtin_training import attention
from builtin_training.checkpoint import export_model
from builtin_training.data import batches
from builtin_training.example import Goal
from builtin_training.examples import LessonExamples
from builtin_training.guidance import Guidance, Place
from builtin_training.lesson_memory import LessonSettings
from builtin_training.lessons import sample_lesson, sample_lessons
from builtin_training.model import load_or_train_tokenizer

from ewe.evaluation.world.people import Fact


@pytest.fixture(scope="module")
def tokenizer_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tokenizer")
    load_or_train_tokenizer(directory, seed=5, lessons=100)
    return directory


@pytest.fixture(scope="module")
def tokenizer(tokenizer_dir: Path) -> PreTrainedTokenizerBase:
    return load_or_train_tokenizer(tokenizer_dir, seed=5)


def make_run(directory: Path, tokenizer_dir: Path) -> script.Run:
    directory.mkdir(exist_ok=True)
    if not (directory / "tokenizer").exists():
        (directory / "tokenizer").symlink_to(tokenizer_dir)
    attention.register()
    arguments = ["--steps", "4", "--examples", "3", "--layers", "3", "--width", "128", "--run-dir", str(directory)]
    return script.Run(script.parse_arguments([*arguments, "--model-dir", str(directory / "model")]))


def train(run: script.Run, until: int) -> None:
    for batch in batches(run.examples, run.settings, run.step, run.args.steps, workers=0):
        run.train_step(batch)
        if run.step == until:
            return


def test_resumed_run_gives_the_parameters_of_an_uninterrupted_one(tmp_path: Path, tokenizer_dir: Path) -> None:
    whole = make_run(tmp_path / "whole", tokenizer_dir)
    train(whole, 4)
    killed = make_run(tmp_path / "killed", tokenizer_dir)
    train(killed, 2)
    killed.save()
    torch.manual_seed(99)
    resumed = make_run(tmp_path / "killed", tokenizer_dir)
    assert resumed.step == 2
    train(resumed, 4)
    for (name, expected), got in zip(whole.model.named_parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(expected, got), name


def test_a_half_written_checkpoint_does_not_count(tmp_path: Path, tokenizer_dir: Path) -> None:
    run = make_run(tmp_path, tokenizer_dir)
    run.save()
    run.checkpoint.with_suffix(".tmp").write_bytes(b"cut off in the middle")
    assert make_run(tmp_path, tokenizer_dir).step == 0


def test_exported_model_loads_with_transformers_and_computes_the_same(tmp_path: Path, tokenizer_dir: Path) -> None:
    run = make_run(tmp_path, tokenizer_dir)
    export_model(tmp_path / "model", run.model, run.tokenizer, torch.float32)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32).eval()
    ids = AutoTokenizer.from_pretrained(tmp_path / "model")("Who was it?", return_tensors="pt")["input_ids"]
    run.model.eval()
    run.model.set_attn_implementation("sdpa")
    with torch.no_grad():
        torch.testing.assert_close(loaded(ids).logits, run.model(ids).logits)


def test_examples_spell_the_lesson(tokenizer: PreTrainedTokenizerBase) -> None:
    source = LessonExamples(tokenizer, unit_tokens=400)
    for seed in range(30):
        lesson = sample_lesson(random.Random(seed), LessonSettings())
        example = source.encode(lesson)
        assert tokenizer.decode(example.context, skip_special_tokens=True) == lesson.text
        assert example.context[0] == tokenizer.bos_token_id
        assert example.context[-1] == tokenizer.eos_token_id
        units = [tokenizer.decode(unit, skip_special_tokens=True) for unit in example.units]
        assert units == [" " + unit for unit in lesson.units]
        assert all(unit[0] == tokenizer.bos_token_id for unit in example.units)
        spans = [
            (sentence.text[span.start : span.end], known)
            for sentence in lesson.answer
            for span, known in zip(sentence.spans, sentence.known, strict=True)
        ]
        spelt = [(tokenizer.decode(example.context[s.start : s.end]).strip(), s.copied) for s in example.spans]
        assert spelt == spans


def test_guidance_points_at_the_value_and_at_the_name(tokenizer: PreTrainedTokenizerBase) -> None:
    source = LessonExamples(tokenizer, unit_tokens=400)
    copied = exact = 0
    for seed in range(30):
        lesson = sample_lesson(random.Random(seed), LessonSettings())
        example = source.encode(lesson, random.Random(seed).choice(("", " ")))
        memory = [token for unit in example.units for token in unit]
        copied += sum(span.end - span.start for span in example.spans if span.copied)
        # A first token whose person is named behind it is to be found behind the name, all others where they stand.
        exact += sum(example.context[goal.query + 1] in [memory[key] for key in goal.keys] for goal in example.copies)
        for goals, tokens in [(example.goals, example.context), *zip(example.unit_goals, example.units, strict=True)]:
            for goal in goals:
                assert max(goal.keys) <= goal.query
                text = tokenizer.decode([tokens[key] for key in goal.keys]).strip()
                assert text.istitle() or goal.kind == "companion"
    assert copied >= exact > 0.8 * copied > 100


def test_a_value_before_its_owner_is_found_behind() -> None:
    """Name A B is 1 2, the value 7 8, the year 6; the answer is "A B <9> year value"."""
    name, year = Fact("A B", "work", "x y"), Fact("A B", "work_year", "1900", "x y")
    guidance = Guidance({"A B": (1, 2)}.__getitem__)
    context = (0, 1, 2, 9, 6, 7, 8)
    places = [Place(year, 4, 5, 0), Place(name, 5, 7, 0)]

    def copies(unit: tuple[int, ...], *stated: Place) -> list[tuple[int, ...]]:
        return [goal.keys for goal in guidance.copies(context, places, places[1], [(100, unit, stated)])]

    assert copies((0, 1, 2, 7, 8), Place(name, 3, 5, 0)) == [(103,), (104,)]
    assert copies((0, 7, 8, 3, 1, 2, 4, 5, 5), Place(name, 1, 3, 0)) == [(105, 106, 107, 108), (102,)]
    late_year = Place(year, 6, 7, 0)
    assert copies((0, 1, 2, 7, 8, 3, 6, 4), Place(name, 3, 5, 0), late_year) == [(106, 107), (104,)]
    elsewhere = Place(year, 6, 7, 1)
    assert copies((0, 1, 2, 7, 8, 3, 6, 4), Place(name, 3, 5, 0), elsewhere) == [(103,), (104,)]
    other = Place(Fact("A B", "work", "x z"), 8, 10, 1)
    same_start = (0, 1, 2, 7, 8, 3, 6, 4, 7, 5)
    assert copies(same_start, Place(name, 3, 5, 0), late_year, other) == [(106, 107, 108, 109), (106, 107, 108, 109)]
    assert copies(same_start, Place(name, 3, 5, 0), elsewhere, other) == [(103,), (104,)]
    assert copies((0, 1, 2, 7, 5), Place(name, 3, 5, 0)) == []
    assert guidance.of_context(context, places) == (
        Goal("subject", 3, (1, 2)),
        *(Goal("subject", query, (1, 2)) for query in (4, 5)),
        *(Goal("companion", query, (4,)) for query in (4, 5)),
    )


def test_retold_lessons_say_the_same_under_the_same_units() -> None:
    retold = 0
    for seed in range(30):
        first, *others = sample_lessons(random.Random(seed), LessonSettings(), 3)
        values: dict[tuple[str, str, str], set[str]] = {}
        for lesson in (first, *others):
            assert lesson.units == first.units
            for sentence in lesson.answer:
                for span, known in zip(sentence.spans, sentence.known, strict=True):
                    assert sentence.text[span.start : span.end] == span.fact.value
                    held = any(span.fact.value in first.units[unit] for unit in sentence.visible)
                    assert held or not known
                    if span.fact.relation not in ("work", "prize"):
                        key = (span.fact.subject, span.fact.relation, span.fact.about)
                        values.setdefault(key, set()).add(span.fact.value)
        assert all(len(found) == 1 for found in values.values())
        retold += len(others)
    assert retold >= 20


def test_each_token_is_predicted_under_the_memory_of_its_own_sentence(tokenizer: PreTrainedTokenizerBase) -> None:
    source = LessonExamples(tokenizer, unit_tokens=400)
    for seed in range(30):
        lesson = sample_lesson(random.Random(seed), LessonSettings(rolling_rate=1.0))
        example = source.encode(lesson)
        prompt_length = example.answer_start
        written = ""
        for index, token in enumerate(example.context[prompt_length:-1], prompt_length):
            ends, total = [], 0
            for sentence in lesson.answer:
                total += len(sentence.text)
                ends.append(total)
            sentence_index = next(i for i, end in enumerate(ends) if len(written) < end)
            assert example.views[example.view_of[index - 1]].units == lesson.answer[sentence_index].visible
            written += tokenizer.decode([token])


def test_tokenizer_keeps_any_text_and_adds_one_bos(tokenizer: PreTrainedTokenizerBase) -> None:
    text = "Naïve 数 – 🙂\n\tx  y"
    ids = tokenizer(text)["input_ids"]
    assert ids.count(tokenizer.bos_token_id) == 1
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
    chat = tokenizer.apply_chat_template([{"role": "user", "content": " Who was it? "}], tokenize=False)
    assert chat == tokenizer.bos_token + "Who was it?"
