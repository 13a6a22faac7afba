"""What people say in a chat in passing: advice, hearsay, moods, errands, and what is asked or tried in the talk."""

import re

from ewe.longterm.third_person import DONE_TO_ME

_ADVERBS = (
    r"(?:(?:so|really|very|a bit|a little|kind of|just|too|still|super|both|all|quite|pretty|not|already|now|more|"
    r"\w+ly) )*"
)
_MOODS = (
    r"(?:tired|exhausted|annoyed|bored|confused|curious|hungry|nervous|angry|mad|sad|worried|lost|excited|stressed|"
    r"overwhelmed|frustrated|shocked|jealous|proud|keen|convinced|glad|happy|sorry|grateful|thankful|stoked|pumped|"
    r"thrilled|blessed|honou?red|lucky|great|good(?! (?:with|at)\b)|scared(?! of)|afraid(?! of)|typing|fine|better|"
    r"impressed|speechless|freezing|sleepy|wondering|asking|"
    r"joking|serious|aware|inspired|motivated|here|there|listening|done|sure|looking forward|over the moon|terrified|"
    r"awful|terrible|guilty|ashamed|torn|in tears|about to|furious|livid|gutted|devastated|delighted|relieved|"
    r"upset|doing (?:well|fine|great|good|ok(?:ay)?)|"
    r"embarrassed|disappointed|useless|hopeless|starving|thirsty|desperate|fed up|close|at (?:my|a) (?:wits|loss))"
)
_OTHERS_MOODS = (
    r"(?:worried|bored|tired|exhausted|annoyed|angry|mad|sad|upset|excited|stressed|right|wrong|confused|here|asleep|"
    r"hopeless)"
)
_THINKS = (
    r"(?:says?|said|thinks?|thought|believes?(?! in\b)|reckons?|claims?|swears?(?= (?:that|it|he|she|I)\b)|"
    r"complain(?:s|ed)?|insists?|heard|rumou?r\w*)"
)
_OF_NOW = (
    r"(?:know(?! (?-i:[A-Z]))|understand|find|figure|follow|remember|tell|believe(?! in\b)|say|agree|mind|care|"
    r"(?:get|make) (?:it|that)|see (?:why|how|it))"
)
_ASKED = r"(?:asked|said|meant|mentioned|googled|searched|typed|clicked|pasted|tried|forgot|forgotten)"
_TRIED = (
    r"(?:tried|restarted|rebooted|reinstalled|installed|updated|checked|double[- ]checked|cleared|reset|looked|"
    r"searched|followed|waited|contacted|emailed|phoned|noticed|sat on hold|read (?:that|about|the))"
)
# Not the code of a door: "My gate code is 4471".
_AT_WORK = (
    r"(?:apps?|code(?! is \S*\d\S*[\s.!…]*$)|scripts?|tests?|build|programs?|functions?|query|server|page|screen|"
    r"files?)"
)
_I = r"\b(?:I|we)(?: (?:only|just|also|still|even|really|honestly|did|do))?"
_OUR = r"(?:my|our)"
# "when I was twelve" only says when.
_NO_TIME = "".join(f"(?<!{word} )" for word in ("when", "since", "before", "while", "after", "until"))
_A_STATE = (
    r"(?:born|raised|brought|diagnosed|an?|the|my|our|vegan|vegetarian|married|pregnant|once|never|going|\w+ed)\b"
)
_FOR_LONG = r"(?:separating|divorcing|expecting|moving|emigrating|relocating|retiring|breastfeeding)"
_FOR_A_DAY = r".* (?:for|by|on|in|at|before) (?:the|my|our|next|this|\w*day|\d|(?-i:[A-Z]))"
_SKILL = r"(?:speak|read|write|play|swim|drive|ride|cook|sing|ski|dance|sew|knit|understand|only)\b"

