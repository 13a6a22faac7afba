"""The scorers over candidates: what each believes, in which order, and who has a say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.scoring.forms import first_trust, trust_after
from ewe.longterm.scoring.mark import PRESETS
from ewe.longterm.scoring.protocol import Candidate, MemoryScorer
from ewe.longterm.scoring.scorers import (
    DefaultScorer,
    MARKScorer,
    MMAScorer,
    NoScorer,
    SettledMARKScorer,
    VeriMemScorer,
    contradict,
    voice_of,
)
from ewe.longterm.scoring.verimem import from_log_odds, log_odds

DAY = 86400.0
NOW = 1000 * DAY


class YearJudge:
    """Texts with the same last word support each other, others refute."""

    def judge(self, pairs):
        rows = [[0.8, 0.1, 0.1] if a.split()[-1] == b.split()[-1] else [0.1, 0.7, 0.2] for a, b in pairs]
        return np.array(rows, dtype=np.float32).reshape(-1, 3)


def remembered(name, *, says="It opened in 1932", who="ann", days_ago=0.0, **fields):
    at = NOW - days_ago * DAY
    fields = {"source": MemorySource("user", who, 0.7), "veracity": 0.7, **fields}
    return Memory(name, says, created_at=at, updated_at=at, **fields)


def beliefs(scorer, *memories):
    return [score.belief for score in scorer.score([Candidate(memory, 0.5) for memory in memories], NOW)]


SCORERS = [NoScorer(), VeriMemScorer(), MMAScorer(), MMAScorer(judge=YearJudge()), MARKScorer(), DefaultScorer()]
SCORERS += [MARKScorer(PRESETS["balanced"], as_written=True), SettledMARKScorer()]

memories_ = st.lists(
    st.builds(
        lambda says, who, days, v, recalls, good, bad: {
            "says": f"It opened in {says}",
            "who": who,
            "days_ago": days,
            "veracity": v,
            "recall_count": recalls,
            "correct_count": good,
            "incorrect_count": bad,
        },
        st.sampled_from(["1932", "1923"]),
        st.sampled_from(["ann", "bob", ""]),
        st.floats(0, 200),
        st.floats(0, 1),
        st.integers(0, 20),
        st.integers(0, 20),
        st.integers(0, 20),
    ),
    max_size=5,
).map(
    lambda rows: [
        remembered(str(place), contradicts=tuple(str(o) for o, r in enumerate(rows) if r["says"] != row["says"]), **row)
        for place, row in enumerate(rows)
    ]
)


@pytest.mark.parametrize("scorer", SCORERS, ids=lambda scorer: scorer.name)
@given(found=memories_, seed=st.randoms())
def test_every_scorer_keeps_the_protocol_in_any_order(scorer, found, seed):
    assert isinstance(scorer, MemoryScorer)
    candidates = [Candidate(memory, 1.0 / (2 + place)) for place, memory in enumerate(found)]
    scores = scorer.score(candidates, NOW)
    assert len(scores) == len(candidates)
    assert all(0 <= score.belief <= 1 and np.isfinite(score.rank) for score in scores)
    by_id = {one.memory.id: score for one, score in zip(candidates, scores, strict=True)}
    seed.shuffle(candidates)
    for one, score in zip(candidates, scorer.score(candidates, NOW), strict=True):
        assert score.belief == pytest.approx(by_id[one.memory.id].belief, abs=1e-7)
        assert score.rank == pytest.approx(by_id[one.memory.id].rank, abs=1e-7)


def test_none_and_verimem():
    memory = remembered("a", veracity=0.3)
    assert beliefs(NoScorer(), memory) == [1.0]
    assert beliefs(VeriMemScorer(), memory) == [0.3]


def test_mma_with_cosines_agrees_with_a_contradiction_and_with_a_judge_does_not():
    true, same, false = (
        remembered("a", who="ann"),
        remembered("b", who="bob"),
        remembered("c", who="eve", says="It opened in 1923", source=MemorySource("user", "eve", 0.3)),
    )
    alike = beliefs(MMAScorer(), true, false)[0] - beliefs(MMAScorer(), true)[0]
    assert alike > 0
    judged = MMAScorer(judge=YearJudge())
    assert beliefs(judged, true, false)[0] < beliefs(judged, true)[0]
    assert beliefs(judged, true, same, false)[0] > beliefs(judged, true, false)[0]


def test_mma_flags_what_is_under_the_least_confidence():
    old = remembered("a", days_ago=300)
    [score] = MMAScorer().score([Candidate(old, 1.0)], NOW)
    assert score.belief < 0.5
    assert not score.usable


def test_mark_ranks_by_relevance_and_drops_what_its_policy_does_not_retain():
    fresh = remembered("a")
    refused = remembered("b", recall_count=50, correct_count=5, incorrect_count=45)
    scorer = SettledMARKScorer(PRESETS["feedback_freshness"])
    one, other = scorer.score([Candidate(fresh, 0.5), Candidate(refused, 0.5)], NOW)
    assert one.usable
    assert not other.usable
    assert one.belief == 0.25
    assert one.rank > other.rank


def test_mark_believes_the_trust_that_a_memory_has_come_to():
    """TS_t goes on from TS_{t-1}: with equal counts the memory that was refused last is trusted less."""
    memory = remembered("a", veracity=first_trust(remembered("a"), [])[0])
    assert memory.veracity == 0.25
    after = {}
    for name, said in (("right last", [False, True]), ("wrong last", [True, False])):
        now = replace(memory, recall_count=2)
        for correct in said:
            row = np.array([[1.0, 0.0, 0.0] if correct else [0.0, 1.0, 0.0]])
            now = replace(now, veracity=trust_after(now, row, [0.9], NOW))
            now = replace(
                now, correct_count=now.correct_count + correct, incorrect_count=now.incorrect_count + (not correct)
            )
        after[name] = now.veracity
        [score] = MARKScorer().score([Candidate(now, 0.5)], NOW)
        assert score.belief == now.veracity
    assert after["right last"] == pytest.approx(0.8 * (0.8 * 0.25 + 0.2 * 1 / 6) + 0.2 * 2 / 6)
    assert after["wrong last"] == pytest.approx(0.8 * (0.8 * 0.25 + 0.2 * 2 / 6) + 0.2 * 2 / 6)
    silent = np.array([[0.1, 0.1, 0.8]])
    assert trust_after(memory, silent, [0.9], NOW) == 0.25


def test_default_by_hand():
    new = remembered("new", who="bob", says="It opened in 1923", veracity=0.8, contradicts=("old",))
    old = remembered("old", who="ann", days_ago=30, veracity=0.6)
    got = beliefs(DefaultScorer(half_life_days=30.0), new, old)
    assert got[0] == pytest.approx(from_log_odds(log_odds(0.8) - 0.5 * log_odds(0.6)))
    assert got[1] == pytest.approx(from_log_odds(log_odds(0.6) - log_odds(0.8)))


def test_several_rivals_share_what_a_memory_does_not_get():
    one = remembered("one", veracity=0.8)
    rivals = [
        remembered(who, who=who, says=f"It opened in 19{place}", veracity=0.6, contradicts=("one",))
        for place, who in enumerate(("bob", "cid", "dan"))
    ]
    assert beliefs(DefaultScorer(), one, *rivals)[0] == pytest.approx(4.0 / (4.0 + 1.0 + 3 * 0.5))


def test_what_was_confirmed_lately_is_as_new_as_what_was_said_lately():
    old = remembered("old", days_ago=60, veracity=0.8)
    rival = remembered("rival", who="bob", says="It opened in 1923", days_ago=30, veracity=0.8, contradicts=("old",))
    confirmed = replace(old, confirmed_at=rival.created_at)
    assert beliefs(DefaultScorer(30.0), old, rival) == pytest.approx([0.5, 4.0 / (4.0 + 2.0)])
    assert beliefs(DefaultScorer(30.0), confirmed, rival) == pytest.approx([0.5, 0.5])
    later = replace(old, confirmed_at=NOW)
    assert beliefs(DefaultScorer(30.0), later, rival) == pytest.approx([4.0 / (4.0 + 2.0), 0.5])


def test_a_correction_by_the_same_source_replaces_what_it_said():
    old = remembered("old", days_ago=1)
    new = remembered("new", says="It opened in 1923", contradicts=("old",))
    got = beliefs(DefaultScorer(), old, new)
    assert got == pytest.approx([0.5, 0.7])
    at_once = remembered("new", says="It opened in 1923", days_ago=1, contradicts=("old",))
    assert beliefs(DefaultScorer(), old, at_once) == [0.7, 0.7]


def test_a_flood_of_lies_has_one_voice_and_the_distrusted_have_none():
    true = remembered("true", veracity=0.8)
    lies = [
        remembered(str(place), who="eve", says="It opened in 1923", veracity=0.6, contradicts=("true",))
        for place in range(50)
    ]
    assert beliefs(DefaultScorer(), true, *lies)[0] == pytest.approx(beliefs(DefaultScorer(), true, lies[0])[0])
    weak = [remembered("w", who="eve", says="It opened in 1923", veracity=0.4, contradicts=("true",))]
    assert beliefs(DefaultScorer(), true, *weak)[0] == 0.8


def test_of_two_that_contradict_each_other_the_more_believed_comes_first_whichever_is_closer():
    old = remembered("old", days_ago=60)
    new = remembered("new", who="bob", says="It opened in 1923", days_ago=30, contradicts=("old",))
    other = remembered("other", who="bob", says="It closed in 1950")
    found = [Candidate(old, 1.0), Candidate(new, 0.4), Candidate(other, 0.4)]
    ranks = [score.rank for score in DefaultScorer().score(found, NOW)]
    assert ranks == pytest.approx([0.5, *beliefs(DefaultScorer(), new, old)[:1], 0.4 * 0.7])
    assert ranks[1] > ranks[0] > ranks[2]


def test_what_nothing_contradicts_keeps_its_veracity_at_any_age():
    assert beliefs(DefaultScorer(), remembered("a", days_ago=900, veracity=0.93)) == [0.93]


@given(own=st.floats(0, 1), other=st.floats(0, 1), more=st.floats(0, 1), days=st.floats(0, 100))
def test_default_falls_with_what_contradicts_it_and_rises_with_its_own_veracity(own, other, more, days):
    def belief(own_veracity, other_veracity):
        one = remembered("one", days_ago=1, veracity=own_veracity)
        against = remembered("two", who="bob", days_ago=days, veracity=other_veracity, contradicts=("one",))
        return beliefs(DefaultScorer(), one, against)[0]

    assert belief(own, max(other, more)) <= belief(own, other) + 1e-9 <= own + 2e-9
    assert belief(max(own, more), other) >= belief(own, other) - 1e-9


def test_ids_of_different_scopes_and_voices_without_id():
    one = remembered("a", scope=Scope("ann"), source=MemorySource("user", ""))
    assert voice_of(one) == ("user", "ann")
    assert not contradict(one, one)
    assert contradict(one, remembered("b", contradicts=("a",)))
