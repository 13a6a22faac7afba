"""Words that limit what a sentence says: without them it says more."""

from ewe.text.english import DETERMINERS, ORDINALS, PRONOUNS, normal_form, words_of

BE = words_of("is are was were be been being")
_SUPERLATIVES = words_of("most least best worst")
BEFORE_A_WORD = words_of(
    """vice deputy assistant acting former ex alleged suspected supposed purported reputed proclaimed fake false mock
    proposed planned prospective honorary associate interim pseudo quasi semi co attempted cancelled canceled aborted
    unfinished unbuilt unofficial unofficially nearly almost hardly barely scarcely rarely seldom partly partially half
    temporarily might could stopped stops ceased quit considered considers avoided avoids denied denies few some most"""
)
"""What restricts the next word."""

BEFORE_THE_REST = words_of(
    """initially originally formerly allegedly reportedly supposedly purportedly probably possibly perhaps likely
    unlikely if whether accused suspected dreams dreamed dreamt pretended imagine imagined"""
)
"""What restricts all that follows in its part of the sentence."""
COPIES = words_of(
    """copy replica imitation parody part parts portion half edge outskirts suburb suburbs lack absence threat risk
    danger possibility chance attempt plan proposal idea fear rumour rumor suspicion verge brink"""
)
"""What is not the thing that "of" names behind it."""

_MORE = words_of("more above least exceeding minimum")
_LESS = words_of("less fewer below most up maximum")
_TIMES = tuple(map(words_of, ("until till", "before", "after", "since", "by")))
BOUNDS = {low: same for same in (_MORE, _LESS, *_TIMES) for low in same}
"""What a number or a month may stand behind: {word: those that say the same}."""
BEFORE_NUMBERS = words_of("than to at a an least most of")
SHARES = words_of("few some most many several majority minority none percent third thirds quarter")
OWNERS = DETERMINERS | PRONOUNS | {"all"}
RANKS = (ORDINALS.keys() - {"first"}) | words_of("th nd rd")
FRAMES = frozenset(
    map(
        normal_form,
        words_of(
            """myth rumour rumor rumored legend hoax misconception allegation alleged claimed believed belief thought
            assumed assumption speculated speculation argued suggested proposed recommended demanded urged denied
            doubted disputed hoped feared predicted pretended theory hypothesis evidence told dreams imagines proof"""
        ),
    )
)
"""What is said to be so with "that" behind it need not be so; as stems."""

UNREAL = words_of("if unless were had should")
RECORDS = words_of("census data figures report reports survey statistics records officials study analysis estimate law")
"""What may be left out behind "according to"."""


def is_superlative(low: str) -> bool:
    """Whether a folded word may be a superlative: "largest", "most"; "west" and "test" are too short for one."""
    return low in _SUPERLATIVES or (low.endswith("est") and len(low) > 5)
