import json
from importlib.resources import files

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from ewe.types import Passage
from ewe.verification.combination import Thresholds
from ewe.verification.decision import (
    FEATURES,
    DecisionRule,
    Reading,
    evidence_of,
    mentions,
    read_rule,
    rule_of,
    window_probabilities,
)
from ewe.verification.selection import SentenceSelector
from ewe.verification.signals import (
    SIGNALS,
    repeats_the_words,
    says_nearly_the_same,
    signals,
    speaks_of_the_same,
    swaps_names,
)

THRESHOLDS = Thresholds(0.5, 0.5, 0.0)
TEXT = "Ada Lind was a weaver of fine wool in Oslo. She was born to Danish parents in Warsaw on 8 March 1931."
SUPPORTS, REFUTES, OPEN = (0.9, 0.05, 0.05), (0.05, 0.9, 0.05), (0.1, 0.1, 0.8)


def reading(said=OPEN, claim="She was born in Warsaw in 1931.", text=TEXT, wording=None):
    window = SentenceSelector().select(claim, Passage("p", text, title="Ada Lind"))
    return Reading(window, evidence_of(wording or claim, window)[0], said)


def missing(claim, sentence, led=None):
    return dict(zip(SIGNALS, signals(claim, sentence, led or sentence), strict=True))


def test_signals_tell_what_the_evidence_lacks():
    said = "In 1931 Ada Lind and three brothers opened a mill in Oslo."
    assert not any(missing(said, said).values())
    assert missing("In 1932 Ada Lind opened a mill.", said)["numbers"] == 1
    assert missing("In 1931 Eva Berg opened a mill.", said)["names"] == 1
    assert missing("Ada Lind never opened a mill.", said)["negations"] == 1
    assert missing("In 1931 Ada Lind and 3 brothers opened a mill.", said)["numbers"] == 0
    assert missing("In 1931 Ada Lind and three sisters opened a mill in Oslo.", said)["one word"] == 1
    assert missing("Roses are red and violets are blue.", said)["words"] == 1


def test_a_name_is_there_if_a_word_of_it_is():
    assert missing("Ada Lind opened a mill.", "Lind opened a mill.")["names"] == 0
    assert missing("Ada Lind-Berg opened a mill.", "Mrs. Berg opened a mill.")["names"] == 0
    assert missing("Ada Lind opened a mill.", "Eva Berg opened a mill.")["names"] == 1
    assert missing("Ada, Lind and Bo opened a mill.", "Bo and Lind opened a mill.")["names"] == 1


@pytest.mark.parametrize(
    ("claim", "is_missing"),
    [
        ("He was mayor of Palermo.", False),
        ("Tusa was mayor of Palermo.", False),
        ("The mayor of Palermo was Vincenzo Tusa.", False),
        ("Tusa and his son led Palermo.", False),
        ("He was mayor of Tusa.", True),
        ("Vincenzo Tusa was mayor of Tusa.", True),
        ("In 1931 his home was Tusa.", True),
        ("Eva Berg was mayor of Palermo.", True),
    ],
)
@pytest.mark.parametrize("lead", ["", "Tusa went home. "])
def test_a_name_of_the_title_or_lead_stands_for_the_pronoun_of_the_sentence_alone(claim, is_missing, lead):
    said = "He was mayor of Palermo."
    assert missing(claim, said, f"Vincenzo Tusa: {lead}{said}")["names"] == is_missing


def test_such_a_name_is_a_missing_word_too():
    said = "In 1931 he was mayor of Palermo and later sold wool and roses."
    told = missing(said.replace("Palermo", "Tusa"), said, f"Vincenzo Tusa: {said}")
    assert told["one word"] == 1
    assert told["words"] > 0


def test_a_lost_maybe_is_seen_and_so_is_a_negation_unless_the_sentence_says_much_more():
    assert missing("Ada Lind wove wool.", "Ada Lind may have woven wool.")["certainty"] == 1
    assert missing("Ada Lind may have woven wool.", "Ada Lind wove wool.")["certainty"] == 0
    assert missing("Ada Lind wove wool.", "Ada Lind never wove wool.")["negations"] == 1
    more = "Ada Lind wove wool and never sold what books, roses or ships might fetch abroad."
    assert missing("Ada Lind wove wool.", more)["negations"] == missing("Ada Lind wove wool.", more)["certainty"] == 0
    assert missing("Ada Lind wove no wool.", more.replace("never", "once"))["negations"] == 1


