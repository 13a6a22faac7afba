"""English verbs by form, as far as taking sentences apart needs them: a verb that is not here is never cut at."""

import re

from ewe.text.english import words_of

BE = words_of("is are was were isn't aren't wasn't weren't")
HAVE = words_of("has have had hasn't haven't hadn't")
MODALS = words_of("will would can could may might shall should must cannot can't couldn't won't wouldn't")
DO = words_of("do does did don't doesn't didn't")
AUXILIARY_FORMS = BE | HAVE | MODALS | DO
INTRANSITIVE = words_of(
    """moved died lived worked studied served returned emigrated immigrated migrated retired graduated settled grew went
    came became began started continued played acted appeared performed taught ran stood fought fell rose remained
    resigned traveled travelled sailed fled arrived departed competed participated lectured ended opened closed merged
    stayed sang spoke debuted toured collaborated converted disappeared collapsed escaped crashed landed
    lives works plays serves lies stands flows runs remains dates belongs teaches becomes grows moves dies occurs
    live work play serve lie stand flow run remain belong teach become grow move die occur"""
)
"""Finite forms that go on with a preposition, an adverb, or nothing."""
TRANSITIVE = words_of(
    """won received married joined wrote published directed founded established designed built led made took gave
    created
    developed discovered invented earned obtained completed held sold bought produced released recorded composed painted
    introduced entered attended visited defeated signed hosted killed captured conquered ruled governed commanded
    launched acquired adopted changed gained lost formed helped reached set left succeeded replaced represented
    supported opposed sponsored edited translated performed covered contained included featured owned ran studied
    taught played opened closed finished passed beat brought broke caught chose drew drove found got kept met paid put
    saw sent shot showed told used wore
    includes contains covers borders hosts houses produces wins attracts employs operates owns offers uses holds
    features
    connects crosses has writes makes takes gives provides causes forms leads publishes sells serves links requires
    include contain cover border host house produce win attract employ operate own offer use hold feature connect cross
    write make take give provide cause form lead publish sell require"""
)
"""Finite forms that go on with an object."""
PARTICIPLES = words_of(
    """raised educated buried demolished destroyed rebuilt restored elected appointed awarded named renamed baptized
    baptised released published founded established completed opened closed built designed directed produced recorded
    written sold nominated inducted ordained knighted crowned killed captured executed arrested imprisoned exiled
    adapted translated introduced brought located based considered known called used owned divided surrounded"""
)
"""What shares the "was" of a passive verb before it ("was born in Oslo and raised in Rome")."""
_NOUNS_TOO = words_of(
    """set put run use house host cover border cause form lead cross sell play work live stand lie works plays links
    uses
    forms causes features houses hosts covers borders leads runs stands lies moves crosses dates produce contract left
    saw cut link feature move flow force hold holds offer offers"""
)
FINITE = AUXILIARY_FORMS | INTRANSITIVE | TRANSITIVE
PLAIN_VERBS = FINITE - _NOUNS_TOO
"""Finite forms that are hardly ever nouns."""
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def has_finite_verb(text: str) -> bool:
    """Whether a text has a word that is a finite verb; forms that are nouns as often do not count."""
    words = _WORD.findall(text)
    return any(word.islower() and word.replace("’", "'") in PLAIN_VERBS for word in words)
