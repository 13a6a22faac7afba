"""Generated cases of MMA-Bench, their pictures, reader and judge, and what systems make of them."""

import json
from collections import Counter

import numpy as np
import pytest
from PIL import Image
from shared_data import require
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.errors import ConfigError, InvalidRequestError
from ewe.longterm.evaluation.answerers import conversation
from ewe.longterm.evaluation.bench import Setup, run, summarise
from ewe.longterm.evaluation.memory_systems import Coin, Oracle, open_system
from ewe.longterm.evaluation.mma_bench import open_benches
from ewe.longterm.evaluation.mma_cases import RECORD, TRUTHS, USER_A, make_cases, read_case
from ewe.longterm.evaluation.mma_images import Picture, draw
from ewe.longterm.evaluation.mma_reader import FormJudge, stated
from ewe.longterm.evaluation.protocol import Asked, Question, Turn


def played(systems, cases=4, answerer=None, **setup):
    [bench] = open_benches(Setup(cases, **setup))
    findings = []
    run(bench, systems, answerer or bench.reader, (), findings.append)
    return {row.system: row for row in summarise(bench, systems, findings)}, findings


def answer_with(model, images=False):
    return lambda asked: model([conversation(one, images) for one in asked])


def value(row, key):
    return row.figures[key].value


def test_cases_are_the_same_at_every_call_and_more_keep_the_first():
    assert make_cases(3, 7) == make_cases(5, 7)[:3]
    assert make_cases(1, 7) != make_cases(1, 8)


