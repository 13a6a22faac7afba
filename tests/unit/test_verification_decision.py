import json
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.types import Passage
from ewe.verification.calibration import Thresholds
from ewe.verification.decision import FEATURES, DecisionRule, Reading, far, features, is_near, read_rule, rule_of
from ewe.verification.selection import SentenceSelector
from ewe.verification.signals import SIGNALS, signals, speaks_of_the_same

THRESHOLDS = Thresholds(0.5, 0.5, 0.0)
TEXT = "Ada Lind was a weaver of fine wool in Oslo. She was born to Danish parents in Warsaw on 8 March 1931."
SUPPORTS, REFUTES, OPEN = (0.9, 0.05, 0.05), (0.05, 0.9, 0.05), (0.1, 0.1, 0.8)


def reading(sentence=OPEN, whole=OPEN, claim="She was born in Warsaw in 1931.", text=TEXT):
    return Reading(SentenceSelector().select(claim, Passage("p", text, title="Ada Lind")), sentence, whole)


def missing(claim, sentence, led=None):
    return dict(zip(SIGNALS, signals(claim, sentence, led or sentence), strict=True))


def test_signals_tell_what_the_evidence_lacks():
    said = "In 1931 Ada Lind and three brothers opened a mill in Oslo."
    assert not any(missing(said, said).values())
    assert missing("In 1932 Ada Lind opened a mill.", said)["numbers"] == 1
    assert missing("In 1931 Ada Berg opened a mill.", said)["names"] == 1
    assert missing("Ada Lind never opened a mill.", said)["negations"] == 1
    assert missing("In 1931 Ada Lind and 3 brothers opened a mill.", said)["numbers"] == 0
    assert missing("In 1931 Ada Lind and three sisters opened a mill in Oslo.", said)["one word"] == 1
    assert missing("Roses are red and violets are blue.", said)["words"] == 1


def test_the_negation_of_a_sentence_before_is_not_the_sentences_own():
    claim, before = "She was born in Warsaw.", "She did not like Oslo."
    assert missing(claim, claim, f"{before} {claim}")["negations"] == 0


def test_only_what_speaks_of_the_same_refutes():
    assert speaks_of_the_same("Ada Lind was born in Rome.", "Lind: She was born in Warsaw.")
    assert not speaks_of_the_same("Genghis Khan founded the empire.", "Bo Berg: He founded a mill.")
    rule = DecisionRule(THRESHOLDS)
    found = reading(REFUTES, REFUTES)
    assert rule.probabilities("Ada Lind was born in Rome.", found)[1] == pytest.approx(0.9)
    assert rule.probabilities("Genghis Khan founded an empire.", found) == pytest.approx((0.05, 0.0, 0.95))


def test_without_parameters_support_is_the_better_grain_and_a_supporting_window_forbids_refutation():
    rule = DecisionRule(THRESHOLDS)
    assert rule.probabilities("Ada Lind", reading(OPEN, SUPPORTS))[:2] == pytest.approx((0.9, 0.0))
    assert rule.probabilities("Ada Lind", reading(REFUTES, SUPPORTS))[:2] == pytest.approx((0.9, 0.0))
    assert rule.probabilities("Ada Lind", reading(REFUTES, OPEN))[1] == pytest.approx(0.9)
    assert rule.probabilities("Ada Lind", reading(SUPPORTS, REFUTES))[:2] == pytest.approx((0.9, 0.05))


def test_near_passages_are_fitted_and_others_believed_above_the_floor():
    weights = np.zeros((2, len(FEATURES)))
    weights[1, FEATURES.index("missing: numbers")] = 5.0
    rule = DecisionRule(THRESHOLDS, weights)
    changed = "She was born to Danish parents in Warsaw on 8 March 1932."
    assert is_near(features(changed, reading()))
    assert rule.probabilities(changed, reading(SUPPORTS, SUPPORTS))[1] > 0.9
    other = "Ada Lind had studied chemistry, physics and philosophy abroad."
    assert not is_near(features(other, reading()))
    assert rule.probabilities(other, reading(OPEN, SUPPORTS)) == pytest.approx((0.8, 0.0, 0.2))
    assert far(features(other, reading(SUPPORTS, OPEN))) == pytest.approx((0.0, 0.0, 1.0))


@pytest.mark.parametrize("name", ["builtin", "default"])
def test_every_shipped_rule_is_in_range_and_says_where_it_is_from(name):
    table = json.loads(files("ewe.verification").joinpath("decisions.json").read_text())["judges"]
    entry = table[name]
    assert rule_of(name).thresholds == Thresholds(entry["supported"], entry["refuted"], entry["floor"])
    assert len(entry["provenance"]) > 20
    assert all(set(side) <= set(FEATURES) for side in entry.get("weights", {}).values())
    assert rule_of("/some/folder") == rule_of("default")


def test_the_builtin_rule_sees_a_changed_number_that_the_judge_reads_past():
    rule = rule_of("builtin")
    wording = "She was born to Danish parents in Warsaw on 8 March {}."
    true, false = (rule.probabilities(wording.format(year), reading(SUPPORTS, SUPPORTS)) for year in (1931, 1932))
    assert true[0] > 0.7
    assert false[1] > false[0]


probability = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 1)).map(lambda row: np.array(row) / sum(row))


@given(st.sampled_from(["builtin", "default"]), probability, probability, st.sampled_from([TEXT, "Ada was not here."]))
def test_a_rule_gives_probabilities(name, sentence, whole, claim):
    found = rule_of(name).probabilities(claim, reading(sentence, whole))
    assert min(found) >= -1e-9
    assert sum(found) == pytest.approx(1.0)


def test_a_feature_that_an_entry_does_not_name_weighs_nothing():
    entry = {"supported": 0.5, "refuted": 0.5, "floor": 0.0, "weights": {"supported": {"1": 2.0}, "refuted": {}}}
    rule = read_rule(entry)
    assert rule.weights is not None
    assert rule.weights.sum() == 2.0