@pytest.mark.parametrize(
    ("claim", "open_", "told"),
    [
        ("Ada Lind was born in Warsaw.", 0.9, True),
        ("Ada Lind was born in Warsaw.", 1.0, True),
        ("Ada Lind sold roses to dukes.", 0.2, True),
        ("Ada Lind sold roses to dukes.", 0.6, False),
        ("Ada Lind was born with Bo Berg.", 0.2, False),
    ],
)
def test_a_passage_mentions_a_claim_whose_words_it_has_or_that_the_judge_does_not_leave_open(claim, open_, told):
    assert mentions(claim, reading((1.0 - open_, 0.0, open_), claim, "Ada Lind was born in Warsaw.")) is told


def test_another_degree_is_seen():
    said = "Before 1931 Ada Lind sold more wool than Bo Berg in some years."
    assert missing("Before 1931 Ada Lind sold less wool than Bo Berg in some years.", said)["degrees"] == 1
    assert missing("Before 1931 Ada Lind sold more wool than Bo Berg in all years.", said)["degrees"] == 1
    assert missing("Ada Lind sold more wool than Bo Berg.", said)["degrees"] == 0


@pytest.mark.parametrize(
    ("claim", "sentence", "swapped"),
    [
        ("In 1931 Bo Berg beat Ada Lind.", "In 1931 Ada Lind beat Bo Berg.", True),
        ("Bo Berg beat Ada Lind.", "In 1931 Ada Lind, a weaver, beat Bo Berg.", True),
        ("Oslo was left by the Duke of Warsaw.", "The Duke of Warsaw was left by Oslo.", True),
        ("Bo Berg was beaten by Ada Lind in 1931.", "In 1931 Ada Lind beat Bo Berg.", False),
        ("Bo Berg was beaten by Ada Lind.", "Ada Lind beat Bo Berg.", False),
        ("Bo Berg and Ada Lind opened a mill.", "Ada Lind and Bo Berg opened a mill.", False),
        ("Rome, Oslo and Bonn have mills.", "Oslo, Rome and Bonn have mills.", False),
        ("Ada Lind sold wool to Bo Berg.", "In Oslo Ada Lind sold fine wool to Bo Berg.", False),
        ("In Oslo, Ada Lind sold wool.", "Ada Lind sold wool in Oslo.", False),
        ("Ada Lind sold wool.", "Roses are red.", False),
    ],
)
def test_names_in_each_others_place_are_seen_and_passives_and_lists_are_none(claim, sentence, swapped):
    assert swaps_names(claim, sentence) is swapped


def test_a_short_claim_says_nearly_the_same_only_as_a_short_sentence():
    short, long = "Ada Lind wove wool.", "Ada Lind wove wool and sold mills, roses, books and ships abroad."
    assert says_nearly_the_same(short, short, short)
    assert not says_nearly_the_same("Ada Lind sold wool.", long, long)
    assert says_nearly_the_same(short, long, long)  # word for word a part of it
    assert not says_nearly_the_same("Ada Lind.", long, long)
    assert says_nearly_the_same(long, f"{long[:-1]}, and much else was done by others there.", long)
    assert not says_nearly_the_same(long, short, short)


def test_the_judge_reads_a_sentence_that_says_nearly_the_same_and_else_the_window():
    window = reading().window
    assert evidence_of("She was born to Danish parents in Warsaw in March 1932.", window) == (True, window.sentence)
    assert evidence_of("Ada Lind had studied chemistry abroad.", window) == (False, window.text)


def test_the_negation_of_a_sentence_before_is_not_the_sentences_own():
    claim, before = "She was born in Warsaw.", "She did not like Oslo."
    assert missing(claim, claim, f"{before} {claim}")["negations"] == 0


def test_only_what_speaks_of_the_same_refutes():
    assert speaks_of_the_same("Ada Lind was born in Rome.", "Lind: She was born in Warsaw.")
    assert not speaks_of_the_same("Genghis Khan founded the empire.", "Bo Berg: He founded a mill.")
    rule = DecisionRule(THRESHOLDS)
    found = reading(REFUTES)
    assert rule.probabilities("Ada Lind was born in Rome.", found)[1] == pytest.approx(0.9)
    assert rule.probabilities("Genghis Khan founded an empire.", found) == pytest.approx((0.05, 0.0, 0.95))


@pytest.mark.parametrize(
    ("title", "text", "another"),
    [
        ("Kublai Khan", "He was born in 1215.", True),
        ("Genghis Khan", "He was born in 1162.", False),
        ("Khan", "He was born in 1162.", False),
        ("Mongols", "Genghis Khan led them. He was born in 1162.", False),
        ("", "He was born in 1162.", False),
    ],
)
def test_a_passage_about_somebody_else_says_nothing_of_whom_a_pronoun_stands_for(title, text, another):
    claim, wording = "Genghis Khan was born in 1215.", "He was born in 1215."
    window = SentenceSelector().select(claim, Passage("p", text, title=title))
    found = DecisionRule(THRESHOLDS).probabilities(wording, Reading(window, True, SUPPORTS), claim)
    assert (found == (0.0, 0.0, 1.0)) is another


