import pytest

from ewe.verification.value_comparison.lexicon import NameKind
from ewe.verification.value_comparison.mentions import find_mentions
from ewe.verification.value_comparison.tokens import tokenize
from ewe.verification.value_comparison.values import Agreement, Bound, Moment, Name, Quantity, Term, compare

EQUAL, DIFFERENT, UNCLEAR = Agreement.EQUAL, Agreement.DIFFERENT, Agreement.UNCLEAR
BEFORE, BY, AFTER = Bound


def find(sentence):
    return [mention.value for mention in find_mentions(sentence, tokenize(sentence))]


def only(sentence):
    [value] = find(sentence)
    return value


@pytest.mark.parametrize(
    ("sentence", "moment"),
    [
        ("on 7 November 1867", Moment(1867, 11, 7)),
        ("on the 7th of November, 1867", Moment(1867, 11, 7)),
        ("on November 7, 1867", Moment(1867, 11, 7)),
        ("in May 1931", Moment(1931, 5)),
        ("on 1931-05-09", Moment(1931, 5, 9)),
        ("in 1931", Moment(1931)),
        ("in the 1930s", Moment(1930, years=10)),
        ("in the 1930's", Moment(1930, years=10)),
        ("in the 19th century", Moment(1800, years=100, hedged=True)),
        ("around 1931", Moment(1931, hedged=True)),
        ("a 1931 novel", Moment(1931)),
        ("before 1931", Moment(1931, bound=BEFORE)),
        ("by May 1931", Moment(1931, 5, bound=BY)),
        ("after 7 May 1931", Moment(1931, 5, 7, bound=AFTER)),
        ("before the 1930s", Moment(1930, years=10, bound=BEFORE)),
        ("five years before 1931", Moment(1931, hedged=True)),
        ("some time before 1931", Moment(1931, bound=BEFORE)),
        ("after the 1931 novel", Moment(1931)),
        ("since 1931", Moment(1931)),
        ("until 1931", Moment(1931)),
    ],
)
def test_dates_are_found(sentence, moment):
    assert [value for value in find(sentence) if isinstance(value, Moment)] == [moment]


@pytest.mark.parametrize(
    ("sentence", "number", "unit"),
    [
        ("it has 1,500 pages", 1500, "pag"),
        ("it has three children", 3, "child"),
        ("it has twenty-five rooms", 25, "room"),
        ("it has 2.5 million inhabitants", 2.5e6, "inhabitant"),
        ("it cost $45", 45, "$"),
        ("45% of it", 45, "percent"),
    ],
)
def test_numbers_are_found_with_what_they_count(sentence, number, unit):
    value = only(sentence)
    assert (value.number, unit in value.units) == (number, True)


@pytest.mark.parametrize(
    ("sentence", "words", "kind"),
    [
        ("It is the University of Ulm.", ("university", "ulm"), NameKind.ORGANISATION),
        ("It is the university of Ulm.", ("university", "ulm"), NameKind.ORGANISATION),
        ("They met Ludwig van Beethoven.", ("ludwig", "van", "beethoven"), NameKind.UNKNOWN),
        ("She won the Nobel Prize.", ("nobel", "prize"), NameKind.AWARD),
        ("She wrote “The Red Door” here.", ("red", "door"), NameKind.WORK),
        ("They flew Apollo 11 home.", ("apollo", "11"), NameKind.UNKNOWN),
        ("They met J. R. R. Tolkien's son.", ("j", "r", "r", "tolkien"), NameKind.UNKNOWN),
    ],
)
def test_names_are_found(sentence, words, kind):
    value = only(sentence)
    assert (value.words, value.kind) == (words, kind)


def test_words_that_only_begin_a_sentence_are_no_names():
    assert find("However, later they went. Born there, many came. In time all left.") == []


