"""Which of nupunkt's abbreviations are ordinary words.

The list holds words that often end lines in its training text ("book", "life", "century", "park"): with those in it,
"It is a book. Keller wrote it." is one sentence.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Longer abbreviations that could be pronounced and yet are none of the debris; those without vowels need no mention.
_LONG = _words("""\
acad accum acct adjud admin admr agric amer anat annot anon appl append approx appx arch arts asst assem assoc
assocs assn astr attn atty auth aviat belg biochem biol blvd calif capt card cath cent cert chap chem chron cmdr
civ coll colo colloq comdr comdt comm comp conf cong congr conn cons consol const constr cont contd contr coop
corp corr dept depts deriv diss dist distrib docs ecol econ educ elec elev ency engr entom epist equiv esq etal
etseq eval exec exper expt extr figs foren geog geol geom geophys govt grad hist histol hort hosp hydrol ibid
idem illus immigr incl incorp indep indus inst instr intell intl introd invt irreg judg juris lect legis liter
litig mach maint manuf marg math mech memo messrs metab metaph meteorol mich mineral minn misc mons mont mortg
munic natl naut neth neurol nonfic numis nucl obit observ occas oceanogr okla ophthal oreg orig ornith oxon parl
passim pathol penn perf perh pers pharm phil philol philos phys physiol plur poet polit prec pred pref prep pres
princ prob probs proc prod prof profs proj pron prop prot prov psych psychol pseud publ quar quot recd refl regr
relig repl repr rept retd robt sask sched scot sculpt secs secy serg sess sociol spec specif statist subj subst
suff supp suppl supt surg surv surveying synd tech techn telecom temp tenn terr theol thess thos thurs topog
toxicol trag transf transl treas trig trop tues typog ultim unabr univ unpub usu util vocab vols wash zool""")
_SHORT_WORDS = _words("""\
ad add ago ah ail air all am an ann ant apt ark art at aye bad bar bat bed bee big bin bow box bus but call can
cap car cat cod come con cow cox cur cut dad dan day dig dim dip doc dog dot dry due dug dun ear eat egg end eve
far fee few fin fir fit fly fog for fun fur gal gap gas geo get god got gum gun had ham har hat haw hay hen hid
hip his hit hog hop hot how hum ice ida ill in ink ir jam jar jaw jet job joy jud kan key kid kin kit lab lap
law lay lea led leg let lew lid lie lip lit log lot low lug mad mae mag man map mat may me men met mix mob mod
mow mug nap net new nod nor not now nut oak oar odd off oil old one opt or ore our out owe owl own pan par pat
paw pen per pet pie pig pin pit pod pop pot pow pro pub put que ran rap rat raw red rib rid rig rob rod rot row
rub rug run sad sat saw say sea see sel set sew she shy sin sir sit six ski sky so sob son sou sow soy spa spy
sub sum sun tan tap tax ten the tie tin tip tit toe ton too top toy try tub tug two urn us use van vet via vow
war was wed web wet who why wig win wis wit won yea yep yes yet yup zip""")
BEFORE_NUMBERS = frozenset({"no", "nos", "art", "arts"})
"""Abbreviations only in front of a number ("No. 5"); words everywhere else ("He said no. Keller left.")."""


def is_abbreviation(entry: str) -> bool:
    """Whether an entry of nupunkt's list (lower-case, without its last full stop) is kept."""
    if not entry.isalpha() or not entry.isascii():
        return True
    if entry in BEFORE_NUMBERS or entry in _LONG:
        return True
    if len(entry) <= 3:
        return entry not in _SHORT_WORDS
    return not any(letter in "aeiouy" for letter in entry)
