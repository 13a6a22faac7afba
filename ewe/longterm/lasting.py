"""Which statements of a chat are worth keeping: what lasts or happened, told by verbs of people's lives."""

from ewe.longterm.passing import is_said_in_passing
from ewe.text.english import FUNCTION_WORDS, stem, words_of
from ewe.text.words import words

_AUXILIARIES = words_of(
    """am is are was were be been have has had having do does did will would can could isn't aren't wasn't weren't
    haven't hasn't hadn't don't doesn't didn't can't cannot couldn't won't wouldn't i'm we're i've we've i'd we'd i'll
    we'll never always up"""
)
_VERBS = words_of(
    """own live work study teach run manage lead play speak like love hate prefer enjoy adore dislike need want plan
    wish hope dream aim use drive cycle swim climb hike ski ride walk travel fly sail fish hunt collect eat drink smoke
    vape cook bake brew grow keep take weigh earn make cost pay owe save invest rent let share buy sell move get start
    begin finish stop quit give leave join lose win break tear sprain hurt injure bear raise meet marry divorce engage
    adopt foster retire visit book order sign apply spend die pass turn sing paint draw write read see go come train
    learn practise practice volunteer coach perform compose knit sew build repair restore garden feed breed groom
    breastfeed homeschool commute attend graduate enrol enroll drop switch change become return stay sleep snore wake
    wear suffer fall faint recover treat prescribe diagnose operate belong believe worship pray vote serve support
    follow watch listen host rehearse call name understand translate know miss remember forget expire open close
    freelance design develop program code farm shoot photograph dance box wrestle fence surf dive row skate meditate
    expect hire employ fire lay arrive head babysit offer tell dictate upgrade install decide accept reject refuse
    crash used gave grew came broke woke bit bred fed hung hid swept understood lent stole froze drank ate rode threw
    slept fell felt tore"""
)
# By which verbs people tell of their lives, as stems; what has none of them is mostly a remark in passing.
_TELLING = frozenset(stem(form) for verb in _AUXILIARIES | _VERBS for form in (verb, f"{verb}s", f"{verb}ed"))
_VAGUE = FUNCTION_WORDS | words_of(
    """dream dreams happen happens happened going keep keeps pushing push forward positive anything everything
    something nothing way thing things stuff vibes journey moment moments make makes made making get gets got gonna
    want wants wanna great good awesome amazing feel feeling feels best better real really lot lots give gives up
    try trying hard handle reach goal goals difference support matter matters help helps remember believe sure
    excited talked spoke some pretty cool can't don't i'm i'll we're we'll i've we've it's idea fun let dont nice
    means mean take challenge challenges staying stay ahead looking chasing chase won't living stop anyone come true
    ready everyone focus success chance for"""
)


def lasts(statement: str) -> bool:
    """Whether a statement is worth keeping beyond the talk in which it was said."""
    said = words(statement)
    tells = not set(said) <= _VAGUE and not _TELLING.isdisjoint(map(stem, said))
    return tells and not is_said_in_passing(statement)
