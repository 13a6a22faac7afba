"""`ewe eval factuality` at work: prompts, systems, judges, what fails, and runs that go on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from e2e.llm_rig import loaded
from hypothesis import given
from hypothesis import strategies as st

from ewe.cli.eval_run import Judges
from ewe.cli.findings_file import FindingsFile, read_findings
from ewe.components import Components
from ewe.config import Config
from ewe.config.registry import POLICIES
from ewe.errors import ConfigError, InvalidRequestError, JudgeError
from ewe.evaluation import factuality_run
from ewe.evaluation.factuality import RECORDS, Answer, Found, Grade, Preference
from ewe.evaluation.factuality_run import Job, run
from ewe.evaluation.graders import Graded, JudgeGrader, Part, compare
from ewe.evaluation.prompt_sets import DETAIL, KS, Item, parse_shard, prompt_set
from ewe.evaluation.systems import find_sweep, read_sweep, shipped_sweeps, systems_of
from ewe.text.check_result import REPEATS
from ewe.types import Claim, Evidence, Passage, Verdict, VerificationRequest, VerificationResult
from ewe.types.sampling_params import SamplingParams
from ewe.verification.endpoint.protocol import CompletionError, LocalCompleter

SETTINGS = {"memory": {"unit_tokens": 24, "retrieval_units": 3}, "cache": {"num_blocks": 300}, "verifier": "none"}
ITEMS = [
    Item(str(number), f"Who is {name}?", f"Who is {name}? Say more.", number) for number, name in enumerate("ABCD")
]


class Counted:
    """A grader that supports one claim per answer, and fails when it is told to."""

    def __init__(self, failing: int = 0) -> None:
        self.failing = failing
        self.asked: list[str] = []

    def grade(self, item: Item, text: str) -> Graded:
        self.asked.append(item.id)
        if self.failing:
            self.failing -= 1
            raise JudgeError("the endpoint is gone")
        return Graded([Claim(text, verdict=Verdict.SUPPORTED)])


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factuality_run, "load_model", lambda *_, **__: loaded())


def job(grader: Counted, policies: tuple[str, ...] = ("plain", "rag"), **more: object) -> Job:
    params = SamplingParams(max_tokens=4, temperature=1.0, seed=5)
    return Job(Config.from_mapping(SETTINGS), systems_of(policies), [Part(ITEMS, grader)], params, "plain", **more)  # type: ignore[arg-type]


def done(own: Job, found: Found | None = None) -> Found:
    found = found or Found()
    run(own, found, lambda record: None)
    return found


def texts(found: Found) -> dict[tuple[str, str], str]:
    return {key: answer.text for key, answer in found.answers.items()}


def test_every_system_answers_every_prompt_and_every_answer_is_graded() -> None:
    found = done(job(Counted()))
    assert set(found.answers) == set(found.grades) == {(name, item.id) for name in ("plain", "rag") for item in ITEMS}
    assert all(answer.wall_s > 0 and answer.stats["passes"] >= 1 for answer in found.answers.values())
    assert found.num_finished == job(Counted()).total()


def test_one_answer_is_written_alone_and_loading_counts_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    warmed: list[int] = []
    monkeypatch.setattr(Components, "warm", lambda _: warmed.append(len(found.answers)))
    found = Found()
    run(job(Counted()), found, lambda _: None)
    assert [key for key, answer in found.answers.items() if answer.was_alone] == [("plain", "0")]
    assert warmed == [0, 4]


def test_an_answer_depends_on_its_prompt_alone_not_on_what_else_is_asked() -> None:
    whole = texts(done(job(Counted(), ("plain",))))
    part = replace(job(Counted(), ("plain",)), parts=[Part(ITEMS[2:3], Counted())])
    assert texts(done(part)) == {("plain", "2"): whole["plain", "2"]}
    assert len(set(whole.values())) > 1


def test_an_interrupted_run_goes_on_and_comes_to_the_same() -> None:
    whole = done(job(Counted()))
    for after in range(0, 16, 5):
        found, heard = Found(), []

        def stop(record: object, heard: list[object] = heard, after: int = after) -> None:
            heard.append(record)
            if len(heard) > after:
                raise OSError("the disk is full")

        with pytest.raises(OSError, match="disk"):
            run(job(Counted()), found, stop)
        done(job(Counted()), found)
        assert texts(found) == texts(whole)
        assert found.grades == whole.grades


def test_a_prompt_that_cannot_be_asked_is_recorded_and_the_others_go_on() -> None:
    long = Item("long", "Who?", "word " * 600, 9)
    found = done(replace(job(Counted(), ("plain",)), parts=[Part([long, *ITEMS], Counted())]))
    assert "tokens" in found.answers["plain", "long"].error
    assert len(found.answers) == 5
    assert ("plain", "long") not in found.grades


def test_a_judge_that_dies_ends_the_run_and_the_next_one_goes_on() -> None:
    found = Found()
    with pytest.raises(JudgeError, match="failed 3 times in a row, the last time with: the endpoint is gone"):
        done(job(Counted(failing=9)), found)
    assert len(found.answers) == 8
    assert [grade.error for grade in found.grades.values()] == ["the endpoint is gone"] * 3
    grader = Counted()
    done(job(grader), found)
    assert len(grader.asked) == 8
    assert not any(grade.error for grade in found.grades.values())


def test_a_judge_that_fails_once_costs_one_grade_until_the_next_run() -> None:
    found = done(job(Counted(failing=1)))
    assert sum(bool(grade.error) for grade in found.grades.values()) == 1
    grader = Counted()
    done(job(grader), found)
    assert len(grader.asked) == 1


def verdicts(*said: str) -> LocalCompleter:
    answers = iter(said)
    return LocalCompleter(lambda prompts: [next(answers) for _ in prompts])


def test_answers_are_compared_in_both_orders() -> None:
    told = verdicts("It is.\nBetter: 1", "Better: 2", "Better: 1", "Better: 1", "**Better: tie**", "Better: 2")
    assert compare(told, [("?", "own", "other")] * 3) == [[1, 1], [1, 0], [0.5, 1]]


def test_equal_and_empty_answers_are_not_asked_about() -> None:
    told = LocalCompleter(lambda prompts: pytest.fail("asked"))  # type: ignore[arg-type]
    assert compare(told, [("?", "a", "a"), ("?", "", "a"), ("?", "a", ""), ("?", "", "")]) == [
        [0.5, 0.5], [0, 0], [1, 1], [0.5, 0.5],
    ]  # fmt: skip


def test_a_comparison_without_a_verdict_is_an_error_of_that_pair_only() -> None:
    first, second = compare(verdicts("Better: 1", "I like both", "Better: 2", "Better: 1"), [("?", "a", "b")] * 2)
    assert isinstance(first, CompletionError)
    assert "Better: tie" in str(first)
    assert second == [0, 0]


def test_a_run_compares_all_but_the_baseline_and_goes_on_with_what_failed() -> None:
    own = job(Counted(), comparer=LocalCompleter(lambda prompts: ["Better: 1"] * len(prompts)))
    found = done(own)
    assert {key[0] for key in found.preferences} == {"rag"}
    assert found.num_finished == own.total()
    found.add(Preference("rag", "1", "plain", error="gone"))
    heard: list[object] = []
    run(own, found, heard.append)
    assert [type(record) for record in heard] == [Preference]


def test_sentences_that_the_judge_could_not_read_are_counted() -> None:
    class Verifier:
        def verify(self, requests):  # type: ignore[no-untyped-def]
            notes = ("not checked: no claims in the answer",)
            return [VerificationResult(notes=notes if "odd" in item.sentence else ()) for item in requests]

    found = JudgeGrader(Verifier()).grade(ITEMS[0], "This is odd. This is not.")
    assert (list(found.claims), found.unread, found.off_subject, found.sentences) == ([], 1, None, 2)


class Copies:
    """Supports every sentence by the passages that hold it; one said before is named as such."""

    def __init__(self, *passages: Passage) -> None:
        self._passages = passages

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        return [self._result(item.sentence, item.preceding) for item in requests]

    def _result(self, sentence: str, preceding: str) -> VerificationResult:
        if sentence in preceding:
            return VerificationResult(reason=REPEATS)
        bearing = [one for one in self._passages if sentence in one.text]
        claim = Claim(sentence, verdict=Verdict.SUPPORTED, evidence_ids=tuple(one.id for one in bearing))
        return VerificationResult(
            (claim,), tuple(Evidence(one, Verdict.SUPPORTED, 1.0, claim=sentence) for one in bearing)
        )


def test_what_is_true_of_another_article_is_off_the_subject_and_what_was_said_before_is_counted() -> None:
    passages = [
        Passage("1", "The bridge is long. It is old.", title="The_Bridge"),
        Passage("2", "It is old. The tower is high.", title="The tower"),
    ]
    text = "The bridge is long. It is old. The tower is high. It is old."
    item = Item("0", "The bridge?", "The bridge?", 0, title="the bridge")
    found = JudgeGrader(Copies(*passages)).grade(item, text)
    assert [claim.text for claim in found.claims] == ["The bridge is long.", "It is old.", "The tower is high."]
    assert (found.off_subject, found.sentences, found.repeated) == (("The tower is high.",), 4, 1)
    assert JudgeGrader(Copies(*passages)).grade(replace(item, title=""), text).off_subject is None


@given(st.integers(1, 40), st.integers(1, 7))
def test_shards_share_the_prompts_out(prompts: int, count: int) -> None:
    whole = prompt_set("mine", [(str(number), "?", "") for number in range(prompts)])
    parts = [whole.shard(index, count).items for index in range(1, count + 1)]
    assert sorted((item for part in parts for item in part), key=lambda item: item.number) == list(whole.items)


def test_prompts_get_the_papers_form() -> None:
    [name, request] = prompt_set("biography", [("0", "Ada Lovelace", ""), ("1", "Tell me a bio of Ada.", "")]).items
    assert (name.question, name.text) == ("Tell me a bio of Ada Lovelace.", f"Tell me a bio of Ada Lovelace. {DETAIL}")
    assert request.question == "Tell me a bio of Ada."
    assert prompt_set("longfact", [("0", "Who?", "")], suffix="").items[0].text == "Who?"
    assert KS == {"longfact": 55, "fava": 49, "alpacafact": 31, "biography": 43}
    assert [prompt_set("fava", [("0", "Who?", "")], k=k).k for k in (None, 5.0)] == [49, 5]
    named, other = (prompt_set("mine", [("0", "Who?", title)]) for title in ("Ada", "Bob"))
    assert named.items[0].title == "Ada"
    assert named.digest != other.digest  # answers are not graded alike
    with pytest.raises(InvalidRequestError, match="no prompt"):
        prompt_set("fava", [])


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"])
def test_shards_that_cannot_be(text: str) -> None:
    with pytest.raises(ConfigError, match="--shard must be i/n"):
        parse_shard(text)


def test_policies_by_name() -> None:
    assert [system.name for system in systems_of(POLICIES.names)] == list(POLICIES.names)
    with pytest.raises(ConfigError, match="did you mean flare"):
        systems_of(["plain", "flair"])


SWEEPS = {
    "points: []": "must name at least one point",
    "points: {a: {}}\nseri: {}": "unknown key 'seri'; did you mean series",
    "points: {a: 3}": "a must map group.key to a value",
    "points: {a: {}}\nseries: [1]": "`series` must map names",
}


@pytest.mark.parametrize("text", SWEEPS)
def test_what_is_wrong_with_a_sweep_is_named(tmp_path, text: str) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=SWEEPS[text]):
        read_sweep(path)


def test_the_papers_figures_and_tables_are_sweeps_by_name(tmp_path) -> None:
    names = {f"figure-{number}" for number in range(3, 9)} | {f"table-{number}" for number in (1, 3, 4)}
    assert names <= set(shipped_sweeps())
    assert read_sweep(find_sweep("figure-3")).axis == "units in each lane"
    own = tmp_path / "own.yaml"
    own.write_text("points: {a: {}}")
    assert find_sweep(str(own)) == own
    with pytest.raises(ConfigError, match=r"unknown sweep 'figure-33'.*figure-3.*no such file"):
        find_sweep("figure-33")


def test_a_sweep_has_every_point_on_every_line(tmp_path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text("axis: k\nsettings: {policy: ewe}\nseries: {a: {}, b: {x.y: 1}}\npoints: {1: {x.y: 2}, two: {}}")
    sweep = read_sweep(path)
    assert [(one.name, one.series, one.x) for one in sweep.systems] == [
        ("a 1", "a", "1"), ("a two", "a", "two"), ("b 1", "b", "1"), ("b two", "b", "two"),
    ]  # fmt: skip
    assert sweep.systems[2].settings[-1].startswith("x.y=1")  # the last assignment counts


def judges(judge: str = "builtin", **more: object) -> Judges:
    return Judges(**{"judge": judge, "claims": None, "evidence": "builtin", "compare": None, "same": False, **more})  # type: ignore[arg-type]


def test_who_checks_the_writing_does_not_grade_it() -> None:
    checked = Config.from_mapping({"datastore": "builtin", "verifier": "claims"})
    unchecked = [
        Config.from_mapping({"datastore": "builtin", "policy": "rag", "verifier": verifier})
        for verifier in ("auto", "claims")
    ]
    unchecked.append(Config.from_mapping({"datastore": "builtin", "verifier": "builtin"}))  # by no judge
    own = judges()
    own.check(unchecked)
    assert not own.same
    with pytest.raises(ConfigError, match="builtin also checks sentences while they are written"):
        judges().check([*unchecked, checked])
    allowed = judges(same=True)
    allowed.check([checked])
    assert allowed.as_settings()["same"]
    url = "openai:m@http://127.0.0.1:9/v1"
    writing = Config.from_mapping({"datastore": "builtin", "verification": {"judge": url}})
    with pytest.raises(ConfigError, match="also checks"):
        judges(compare=url).check([writing])
    assert judges(url).as_settings()["claims"] == url


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"judge": ""}, "name who grades the answers with --judge"),
        ({"evidence": ""}, "the judge needs evidence"),
        ({"judge": "/nowhere/judge"}, "nowhere"),
        ({"compare": "gpt"}, "openai:MODEL@URL"),
    ],
)
def test_judges_that_are_missing_are_named_before_anything_is_written(options, reason: str) -> None:
    with pytest.raises((ConfigError, JudgeError), match=reason):
        judges(**options).check([Config()])


def test_findings_are_read_back_and_a_torn_line_is_cut_off(tmp_path) -> None:
    path = tmp_path / "found.jsonl"
    records = [
        Answer("a", "0", "half \ud800 a pair", "stop", "", 1.0, {"passes": 3.0}),
        Grade("a", "0", [["c", "refuted"]]),
    ]
    file = FindingsFile(path, {"k": 1}, RECORDS)
    for record in records:
        file.add(record)
    file.close()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"grade": {"sys')
    settings, found, kept = read_findings(path, RECORDS)
    assert (settings, kept) == ({"k": 1}, len(whole))
    assert found[1] == records[1]
    FindingsFile(path, {"k": 1}, RECORDS).close()
    assert path.read_bytes() == whole
    with pytest.raises(InvalidRequestError, match="k was 1, is now 2"):
        FindingsFile(path, {"k": 2}, RECORDS)
    path.write_bytes(whole[:9])
    FindingsFile(path, {"k": 2}, RECORDS).close()
    assert json.loads(path.read_text()) == {"settings": {"k": 2}}
    path.write_text("something else\n")
    with pytest.raises(InvalidRequestError, match="not what this evaluation wrote"):
        FindingsFile(path, {"k": 2}, RECORDS)
