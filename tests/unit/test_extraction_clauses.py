import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.verification.extraction.clauses import split_clauses

CUT = [
    (
        "Ada Lind was born in Oslo and moved to Rome in 1931.",
        "Ada Lind was born in Oslo.",
        "Ada Lind moved to Rome in 1931.",
    ),
    (
        "Ada Lind was born in Oslo, and she moved to Rome in 1931.",
        "Ada Lind was born in Oslo.",
        "Ada Lind moved to Rome in 1931.",
    ),
    ("She was born in Oslo and she died in Rome.", "She was born in Oslo.", "She died in Rome."),
    ("Bo Berg is a weaver; he lives in Oslo.", "Bo Berg is a weaver.", "Bo Berg lives in Oslo."),
    ("Bo Berg was a poet, but he won no prize.", "Bo Berg was a poet.", "Bo Berg won no prize."),
    ("Bo Berg was a poet, and his father was a weaver.", "Bo Berg was a poet.", "Bo Berg's father was a weaver."),
    ("He was a poet, and his father was a weaver.", "He was a poet.", "His father was a weaver."),
    ("Ada Lind was born in Oslo and raised in Rome.", "Ada Lind was born in Oslo.", "Ada Lind was raised in Rome."),
    (
        "The bridge was built in 1900 and demolished in 1950.",
        "The bridge was built in 1900.",
        "The bridge was demolished in 1950.",
    ),
    (
        "The bridge was built in 1900, and it was demolished in 1950.",
        "The bridge was built in 1900.",
        "The bridge was demolished in 1950.",
    ),
    ("The bridge opened in 1931 and is 40 metres long.", "The bridge opened in 1931.", "The bridge is 40 metres long."),
    (
        "Ada Lind wrote the book in 1950 and later became a teacher.",
        "Ada Lind wrote the book in 1950.",
        "Ada Lind later became a teacher.",
    ),
    (
        "Maududi founded the party in 1941 and remained its leader until 1972.",
        "Maududi founded the party in 1941.",
        "Maududi remained its leader until 1972.",
    ),
    (
        "Ada Lind was born in Oslo, moved to Rome in 1931, and died in Paris.",
        "Ada Lind was born in Oslo.",
        "Ada Lind moved to Rome in 1931.",
        "Ada Lind died in Paris.",
    ),
    ("He studied under Bo Berg and won the Larch Prize.", "He studied under Bo Berg.", "He won the Larch Prize."),
    (
        "Oslo is the capital of Norway, and Rome is the capital of Italy.",
        "Oslo is the capital of Norway.",
        "Rome is the capital of Italy.",
    ),
    ("Oslo is in Norway, while Rome is in Italy.", "Oslo is in Norway.", "Rome is in Italy."),
    ("The film won three awards; the book won one prize.", "The film won three awards.", "The book won one prize."),
    (
        "The lake is 12 km long; however, it was drained in 1950.",
        "The lake is 12 km long.",
        "The lake was drained in 1950.",
    ),
    (
        "Early versions were in use by 1851, but the first patent was granted in 1860.",
        "Early versions were in use by 1851.",
        "The first patent was granted in 1860.",
    ),
    (
        "Ada Lind (born 1931) is a weaver and lives in Oslo.",
        "Ada Lind (born 1931) is a weaver.",
        "Ada Lind lives in Oslo.",
    ),
    (
        "Ada Lind, a Norwegian weaver, was born in Oslo and died in Rome.",
        "Ada Lind, a Norwegian weaver, was born in Oslo.",
        "Ada Lind died in Rome.",
    ),
    (
        "He was taught by Bo Berg, who won the Larch Prize in 1931.",
        "He was taught by Bo Berg.",
        "Bo Berg won the Larch Prize in 1931.",
    ),
    (
        "In 1931 she moved to Oslo, which is the capital of Norway.",
        "In 1931 she moved to Oslo.",
        "Oslo is the capital of Norway.",
    ),
    ("The museum is in Oslo and has 40 rooms.", "The museum is in Oslo.", "The museum has 40 rooms."),
    ("In 1931, Ada Lind moved to Rome and in 1935 she married Bo Berg.",),
    (
        "He wrote “Salt and he was gone” in 1931 and moved to Rome.",
        "He wrote “Salt and he was gone” in 1931.",
        "He moved to Rome.",
    ),
    ("It went public in 1979 and was then sold to Orvane.", "It went public in 1979.", "It was then sold to Orvane."),
    ("They lost the war, and their king was killed in 1402.", "They lost the war.", "Their king was killed in 1402."),
    (
        "Ada Lind and Bo Berg moved to Rome and founded a school.",
        "Ada Lind and Bo Berg moved to Rome.",
        "Ada Lind and Bo Berg founded a school.",
    ),
    ("The city lies on the Sarn and has a port.", "The city lies on the Sarn.", "The city has a port."),
    (
        "The bridge was designed by Bo Berg and opened by Queen Ada in 1931.",
        "The bridge was designed by Bo Berg.",
        "The bridge was opened by Queen Ada in 1931.",
    ),
]
WHOLE = [
    "Ada Lind was born in Oslo.",
    "He visited Oslo, Rome, and Paris.",
    "Smith, Jones and Berg founded the company in 1931.",
    "Ada Lind wrote and directed the film in 1931.",
    "He produced, wrote and directed the film in 1931.",
    "Pride and Prejudice is a novel by Jane Austen.",
    "Oslo and Rome are cities.",
    "The bridge links Oslo and Rome and the coast.",
    "He said that Oslo was small, and Rome was large.",
    "According to Berg, Oslo is small, and Rome is large.",
    "He allegedly moved to Rome in 1931 and won the Larch Prize.",
    "Ada Lind was reportedly born in Oslo and moved to Rome.",
    "If the ice melts, the lake rises, and the town is flooded.",
    "Ada Lind married Bo Berg, and he died in 1950.",
    "Ada Lind wrote to Bo Berg, and his mother was a weaver.",
    "He met a man who lived in Oslo and died in Rome.",
    "Titanic is a film directed by James Cameron and released in 1997.",
    "Titanic is a 1997 film that won eleven Oscars and was shot in Mexico.",
    "He has written books and directed films.",
    "She was both a poet and a weaver.",
    "He neither wrote books nor directed films, and he died in 1931.",
    "Ada Lind collected stamps and painted furniture.",
    "He left school when he was ten and his father died.",
    "He won, and she lost.",
    "The director of Titanic, who won an Oscar, lives in Oslo.",
    "She is the mother of Bo Berg, who died in 1931.",
    "He lost the match, which made him sad.",
    "He moved to Oslo, Norway, which is cold.",
    "He received the Larch Prize in Physics, which is awarded every year.",
    "The five-story building includes two rooms, and a three-court gym floor to play basketball.",
    "(He was born in Oslo; he died in Rome.)",
    "He called it \"a place to live; it was warm\" in 1931.",
    "He wrote \"Salt, and he moved to Rome in 1931.",
    "When he was ten, his family moved to Rome and opened a shop.",
    "In 1931, Ada Lind moved to Rome and married Bo Berg.",
    "It is known that Ada Lind was born in Oslo and moved to Rome.",
    "The population was 12,000 in 1900; 14,000 in 1910; 20,000 in 1920.",
    "He may have been born in Oslo or Rome.",
    "Between 1931 and 1935 he lived in Oslo.",
    "The company installed lamps designed by Tesla and had offices.",
    "Some elements of the Brotherhood engaged in violence, and its founder was killed in 1949.",
    "X.25 connections are set up for each session, but it does have a feature for more.",
    "Ada Lind decided to leave Oslo and to live in Rome.",
    "",
    "Oslo",
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "clauses"), [(case[0], list(case[1:]) or [case[0]]) for case in CUT])
def test_each_clause_that_states_something_of_its_own_can_be_read_alone(sentence: str, clauses: list[str]) -> None:
    assert [clause.text for clause in split_clauses(sentence)] == clauses