def test_every_case_has_ten_sessions_in_half_a_year_and_all_types_come():
    cases = make_cases(8, 0)
    assert Counter(case.logic for case in cases) == dict.fromkeys("ABCD", 2)
    for case in cases:
        times = [turn.at for turn in case.turns]
        assert times == sorted(times)
        days = {int(at // 86400) for at in times}
        assert len(days) in (9, 10)  # the last session may have nothing to show
        assert max(days) == 180 or case.logic in "AB"


@pytest.mark.parametrize("logic", "ABCD")
def test_what_the_picture_shows_is_what_is_true(logic):
    [case] = [case for case in make_cases(4, 3) if case.logic == logic]
    shown = [turn for turn in case.turns if turn.caption]
    claimed = stated(case.claim)
    said = {stated(turn.caption) for turn in shown}
    if logic in "CD":
        assert said == {None}
    else:
        [what] = said
        assert what[0] == claimed[0]
        assert (what == claimed) == (TRUTHS[logic] == "TRUE")
    by_b = [turn.text for turn in case.turns if turn.source.id == "User_B" and stated(turn.text) == claimed]
    assert len(by_b) == 2


def test_the_reliable_user_is_right_more_often():
    for case in make_cases(4, 0):
        told = {stated(turn.text) for turn in case.turns if turn.source == RECORD}
        right = Counter(turn.source.id for turn in case.turns if turn.source != RECORD and stated(turn.text) in told)
        assert right["User_A"] == 4
        assert right["User_B"] == 1


def test_pictures_can_be_read_unless_they_are_blurred(tmp_path):
    sharpness = {}
    for value_ in ("123", "?", ""):
        path = tmp_path / f"{value_ or 'other'}.png".replace("?", "blurred")
        draw(Picture("sign", "Mill Pool", "ticket price", value_), path)
        pixels = np.asarray(Image.open(path).convert("L"), dtype=float)[15:-15, 15:-15]
        sharpness[value_] = np.abs(np.diff(pixels, axis=1)).max()
    assert sharpness["123"] > 100
    assert sharpness[""] > 100
    assert sharpness["?"] < 30


def test_the_judge_errs_in_its_share_of_the_pairs_the_same_in_both_orders():
    pairs = [(f"The price of the Pool is {n}.", f"The price of the Pool is {n + 1}.") for n in range(2000)]
    rows = FormJudge(0.05).judge(pairs)
    assert (rows[:, 0] > 0.5).mean() == pytest.approx(0.05, abs=0.02)
    np.testing.assert_array_equal(rows, FormJudge(0.05).judge([pair[::-1] for pair in pairs]))
    assert FormJudge().judge([("The price of the Pool is 1.", "Hello.")])[0, 2] > 0.9


def test_oracle_and_coin_without_a_store(tmp_path):
    rows, findings = played(["oracle", "coin"], 12)
    [bench] = open_benches(Setup(12))
    bench.plot(findings, tmp_path / "risk.png")
    assert (tmp_path / "risk.png").read_bytes().startswith(b"\x89PNG")
    assert all(
        value(rows["oracle"], key) == 1 for key in ("core", "verdict", "A", "B", "C", "D", "core_score", "graded")
    )
    assert value(rows["coin"], "verdict") < 1
    question = Question("?", 0.0, "a", ("a", "b"))
    coins = [Coin().answer([question])[0] for _ in range(2)]
    assert coins[0] == coins[1]
    assert Oracle().answer([question])[0].text == "a"


def test_a_store_with_scores_solves_what_one_without_cannot():
    rows, findings = played(["none", "default"])
    assert [value(rows["default"], key) for key in "ABCD"] == [1, 1, 1, 1]
    assert [value(rows["none"], key) for key in "ABCD"] == [0, 0, 1, 0]  # of C a later word ends the earlier one
    assert value(rows["none"], "graded") == pytest.approx((-0.2 - 0.2 + 1 - 1) / 4)
    assert {one.item for one in findings} == {f"0-{number:03}" for number in range(4)}


def test_a_model_that_answers_nonsense_is_wrong_everywhere_and_asked_everything():
    asked = []

    def model(talks):
        asked.extend(talks)
        return ["Bananas are yellow."] * len(talks)

    rows, _ = played(["default"], answerer=answer_with(model))
    assert value(rows["default"], "verdict") == value(rows["default"], "core") == 0
    assert value(rows["default"], "graded") == -1
    assert len(asked) == 4 * (4 + 5)


def test_pictures_are_shown_in_place_of_their_words(tmp_path):
    seen = []

    def model(talks):
        seen.extend(talk[0]["content"] for talk in talks)
        return ["TRUE"] * len(talks)

    played(["default"], 1, answer_with(model, images=True), images=tmp_path)
    parts = [content for content in seen if isinstance(content, list)]
    assert parts
    assert all(
        part["image_url"]["url"].startswith("data:image/png;base64,") for content in parts for part in content[1:]
    )
    assert not any("[image:" in str(content) for content in seen)


def test_a_prompt_quotes_memories_with_their_confidence_unless_nothing_is_weighed():
    with open_system("default", lambda asked: [str(conversation(one)[0]["content"]) for one in asked]) as system:
        system.begin("one")
        system.remember(Turn("The pool opens at nine.", USER_A, 0.0, "A sign: nine"))
        [told] = system.answer([Question("When does the pool open?", 86400.0, "nine", ("nine",))])
        assert "- [1970-01-01, User_A, confidence 0." in told.text
        assert "The pool opens at nine. [image: A sign: nine]" in told.text
        asked = Asked(Question("?", 0.0, "", ()), told.recalled, weighed=False)
        assert "confidence" not in str(conversation(asked))
        system.begin("two")
        [other] = system.answer([Question("When does the pool open?", 86400.0, "nine", ("nine",))])
        assert "(no memories)" in other.text


def test_a_name_that_is_no_system_is_refused():
    with pytest.raises(ConfigError, match="unknown memory system 'defualt'"), open_system("defualt", lambda asked: []):
        pass


def test_the_public_case():
    case = read_case(require("locomo/mma_bench_case_000.json"))
    assert (len(case.turns), len(case.core), case.claim) == (141, 10, "")
    [shown] = [turn for turn in case.turns if turn.caption]
    assert shown.caption.startswith("James is seen walking out")
    assert case.core[3].confidence == (0.0, 0.4)


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "case.json"
    path.write_text(json.dumps({"case_id": "x"}))
    with pytest.raises(InvalidRequestError, match="no case of MMA-Bench"):
        read_case(path)


def test_the_command_goes_on_where_it_was_interrupted(tmp_path):
    output, figures = tmp_path / "run.jsonl", tmp_path / "figures.json"
    common = ["eval", "memory", "--bench", "mma-bench", "--cases", "2", "--output", str(output)]
    first = CliRunner().invoke(app, [*common, "--systems", "oracle", "--markdown"])
    assert first.exit_code == 0, first.output
    kept = output.read_text()
    again = CliRunner().invoke(app, [*common, "--systems", "oracle,coin", "--markdown", "--json", str(figures)])
    assert again.exit_code == 0, again.output
    assert output.read_text().startswith(kept)
    assert len(output.read_text().splitlines()) == 1 + 2 * 2
    rows = json.loads(figures.read_text())["benches"]["mma-bench"]
    assert [row["system"] for row in rows] == ["oracle", "coin"]
    assert rows[0]["figures"]["verdict"]["value"] == 1
    assert "mma-bench (simulation)" in again.output
    assert json.loads(figures.read_text())["simulations"] == ["mma-bench"]


@pytest.mark.parametrize("more", [["--bench", "mma-bench"], ["--bench", "verimem", "--model", "builtin"]])
def test_pictures_need_a_model_that_sees_them(tmp_path, more):
    told = CliRunner().invoke(app, ["eval", "memory", *more, "--cases", "1", "--images", str(tmp_path)])
    assert (told.exit_code, "a model that sees them" in " ".join(told.stderr.split())) == (2, True)
    assert not list(tmp_path.iterdir())
