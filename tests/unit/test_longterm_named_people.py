"""What is told of people by their names, and what is none of it."""

from __future__ import annotations

import pytest

from ewe.longterm.rule_facts import facts_by_rules


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("Rohan's my boyfriend.", ["Rohan is the user's boyfriend."]),
        ("Amir left the bank and opened a bakery.", ["Amir left the bank and opened a bakery."]),
        ("Hannah's gone back to work, she's a GP.", ["Hannah has gone back to work.", "Hannah is a GP."]),
        ("Ada and Theo moved to Hull.", ["Ada and Theo moved to Hull."]),
        ("Silje lives with us since May.", ["Silje lives with the user and others since May."]),
        ("Arjun's wedding has been pushed to June.", ["Arjun's wedding has been pushed to June."]),
        ("Is it rude if my wife Denise says no?", ["Denise is the user's wife."]),
        ("Is it rude if my wife Ann says no? Anna works in Hull.", ["Anna works in Hull.", "Ann is the user's wife."]),
        ("My wife Denise works in Hull.", ["The user's wife Denise works in Hull."]),  # named there
        # Not of people, not of one person, or not told.
        ("Dairy is fine.", []),
        ("Python is slow.", []),
        ("Gluten is a no for me.", []),
        ("Joel says Amir moved to Berlin.", []),
        ("Did Amir leave the bank?", []),
        ("Anna married Tom in May, he is a chef.", ["Anna married Tom in May."]),  # who?
        ("Friday is fine.", []),
        ("Dance is my passion.", []),
        ("Trust plays a big role in my job.", []),
        ("Store is going good.", []),
    ],
)
def test_people_are_told_of_by_their_names(said: str, facts: list[str]) -> None:
    assert facts_by_rules("The user", said) == facts


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("Rohan and I split up last week.", ["Rohan and the user split up last week."]),
        ("me and jess broke up in May", ["Jess and the user broke up in May."]),
        ("They put me on insulin.", ["They put the user on insulin."]),
        ("They told me to wait.", []),
        ("They give me the strength to go on.", []),
        ("I no longer take aspirin.", ["The user no longer takes aspirin."]),
        ("Allergic to nuts.", ["The user is allergic to nuts."]),
        ("I drink four coffees a day don't judge", ["The user drinks four coffees a day."]),
        ("I smoke about ten a day which prob doesn't help", ["The user smokes about ten a day."]),
        ("sister's wedding in Pune on 24 May, need to book leave", ["The user's sister's wedding in Pune on 24 May."]),
        ("Dan retired in May.", ["Dan retired in May."]),
        ("Happily married for ten years", ["The user is happily married for ten years."]),
        ("The wedding happened last Saturday.", []),  # whose?
        ("my drummer's dog ate a drumstick on Monday", ["The user's drummer's dog ate a drumstick on Monday."]),
        ("I slept 12 hours after.", []),
        ("Getting old like me.", []),
    ],
)
def test_what_people_leave_out_or_add_makes_no_false_fact(said: str, facts: list[str]) -> None:
    assert facts_by_rules("The user", said) == facts