@pytest.mark.parametrize(
    ("title", "another"), [("New Jersey Route 29", True), ("New Jersey Route 50", False), ("New Jersey", False)]
)
def test_a_passage_about_another_number_of_the_name_says_nothing(title, another):
    claim = "New Jersey Route 50 is a state highway."
    window = SentenceSelector().select(claim, Passage("p", "Route 29 is a state highway in New Jersey.", title=title))
    found = DecisionRule(THRESHOLDS).probabilities(claim, Reading(window, True, REFUTES), claim)
    assert (found == (0.0, 0.0, 1.0)) is another


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("The road is 34 miles long.", "The road is 34 mi long."),
        ("The tower is 93 metres high.", "The tower is 93 meters high."),
        ("Papa Stour is a Scottish island.", "Papa Stour is an island in Scotland."),
    ],
)
def test_units_and_peoples_are_the_same_in_other_forms(claim, sentence):
    assert signals(claim, sentence, sentence) == (0.0,) * len(SIGNALS)


def test_a_sentence_with_the_titles_name_in_another_ones_place_is_not_supported():
    passage, claim = Passage("p", "He was mayor of Palermo.", title="Vincenzo Tusa"), "He was mayor of Tusa."
    found = Reading(SentenceSelector().select(claim, passage), True, SUPPORTS)
    rule = DecisionRule(THRESHOLDS)
    assert rule.probabilities(claim, found) == pytest.approx((0.0, 0.05, 0.95))
    assert rule.probabilities("Tusa was mayor of Palermo.", found) == pytest.approx(SUPPORTS)


def test_without_parameters_the_judge_is_believed():
    rule = DecisionRule(THRESHOLDS)
    assert rule.probabilities("Ada Lind", reading(SUPPORTS)) == pytest.approx(SUPPORTS)
    assert rule.probabilities("Ada Lind", reading(REFUTES)) == pytest.approx(REFUTES)


@pytest.mark.parametrize("name", ["builtin", "default"])
def test_a_sentence_with_its_names_swapped_is_neither_supported_nor_refuted(name):
    text, claim = "In 1931 Ada Lind beat her friend Bo Berg.", "In 1931 Bo Berg beat her friend Ada Lind."
    assert rule_of(name).probabilities(claim, reading(SUPPORTS, claim, text)) == (0.0, 0.0, 1.0)
    assert rule_of(name).probabilities(text, reading(SUPPORTS, text, text))[0] > 0.8


def test_near_passages_are_fitted_and_others_believed_above_the_floor():
    weights = np.zeros((2, len(FEATURES)))
    weights[1, FEATURES.index("missing: numbers")] = 5.0
    rule = DecisionRule(THRESHOLDS, weights)
    changed = "She was born to Danish parents in Warsaw on 8 March 1932."
    assert rule.probabilities(changed, reading(SUPPORTS, wording=changed))[1] > 0.9
    other = "Ada Lind had studied chemistry, physics and philosophy abroad."
    assert rule.probabilities(other, reading(SUPPORTS, wording=other)) == pytest.approx((0.8, 0.0, 0.2))
    assert window_probabilities(reading(OPEN)) == pytest.approx((0.0, 0.0, 1.0))


@pytest.mark.parametrize("name", ["builtin", "base", "default"])
def test_every_shipped_rule_is_in_range_and_says_where_it_is_from(name):
    table = json.loads(files("ewe.verification").joinpath("decisions.json").read_text())["judges"]
    entry = table[name]
    assert rule_of(name).thresholds == Thresholds(entry["supported"], entry["refuted"], entry["floor"])
    assert 0 <= entry["floor"] < 1
    assert all(0 < entry[side] <= 1 for side in ("supported", "refuted"))
    assert len(entry["provenance"]) > 20
    assert all(set(side) <= set(FEATURES) for side in entry.get("weights", {}).values())
    assert rule_of("/some/folder") == rule_of("default")


def test_the_builtin_rule_sees_a_changed_number_that_the_judge_reads_past():
    rule = rule_of("builtin")
    wording = "She was born to Danish parents in Warsaw on 8 March {}."
    true, false = (
        rule.probabilities(wording.format(year), reading(SUPPORTS, wording=wording.format(year)))
        for year in (1931, 1932)
    )
    assert true[0] > 0.7
    assert false[1] > false[0]


probability = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 1)).map(lambda row: np.array(row) / sum(row))


@examples(25)
@given(st.sampled_from(["builtin", "default"]), probability, st.sampled_from([TEXT, "Ada was not here."]))
def test_a_rule_gives_probabilities(name, said, claim):
    found = rule_of(name).probabilities(claim, reading(said, wording=claim))
    assert min(found) >= -1e-9
    assert sum(found) == pytest.approx(1.0)


