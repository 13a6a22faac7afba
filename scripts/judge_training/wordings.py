"""Words that edits put in each other's place, as data."""

from __future__ import annotations

_VERBS = """
    became/become began/begin broke/break built/build came/come chose/choose died/die drew/draw established/establish
    fell/fall found/find founded/found fought/fight gave/give grew/grow held/hold included/include introduced/introduce
    joined/join kept/keep killed/kill led/lead left/leave lived/live lost/lose made/make met/meet moved/move opened/open
    played/play produced/produce published/publish ran/run received/receive released/release returned/return rose/rise
    said/say saw/see served/serve sold/sell spent/spend stood/stand started/start studied/study took/take taught/teach
    told/tell went/go won/win worked/work wrote/write contains/contain describes/describe features/feature
    includes/include lies/lie plays/play produces/produce remains/remain requires/require stars/star tells/tell
    uses/use follows/follow takes/take makes/make consists/consist provides/provide
"""
_SYNONYMS = """
    film/movie began/started purchased/bought located/situated approximately/about numerous/many attempted/tried
    assisted/helped constructed/built although/though primarily/mainly physician/doctor automobile/car
    commenced/began required/needed requires/needs entire/whole big/large nearly/almost frequently/often
    initially/at-first subsequently/later currently/now largest/biggest ended/finished whole/entire various/several
    obtained/got additionally/also however/though occurred/happened occurs/happens famous/well-known near/close-to
    """

STRONGER = (
    ("some of", "all of"), ("most of", "all of"), ("many of", "all of"), ("several of", "all of"), ("some", "all"),
    ("most", "all"), ("many", "all"), ("several", "all"), ("often", "always"), ("sometimes", "always"),
    ("usually", "always"), ("generally", "always"), ("mostly", "entirely"), ("partly", "entirely"),
    ("one of the", "the only one of the"), ("rarely", "never"), ("few", "no"), ("more than", "less than"),
    ("less than", "more than"), ("at least", "at most"), ("at most", "at least"), ("over", "under"),
    ("up to", "at least"), ("both", "neither"), ("with", "without"), ("without", "with"), ("only", "not only"),
    ("all of the", "none of the"), ("all the", "none of the"), ("every", "no"), ("always", "never"),
    ("never", "always"), ("also", "never"),
    ("before", "after"), ("after", "before"), ("during", "before"), ("until", "since"), ("because of", "despite"),
    ("despite", "because of"), ("because", "although"),
)  # fmt: skip
"""Phrases whose exchange makes a statement false."""

RELATIONS = (
    ("born in", "lived in"), ("born in", "buried in"), ("lived in", "born in"), ("died in", "born in"),
    ("written by", "translated by"), ("directed by", "produced by"), ("produced by", "directed by"),
    ("founded", "sold"), ("founded by", "bought by"), ("son of", "brother of"), ("daughter of", "wife of"),
    ("capital of", "largest city of"), ("member of", "founder of"), ("part of", "separate from"),
    ("located in", "named after"), ("studied", "taught"), ("taught", "studied"), ("won", "was nominated for"),
    ("nominated for", "awarded"), ("starring", "directed by"), ("invented", "improved"), ("leads", "left"),
    ("working with", "married to"), ("friend of", "brother of"), ("visited", "lived in"),
    ("attended", "graduated from"),
)  # fmt: skip
"""Phrases whose exchange makes a statement another one, which the first neither says nor denies."""

VERBS: dict[str, str] = dict(pair.split("/") for pair in _VERBS.split())
"""Forms of verbs -> what follows "did not" or "does not"."""

SYNONYMS: dict[str, str] = dict(pair.split("/") for pair in _SYNONYMS.split())
"""Words -> words of the same meaning; a dash stands for a blank."""
