"""What somebody writes in a chat, cut into statements that can be read one by one, each with its subject."""

import re
from collections.abc import Iterator

from ewe.longterm.asides import is_remark_in_front, without_asides, without_ending, without_opening
from ewe.longterm.elided import is_of_the_speaker, subject_first, with_subject, with_verb
from ewe.longterm.owned import with_owner
from ewe.text.english import is_past, words_of

_SUBJECT = r"(?:I|we|(?:both |all )?(?:my|our)|he|she|they|it|there|his|her|their|this|that|the)\b"
_FIRST = r"(?:(?:both |all )?(?:my|our)|I|we|he|she)\b"
_OTHER = r"(?:the|one|it|they|there|nobody|everyone|none|neither|half|mine|you)\b"
_INVERTED = (
    r"(?:(?:am|is|are|was|do|does|did|have|has|can|could|will|would|should|what|how|why|any|got any)\b(?!['’])|"
    r"(?:what|how|why|where)['’](?:s|re|d|ll)\b|"
    r"(?:where|when|who|which(?: \w+)?) (?:am|are|was|do|does|did|have|has|can|could|will|would|should) "
    r"(?:I|we|you|he|she|it|they|my|our)\b|"
    r"(?:is|are|was|do|does|did|have|has|can|could|wo|would|should)n['’]t "
    r"(?:I|we|you|he|she|it|they|that|this|there)\b)"
)
_REQUEST = (
    r"(?:please|pls|plz|can you|could you|can u|(?:tell|give|make|write|find|show|explain) (?:me|us)|remind me|help|"
    r"stop|suggest|wish (?:me|us) luck|pray for|send help|need (?:to (?:book|know|find|write)|an?|some|ideas|advice))\b"
)
_ASIDE_TO_YOU = r"(?:which one|any (?:tips|ideas)|(?<!I )don['’]t (?:judge|laugh|tell))"
_JOINT = (
    r"(?:(?:and|but|so|yet|though|plus|also|now|then|since then|these days|nowadays|currently|at the moment|today|"
    r"yesterday|tomorrow|here|in (?:19|20)\d\d|(?:last|next|this) \w+|on \w+days?),? )*"
)
_PURPOSE = (
    r"so (?:I|we|he|she|they) (?:can(?!['’])|could|won['’]t|would|don['’]t (?:have to|need|forget|get|lose|miss))\b"
)
# "and suspend hasn't worked": somebody or something else, with a verb that shows.
_ELSE = (
    r"(?:(?!(?:who|that|which|what|how|to|where|when|not)\b)(?:[\w'’-]+ ){1,3}?(?<!\bto )"
    r"(?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|wants?|needs?)(?:n['’]t)?\b|"
    r"(?-i:[A-Z][a-z]+) [a-z]+s\b)"
)
_CUTS = re.compile(
    # A new sentence that begins small, a dash, a semicolon; a comma or a conjunction before a subject of its own.
    rf"(?P<full>(?<=[.!])\s+(?={_JOINT}(?:{_SUBJECT}|{_REQUEST}))|\s+[-–—]+\s+|;\s+|\s*\n\s*)|"
    rf"(?P<comma>,\s+(?!{_PURPOSE})(?={_JOINT}{_SUBJECT}))|"
    rf"(?P<and>\s+(?!{_PURPOSE})(?=(?:and|but|so) {_JOINT}{_FIRST}|(?:and|but) {_OTHER}|(?:and|but) (?:now )?{_ELSE}))|"
    # A question or a request behind a statement, and a second verb of the same subject.
    rf"(?P<asked>,\s+(?={_JOINT}(?:{_INVERTED}|{_REQUEST}))|\s+(?={_JOINT}(?:please|pls|plz|{_ASIDE_TO_YOU})\b))|"
    r"(?P<verb>,?\s+(?=(?:and|but) (?:(?:then|now|also|still|never|just) )?[a-z'’]+\b))|(?P<list>,\s+)",
    re.IGNORECASE,
)
_QUESTION = re.compile(rf"^{_JOINT}{_INVERTED}", re.IGNORECASE)
_IMPERATIVE = re.compile(
    rf"^(?:{_REQUEST}|(?:don['’]t|do not) (?:worry|call|ask|tell|send|say)\b|{_ASIDE_TO_YOU}\b)",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"^(?:(?:ah|oh|ok|okay|right|and|hmm|got it)[,.!]* )*so (?:(?:I|we) (?:need|have to|should|must|can|just)|"
    r"you(?:['’]re| are| mean| think| say))\b",
    re.IGNORECASE,
)
_DEPENDS = re.compile(
    r"^(?:if|unless|when|whenever|while|before|after|since|because|as|although|even|once|until|whether|in case)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(r"\b(?:that|because|when|if|while|says?|said|thinks?|told me)$", re.IGNORECASE)
_CLOSE = re.compile(r"[.!?;,:]\s")
_SUBORDINATE = re.compile(
    r"\b(?:that|because|when|if|who|whose|which|how|what|where|whether|both|between)\b", re.IGNORECASE
)
_OTHERS_CLAUSE = re.compile(rf"(?:and|but) (?:now )?{_ELSE}", re.IGNORECASE)
_OWN_CLAUSE = re.compile(r"(?:(?:and|but|so) (?:I|we)|he|she|they)\b", re.IGNORECASE)
_REMARK = re.compile(r"(?:and|but) (?:the|nobody|everyone|nothing)(?: [\w'’]+){3}", re.IGNORECASE)
_APPOSITION = re.compile(r"(?i:my|our) (?:[\w-]+ )?[\w-]+, [A-Z][\w-]+")  # "My son, Theo, is ..."
_HAS_SUBJECT = re.compile(r"\b(?:I|we|you|he|she|they|it|there|nobody|everyone)\b", re.IGNORECASE)
_MINE = re.compile(r"\b(?:I|we|me|us|my|our|mine)\b", re.IGNORECASE)
_FIRST_SUBJECT = re.compile(r"^(?:[\w ]{0,24}? )?(?P<who>I|we)\b", re.IGNORECASE)
_THIRD_SUBJECT = re.compile(
    r"^(?P<who>(?:my|our) (?:[\w-]+ ){0,2}?[\w-]+|he|she|they)"
    r"(?= (?:is|are|was|were|has|have|had|does|did|will|just|never|also|always|\w+ed|lives?|works?|likes?|loves?|"
    r"hates?|wants?|got|grew|went|moved|plays?|runs?|studies|takes?)\b|['’](?:s|re)\b)",
    re.IGNORECASE,
)
_HAS_AUXILIARY = re.compile(
    r"\b(?:am|is|are|was|were|do|does|did|have|has|had|can|could|will|would|should|must|might)\b|n['’]t\b|"
    r"['’](?:s|re|ve|m|ll|d)\b(?! [\w-]+$)",
    re.IGNORECASE,
)
# "I want to quit and move", "I was born and raised": the second verb is not said of the subject alone.
_REACHES_ON = re.compile(
    r"\bto (?!(?:the|an?|my|our|this|work|school|bed|town|church|university|uni)\b|(?-i:[A-Z]))|\b(?:gonna|wanna|gotta|"
    r"will|would|can|could|should|might|must|let|not|never|helps?|if|was|were|been)\b|n['’]t\b|['’](?:ll|d)\b",
    re.IGNORECASE,
)
_VERBS = words_of(
    """am has have take live work go eat drink play study run drive own teach need want like love hate prefer speak read
    write use sleep get grow help collect cook bake make see visit climb swim cycle walk travel volunteer rent share
    weigh earn pay belong quit put cut hit let
    don't didn't haven't can't won't wasn't weren't couldn't never was were"""
)
_IS = re.compile(r"(?:\b(?:am|is|are|been)|['’](?:m|re|s))\b(?!.*\b(?:has|have|had)\b)", re.IGNORECASE)
_OWN_VERB = words_of("am is was were has have never")
_AFTER_PAST = words_of(
    """to from in on at for with a an the my our his her their it back up out off down into as by when after two three
    all some me him them there here that about this last yesterday until over"""
)
_NO_ROLES = (
    r"(?:child|kid|teen\w*|boy|girl|result|rule|matter|last|test|joke|reward|treat|gift|hobby|side|young|little|bonus|"
    r"consequence|starter|start|thank|backup|whole|couple|family|group|team)\b"
)
_ASIDE = re.compile(r"\(((?:I|we|my|our|he|she)\b[^()]*)\)", re.IGNORECASE)
_ROLE = re.compile(rf"^as (?P<role>an? (?!{_NO_ROLES})[^,.]{{2,40}}?),? (?P<rest>(?:I|my)\b.*)$", re.IGNORECASE)


def statements(sentence: str) -> list[str]:
    """The clauses of a sentence that can stand alone, each with its subject; of a question what is told beside it.

    Conditions stay whole; what only follows from another's answer ("So I should ...") tells nothing.
    """
    if _CONCLUDES.match(sentence):
        return []
    told_aside = _ASIDE.findall(sentence)
    sentence = without_asides(sentence)
    parts = [
        subject_first(with_subject(without_opening(part)))
        for part in _statements_of([*_cut(with_owner(sentence)), *told_aside])
    ]
    parts = [statement for part in parts for statement in _roles(part)]
    return [part for part in (without_ending(part) for part in parts) if part]


def _cut(sentence: str) -> list[str]:
    """The sentence cut wherever both sides can stand alone."""
    if _DEPENDS.match(sentence) and _ROLE.match(sentence) is None:
        return [sentence]
    parts, begin = list[str](), 0
    for cut in _CUTS.finditer(sentence):
        left, right = sentence[begin : cut.start()], sentence[cut.end() :]
        if (second := _second(left, right, cut.lastgroup or "")) is None:
            continue
        parts.append(left)
        begin = cut.end()
        if second:
            return [*parts, *_cut(second)]
    return [*parts, sentence[begin:]]


def _second(left: str, right: str, kind: str) -> str | None:
    """None where there is no cut; the right side with the subject of the left one where it has none of its own."""
    if kind in ("full", "asked"):
        return "" if len(left.split()) > 1 and _APPOSITION.fullmatch(left) is None else None
    if kind in ("comma", "and"):
        is_clause = _is_clause(left) or _IMPERATIVE.match(left) is not None or _adds_nothing(left, right)
        is_clause = is_clause or with_subject(left) != left or (kind == "comma" and is_remark_in_front(left, right))
        if _OWN_CLAUSE.match(right):
            is_clause = is_clause or (len(left.split()) > 3 and _OPEN.search(left) is None)
        elif _OTHERS_CLAUSE.match(right):
            is_clause = is_clause and _SUBORDINATE.search(left) is None
        is_remark = _REMARK.match(right) is not None
        return "" if is_clause and (is_remark or _is_clause(_CLOSE.split(without_opening(right))[0])) else None
    subject = _FIRST_SUBJECT.search(left) or _THIRD_SUBJECT.search(left)
    if kind == "list":
        if subject is not None and _agrees(subject["who"], right) and _goes_on(left, right):
            return f"{subject['who']} {right}"
        is_others = subject is not None and subject["who"].lower() not in ("i", "we")
        return with_verb(right) if is_of_the_speaker(right) or not is_others else None
    if subject is None:
        return None
    _, _, rest = right.partition(" ")
    if is_past(left.split()[-1]):  # "typed and deleted a message"
        return None
    return f"{subject['who']} {rest}" if _goes_on(left, rest) else None


def _agrees(subject: str, right: str) -> bool:
    """Whether a verb in the present begins the right side and is the subject's: "I ..., take", "she ..., takes"."""
    verb = right.split()[0].lower()
    return (
        verb in _VERBS - {"don't"}
        if subject.lower() in ("i", "we", "they")
        else verb.removesuffix("s") in _VERBS - {verb}
    )


def _adds_nothing(left: str, right: str) -> bool:
    """Whether what stands before "and" or "but" tells nothing of the speaker: "No eggs, but we do eat fish"."""
    cut = r"but\b" if len(left.split()) == 1 else r"(?:and|but)\b"  # "she and the kids" are one subject
    return _MINE.search(left) is None and re.match(cut, right, re.IGNORECASE) is not None


def _goes_on(left: str, right: str) -> bool:
    """Whether a second verb of the subject follows: "and take metformin", "and moved to Boston"."""
    next_words = [
        word
        for word in right.replace("’", "'").lower().split()[:4]
        if word not in ("then", "now", "also", "still", "just")
    ]
    is_participle = next_words[:1] and next_words[0].endswith("ed") and _IS.search(left) is not None
    if (
        is_participle
        or len(next_words) < 2
        or (_REACHES_ON.search(left) and not (next_words[0] in _OWN_VERB or next_words[0].endswith("n't")))
    ):
        return False
    return (
        next_words[0] in _VERBS
        or (next_words[0].endswith("s") and next_words[0][:-1] in _VERBS)
        or (is_past(next_words[0]) and next_words[1].rstrip(",.") in _AFTER_PAST)
    )


def _is_clause(text: str) -> bool:
    """Whether there is a subject with a verb, as far as that shows without a grammar."""
    spoken = text.split()
    if len(spoken) < 2 or _OPEN.search(text):
        return False
    if _HAS_SUBJECT.search(text) or _HAS_AUXILIARY.search(text):
        return True
    of_others = any(word.endswith("s") and not word.endswith(("'s", "ss", "s'")) for word in spoken[2:-1])
    return of_others or any(is_past(word) or word.lower() in _VERBS for word in spoken[2:])


def _statements_of(parts: list[str]) -> Iterator[str]:
    """The parts that are told, not asked: those before a part in the form of a question, where there is a "?"."""
    asks = [place for place, part in enumerate(parts) if part.rstrip().endswith("?")]
    for place, part in enumerate(parts):
        later = [ask for ask in asks if ask >= place]
        if (
            _QUESTION.match(part) is None
            and _IMPERATIVE.match(part) is None
            and not (later and _QUESTION.match(parts[later[0]]) is None)
        ):
            yield part


def _roles(part: str) -> list[str]:
    """ "As a nurse I work nights" as "I am a nurse" and "I work nights"."""
    role = _ROLE.match(part)
    return [part] if role is None else [f"I am {role['role']}", role["rest"]]
