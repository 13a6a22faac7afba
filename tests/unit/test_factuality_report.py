"""The table of `ewe eval factuality`: by hand, merged from shards, and what may not be merged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from unit.factuality_parts import about, answer, grade, graded, preferred, run_of, settings

from ewe.errors import InvalidRequestError
from ewe.evaluation.factuality import Grade
from ewe.evaluation.factuality_report import reports_of
from ewe.evaluation.factuality_table import markdown_table, rich_table, save_plot
from ewe.evaluation.merged_runs import Run
from ewe.evaluation.tables import Interval


def test_figures_by_hand() -> None:
    [report] = reports_of([run_of({"plain": ["+-", "--"], "ewe": ["+++-", "++"]}, k=4)])
    plain, ewe = report.rows
    # plain: P 1/2 and R 1/4, then nothing; ewe: P 3/4 and R 3/4, then P 1 and R 1/2.
    assert plain.f1 is not None
    assert ewe.f1 is not None
    assert ewe.difference is not None
    assert plain.f1.value == pytest.approx((1 / 3 + 0) / 2)
    assert ewe.f1.value == pytest.approx((3 / 4 + 2 / 3) / 2)
    assert ewe.difference.value == pytest.approx(ewe.f1.value - plain.f1.value)
    assert plain.difference is None
    assert (plain.refuted.value, ewe.refuted.value) == (0.75, 0.125)  # type: ignore[union-attr]
    assert (ewe.claims, ewe.supported, ewe.answers) == (6, 5, 2)
    assert (ewe.tokens_per_s, ewe.passes, ewe.tokens_per_claim, ewe.seconds_per_claim) == (10, 30, 16, 0.8)
    assert (report.k, report.k_is_fixed, report.baseline) == (4, True, "plain")


def test_claims_that_are_true_of_another_subject_are_stated_and_not_supported() -> None:
    beside = replace(grade("plain", "0", "++-"), off_subject=["claim 1"])
    records = [answer("plain", "0"), beside, *graded("ewe", "++-")]
    [report] = reports_of([Run("a", settings({"plain": about(), "ewe": about()}, 1, k=2), records)])
    plain, ewe = report.rows
    assert (plain.claims, plain.supported, ewe.supported) == (3, 1, 2)
    assert plain.off_subject is not None
    assert plain.off_subject.value == pytest.approx(1 / 3)
    assert ewe.off_subject is None  # its prompts name no article
    assert "off subject" in markdown_table(report)


def test_repeated_sentences_are_told_per_answer() -> None:
    records = [answer("plain", "0"), answer("plain", "1")]
    records += [replace(grade("plain", str(number), "+"), sentences=4, repeated=number) for number in range(2)]
    [report] = reports_of([Run("a", settings({"plain": about()}, 2, k=1), records)])
    assert report.rows[0].repeated is not None
    assert report.rows[0].repeated.value == 0.125


def test_f1_is_shown_at_other_k_too() -> None:
    [report] = reports_of([run_of({"plain": ["+++-"]}, k=5)])
    assert report.curve_ks == (3, 5, 8, 12)
    [row] = report.rows
    assert [round(one.value, 4) for one in row.curve] == [0.8571, 0.6667, 0.5, 0.375]
    assert row.f1 == row.curve[1]
    assert "F1 at K = 3, 5, 8, 12" in markdown_table(report)
    assert "85.7 / 66.7 / 50.0 / 37.5" in markdown_table(report)


def test_without_a_fixed_k_it_is_the_median_over_all_systems() -> None:
    [report] = reports_of([run_of({"plain": ["+", "++", "+++"], "ewe": ["+++++", "++++", "+++"]})])
    assert (report.k, report.k_is_fixed) == (3, False)


def test_failures_score_nothing_and_what_no_judge_could_grade_is_left_out_and_told() -> None:
    records = [*graded("plain", "+"), answer("plain", "1", error="too long"), answer("plain", "2")]
    records += [Grade("plain", "2", error="no answer")]
    [report] = reports_of([Run("a", settings({"plain": about()}, 4, k=1), records)])
    [row] = report.rows
    assert (row.failed, row.ungraded, row.answers) == (1, 1, 3)
    assert row.f1 is not None
    assert row.f1.value == 0.5
    told = " ".join(report.notes)
    for said in ("3 of 4 prompts answered", "1 answers failed and score 0", "1 answers could not be graded"):
        assert said in told


def test_a_refusal_scores_nothing_whatever_it_claims() -> None:
    records = [answer("plain", "0", text="I'm sorry, but I cannot help."), grade("plain", "0", "++")]
    [report] = reports_of([Run("a", settings({"plain": about()}, 1, k=1), records)])
    assert (report.rows[0].refusals, report.rows[0].f1.value) == (1, 0)  # type: ignore[union-attr]


def test_wins_are_the_mean_of_both_orders() -> None:
    run = run_of({"plain": ["+", "+"], "ewe": ["+", "+"]})
    run = replace(run, records=[*run.records, *preferred("ewe", "plain", [1, 0.5], [0, 0])])
    [report] = reports_of([run])
    assert report.rows[1].win_rate.value == 0.375  # type: ignore[union-attr]
    assert report.rows[0].win_rate is None
    [other] = reports_of([run], baseline="ewe")  # what was compared with plain says nothing of wins against ewe
    assert [row.win_rate for row in other.rows] == [None, None]
    assert other.rows[0].difference is not None


def test_shards_in_any_order_give_the_table_of_one_run() -> None:
    run = run_of({"plain": ["+-", "--", "+"], "ewe": ["+++-", "++", "-"]}, k=3)
    parts = [replace(run, records=[one for one in run.records if one.prompt in own]) for own in (("2",), ("0", "1"))]
    [whole], [merged] = reports_of([run]), reports_of(parts)
    assert [(row.f1.value, row.claims) for row in merged.rows] == [(row.f1.value, row.claims) for row in whole.rows]  # type: ignore[union-attr]
    assert "prompts answered" not in " ".join(merged.notes)


def test_files_that_do_not_belong_together_are_refused() -> None:
    run = run_of({"plain": ["+"]})
    with pytest.raises(InvalidRequestError, match="answered '0' in a file before it"):
        reports_of([run, run])
    other = replace(run, name="b", settings={**run.settings, "judges": {"judge": "builtin", "same": False}})
    with pytest.raises(InvalidRequestError, match=r"run.jsonl and b cannot stand in one table: they differ in judges"):
        reports_of([run, other])
    changed = {"plain": {**about(), "settings": {"model": {"name": "models/tiny"}, "memory": 1}}}
    with pytest.raises(InvalidRequestError, match="'plain' has other settings"):
        reports_of([run, replace(run, settings={**run.settings, "systems": changed}, records=())])
    with pytest.raises(InvalidRequestError, match="unknown system 'rag'"):
        reports_of([run], baseline="rag")


def test_models_stand_side_by_side_with_the_papers_figures_where_they_match() -> None:
    small, large = "hub/Llama-3.1-8B-Instruct", "hub/Llama-3.1-70B-Instruct"
    runs = [
        Run(model, settings({"ewe": about(model)}, 1, name="biography", k=43), graded("ewe", "+"))
        for model in (small, large)
    ]
    [report] = reports_of(runs)
    assert {row.system: row.paper for row in report.rows} == {
        "Llama-3.1-8B-Instruct ewe": [42.2, 21.5],
        "Llama-3.1-70B-Instruct ewe": [49.7, 50.2],
    }
    assert "table 1" in report.notes[-1]
    [swept] = reports_of([replace(runs[0], settings=settings({"ewe": about(small, x="4")}, 1, name="biography", k=43))])
    assert swept.rows[0].paper is None


def test_points_of_a_sweep_that_are_policies_have_the_papers_figures() -> None:
    systems = {name: about("Llama-3.1-8B-Instruct", x=name) for name in ("plain", "ewe", "8 units")}
    for name, one in systems.items():
        one["settings"]["policy"] = "ewe" if name == "8 units" else name
    records = [record for name in systems for record in graded(name, "+")]
    [report] = reports_of([Run("a", settings(systems, 1, "longfact", 55), records)])
    assert [row.paper and row.paper[0] for row in report.rows] == [63.1, 67.3, None]


@pytest.mark.parametrize(
    ("name", "k", "claims", "is_told"),
    [("longfact", 55, "sentences", True), ("longfact", 9, "sentences", False), ("longfact", 55, "openai:m@u", False)],
)
def test_sentences_that_are_counted_as_the_papers_claims_are_told(name, k, claims, is_told) -> None:
    run = run_of({"ewe": ["+"]}, name=name, k=k)
    run.settings["judges"]["claims"] = claims
    [report] = reports_of([run])
    assert any("atomic claims" in note for note in report.notes) is is_told


def test_how_much_of_the_answers_is_copied_is_told() -> None:
    run = run_of({"plain": ["+", "+"], "ewe": ["+", "-"]})
    run.records[-2].stats["tokens_copied"] = 15  # of 20
    [report] = reports_of([run])
    assert [row.copied for row in report.rows] == [0.0, 0.375]
    assert "| copied |" in markdown_table(report)
    assert "| 37.5 |" in markdown_table(report)
    [without] = reports_of([run_of({"plain": ["+"], "ewe": ["-"]})])
    assert "copied" not in markdown_table(without)


def test_an_answer_that_was_written_alone_says_nothing_of_the_speed() -> None:
    run = run_of({"plain": ["+", "+"], "ewe": ["+", "+"]})
    run.records[0] = replace(run.records[0], wall_s=100.0, was_alone=True)
    [report] = reports_of([run])
    assert {(row.tokens_per_s, row.seconds_per_claim) for row in report.rows} == {(10.0, 2.0)}
    [alone] = reports_of([run_of({"plain": ["+"]})])
    assert alone.rows[0].tokens_per_s == 10.0


@pytest.mark.parametrize(("prompts", "is_told"), [(9, True), (10, False)])
def test_intervals_over_few_prompts_are_told(prompts: int, is_told: bool) -> None:
    [report] = reports_of([run_of({"plain": ["+"] * prompts})])
    assert any("narrower" in note for note in report.notes) is is_told


def test_every_set_has_a_table_and_empty_columns_are_left_out(tmp_path) -> None:
    one, other = run_of({"plain": ["+-"], "ewe": ["++"]}), run_of({"plain": ["-"]}, name="fava", k=49)
    reports = reports_of([one, other])
    assert [report.name for report in reports] == ["mine", "fava"]
    text = markdown_table(reports[0])
    assert "| ewe | 100.0 (100.0 to 100.0) | +50.0 (+50.0 to +50.0) |" in text
    assert "difference" in text
    assert "paper" not in text
    assert "win rate" not in text
    assert len(rich_table(reports[1]).rows) == 1
    save_plot(reports[0], tmp_path / "bars.png")
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")


def test_a_sweep_is_drawn_as_lines(tmp_path) -> None:
    systems = {f"{line} {x}": about(series=line, x=x) for line in ("a", "b") for x in ("1", "2")}
    records = [record for name in systems for record in graded(name, "+", "+-")]
    run = Run("a", {**settings(systems, 2), "axis": "units"}, records)
    [report] = reports_of([run])
    save_plot(report, tmp_path / "lines.png")
    assert (tmp_path / "lines.png").read_bytes().startswith(b"\x89PNG")
    assert "| units |" in markdown_table(report)


@examples(max_examples=20)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_a_bootstrap_interval_holds_the_mean_and_stays_within_the_values(values: list[float]) -> None:
    interval = Interval.of_mean(values)
    assert min(values) - 1e-9 <= interval.low <= interval.value + 1e-9
    assert interval.value - 1e-9 <= interval.high <= max(values) + 1e-9
    assert interval == Interval.of_mean(values) == Interval.of_mean(values[::-1])


def test_a_bootstrap_interval_is_as_wide_as_theory_says() -> None:
    values = [float(number % 2) for number in range(400)]
    interval = Interval.of_mean(values)
    half = 1.96 * 0.5 / 20  # of a mean of 400 values with a deviation of 1/2
    assert interval.high - interval.value == pytest.approx(half, rel=0.08)
    assert interval.value - interval.low == pytest.approx(half, rel=0.08)
