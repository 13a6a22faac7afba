"""New pairs from labelled ones: the same claim beside changed evidence, the same evidence beside a changed claim.

A judge that looks at the claim alone does well on FEVER and fails on FEVER-Symmetric; here every claim meets evidence
for and against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from judge_training.pairs import Label, Pair
from judge_training.swaps import Value, contains, find_values, negate, other_value, replace_value

_SAME_EVIDENCE_NAMES = 0.3


def refuted_from(rng: Random, pair: Pair, names: Sequence[str]) -> Pair | None:
    """A supported pair with a value that claim and evidence share changed in one of the two; None if they share none.

    The claim's leading name is left alone: another subject would make the pair inconclusive.
    """
    shared = [value for value in _predicate_values(pair.claim) if contains(pair.evidence, value.text)]
    if not shared:
        return None
    value = rng.choice(shared)
    own = [other.text for other in find_values(pair.evidence) if other.kind == "name"]
    if value.kind == "name" and own and rng.random() < _SAME_EVIDENCE_NAMES:
        other = other_value(rng, value, pair.claim, own)
    else:
        other = other_value(rng, value, pair.evidence + " " + pair.claim, names)
    if other is None:
        return None
    if rng.random() < 0.5 and not contains(pair.evidence, other):
        return replace(pair, evidence=replace_value(pair.evidence, value.text, other), label=Label.REFUTED)
    return replace(pair, claim=replace_value(pair.claim, value.text, other), label=Label.REFUTED)


def supported_from(rng: Random, pair: Pair) -> Pair | None:
    """A refuted pair whose claim has one value that the evidence lacks, with the evidence's one value of that kind in
    its place, or the other way round; None where that is not clear.
    """
    missing = [value for value in _predicate_values(pair.claim) if not contains(pair.evidence, value.text)]
    if len(missing) != 1 or missing[0].kind in ("name", "opposite"):
        return None
    stated = {value.text for value in find_values(pair.evidence) if value.kind == missing[0].kind}
    if len(stated) != 1:
        return None
    [right], wrong = stated, missing[0].text
    if contains(pair.claim, right):
        return None
    if rng.random() < 0.5:
        return replace(pair, evidence=replace_value(pair.evidence, right, wrong), label=Label.SUPPORTED)
    return replace(pair, claim=replace_value(pair.claim, wrong, right), label=Label.SUPPORTED)


def negated_from(pair: Pair) -> Pair | None:
    """The pair with its claim negated and its label turned round; None if the claim cannot be, or settles nothing."""
    claim = negate(pair.claim)
    if claim is None or pair.label is Label.INCONCLUSIVE:
        return None
    return replace(pair, claim=claim, label=Label.REFUTED if pair.label is Label.SUPPORTED else Label.SUPPORTED)


def settled_no_more(rng: Random, pair: Pair, names: Sequence[str]) -> Pair | None:
    """The pair with its claim said of somebody else, whom the evidence does not name; None if no name of
    two words, or the title, leads it.
    """
    values = find_values(pair.claim)
    if not values or values[0].kind != "name" or values[0].start > 4:
        return None
    subject = values[0]
    if " " not in subject.text and subject.text != pair.title:
        return None
    other = other_value(rng, subject, pair.evidence + " " + pair.claim, names)
    if other is None or not contains(pair.evidence, subject.text.split()[-1]):
        return None
    return replace(pair, claim=replace_value(pair.claim, subject.text, other), label=Label.INCONCLUSIVE)


def _predicate_values(claim: str) -> list[Value]:
    """The claim's values without a name that it begins with."""
    values = find_values(claim)
    return values[1:] if values and values[0].kind == "name" and values[0].start <= 4 else values
