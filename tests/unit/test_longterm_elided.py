"""What people leave out when they type: who does something, and whose a thing is."""

from __future__ import annotations

import pytest

from ewe.longterm.rule_facts import facts_by_rules


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        # A verb without its subject, in front and behind a comma.
        ("Been knitting since I was six.", ["Ann has been knitting since Ann was six."]),
        ("Can't stand coriander.", ["Ann can't stand coriander."]),
        ("Used to play the tuba in Ulm.", ["Ann used to play the tuba in Ulm."]),
        ("Lost my job in March.", ["Ann lost Ann's job in March."]),
        ("Currently training for a marathon.", ["Ann is currently training for a marathon."]),
        ("I'm dyslexic, left school at 14.", ["Ann is dyslexic.", "Ann left school at 14."]),
        ("I take two pills, never eat meat.", ["Ann takes two pills.", "Ann never eats meat."]),
        ("I'm 63, take magnesium for cramps.", ["Ann is 63.", "Ann takes magnesium for cramps."]),
        ("My budget is 900 euros, hate Macs.", ["Ann's budget is 900 euros.", "Ann hates Macs."]),
        # What somebody is and has.
        ("Retired bus driver, 71, Ulm.", ["Ann is a retired bus driver, 71, Ulm."]),
        ("Allergic to wool.", ["Ann is allergic to wool."]),
        ("Third year of med school.", ["Ann is in the third year of med school."]),
        ("Currently a train driver in Ulm.", ["Ann is currently a train driver in Ulm."]),
        ("34f here, nurse in Ulm.", ["Ann is 34, nurse in Ulm."]),
        ("Two cats, one flat.", ["Ann has two cats, one flat."]),
        ("ADHD, diagnosed at 34.", ["Ann has ADHD, diagnosed at 34."]),
        # Orders, adjectives and what is said of a thing are none of these.
        ("Write a poem about Ulm.", []),
        ("Don't ask my boss.", []),
        ("Mixed feelings about my new job.", []),
        ("Best present for a teacher?", []),
        ("We have a dog, adopted from Spain.", ["Ann and others have a dog, adopted from Spain."]),
        # Whose, and "is" for "'s".
        ("Wife's a nurse.", ["Ann's wife is a nurse."]),
        ("The kids were born in Ulm.", ["Ann's kids were born in Ulm."]),
        ("Budget about 150 euros.", ["Ann's budget is about 150 euros."]),
        ("My lad's 11 and obsessed with trains.", ["Ann's lad is 11 and obsessed with trains."]),
        ("Our son's nonverbal and autistic.", ["Ann's son is nonverbal and autistic."]),
        ("My name's Ngozi.", ["Ann's name is Ngozi."]),
        ("My new job's got a canteen.", ["Ann's new job has got a canteen."]),
        ("My sister's husband works in Ulm.", ["Ann's sister's husband works in Ulm."]),
        ("My wife's birthday on Friday.", ["Ann's wife's birthday on Friday."]),
        # Whom it is about comes first.
        ("At my last place we used Jira.", ["Ann and others used Jira at Ann's last place."]),
        ("I play the organ (my grandmother was from Maribor).",
         ["Ann plays the organ.", "Ann's grandmother was from Maribor."]),
    ],
)  # fmt: skip
def test_what_was_left_out_is_written(said: str, facts: list[str]) -> None:
    assert facts_by_rules("Ann", said) == facts
