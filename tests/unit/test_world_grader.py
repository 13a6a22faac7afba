"""The grader reads back every phrasing exactly, and sees every wrong value."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from builtin_training.answers import compose_answer

from ewe.evaluation.world.grader import grade
from ewe.evaluation.world.people import EntityPool, Fact, second_item, wrong_value
from ewe.evaluation.world.wording import catalogue
from ewe.evaluation.world.world import World, WorldPrompt
from ewe.evaluation.world.world_grammar import patterns


@pytest.fixture(scope="module")
def world() -> World:
    return World.generate(11, 30)


def life_of(world: World, name: str) -> WorldPrompt:
    return WorldPrompt(f"Tell me about {name}.", "life", (name,), (), world.people[name].facts)


@pytest.mark.parametrize("pronoun_rate", [0.0, 0.5, 1.0])
def test_true_answers_are_parsed_whole_and_true(world: World, pronoun_rate: float):
    for prompt in world.prompts():
        statements = compose_answer(Random(prompt.text), prompt, world.people, pronoun_rate)
        result = grade(world, prompt, " " + " ".join(statement.text for statement in statements))
        assert not result.unparsed
        assert not result.false
        assert result.true == {fact for statement in statements for fact in statement.wording.facts}
        assert [len(s.true) for s in result.sentences] == [len(s.wording.facts) for s in statements]


def references(uses: str) -> tuple:
    return ("full", "surname", "pronoun") if "a" in uses else ("full", "surname")


@pytest.mark.parametrize("phrasing", catalogue(), ids=lambda phrasing: phrasing.text)
def test_every_phrasing_is_read_one_way_only_and_every_corruption_is_found(world: World, phrasing):
    rng, pool = Random(phrasing.text), EntityPool.draw(Random(3), "test", 20)
    for person in list(world.people.values())[:8]:
        prompt = life_of(world, person.name)
        for reference in references(phrasing.uses):
            for other_item in (False, True):
                wording = phrasing.fill(person, reference, other_item)
                assert [p.text for p, pattern in patterns() if pattern.fullmatch(wording.text)] == [phrasing.text]
                assert grade(world, prompt, wording.text).true == set(wording.facts)
            for slot in phrasing.slots:
                value = wrong_value(rng, person, slot, pool)
                wrong = phrasing.fill(person.with_value(slot, value), reference)
                result = grade(world, prompt, wrong.text)
                assert value in {fact.value for fact in result.false}
                assert result.false == {fact for fact in wrong.facts if fact not in world.facts}
                assert result.true == {fact for fact in wrong.facts if fact in world.facts}


def test_facts_of_somebody_else_are_false_of_the_subject(world: World):
    one, other = list(world.people.values())[:2]
    sentence = f"{one.name} was born in {other.values['birth_year']} in {other.values['birth_place']}."
    result = grade(world, life_of(world, one.name), sentence)
    assert len(result.false) == 2
    assert not result.true


def test_a_garbled_name_makes_false_facts(world: World):
    person = next(iter(world.people.values()))
    result = grade(world, life_of(world, person.name), f"{person.name}x was born in {person.values['birth_year']}.")
    assert result.false == {Fact(person.name + "x", "birth_year", person.values["birth_year"])}


def test_the_year_must_belong_to_the_prize_it_is_said_of(world: World):
    person = next(iter(world.people.values()))
    values = person.values
    text = f"{person.name} won the {values['prize']} in {values['prize2_year']}."
    result = grade(world, life_of(world, person.name), text)
    assert result.true == {person.fact("prize")}
    assert result.false == {Fact(person.name, "prize_year", values["prize2_year"], about=values["prize"])}


def test_pronouns_follow_the_person_named_last(world: World):
    one, other = list(world.people.values())[:2]
    prompt = WorldPrompt("", "comparison", (one.name, other.name), (), one.facts + other.facts)
    text = f"{one.name} died in {one.values['death_year']}. {other.name} lived in {other.values['residence']}."
    text += f" He died in {other.values['death_year']}."
    result = grade(world, prompt, text)
    assert result.true == {one.fact("death_year"), other.fact("residence"), other.fact("death_year")}
    assert not result.false


def test_what_is_said_twice_counts_once_and_nonsense_is_reported(world: World):
    person = next(iter(world.people.values()))
    born = f"{person.name} was born in {person.values['birth_year']}."
    result = grade(world, life_of(world, person.name), f"{born} {born} Nobody liked soup. {person.surname} was bo")
    assert len(result.true) + len(result.false) == 1
    assert result.unparsed == ("Nobody liked soup.", f"{person.surname} was bo")
    assert result.coverage == pytest.approx(1 / 21)


def test_second_item_swaps_both_ways():
    for slot in ("work", "work_year", "prize", "prize_year"):
        assert second_item(slot) != slot
        assert second_item(second_item(slot)) == slot
    assert second_item("birth_year") == "birth_year"
