"""What a newer statement changes about an older one: verbs and signs of change, and all that can hold side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.longterm_changes import read
from ewe.errors import InvalidRequestError
from ewe.longterm.change.change_reading import Stance, compare, compare_all
from ewe.longterm.change.change_search import older_statements, read_stances, says_again
from ewe.longterm.recall import MemoryRules
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.service import MemoryService
from ewe.longterm.store import Change, MemoryStore
from tests.unit.longterm_parts import YearJudge, new_store

ANN, ME = Scope("ann"), MemorySource("user", "ann", 0.7)
PORTO, BERGEN = "I live in Porto.", "I moved to Bergen in spring."
DAY = 86400.0
MISSED = pytest.mark.xfail(strict=True, reason="the model does not read it rightly")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with new_store(tmp_path / "memories") as opened:
        yield opened


@pytest.fixture
def memories(store: MemoryStore) -> MemoryService:
    return MemoryService(store, clock=lambda: DAY)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My flat in Porto has no lift.", "The curtains for our new place in Bergen came today."),
        ("I live in Porto.", "I moved to Bergen in spring."),
        ("I work for a small bakery.", "My first week at Siemens was exhausting."),
        ("Dora works at the library.", "Dora was laid off by the library."),
        ("I play the trumpet.", "I gave up the trumpet."),
        ("My boyfriend Milo is a baker.", "My ex-boyfriend Milo still has my keys."),
        ("Lena is engaged to Piet.", "Lena and Piet got married in May."),
        ("We have no pets.", "The new puppy chewed my shoes."),
        ("Our cat Miez sleeps all day.", "Miez died last week."),
        ("My dentist is Dr. Voss.", "My new dentist is much gentler."),
        ("The choir practice is on Mondays.", "Choir practice moved to Thursdays."),
        ("I take 20 mg of the statin.", "They raised the statin to 40 mg."),
        ("I weigh 90 kilos.", "I'm down to 83 kilos."),
        ("I take the bus to work.", "I switched to the bike."),
        ("My phone number is 0170 555 123.", "My phone number is 0170 555 987."),
        ("I prefer tea in the morning.", "I prefer coffee in the morning."),
        ("My wife's six months pregnant.", "The baby slept five hours last night."),
        ("I eat meat every day.", "Since that film I am vegetarian."),
        pytest.param(
            "I work from the office all week.", "The best thing about working from home is my own kettle.", marks=MISSED
        ),
        ("I'm engaged to Piet.", "Piet and I called it off."),
        pytest.param("My number is 0170 555 123 if you need it.", "My number is 0170 555 987.", marks=MISSED),
        ("I work for a small bakery.", "I quit the bakery and work for Siemens now."),
        ("My boyfriend Milo is a baker.", "Milo and I broke up."),
        ("Choir practice is on Mondays.", "Choir practice moved to Thursdays."),
        ("I live in Berlin", "I live in Paris"),
        ("The office opens at nine.", "The office opens at ten."),
    ],
)
def test_a_newer_statement_takes_the_place_of_an_older_one(older: str, newer: str) -> None:
    assert compare(older, newer) is Stance.CHANGED


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I prefer tea in the morning.", "I prefer wine in the evening."),
        ("My work number is 0170 555 123.", "My private number is 0170 555 987."),
        ("I live in Porto.", "My sister's new place in Bergen has a garden."),
        ("I live in Porto.", "We'd love to move to Bergen."),
        ("I live in Porto.", "I used to live in Bergen."),
        ("I live in Porto.", "Are you moving to Bergen?"),
        pytest.param("I live in Norway.", "Our new flat in Bergen is bright.", marks=MISSED),
        ("I work at Siemens.", "My brother quit Siemens."),
        ("My wife plays the cello.", "My ex-wife lives in Rome."),
        ("I speak Danish.", "I'm learning Dutch now."),
        ("My dog is called Rex.", "My neighbour's new dog is called Bello."),
        pytest.param("We don't have a car.", "We hired a car for the weekend.", marks=MISSED),
        ("I'm in the chess club.", "I joined the rowing club."),
        ("My laptop is a Dell.", "My new laptop bag is red."),
        ("My bank is ING.", "I walked along the river bank."),
        ("I drink coffee.", "I drink tea."),
        ("I live in Porto.", "My sister moved to Bergen."),
        ("I speak Danish.", "I'm learning Dutch."),
    ],
)
def test_both_can_hold(older: str, newer: str) -> None:
    assert compare(older, newer) is Stance.APART


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I live on the ground floor of a tower block in Ulm.", "I left Ulm last week."),
        ("I share a flat with Noor.", "Living on my own takes some getting used to."),
        ("I'm a barista at a café in Ulm.", "I handed in my notice last week."),
        pytest.param("Noor is my girlfriend.", "Noor and I are planning our wedding.", marks=MISSED),
        ("My cat sleeps on my bed.", "My cat died in the night."),
        ("We have two budgies.", "We gave the budgies away to a neighbour."),
        ("I suffer from back pain.", "Since the operation my back pain is gone."),
        ("I go to the gym a lot.", "I haven't set foot in the gym for months."),
        ("I'm the treasurer of our club.", "The new treasurer of our club is Noor."),
        ("I study at Uppsala.", "I transferred to Lund."),
        ("I weigh 92 kilos.", "The scales said 84 kilos this morning."),
    ],
)
def test_more_ways_of_telling_a_change_are_read(older: str, newer: str) -> None:
    assert compare(older, newer) is Stance.CHANGED


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I get up at six.", "On Sundays I get up at nine."),
        ("I weigh 92 kilos.", "My suitcase weighs 23 kilos."),
        ("We have one dog.", "Our old dog died ten years ago."),
        ("Our dog is a beagle.", "The dog next door died."),
        ("I'm a manager.", "The new manager of the gym is nice."),
        ("Tim is totally hooked.", "Tim is learning German now."),
        pytest.param("Joanna can't have dairy.", "Joanna can't right now.", marks=MISSED),
        pytest.param("Taking care of themselves is vital.", "Taking care of themselves is so important.", marks=MISSED),
        ("Many things can bring you joy without pets.", "He's even keeping my other pets active."),
        ("I'm stepping into the unknown and hoping for the best.", "I'm ready to give it my best."),
        ("The world building always blows Nate away.", "Hiking has opened up a whole new world for Joanna."),
        ("Tim has been wanting to see Oslo.", "Tim is learning Dutch now."),
        ("Tim hasn't read that yet.", "Tim has been reading stories of travellers."),
        pytest.param("Wow, Mel. That must've been loud!", "Wow, Mel! Any more concerts coming up?", marks=MISSED),
        ("I live in Porto.", "We rent a room in Ljubljana in August."),
        ("I prefer trains to planes.", "I prefer window seats."),
        ("My sister Ana lives in Porto.", "My sister Rosa lives in Ulm."),
        ("My older son is seven.", "My younger son is four."),
    ],
)
def test_more_that_sounds_close_can_both_hold(older: str, newer: str) -> None:
    assert compare(older, newer) is not Stance.CHANGED


def test_few_of_the_written_pairs_that_both_hold_are_withdrawn_and_most_changes_are_noticed() -> None:
    pairs = read()["report"]
    stances = compare_all([(pair.older, pair.newer) for pair in pairs])
    together = [stance for pair, stance in zip(pairs, stances, strict=True) if pair.kind == "compatible"]
    changes = [stance for pair, stance in zip(pairs, stances, strict=True) if pair.kind.startswith("changed")]
    assert together.count(Stance.CHANGED) <= 0.05 * len(together)
    assert changes.count(Stance.CHANGED) >= 0.6 * len(changes)


def test_the_same_words_are_said_again_and_long_texts_are_not_read() -> None:
    long = f"{PORTO} {'It was built long ago and has many rooms with old floors. ' * 5}"
    assert compare_all([(PORTO, PORTO), (long, BERGEN)]) == [Stance.AGAIN, Stance.APART]


def test_no_model_is_loaded_for_nothing() -> None:
    assert compare_all([]) == []


def test_what_was_superseded_is_listed_explained_and_restored(memories: MemoryService) -> None:
    old = memories.add(PORTO, ANN, ME)
    new = memories.add(BERGEN, ANN, ME, valid_from=2 * DAY)
    [gone] = memories.superseded(ANN)
    assert gone == memories.why(ANN, old.id).ended
    assert (gone.memory.id, gone.by) == (old.id, memories.store.get(ANN, new.id))
    assert gone.text == f"held until 1970-01-03: {BERGEN}"
    assert memories.why(ANN, new.id).ended is None
    assert memories.why(ANN, new.id).supersedes == (memories.store.get(ANN, old.id),)
    assert new.supersedes == (old.id,)
    again = memories.restore(ANN, old.id, by="ann")
    assert (again.content, again.valid_until) == (PORTO, None)
    assert memories.superseded(ANN) == []
    assert memories.why(ANN, new.id).supersedes == memories.store.get(ANN, new.id).supersedes == ()
    assert [one.reason for one in memories.store.history(ANN, old.id)] == ["added", "superseded", "restored"]
    with pytest.raises(InvalidRequestError, match="holds as it is"):
        memories.restore(ANN, old.id)


def test_a_question_for_what_was_before_finds_it(memories: MemoryService) -> None:
    memories.add(PORTO, ANN, ME, observed_at=0.0)
    memories.add(BERGEN, ANN, ME, observed_at=DAY / 2)
    found = {
        question: [one.content for one in memories.search(question, [ANN]).used]
        for question in ("Where do I live, in Bergen?", "Who was my landlord before Bergen?")
    }
    assert list(found.values()) == [[BERGEN], [PORTO, BERGEN]]  # the second one shares no word with the first memory


def test_what_is_done_is_no_repetition_of_what_was_under_way(memories: MemoryService) -> None:
    older = memories.add("My mum is selling her house.", ANN, ME)
    for text, is_again in (("My mum is selling a house.", True), ("My mum's house is sold.", False)):
        new = Memory("new", text, scope=ANN)
        assert says_again(new, [(older, Stance.AGAIN)]) == ([older] if is_again else [])


def test_a_question_in_the_past_finds_what_ended(memories: MemoryService) -> None:
    old = memories.add("I drive a Corsa.", ANN, ME, observed_at=0.0)
    memories.edit(ANN, old.id, Change(valid=(None, DAY)))
    found = [
        [one.content for one in memories.search(question, [ANN]).used]
        for question in ("What car do I drive?", "What car did I drive?")
    ]
    assert found == [[], ["I drive a Corsa."]]


def test_facts_of_one_message_do_not_end_each_other(memories: MemoryService) -> None:
    apart, together = (PORTO, BERGEN), (f"{PORTO} {BERGEN}",) * 2
    for said, is_ended in ((apart, True), (together, False)):
        scope = Scope(said[0])
        old = memories.add(PORTO, scope, ME, metadata={"said": said[0]})
        new = memories.add(BERGEN, scope, ME, metadata={"said": said[1]})
        assert (new.supersedes == (old.id,)) is is_ended


def test_a_mark_of_contradiction_is_taken_away(store: MemoryStore) -> None:
    memories = MemoryService(store, judge=YearJudge(), clock=lambda: DAY)
    old = memories.add("The old mill as we know opened in 1874", ANN, ME)
    memories.add("In 1784 the old mill opened, says Ann", ANN, MemorySource("user", "bob", 0.5))
    if memories.store.get(ANN, old.id).contradicts:
        assert memories.restore(ANN, old.id).contradicts == ()


def test_the_one_that_took_its_place_may_be_gone(memories: MemoryService) -> None:
    old, new = memories.add(PORTO, ANN, ME), memories.add(BERGEN, ANN, ME)
    memories.store.delete(ANN, [new.id], at=DAY, reason="asked for")
    gone = memories.why(ANN, old.id).ended
    assert gone is not None
    assert gone.by is None
    assert gone.text.endswith("by a memory that was deleted since")


def test_what_is_said_again_is_kept_once_with_its_new_words_in_the_history(memories: MemoryService) -> None:
    old = memories.add("I work at Ikea.", ANN, ME)
    assert memories.add("I am employed at Ikea.", ANN, ME).id == old.id
    last = memories.store.history(ANN, old.id)[-1]
    assert (last.reason, last.evidence) == ("said again", ("I am employed at Ikea.",))
    assert memories.knows(Memory("new", "I'm employed at Ikea.", scope=ANN))


@pytest.mark.parametrize(
    ("told", "new"),
    [
        ("My phone number is 0170 555 123.", "My phone number is 0170 555 987."),
        ("The hall of Lira is made of brick.", "The hall of Lira is made of stone."),
    ],
)
def test_another_value_is_not_the_same_again(memories: MemoryService, told: str, new: str) -> None:
    old = memories.add(told, ANN, ME)
    assert not memories.knows(Memory("new", new, scope=ANN))
    assert memories.add(new, ANN, ME).id != old.id


def test_what_was_edited_since_it_was_read_does_not_lose_its_place(memories: MemoryService) -> None:
    old = memories.add(PORTO, ANN, ME)
    new = Memory("new", BERGEN, scope=ANN, created_at=DAY)
    read = read_stances(new, memories.store)
    assert [(one.id, stance) for one, stance in older_statements(new, memories.store, read)] == [
        (old.id, Stance.CHANGED)
    ]
    memories.edit(ANN, old.id, Change(content="I like port wine."))
    assert older_statements(new, memories.store, read) == []


def test_neighbours_of_a_new_memory_are_searched_for_once(
    memories: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories.add(PORTO, ANN, ME)
    search, asked = memories.store.lexicon.search, list[str]()
    monkeypatch.setattr(
        memories.store.lexicon, "search", lambda query, *rest: (asked.append(query), search(query, *rest))[1]
    )
    memories.add(BERGEN, ANN, ME)
    assert asked == [BERGEN]


def test_turns_of_a_conversation_all_stay_and_no_judge_is_asked_about_them(store: MemoryStore) -> None:
    class Silent(YearJudge):
        def judge(self, pairs):  # type: ignore[no-untyped-def]
            raise AssertionError("no judge is asked about turns")

    memories = MemoryService(store, judge=Silent(), rules=MemoryRules(judge_turns=False))
    memories.add("I work at Ikea.", ANN, ME, "turn")
    memories.add("I am employed at Ikea.", ANN, ME, "turn")
    assert len(list(store.scan([ANN]))) == 2


def test_changes_are_read_without_the_judge(store: MemoryStore) -> None:
    class Silent(YearJudge):
        def judge(self, pairs):  # type: ignore[no-untyped-def]
            raise AssertionError("no judge is asked about what users say")

    memories = MemoryService(store, judge=Silent(), rules=MemoryRules(judge_turns=False))
    memories.add(PORTO, ANN, ME)
    memories.add(BERGEN, ANN, ME)
    assert [gone.memory.content for gone in memories.superseded(ANN)] == [PORTO]


def test_a_denial_is_no_repetition_of_a_plan(memories: MemoryService) -> None:
    plan = memories.add("I might move to York.", ANN, ME)
    denial = memories.add("I'm not moving to York.", ANN, ME)
    assert denial.content == "I'm not moving to York."
    assert denial.id != plan.id


def test_a_history_of_changes_can_be_told_in_any_order(memories: MemoryService) -> None:
    new = memories.add("I moved to Bergen.", ANN, ME, observed_at=DAY)
    first = memories.add("I live in Porto.", ANN, ME, observed_at=DAY / 4)
    between = memories.add("I live in Rome now.", ANN, ME, observed_at=DAY / 2)
    ends = {one.id: (one.valid_from, one.valid_until) for one in memories.store.scan([ANN])}
    assert ends == {first.id: (None, DAY / 2), between.id: (DAY / 2, DAY), new.id: (DAY, None)}
    assert between.supersedes == (first.id,)


def test_an_older_statement_is_found_among_many(memories: MemoryService) -> None:
    memories.add(PORTO, ANN, ME)
    for number in range(60):
        memories.add(f"The curtains of shop {number} came today, they said.", ANN, ME)
    memories.add(BERGEN, ANN, ME)
    assert [gone.memory.content for gone in memories.superseded(ANN)] == [PORTO]


def test_nobody_else_s_word_ends_what_somebody_says_of_himself(memories: MemoryService) -> None:
    memories.add(PORTO, ANN, ME)
    memories.add(BERGEN, ANN, MemorySource("user", "bob", 0.9))
    memories.add(BERGEN, Scope("bob"), ME)
    assert memories.superseded(ANN) == []


def test_a_long_text_is_never_superseded(memories: MemoryService) -> None:
    long = " ".join([PORTO, *("It was built long ago and has many rooms with old floors." for _ in range(4))])
    assert isinstance(memories.add(long, ANN, ME), Memory)
    memories.add(BERGEN, ANN, ME)
    assert memories.superseded(ANN) == []


def test_of_turns_only_those_that_tell_a_fact_are_compared(memories: MemoryService) -> None:
    told = memories.add("I live in Porto.", ANN, ME, "turn")
    memories.add("Wow, congrats on the move, Ben!", ANN, ME, "turn")
    assert memories.superseded(ANN) == []
    memories.add("I moved to Bergen.", ANN, ME, "turn")
    assert [one.memory.id for one in memories.superseded(ANN)] == [told.id]


@pytest.mark.parametrize(
    ("older", "newer", "stance"),
    [
        ("The bridge opened in 1932.", "The bridge opened in 1923.", Stance.APART),
        ("The bridge opened in 1932.", "They say the bridge opened in 1923.", Stance.APART),
        ("I moved to Porto in 2019.", "I moved to Bergen in 2023.", Stance.CHANGED),
    ],
)
def test_another_year_of_what_is_over_is_no_change(older: str, newer: str, stance: Stance) -> None:
    assert compare(older, newer) is stance
