"""Words that exclude each other in the same place of a sentence, by kind, as data.

A word stands in one kind only.
"""

from __future__ import annotations

_LISTS = {
    "nationality": """
        American British English Scottish Irish Welsh Canadian Australian German French Italian Spanish Portuguese
        Dutch Belgian Swiss Austrian Swedish Norwegian Danish Finnish Polish Russian Ukrainian Hungarian Czech
        Romanian Greek Turkish Israeli Egyptian Nigerian Kenyan Indian Pakistani Chinese Japanese Korean Thai
        Vietnamese Indonesian Brazilian Argentine Mexican Colombian Chilean Cuban Jamaican Iranian Iraqi
    """,
    "country": """
        America Britain England Scotland Ireland Canada Australia Germany France Italy Spain Portugal Belgium
        Switzerland Austria Sweden Norway Denmark Finland Poland Russia Ukraine Hungary Romania Greece Turkey Israel
        Egypt Nigeria Kenya India Pakistan China Japan Korea Thailand Vietnam Indonesia Brazil Argentina Mexico
        Colombia Chile Cuba Jamaica Iran Iraq
    """,
    "place": """
        California Texas Florida Ohio Michigan Illinois Pennsylvania Georgia Virginia Arizona Colorado Oregon Nevada
        Chicago Boston Philadelphia Seattle Houston Dallas Atlanta Detroit Miami Toronto Montreal London Manchester
        Liverpool Dublin Edinburgh Paris Berlin Munich Vienna Rome Milan Madrid Barcelona Moscow Tokyo Beijing
        Mumbai Sydney Melbourne Hollywood
    """,
    "continent": "Africa Asia Europe Antarctica",
    "profession": """
        actor actress singer songwriter musician rapper dancer comedian director producer screenwriter writer author
        novelist poet journalist politician lawyer judge scientist physicist chemist biologist mathematician
        engineer architect painter sculptor photographer model wrestler boxer footballer swimmer golfer coach
        philosopher historian economist surgeon physician soldier astronaut chef farmer priest teacher banker
        dentist drummer guitarist composer
    """,
    "work": """
        film novel album song book poem opera musical magazine newspaper documentary sitcom play video-game podcast
        painting sculpture
    """,
    "genre": """
        comedy drama thriller horror western fantasy romance science-fiction mystery action adventure war animated
        romantic historical biographical
    """,
    "music": "rock pop jazz country-music hip-hop metal punk folk blues soul reggae disco techno",
    "sport": """
        football basketball baseball hockey tennis golf cricket rugby boxing wrestling swimming volleyball cycling
        gymnastics chess
    """,
    "month": "January February March April June July August September October November December",
    "weekday": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "kin": """
        father mother brother sister son daughter husband wife uncle aunt cousin nephew niece grandfather
        grandmother
    """,
    "number": "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty fifty",
    "ordinal": "first second third fourth fifth sixth seventh eighth ninth tenth",
    "direction": "north south east west",
    "region": "northern southern eastern western central",
    "colour": "red blue green yellow black white purple orange brown pink grey",
    "animal": "dog cat horse cow bird fish snake lion tiger bear wolf whale shark monkey elephant",
    "medal": "gold silver bronze",
    "party": "Republican Democratic Conservative Labour Liberal Communist",
    "faith": "Christian Catholic Protestant Muslim Jewish Buddhist Hindu atheist",
    "science": "physics chemistry biology mathematics medicine astronomy geology psychology economics law philosophy",
    "instrument": "piano guitar violin drums trumpet flute cello saxophone bass",
    "unit": "seconds minutes hours days weeks months years decades centuries",
    "building": "hospital school church castle factory prison library museum stadium airport",
    "element": "iron copper zinc lead nickel carbon oxygen hydrogen nitrogen helium",
    "company": "Netflix NBC CBS HBO Fox Disney Sony Universal Paramount Microsoft Apple Google Amazon Facebook",
    "quantity": "all most some few none",
    "body": "head neck arm leg hand foot heart lung liver kidney brain",
    "office": "president king queen emperor governor senator mayor minister chancellor ambassador",
    "relation": "before after during",
}

_OPPOSITES = """
    largest/smallest longest/shortest highest/lowest oldest/youngest biggest/smallest greatest/least best/worst
    earliest/latest largest/second-largest more/less most/fewest increased/decreased rose/fell won/lost win/lose
    wins/loses winning/losing success/failure successful/unsuccessful positive/negative male/female man/woman
    men/women boy/girl born/buried alive/dead married/divorced accepted/rejected joined/left began/ended
    started/stopped opened/closed bought/sold before/after above/below inside/outside upper/lower always/never
    often/rarely usually/seldom early/late popular/unpopular public/private rich/poor hot/cold old/new young/old
    domestic/foreign fiction/non-fiction hero/villain friend/enemy victory/defeat love/hate loved/hated
    allowed/banned legal/illegal common/rare critical/favourable only/also part-time/full-time single/married
    winner/loser top/bottom day/night summer/winter morning/evening left/right light/dark heavy/light fast/slow
    strong/weak same/different include/exclude includes/excludes included/excluded appeared/disappeared
    directed/produced wrote/directed sang/wrote father/son mother/daughter supported/opposed agreed/refused
    remembered/forgot kept/lost raised/lowered gained/lost refused/agreed failed/managed able/unable
    capable/incapable likely/unlikely possible/impossible
"""

KINDS: dict[str, tuple[str, ...]] = {kind: tuple(words.split()) for kind, words in _LISTS.items()}
"""kind -> words; two of one kind are never said of the same place at the same time, as a rule."""

OPPOSITES: dict[str, tuple[str, ...]] = {}
"""word -> words that say the opposite, or something else than it."""

for _entry in _OPPOSITES.split():
    _one, _other = _entry.split("/")
    OPPOSITES[_one] = (*OPPOSITES.get(_one, ()), _other)
    OPPOSITES[_other] = (*OPPOSITES.get(_other, ()), _one)