def test_a_feature_that_an_entry_does_not_name_weighs_nothing():
    entry = {"supported": 0.5, "refuted": 0.5, "floor": 0.0, "weights": {"supported": {"1": 2.0}, "refuted": {}}}
    rule = read_rule(entry)
    assert rule.weights is not None
    assert rule.weights.sum() == 2.0


@pytest.mark.parametrize(
    ("claim", "confirmed"),
    [
        ("Ada Lind was a weaver in Oslo.", True),
        ("Ada Lind was the weaver of fine wool.", True),
        ("Ada Lind was a famous weaver in Oslo.", False),
        ("Ada Lind and Bo Berg were weavers of fine wool in Oslo.", False),
        ("Ada Lind was a weaver in Oslo in 1950.", False),
        ("Ada Lind was born in Oslo on 8 Mar 1931.", False),
        ("Ada Lind was born in Warsaw on 8 Mar 1931.", True),
    ],
)
def test_a_rule_for_copies_ticks_only_what_has_no_word_beyond_the_evidence(claim, confirmed):
    window = SentenceSelector().select(claim, Passage("p", TEXT, title="Ada Lind"))
    assert DecisionRule(THRESHOLDS, copies_only=True).confirms(claim, window) is confirmed
    assert DecisionRule(THRESHOLDS).confirms(claim, window)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Employees get 28 days.", "Full-time employees get 28 days. Part-time employees get 16 days."),
        ("The file b/a/c.txt holds settings.", "The file a/b/c.txt holds settings."),
    ],
)
def test_a_copy_says_of_which_and_spells_alike(claim, text):
    window = SentenceSelector().select(claim, Passage("p", text, title="Notes"))
    assert not DecisionRule(THRESHOLDS, copies_only=True).confirms(claim, window)


@pytest.mark.parametrize(
    ("claim", "title", "text"),
    [
        ("Dogs can come in.", "The lake", "Can dogs come in?"),
        ("You can share a note with others.", "Help - Can I share a note with others?", "No."),
        ("Vaccinations are covered.", "Policy - What is not covered", "Vaccinations."),
        ("It was paid by Ada, not by Bo.", "Mill", "It was paid by Bo, not by Ada."),
        ("Dogs are not admitted.", "Mill", "Dogs are not admitted, apart from guide dogs."),
    ],
)
def test_a_question_or_an_exception_or_another_negation_is_no_copy(claim, title, text):
    window = SentenceSelector().select(claim, Passage("p", text, title=title))
    assert not DecisionRule(THRESHOLDS, copies_only=True).confirms(claim, window)


def test_an_answer_under_a_question_is_a_copy():
    claim = "Free users can attach 25 MB."
    window = SentenceSelector().select(claim, Passage("p", claim, title="Help - How large may attachments be?"))
    assert DecisionRule(THRESHOLDS, copies_only=True).confirms(claim, window)


def test_the_month_of_may_is_no_doubt_but_a_number():
    assert missing("The mast was raised in 1911.", "The mast was raised in May 1911.")["certainty"] == 0
    assert missing("The mast was raised in May 1911.", "The mast was raised in June 1911.")["numbers"] == 1
    assert missing("Smoke harms the fish.", "Smoke may harm the fish.")["certainty"] == 1


def test_what_a_relative_clause_says_is_not_supported_of_another():
    text = "Ada Lind met Bo Berg, who had painted the hall."
    near = reading(SUPPORTS, "Ada Lind had painted the hall.", text)
    assert near.is_near
    assert rule_of("builtin").probabilities("Ada Lind had painted the hall.", near)[0] == 0.0


def test_a_copy_has_no_degree_beyond_the_evidence():
    evidence = "Guests: Some of the guests moved to Bergen, where they had built mills."
    assert repeats_the_words("Some of the guests moved to Bergen.", evidence)
    assert not repeats_the_words("All of the guests moved to Bergen.", evidence)


def test_a_rule_for_copies_never_refutes_one():
    claim = "She was born to Danish parents in Warsaw on 8 March 1931."
    copy, other = reading(REFUTES, claim), reading(REFUTES, claim.replace("1931", "1932"))
    weights = np.zeros((2, len(FEATURES)))
    weights[1, 0] = 5.0
    for rule in (DecisionRule(THRESHOLDS, weights, copies_only=True), DecisionRule(THRESHOLDS, weights)):
        assert (rule.probabilities(claim, copy)[1] == 0.0) is rule.copies_only
        assert rule.probabilities(claim.replace("1931", "1932"), other)[1] > 0.9


def test_the_built_in_judge_ticks_copies_only():
    assert rule_of("builtin").copies_only
    assert not rule_of("default").copies_only
