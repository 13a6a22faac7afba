"""English verbs and their forms.

Owns: the list of verbs that descriptive prose uses, irregular principal parts, and the way from one form to another.
Knows how word lists are written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ewe.verification.wordlists import words_of

# base, past, participle where the past differs from base + "ed"; "*" marks participles that equal the past.
_IRREGULAR = """
become became become|begin began begun|bear bore borne|beat beat beaten|bend bent *|bind bound *|bite bit bitten|
bleed bled *|blow blew blown|break broke broken|breed bred *|bring brought *|build built *|burn burnt *|buy bought *|
catch caught *|choose chose chosen|come came come|cost cost *|creep crept *|cut cut *|deal dealt *|dig dug *|
do did done|draw drew drawn|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed *|
feel felt *|fight fought *|find found *|flee fled *|fly flew flown|forbid forbade forbidden|forget forgot forgotten|
forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone|grow grew grown|hang hung *|
have had *|hear heard *|hide hid hidden|hit hit *|hold held *|hurt hurt *|keep kept *|know knew known|lay laid *|
lead led *|leave left *|lend lent *|let let *|lie lay lain|lose lost *|make made *|mean meant *|meet met *|pay paid *|
put put *|quit quit *|read read *|ride rode ridden|ring rang rung|rise rose risen|run ran run|say said *|see saw seen|
seek sought *|sell sold *|send sent *|set set *|shake shook shaken|shine shone *|shoot shot *|show showed shown|
shut shut *|sing sang sung|sink sank sunk|sit sat *|sleep slept *|speak spoke spoken|spend spent *|spin spun *|
split split *|spread spread *|stand stood *|steal stole stolen|stick stuck *|strike struck *|strive strove striven|
swear swore sworn|sweep swept *|swim swam swum|swing swung *|take took taken|teach taught *|tear tore torn|
tell told *|think thought *|throw threw thrown|undergo underwent undergone|understand understood *|
undertake undertook undertaken|wake woke woken|wear wore worn|weave wove woven|win won *|withdraw withdrew withdrawn|
write wrote written|oversee oversaw overseen|overcome overcame overcome|rewrite rewrote rewritten|rebuild rebuilt *|
foresee foresaw foreseen|broadcast broadcast *|uphold upheld *|arise arose arisen|befriend befriended *|
outgrow outgrew outgrown|misunderstand misunderstood *|wind wound *|sew sewed sewn|sow sowed sown|prove proved proven|
bid bid *|shed shed *
"""
_REGULAR = """
abandon abolish absorb accept accompany accomplish account accuse achieve acknowledge acquire act adapt add address
adhere adjoin admire admit adopt advance advertise advise advocate affect affiliate aim air allow allude alter amass
amend amount analyze analyse announce annex answer anticipate appeal appear apply appoint appreciate approach approve
argue arm arrange arrest arrive articulate ascend ask assassinate assemble assert assess assign assist associate
assume attach attack attain attempt attend attract attribute audition author authorize average avoid award back ban
base battle behave behead believe belong benefit bestow bless blend block board boast bombard book border boycott
brand breach brew broaden bury call campaign cancel capitalize captain captivate capture care carry carve cast
catalogue categorize cause cease celebrate center centre challenge champion change characterize charge chart chair
check choreograph circulate cite claim clarify clash classify clear climb close coach co-found cofound coauthor co-
author co-write co-create co-star co-produce co-direct co-host coin collaborate collapse collect colonize combat
combine command commence comment commentate commission commit communicate compare compel compete compile complain
complete compose comprise compromise concede conceive concentrate concern conclude condemn conduct confer confess
confine confirm confront connect conquer consider consist consolidate constitute construct consult consume contact
contain contend contest continue contract contradict contrast contribute control convert convey convict convince cook
cooperate coordinate cope correct correspond count counter couple cover craft create credit criticize cross crown
crush culminate cultivate cure cycle damage dance date deal debate debut decide declare decline decorate decrease
dedicate deem defeat defect defend define delay deliver demand demolish demonstrate denounce deny depart depend depict
deploy deport depose derive descend describe desert deserve design designate destroy detail detain detect deteriorate
determine develop devise devote diagnose die differ diminish direct disagree disappear disband discard discharge
discontinue discover discuss dismiss display displace dispute dissolve distinguish distribute dive diversify divide
divorce document dominate donate double draft dress drop drown dub earn ease educate edit elect elevate elicit
eliminate emanate embark embody embrace emerge emigrate emphasize employ enable enact encompass encounter encourage
end endorse endow endure engage enhance enjoy enlist enrol enroll ensure entail enter entertain entitle envision equip
erect erupt escape establish estimate evaluate evolve examine exceed excel exchange exclude execute exemplify exercise
exhibit exile exist expand expect experience experiment explain exploit explore export expose express extend face
facilitate fail fall fascinate favor favour feature film finance finish fire fit flank flourish flow flower focus
follow force form formulate forge fortify foster found fracture free front fulfill function fund further gain garner
gather generate govern graduate grant greet guarantee guard guest-star guide gross hail halt handle happen harbor harm
head heal help highlight hire homer honor honour hone hope host house hunt identify ignite ignore illustrate imagine
immerse immigrate impact implement imply impose impress imprison improve inaugurate include incorporate increase
indicate induct indict infect influence inform infuse inhabit inherit initiate injure innovate inquire insist inspire
install institute instruct integrate intend intensify interact interpret interrupt intersect intervene interview
introduce invade invent invest investigate invite involve isolate issue join judge jump justify kick kidnap kill
knight label lack land last launch learn lecture legalize leverage license like limit link list live lobby locate look
lower maintain major manage manifest manufacture march mark market marry master mature mediate mentor merge migrate
model moderate modernize modify mount move murder name narrate narrow near need neglect negotiate nominate note notice
number nurse obey object observe obtain occupy occur offer open operate oppose opt order ordain organize organise
originate oust outline overlook overthrow owe own paint parallel pardon part participate partner pass patent patrol
pave peak penetrate pen perceive perform perfect permit persecute persist persuade photograph picture pilot pioneer
pitch place plan plant play please pledge plot plunge point polish popularize portray pose position possess post pour
practice practise praise preach precede predict prefer prepare present preserve preside press pressure prevail prevent
print prioritize probe proceed process proclaim produce profess profit progress project promise promote prompt propel
propose prosecute prosper protect protest provide provoke publicize publish pull purchase pursue push qualify question
quote race raise range rank rate ratify reach react realize rebel recall receive reclaim recognize recommend reconcile
record recover recruit reduce reelect re-elect refer refine reflect reform refuse regain regard register reign
reinforce reissue reject rejoin relate release relegate relocate rely remain remake remark remarry remember remind
remove rename render renew renounce renovate repair repeat replace report represent reprise reproduce request require
rescue research resemble reserve reside resign resist resolve respond rest restore restrict result resume retain
retire retreat return reunite reveal reverse review revise revive revolt revolutionize revolve reward rival rob rock
roll root rule sail sample satirize save scatter schedule score sculpt seal search secure segue select sentence
separate serve settle shape share shift ship sign signal simplify situate skate sketch slow solidify solve spark span
specialize specialise specify spearhead sponsor spur stabilize staff stage star start state station stay stem step
stir stop store stream strengthen stretch structure struggle study style subject submit substitute succeed sue suffer
suggest suit summarize supervise supply support suppress surface surpass surrender surround survive suspect suspend
sustain swap switch symbolize sympathize synthesize tackle target tend term terminate test testify thank thrive tie
tighten top touch tour tout trace track trade train transcend transfer transform transition translate transmit
transport travel treat tremble trigger triumph try tune tutor turn unify unite unveil update upgrade urge use utilize
vacate value vary venture veto view violate visit voice volunteer vote vow walk wander want warn waste watch weigh
welcome widen widow wield witness wonder work worship yield bat drum paddle row coach skipper captain rap remix
headline outscore outlive outrank oversell
"""


@dataclass(frozen=True, slots=True)
class Forms:
    """One verb: base ("take"), third person ("takes"), past ("took"), participle ("taken"), -ing form ("taking")."""

    base: str
    third: str
    past: str
    participle: str
    ing: str


def _regular_past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeou":
        return base[:-1] + "ied"
    return _doubled(base) + "ed"


def _doubled(base: str) -> str:
    """The stem before "-ed" and "-ing" ("plan" gives "plann")."""
    short = base in _STRESSED_AT_THE_END or len(re.findall("[aeiouy]+", base)) == 1
    closed = len(base) > 2 and base[-1] in "bdgklmnprt" and base[-2] in "aeiou" and base[-3] not in "aeiou"
    return base + base[-1] if short and closed else base


_STRESSED_AT_THE_END = words_of(
    """begin admit commit confer control defer equip excel forget occur omit patrol permit prefer refer regret submit
    transfer compel propel enrol expel rebel forbid transmit undercut reset"""
)


def _forms(base: str, past: str | None = None, participle: str | None = None) -> Forms:
    sibilant = base.endswith(("s", "sh", "ch", "x", "z", "o"))
    ends_in_y = base.endswith("y") and base[-2] not in "aeou"
    third = base[:-1] + "ies" if ends_in_y else base + ("es" if sibilant else "s")
    past = past or _regular_past(base)
    if base.endswith("ie"):
        ing = base[:-2] + "ying"
    elif base.endswith("e") and not base.endswith(("ee", "oe", "ye")):
        ing = base[:-1] + "ing"
    else:
        ing = _doubled(base) + "ing"
    return Forms(base, {"have": "has", "do": "does"}.get(base, third), past, participle or past, ing)


def _table() -> list[Forms]:
    found = []
    for entry in _IRREGULAR.replace("\n", "").strip("|").split("|"):
        base, past, participle = entry.split()
        found.append(_forms(base, past, None if participle == "*" else participle))
    known = {forms.base for forms in found}
    return found + [_forms(base) for base in dict.fromkeys(_REGULAR.split()) if base not in known]


VERBS = {forms.base: forms for forms in _table()}
"""{base form: all forms}."""
BY_THIRD = {forms.third: forms for forms in VERBS.values()}
BY_PAST = {forms.past: forms for forms in VERBS.values()}
BY_PARTICIPLE = {forms.participle: forms for forms in VERBS.values()} | {"born": _forms("bear", "bore", "born")}
BY_ING = {forms.ing: forms for forms in VERBS.values()}


@lru_cache(maxsize=4096)
def past_of_ing(word: str) -> str | None:
    """The past tense of an -ing form ("winning" gives "won"); None if it is the -ing form of no verb."""
    if word == "being":
        return "was"
    if word in BY_ING:
        return BY_ING[word].past
    if not word.endswith("ing") or len(word) < 6:
        return None
    stem = word[:-3]
    return stem[:-1] + "ied" if stem.endswith("y") and stem[-2] not in "aeou" else stem + "ed"


@lru_cache(maxsize=4096)
def third_of_ing(word: str) -> str | None:
    """The third person of a listed verb's -ing form ("playing" gives "plays"); None for others."""
    if word == "being":
        return "is"
    return BY_ING[word].third if word in BY_ING else None
