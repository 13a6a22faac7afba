"""The generated world: the same from the same seed, facts spread over articles, lies where they should be."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from builtin_training.answers import compose_answer

from ewe.errors import ConfigError
from ewe.evaluation.world import names
from ewe.evaluation.world.articles import ATLAS, SOURCES
from ewe.evaluation.world.builtin import builtin_datastore, load_world
from ewe.evaluation.world.people import SLOTS
from ewe.evaluation.world.world import FIRST_TRAINING_SEED, KINDS, World
from ewe.retrieval.bm25 import BM25Retriever

NUM_PEOPLE = 40


@pytest.fixture(scope="module")
def world() -> World:
    return World.generate(5, NUM_PEOPLE)


@pytest.fixture(scope="module")
def poisoned_world() -> World:
    return World.generate(5, NUM_PEOPLE, poisoned=0.3)


def test_same_seed_same_world(world: World):
    again = World.generate(5, NUM_PEOPLE)
    assert again.passages == world.passages
    assert again.facts == world.facts
    assert again.prompts() == world.prompts()
    assert World.generate(6, NUM_PEOPLE).facts.isdisjoint(world.facts)


def test_people_of_training_and_test_never_meet():
    test = {name for seed in range(3) for name in World.generate(seed, 30).people}
    train = {name for seed in range(3) for name in World.generate(FIRST_TRAINING_SEED + seed, 30).people}
    assert {names.split_of(name) for name in test} == {"test"}
    assert {names.split_of(name) for name in train} == {"train"}


def test_every_person_has_every_fact_once(world: World):
    for person in world.people.values():
        assert len(set(person.facts)) == len(SLOTS) == 21
        assert person.values["prize"] != person.values["prize2"]
        assert int(person.values["death_year"]) > int(person.values["birth_year"]) + 60


def test_first_name_tells_the_pronoun():
    rng = Random(0)
    drawn = [names.person_name(rng, "train") for _ in range(500)]
    shares = {gender: sum(names.gender_of(name) == gender for name in drawn) / 500 for gender in ("she", "he", "they")}
    assert min(shares["she"], shares["he"]) > 0.35
    assert 0.05 < shares["they"] < 0.2
    with pytest.raises(ValueError, match="not a name of this world"):
        names.gender_of("Xyz Tolland")


def test_every_fact_is_told_truly_by_the_atlas(world: World, poisoned_world: World):
    for each in (world, poisoned_world):
        told = {fact for p in each.passages if p.source == ATLAS.name for fact in each.stated[p.id]}
        assert told == each.facts


def test_facts_of_a_person_are_spread_over_articles(world: World):
    for name, person in world.people.items():
        titles: dict[str, set] = defaultdict(set)
        for passage in world.passages:
            titles[passage.title].update(fact for fact in world.stated[passage.id] if fact.subject == name)
        own = set(person.facts)
        assert sum(bool(facts & own) for facts in titles.values()) >= 8
        assert max(len(facts & own) for facts in titles.values()) < len(own) / 2


def test_every_stated_value_stands_in_a_sentence_with_the_full_name(poisoned_world: World):
    for passage in poisoned_world.passages:
        sentences = passage.text.removesuffix(".").split(". ")
        assert 1 <= len(sentences) <= 3
        for fact in poisoned_world.stated[passage.id]:
            assert any(fact.subject in sentence and fact.value in sentence for sentence in sentences)


def test_passages_carry_their_source(world: World):
    veracity = {source.name: source.veracity for source in SOURCES}
    assert {passage.source for passage in world.passages} == set(veracity)
    assert all(passage.veracity == veracity[passage.source] for passage in world.passages)
    assert all(passage.title for passage in world.passages)
    assert len({passage.id for passage in world.passages}) == len(world.passages)


def test_without_poison_nothing_is_false(world: World):
    assert not world.poisoned_ids
    assert all(world.facts.issuperset(facts) for facts in world.stated.values())


def test_poison_rate_is_exact_and_lies_come_from_weak_sources(poisoned_world: World):
    lying = {p.id for p in poisoned_world.passages if not poisoned_world.facts.issuperset(poisoned_world.stated[p.id])}
    assert lying == poisoned_world.poisoned_ids
    assert len(lying) == round(0.3 * len(poisoned_world.passages))
    sources = [p.source for p in poisoned_world.passages if p.id in lying]
    assert ATLAS.name not in sources
    assert sources.count("Lantern Forum") > 0.8 * len(sources)


def test_poison_changes_only_the_poisoned_passages(world: World, poisoned_world: World):
    assert poisoned_world.people == world.people
    for clean, dirty in zip(world.passages, poisoned_world.passages, strict=True):
        assert (clean == dirty) == (dirty.id not in poisoned_world.poisoned_ids)
        assert clean.source == dirty.source


@pytest.mark.parametrize(("people", "poisoned"), [(1, 0.0), (10, -0.1), (10, 0.9)])
def test_impossible_worlds_are_refused(people: int, poisoned: float):
    with pytest.raises(ConfigError):
        World.generate(5, people, poisoned)


def test_prompts_of_every_kind_name_their_subjects(world: World):
    prompts = world.prompts()
    assert len(prompts) == NUM_PEOPLE * len(KINDS)
    assert len(world.prompts(["life"], limit=7)) == 7
    for prompt in prompts:
        assert all(subject in prompt.text for subject in prompt.subjects)
        assert len(prompt.subjects) == (2 if prompt.kind == "comparison" else 1)
        assert len(set(prompt.subjects)) == len(prompt.subjects)
        assert prompt.facts
        assert world.facts.issuperset(prompt.facts)


def test_lives_have_5_to_9_sentences_and_begin_with_the_full_name(world: World):
    for prompt in world.prompts(["life"]):
        statements = compose_answer(Random(prompt.text), prompt, world.people, pronoun_rate=0.5)
        assert 4 <= len(statements) <= 9  # one may drop out, its facts being told already
        assert prompt.subjects[0] in statements[0].text


def test_the_prompt_alone_does_not_retrieve_what_prompt_and_sentences_do(world: World):
    retriever = BM25Retriever(world.passages)
    alone, along, sentence_found, sentence_count = 0.0, 0.0, 0, 0
    prompts = world.prompts(["life"])
    for prompt in prompts:
        statements = compose_answer(Random(prompt.text), prompt, world.people, pronoun_rate=0.3)
        queries = [prompt.text] + [f"{prompt.text} {statement.text}" for statement in statements]
        hits = retriever.retrieve(queries, top_k=4)
        found = [{fact for hit in each for fact in world.stated[hit.passage.id]} for each in hits]
        alone += len(found[0].intersection(prompt.facts)) / len(prompt.facts)
        along += len(set().union(*found).intersection(prompt.facts)) / len(prompt.facts)
        for statement, facts in zip(statements, found[1:], strict=True):
            sentence_found += len(facts.intersection(statement.wording.facts))
            sentence_count += len(statement.wording.facts)
    assert alone / len(prompts) < 0.5
    assert along / len(prompts) > 0.85
    assert sentence_found / sentence_count > 0.97


def test_builtin_world_is_the_datastore():
    assert builtin_datastore().passages == load_world().passages
    assert {names.split_of(name) for name in load_world().people} == {"test"}