_ADVICE_AND_HEARSAY = (
    rf"{_I} (?:should|ought to|must|had better|might|may|could)\b|['’]d better\b",
    r"\b(?:was|been|were) (?:told|advised|recommended)\b|\btold (?:me|us)\b.*\bshould\b",
    rf"\b(?:recommend|suggest|advise)(?:s|ed)?\b|\b{_OUR} (?:advice|guess|question|point|idea|opinion)\b",
    rf"\b{_THINKS}\b(?! (?:that )?(?:I|my)\b)|^{_OUR} (?:\S+ ){{1,3}}{_THINKS}\b",
    r"\b(?:told|tells?|telling|promised|reminded|warned) (?:me|us)\b|\bask(?:s|ed) (?:me(?! out)|us|if|whether)\b",
    rf"{_I} (?:\w+ly )?(?:thought|figured|assumed|expected|guessed|wondered)\b|{_I} worry that\b",
)
_MOODS_OF_NOW = (
    rf"{_I}(?:['’]m| am|['’]re| are| was| were| feel| felt) {_ADVERBS}{_MOODS}\b(?! to\b)",
    rf"{_I}(?:['’]m| am) (?:a bit|a little|kind of|kinda) \w+|{_I} (?:feel|felt) \w+",
    rf"\b(?:is|are|was|were) {_ADVERBS}{_OTHERS_MOODS}\b|\b{_OUR} (?:hands?|heart|head) (?:is|are|was|were)\b",
    r"\blike an? \w+[\s.!…]*$|\bhad (?:so much |such |an? )*(?:\w+ )?(?:blast|fun|time)\b|"
    r"\bmak\w+ an? \w* ?difference\b",
    r"\bwill be honest\b|\bstay (?:positive|optimistic|strong)\b|\bwith (?:them|it) now\b|\bbeen one\b",
    r"\bnot (?:even |so |too )?sure\b|n['’]t mind\b|\bno (?:idea|clue)\b",
    r"\b(?:look|sound|feel)s?(?: \w+ly)? like\b|\bseems?\b|\bdream(?:t|ed)\b",
    rf"{_NO_TIME}{_I} was (?!{_A_STATE})",
    rf"^{_OUR} (?:\S+ ){{1,2}}(?:feels?|felt)\b|\balready[\s.!…]*$|^(?:\S+ ){{0,3}}(?:maybe|perhaps|probably)\b",
    rf"^{_OUR} (?:\S+ ){{1,3}}(?:was|were) {_ADVERBS}[a-z]+(?<!ed)[\s.!…]*$",
    rf"{_I}(?: am|['’]m| are|['’]re)(?: not| still)* (?!\w+ing (?:in|up)|{_FOR_LONG}\b)\w+ing[\s.!…]*$",
    rf"{_I} \w+ (?:again|in)[\s.!…]*$",
    r"\bis so \w+[\s.!…]*$|\bcan['’]t just\b|\bwould like (?:\w+ )?help\b|"
    r"\b(?:stuck|(?:sick|tired) of|being)\b(?! (?:a|able|at)\b)",
    rf"\bwill be [a-z]+[\s.!…]*$|^{_OUR} (?:\S+ ){{1,3}}would (?!(?:like|love|prefer|rather|never)\b)",
    # What somebody else is to have in this matter.
    rf"^{_OUR} (?:\S+ ){{1,2}}(?:needs?|has to|have to)\b",
)
_ASKED_AND_TRIED = (
    rf"{_I}(?:['’]ve| have) (?:already |also |just |even )*{_TRIED}\b|\balready {_TRIED}\b",
    rf"{_I} (?:haven|hadn|didn)['’]t (?:done|do|change|changed|touch|touched) (?:any|a)",
    rf"{_I} need (?:help|ideas|advice|some|someone|somebody|(?:an?|\d+|two|three)\b(?!{_FOR_A_DAY}))\b|"
    r"\bcan['’]t (?:do|make) \w+day\b",
    r"\btrying to (?:\w+ly )?(?:remember|find|work|figure|get|make|understand)\b",
    rf"{_I}(?: have|['’]ve got| need) to (?!.*(?:\d|day\b|tomorrow|tonight|next))",
    r"\b(?:\w+ing|try|do|use|need|want|tried|did|used) (?:this|that)"
    r"(?: (?:to|in|at|on|for|with|by|as|and|but|now)\b|[\s.!…]*$)",
    r"\b(?:I|we) (?:\w+ )?(?:spoke|talked|chatted|wrote|called|rang) (?:yesterday|last|on|before|about|twice)\b",
    rf"{_I} (?:don|didn|can|couldn)['’]t (?:really |even |quite )?{_OF_NOW}\b",
    rf"{_I} (?:have |['’]ve )?(?:{_ASKED}|(?:get|keep getting) (?:an? |this |the )?(?:error|message))\b",
    rf"{_I} (?:just want|want to (?:know|ask)|was wondering|just wanted|wanted to (?:ask|say|know)|look forward)\b",
    rf"{_I} (?:don['’]t )?want (?:to (?:just|stop|keep|make|be able)|a (?:refund|reply|call)|my money)\b",
    rf"{_I} want (?:both|it|them|the|something|one|this|that|some)\b|^in that case\b",
    rf"{_I}(?: would|['’]d) (?:like|love|want|appreciate) (?:to (?:know|hear|help)|you|some|your|it|an?|the)\b",
    rf"{_I}(?: would|['’]d) like to \w+[\s.!…]*$|"
    rf"{_I}(?: have|['’]ve)(?: got)? (?:an?|another|one|some) (?:quick )?questions?\b",
    rf"{_I}(?: would|['’]d) (?!(?:like|love|prefer|rather|never|hate|not|been|had|\w+ed)\b)",
    rf"{_I} can (?!{_SKILL})|\bchanged? {_OUR} (?:mind|plans?)\b",
    rf"^{_OUR} (?:\w+ )?{_AT_WORK}\b|\b(?:have|has|got|own|owns) nothing\b",
    r"\bthis (?!\w*(?:morning|afternoon|evening|night|day|week|weekend|month|year|spring|summer|autumn|fall|winter|"
    r"term|season|semester|is|was|will|and)\b)\w+|"
    r"\bsince (?:we|I) (?:last )?(?:talked|chatted|spoke|met)\b|\bthe same (?:at|as|to|error|problem|issue|thing)\b",
)
# What is about nobody or something that was not named, what is no whole statement, and what is not meant.
_NOT_WHOLE = (
    rf"^(?!{DONE_TO_ME})(?:his|her|their|its|they|he|she|it|hopefully|gotta|got to|need to)\b",
    r"^\S+(?: \S+){1,3} (?:it|them|him|her(?= (?:every|on|in|at|to|for|with|and)\b))\b(?! (?:is|was|has)\b)",
    r"\b(?:on|about|with) for (?:an?|some|so|\w+ (?:days?|weeks?|months?|years?))\b",
    r"\b(?:am|is|are|was|were|be|been|do|does|did|have|has|had|can|will|would|should)(?: (?:\w+ly|too|now))?[\s.!…]*$",
    r"\b(?:what|how|where) (?:they|it|I|we) (?:are|is|was|were)\b|\bas if\b|\btotally\b|\bjust what (?:I|we)\b",
    r"\b(?:to|after)[\s.!…]*$|^I(?: am|['’]m)\b.* like me[\s.!…]*$|^we call (?:it|them|him|her)\b",
    r"n['’]t \w+(?:ed|en|pt|one)[\s.!…]*$",
    r"^(?:\S+ ){0,5}(?:it|that|this|them|there|him|her|as one|(?:has|have|had|got|bought|"
    r"needs?|wants?) (?:one|two|three|four|five|six|some|both|none|all))[\s.!…]*$",
    r"\b(?:so|did|do|does|too|any|\w+n['’]t|(?:of|like|about) (?:it|them))[\s.!…]*$",
    r"^(?:I|we) (?:(?:always|never|often|still|just) )?\w+(?:n['’]t)?[\s.!…]*$",
)
_PASSING = re.compile(
    "|".join(f"(?:{one})" for one in (*_ADVICE_AND_HEARSAY, *_MOODS_OF_NOW, *_ASKED_AND_TRIED, *_NOT_WHOLE)),
    re.IGNORECASE,
)
# Said first of somebody or something that is not the speaker's: "The neighbours bring us eggs", "In Rust I get errors".
_SOMEBODY_ELSE = re.compile(
    r"^(?:(?:the|an?|this|that|these|those|one|nobody|every(?:one|body)?|some(?:body|one)?|another|most|no|each|all|"
    r"both|your)\b(?! (?:other|last|next|first|second|following (?!is\b|are\b)|same|days|year|month|week|summer|"
    r"winter|spring|autumn|time|of (?:my|our))\b|.*\b(?:ago|before|later|after)\b)|"
    r"(?-i:(?:In|On|With|For) [A-Z][a-z]+(?: \d\d?)? (?:I|we) (?:get|see|have)))\b",
    re.IGNORECASE,
)


def is_said_in_passing(statement: str) -> bool:
    """Whether a statement is about the moment, the talk or somebody else, or is no whole one."""
    return _PASSING.search(statement) is not None or _SOMEBODY_ELSE.search(statement) is not None