@pytest.mark.parametrize(
    ("one", "other", "agreement"),
    [
        (Moment(1867), Moment(1867, 11, 7), EQUAL),
        (Moment(1867, 11, 8), Moment(1867, 11, 7), DIFFERENT),
        (Moment(1867), Moment(1868), DIFFERENT),
        (Moment(1930, years=10), Moment(1937), EQUAL),
        (Moment(1930, years=10), Moment(1941), DIFFERENT),
        (Moment(1867, hedged=True), Moment(1869), UNCLEAR),
        (Moment(1867, hedged=True), Moment(1901), DIFFERENT),
        (Moment(month=5), Moment(1931), UNCLEAR),
        (Quantity(3, frozenset({"child"})), Quantity(4, frozenset({"child"})), DIFFERENT),
        (Quantity(3, frozenset({"child"})), Quantity(4, frozenset({"page"})), UNCLEAR),
        (Quantity(324, frozenset({"metr", "tal"})), Quantity(1063, frozenset({"feet", "tal"})), UNCLEAR),
        (Quantity(324, frozenset({"metr", "tal"})), Quantity(334, frozenset({"m", "tal"})), DIFFERENT),
        (Quantity(1.9e6, frozenset({"head"})), Quantity(1_862_000, frozenset({"head"})), EQUAL),
        (Quantity(200, frozenset({"head"}), hedged=True), Quantity(350, frozenset({"head"})), UNCLEAR),
        (Quantity(3, frozenset({"prize"}), ordinal=True), Quantity(3, frozenset({"prize"})), UNCLEAR),
        (Name(("curie",)), Name(("marie", "curie")), EQUAL),
        (Name(("pierre", "curie")), Name(("marie", "curie")), DIFFERENT),
        (Name(("m", "curie")), Name(("marie", "curie")), EQUAL),
        (Name(("who",)), Name(("world", "health", "organization")), EQUAL),
        (Name(("nobel",)), Name(("nobel", "prize"), NameKind.AWARD), UNCLEAR),
        (Name(("ulm", "college"), NameKind.ORGANISATION), Name(("ulm", "prize"), NameKind.AWARD), UNCLEAR),
        (Name(("france",)), Name(("paris",)), UNCLEAR),
        (Name(("france",)), Name(("germany",)), DIFFERENT),
        (Term("chem", trade=True), Term("bak", trade=True), DIFFERENT),
        (Term("chem", trade=True), Term("gen"), UNCLEAR),
        (Name(("ulm",)), Moment(1931), UNCLEAR),
    ],
)
def test_values_compare(one, other, agreement):
    assert compare(one, other) is compare(other, one) is agreement


@pytest.mark.parametrize(
    ("claim", "evidence", "agreement"),
    [
        (Moment(1850, bound=BEFORE), Moment(1849, 12, 31), EQUAL),
        (Moment(1850, bound=BEFORE), Moment(1850), DIFFERENT),
        (Moment(1850, bound=BEFORE), Moment(1820), EQUAL),
        (Moment(1850, 5, bound=BEFORE), Moment(1850), UNCLEAR),
        (Moment(1850, 5, bound=BEFORE), Moment(1850, 4), EQUAL),
        (Moment(1850, bound=BY), Moment(1850, 12, 31), EQUAL),
        (Moment(1850, bound=BY), Moment(1851, 1, 1), DIFFERENT),
        (Moment(1850, 5, 7, bound=AFTER), Moment(1850, 5, 7), DIFFERENT),
        (Moment(1850, 5, 7, bound=AFTER), Moment(1850, 5, 8), EQUAL),
        (Moment(1930, years=10, bound=AFTER), Moment(1939), DIFFERENT),
        (Moment(1930, years=10, bound=AFTER), Moment(1940), EQUAL),
        (Moment(1850, bound=BEFORE), Moment(1840, bound=BEFORE), EQUAL),
        (Moment(1840, bound=BEFORE), Moment(1850, bound=BEFORE), UNCLEAR),
        (Moment(1840, bound=AFTER), Moment(1850, bound=BEFORE), UNCLEAR),
        (Moment(1850, bound=AFTER), Moment(1850, bound=BY), DIFFERENT),
        (Moment(1850, bound=BEFORE), Moment(1847, hedged=True), UNCLEAR),
        (Moment(1850, bound=BEFORE), Moment(1820, hedged=True), EQUAL),
        (Moment(1847), Moment(1850, bound=BEFORE), UNCLEAR),
        (Moment(1852), Moment(1850, bound=BEFORE), DIFFERENT),
        (Moment(month=5, bound=BEFORE), Moment(1850), UNCLEAR),
        (Moment(month=5, bound=BEFORE), Moment(month=5, bound=BEFORE), EQUAL),
    ],
)
def test_a_bound_states_what_lies_within_it(claim, evidence, agreement):
    assert compare(claim, evidence) is agreement
