"""Words by what they do between and inside clauses.

Owns: the lists that the extraction of claims needs. Knows the lists of the value comparison, which it extends.
"""

from __future__ import annotations

from ewe.verification import wordlists
from ewe.verification.wordlists import words_of

PRONOUNS = words_of(
    """i you we he she it they me us him them himself herself itself themselves this these those that one ones both
    myself yourself everyone someone anyone nobody others"""
) - {"that"}
POSSESSIVES = words_of("his her its their my your our")
FIRST_AND_SECOND = words_of("i you we me my your i'm i've you're we're let's mine yours myself yourself i'd i'll")
MODALS = words_of("will would can could may might shall should must cannot can't couldn't won't wouldn't shouldn't")
NEGATIONS = words_of("not never n't")
RELATIVES = words_of("who which whose whom where that")
CONJUNCTIONS = words_of("and or but nor &")
SUBORDINATORS = words_of(
    "because although though while whereas when whenever if unless until since after before once whether how why what"
)
DETERMINERS = words_of("a an the each every some any no another several many few various numerous all such")
PREPOSITIONS = wordlists.PREPOSITIONS - words_of("since until after before to") | words_of(
    """including despite except following per than like unlike versus via amid among amongst besides according due
    regarding concerning"""
)
ADVERBS = words_of(
    """also then later however soon still even often once twice now ever already again thereafter therefore thus hence
    moreover furthermore nonetheless nevertheless instead meanwhile always sometimes perhaps quite rather very well
    together abroad afterwards afterward today yet too back out up off away down only just long best better most more
    far home there here twice first eventually overall
    additionally"""
)
NO_PARTICIPLES = words_of("hundred kindred sacred naked wicked rugged talented gifted so-called beloved")
NOT_NAMES = words_of(
    """prior throughout additionally overall despite during some both many several other most one while although since
    after before however furthermore moreover notable notably unfortunately sadly today currently later early late
    known best well along aside apart besides according alongside thanks due such each every these those this that
    there his her its their he she it they in at on by for from with without following upon under over between among
    within despite unlike like whether if when where as to of and but or another all no not never ever even
    unlike outside inside beyond beside across around as-well today's professional professionally personal politically
    politics critics fans people members others little much more less few growing"""
)
DROPPED_ADVERBS = words_of(
    """also however then additionally furthermore moreover therefore thus consequently subsequently meanwhile
    nevertheless nonetheless hence overall instead indeed similarly likewise accordingly"""
)
"""Adverbs that only tie a clause to the one before it."""
DROPPED_LEADS = (
    "in addition", "in addition to", "besides", "apart from", "aside from", "along with", "as well as", "as a result",
    "for example", "for instance", "in fact", "of course", "on the other hand", "in other words", "in conclusion",
    "in summary", "to this end", "beyond", "alongside", "among other things", "more importantly", "most importantly",
    "outside of", "additionally", "unfortunately", "sadly", "notably", "importantly", "interestingly", "finally",
    "as such", "in particular", "after all", "that said", "because of this", "for this reason", "similar to", "like",
    "unlike", "together with", "no", "yes", "sure", "certainly", "well", "rather than", "not only",
)  # fmt: skip
"""Beginnings of introductory phrases that say nothing which the claim needs."""
WHOLE_CLAUSE = words_of(
    """resulting causing marking allowing cementing solidifying ensuring enabling proving showing demonstrating
    including starting beginning according following"""
)
"""-ing forms whose subject is the whole clause before them."""
WITH_PRONOUN = words_of("making earning giving bringing")
"""-ing forms whose subject is the whole clause if a pronoun follows ("earning him a prize")."""
GROUPS = words_of(
    """club team side squad franchise company band group label organization organisation university school college
    party firm institution"""
)
"""Nouns that take up the name before them: "joined Ulm FC and left the club"."""
OF_THINGS = words_of(
    """released published directed written produced founded located based set built composed created recorded
    established formed held hosted starring featuring adapted co-written dedicated called titled entitled designed
    distributed painted"""
)
"""Participles behind a comma that speak of the thing before it, not of the clause's subject."""
JOINT_PASSIVE = words_of(
    """raised educated based buried known brought considered regarded located inducted elected appointed nominated
    awarded named promoted drafted selected traded inspired influenced survived executed arrested imprisoned sentenced
    knighted ordained baptized adopted loaned signed released produced directed written published recognized praised"""
)
"""Participles that share the "was" before an "and" unless an object follows."""
EMPTY_NOUNS = words_of(
    """legacy impact influence inspiration talent skill skills ability abilities dedication passion contribution
    contributions work works career life achievements accomplishments reputation success generation generations
    place mark way ways world people figure figures fan fans audience audiences individual person man woman hearts
    heart memory history time times years day reader readers many millions lives others testament force name part
    role qualities quality things it"""
)
"""Nouns that alone give nothing to check."""
OPINIONS = words_of(
    """beautiful brave brilliant compelling captivating charismatic dedicated determined distinctive dynamic enduring
    engaging exceptional extraordinary fascinating gifted greatest icon iconic impressive incredible indelible
    inspiring invaluable kind lasting legend legendary memorable passionate powerful profound promising remarkable
    respected rich significant strong talented timeless tireless true unique unforgettable versatile vibrant
    visionary warm wonderful important influential notable great famous renowned celebrated prominent well-known
    successful outstanding immense tremendous great valuable beloved admired inspirational influential vital crucial
    essential integral interesting amazing best"""
)
OPINION_VERBS = words_of(
    "inspire remember miss celebrate admire love respect remain continue cherish resonate captivate"
)
_PAIRS = """\
research and development|arts and sciences|trial and error|law and order|rock and roll|time and again|rhythm and blues|\
country and western|track and field|science and technology|bed and breakfast|arts and crafts|health and safety|\
husband and wife|peace and quiet|design and technology|trinidad and tobago|life and death|bosnia and herzegovina|\
antigua and barbuda|men and women|brothers and sisters|ups and downs|supply and demand|drum and bass|pros and cons|\
life and work|life and career|life and times"""
FIXED_PAIRS = frozenset(_PAIRS.split("|"))
"""Words joined by "and" that mean one thing."""
JOINING = words_of("between fusion combination mix mixture blend among collaboration both-sided relationship conflict")
"""Words whose coordination must stay together."""
GERUND_OPENERS = words_of("after before while since when by upon")
"""Words before an -ing form that tells what the subject of the clause did."""
KNOWN_FOR = words_of("known famous remembered recognized noted notable renowned acclaimed celebrated credited")
OCCUPATIONS = words_of(
    """architect entrepreneur activist athlete model poet scholar musician host coach advocate academic diplomat general
    executive expert pundit statesman chef judge critic nurse priest monk spy clerk pilot surgeon physician merchant
    mechanic composer philanthropist bassist cook prelate bishop cardinal rabbi imam nobleman soldier"""
)
"""Occupations that their endings do not show."""