@pytest.mark.parametrize("sentence", WHOLE)
def test_what_is_no_plain_clause_stays_with_its_sentence(sentence: str) -> None:
    assert [clause.text for clause in split_clauses(sentence)] == [sentence]


def test_places_are_those_of_the_clauses_own_words() -> None:
    sentence = "Ada Lind was born in Oslo, and she moved to Rome; she was taught by Bo Berg, who died in Paris."
    own = [sentence[clause.start : clause.end] for clause in split_clauses(sentence)]
    assert own == ["Ada Lind was born in Oslo", "she moved to Rome", "she was taught by Bo Berg", "who died in Paris."]


PIECES = st.sampled_from(
    ["Ada Lind", " was born", " in Oslo", " and", ", and", "; ", " moved", " to Rome", ", who", ", which", " is", " he",
     " she", " it", "(", ")", '"', " won", " the prize", ".", " in 1931", "é", "\n", ", ", " built", " by", " has"]
)  # fmt: skip


@given(st.one_of(st.lists(PIECES, max_size=25).map("".join), st.text(max_size=200)))
def test_clauses_of_any_text_lie_inside_it_in_order(text: str) -> None:
    clauses = split_clauses(text)
    assert clauses
    end = 0
    for clause in clauses:
        assert end <= clause.start <= clause.end <= len(text)
        assert clause.start < clause.end or len(clauses) == 1
        end = clause.end
