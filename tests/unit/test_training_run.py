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
from builtin_training.example import Goal, Span
from builtin_training.examples import LessonExamples
from builtin_training.guidance import Guidance, Place
from builtin_training.model import load_or_train_tokenizer

from ewe.world.lesson_memory import LessonSettings
from ewe.world.lessons import sample_lesson, sample_lessons
from ewe.world.people import Fact


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
    arguments = ["--steps", "4", "--examples", "3", "--layers", "1", "--width", "64", "--run-dir", str(directory)]
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
        for goal, tokens in [
            *((goal, example.context) for goal in example.subjects),
            *((goal, unit) for unit, goals in zip(example.units, example.unit_subjects, strict=True) for goal in goals),
        ]:
            name = tokenizer.decode([tokens[key] for key in goal.keys])
            assert max(goal.keys) <= goal.query
            assert any(name.strip() == fact.subject for sentence in lesson.answer for fact in sentence.facts) or any(
                name.strip() == span.fact.subject for spans in lesson.stated for span in spans
            )
    assert copied >= exact > 0.8 * copied > 100


def test_a_value_before_its_name_is_found_behind_the_name() -> None:
    fact = Fact("A B", "work", "x y")
    unit, context = (0, 7, 8, 3, 1, 2, 4, 5), (0, 1, 2, 9, 7, 8)
    guidance = Guidance({"A B": (1, 2)}.__getitem__)
    place, span = Place(fact, 1, 3), Span(4, 6, "work", copied=True)
    assert guidance.copies(context, span, fact, [(100, unit, [place])]) == (Goal(3, (105, 106, 107)), Goal(4, (102,)))
    assert guidance.of_unit(unit, [place]) == ()
    assert guidance.subjects(context, [(span, fact)]) == (Goal(3, (1, 2)), Goal(4, (1, 2)))
    behind = (0, 1, 2, 7, 8)
    assert guidance.copies(context, span, fact, [(0, behind, [Place(fact, 3, 5)])]) == (Goal(3, (3,)), Goal(4, (4,)))


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
