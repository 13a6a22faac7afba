"""Facts that rules of English take from what somebody says of themselves and theirs."""

from ewe.longterm.lasting import lasts
from ewe.longterm.named_people import is_of_somebody, kin_named, with_whole_verb
from ewe.longterm.passing import is_said_in_passing
from ewe.longterm.plain_writing import plainly_written
from ewe.longterm.referring import resolved
from ewe.longterm.third_person import in_third_person, own_words
from ewe.longterm.turn_statements import statements
from ewe.text.prompt_injection import addresses_the_reader, without_control_tokens
from ewe.text.sentences import SentenceSplitter
from ewe.text.words import words

_LONGEST_TURN = 2000  # characters


def facts_by_rules(speaker: str, text: str) -> list[str]:
    """What somebody tells of themselves and theirs in English that is worth keeping, in the third person.

    Nothing is added.
    """
    own = own_words(plainly_written(text))
    sentences = ((sentence, statements(sentence)) for sentence in sentences_of_turn(own))
    facts = (_fact(statement, speaker) for statement in resolved(sentences))
    told = [fact for fact in dict.fromkeys(facts) if fact and not addresses_the_reader(fact)]
    kin = (in_third_person(one, speaker, of_somebody=True) for one in kin_named(own))
    named = {word for fact in told for word in words(fact)}
    return told + [one for one in kin if one and words(one)[0] not in named]


def _fact(statement: str, speaker: str) -> str:
    """A statement as a fact; empty where it is none."""
    if is_of_somebody(statement):
        whole = with_whole_verb(statement)
        return "" if is_said_in_passing(whole) else in_third_person(whole, speaker, of_somebody=True)
    return in_third_person(statement, speaker) if lasts(statement) else ""


def sentences_of_turn(text: str) -> list[str]:
    """The whole sentences of a turn, or of the beginning of a long one, without control tokens."""
    clean = without_control_tokens(text[:_LONGEST_TURN])
    sentences = [clean[start:end].strip() for start, end in SentenceSplitter().split(clean)]
    return sentences[:-1] if len(text) > _LONGEST_TURN else sentences  # the last may have been cut before its "not"
