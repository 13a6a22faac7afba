"""What people say of themselves in English, put into the third person by rules that add nothing to it."""

import re

from ewe.text.english import DETERMINERS, FUNCTION_WORDS, MONTHS, NOUNS_IN_ING, WEEKDAYS, is_irregular_past, words_of
from ewe.text.words import words

_TOKEN = re.compile(r"[A-Z]+/[A-Z]+\b|[\w'’]+(?:-[\w'’]+)*|[^\w]+")  # of "PL/I" and "I/O" the I is nobody
# What stands before a statement and adds nothing to it: "Oh wow, ", "Thanks, Ben! ", "By the way, ".
_OPENING = re.compile(
    r"^(?:(?:and|but|so|well|oh|ooh|yeah|yep|yes|yup|no|nope|nah|wow|woah|hey|hi|hello|thanks|thank you|sure|ok|okay|"
    r"aww?|haha|actually|also|plus|anyway|honestly|btw|by the way|of course|for sure|definitely|absolutely|totally|"
    r"cool|great|nice|awesome|right)\b(?:,? \w+)?\s*[,!.-]+\s*|(?:and|but|so|plus|yeah|well|oh)\s+)+",
    re.IGNORECASE,
)
# How a request begins, behind another one too.
_ASKS = r"(?:(?m:^)|[.!?:;,])[ \t]*(?:(?:please|now|let's|let us) )*"
# A turn that is no report on its speaker: a joke, a role, a text to work on.
_NOT_MEANT = re.compile(
    r"\bfor (?:mistakes|errors|typos|grammar|spelling)\b|\b(?:kidding|joking|jk|sarcasm|yeah,? right)\b|(?<!\S)/s\b|"
    r"\b(?:this|the following) (?:sentence|text|paragraph|story|poem|essay|e-?mail|letter|review|dialogue)\b|"
    rf"{_ASKS}(?:translate|proofread|rewrite|rephrase|paraphrase|summari[sz]e|fix|correct|edit|repeat|classify)\b|"
    rf"{_ASKS}(?:continue|complete|write|say)\b[^.!?]*(?::|[.!?]?\n)",
    re.IGNORECASE,
)
_ROLE = re.compile(rf"{_ASKS}(?:pretend|imagine|suppose|assume|say|act|play|role-?play)\b", re.IGNORECASE)
# Where the speaker's name is nobody else's: in an address, and in a whole name ("My name is Ann Berg").
_OWN_NAME = re.compile(
    r"\S*[@/]\S*|\bwww\.\S+|^[Mm]y (?:full |real |whole )?name(?: is|['’]s) [A-Z]\S*(?: [A-Z]\S*)+(?=[\s.!]*$)"
)
_SPEECH = re.compile(r"[\"“«][^\"“”«»]*[\"”»]?")
_I = re.compile(r"\b(?:i|i'm|me|my|mine|we|our|us)\b", re.IGNORECASE)
_NUMBERED = re.compile(r"\b([A-Z]\w*|type|class|phase|stage|part|level|grade|chapter) I\b(?!['’])")
_STATES = re.compile(r"\b(?:US|ME)\b")
_AUXILIARY = r"(?:am|is|are|was|were|do|does|did|have|has|had|can|could|will|would|shall|should|may|might|must)"
_DOUBTS = (
    # Questions, conditions and denials, by their order.
    rf"(?i:^(?:{_AUXILIARY}|if|unless|why|how|what|where|who|whose|which|whether|remember|wish|thought|note|like|maybe|"
    r"perhaps|even (?:though|if)|although|either|neither|as (?:if|though|an)|god|no (?:me|way|need|idea)|any idea|"
    r"me llamo)\b)",
    rf"(?i:\b{_AUXILIARY} (?:I|we)\b|\bnot\W*$)|\?",
    # What others say.
    r":\s|(?<!\w)['‘](?:I|My|We)\b|, (?:\w+ )?(?:said|says|wrote|sang|asked)\b",
    # Code and quoted mail.
    r"[{}=|\\`\[\]>]|<(?!3)|\w\(",
    # An I that is no subject by itself, titles and phrases.
    r"\bI(?:[,.;)]| (?:and|or|nor|who|as|neither)\b)|(?<=\w )(?:My|Our|We|Me|Us|Mine)\b|"
    r"^(?:My|Our) [A-Z][a-z]+ [A-Z][a-z]",
    r"^My (?:god|pleasure|bad|guess|question|point)\b",
    # "I'd put": had or would.
    r"\b(?i:i|we)['’]d (?:\w+ly |also |just )?(?:put|cut|set|hit|quit|let|hurt|read|cost|beat|bet)\b",
    # Other languages.
    r"\bIm [A-Z][a-z]|\bI (?!ski\b)[a-z]+i\b|\b(?:der|das|und|ist|nicht|eine?|meine?|mit|ich|wir|les|et|est|je|mon|une|"
    r"que|gusta|il|di|della|het|een|niet|ik|wonen|och|jag|är|det|på)\b",
)
_DOUBTFUL = re.compile("|".join(_DOUBTS))
_BEFORE_I = FUNCTION_WORDS | WEEKDAYS | MONTHS.keys() | words_of("yesterday tonight tomorrow ago because")
# First-person subjects, with the verb in the third person where one is part of them.
_SINGULAR = {"i": "", "i'm": "is", "im": "is", "i've": "has", "i'll": "will", "i'd": "would"}
_PLURAL = {"we": "", "we're": "are", "we've": "have", "we'll": "will", "we'd": "would"}
_SUBJECTS = _SINGULAR | _PLURAL
_OTHER_FORMS = {
    "me": "{}", "my": "{}'s", "mine": "{}'s", "our": "{}'s", "ours": "{}'s", "us": "{} and others",
    "myself": "themselves", "ourselves": "themselves",
}  # fmt: skip
_FIRST_PERSON = _SUBJECTS.keys() | _OTHER_FORMS.keys()
_THIRD = {
    "am": "is",
    "have": "has",
    "do": "does",
    "don't": "doesn't",
    "haven't": "hasn't",
    "ain't": "isn't",
    "wanna": "wants to",
}
_ADVERBS = words_of(
    """just also still never seldom always often even now already usually sometimes soon first kinda almost ever both
    then not too really only once no longer"""
)
_SAME_FORM = words_of(
    """was wasn't were weren't had hadn't did didn't will won't would wouldn't can can't cannot could couldn't should
    shouldn't might may must gotta is isn't has hasn't does doesn't put read set hit cut quit let hurt felt slept heard
    ate drank drove rode wore threw understood lent hung froze stole hid bit dug stuck swept meant forgot broke woke
    found stood won spent lost left caught shall shan't mustn't mightn't needn't oughta beat cost burst
    cast split spread tore swore sought bound bred clung crept dealt dreamt leapt learnt spelt burnt fled flung forgave
    lit rang shook shone shrank shut slid spun sprang stung swung wept wove withdrew underwent undertook woke blew
    bent"""
)
_BASE_IN_ED = words_of("need feed speed succeed exceed proceed")
_VERBS_IN_LY = words_of("rely apply supply reply fly multiply comply")
_YOU = words_of("you your yours you're you've you'll you'd yourself let's ya y'all")
# Said of the moment or to the other one: no fact about the speaker.
_ATTITUDES = words_of(
    """hope wish guess bet agree mean wonder suppose promise swear wait appreciate think know dunno doubt assume
    pretend"""
)
_MOODS = words_of("glad sorry sure good fine happy excited thankful grateful lucky back ready done love thanks super")
DONE_TO_ME = (
    r"they (?:put|moved|gave|changed|cut|bumped|fired|hired|promoted|offered|prescribed|took|sacked|laid|switched|"
    r"raised|lowered|stopped|let(?= me go\b)) (?:me|my)\b"
)
"""Whoever they are: "They put me on insulin"."""
_DONE_TO_ME = re.compile(DONE_TO_ME)
_UNRESOLVED = words_of("it this that these those they them he she him here there everyone let don hopefully")
_SAYS_NOTHING = FUNCTION_WORDS | _MOODS | _UNRESOLVED | _ADVERBS | words_of("i im my mine we our us myself so")


def own_words(text: str) -> str:
    """A turn without what it quotes in the first person; and up to where a role begins; empty if it is a joke or a
    text to work on.
    """
    if _NOT_MEANT.search(text):
        return ""
    text = _ROLE.split(text, maxsplit=1)[0]
    return _SPEECH.sub(lambda quoted: "?" if _I.search(quoted[0]) else quoted[0], text)


def in_third_person(sentence: str, speaker: str, of_somebody: bool = False) -> str:
    """ "I moved to Lyon." as "Ann moved to Lyon."; empty where the sentence tells nothing of its speaker that can stand
    alone; of_somebody: it may tell of somebody else, by name.
    """
    plain = _OPENING.sub("", " ".join(sentence.split()))
    spoken = words(_STATES.sub("America", plain))
    named = words(_OWN_NAME.sub(" ", plain))
    is_another = set(words(speaker)) <= set(named)  # somebody else of this name: "Ann told me"
    if is_another or _DOUBTFUL.search(plain) or _has_a_number(plain):
        return ""
    if not (of_somebody and _YOU.isdisjoint(spoken)) and not _tells(spoken):
        return ""
    rewritten = _rewritten(_TOKEN.findall(plain), speaker).rstrip(" .!…") + "."
    return rewritten[0].upper() + rewritten[1:]


def _has_a_number(sentence: str) -> bool:
    """Whether an I may be that of "Elizabeth I", or of a "type I"."""
    before = {match[1].lower() for match in _NUMBERED.finditer(sentence)}
    return any(word not in _BEFORE_I and not _is_adverb(word) for word in before)


def _tells(spoken: list[str]) -> bool:
    """Whether a sentence says something of its speaker; one without "I" or "we" could be a request ("Tell me ...")."""
    subjects = [place for place, word in enumerate(spoken) if word in _SUBJECTS]
    bare = [word.partition("'")[0] for word in spoken]
    done_to_me = _DONE_TO_ME.match(" ".join(spoken)) is not None
    if (
        _FIRST_PERSON.isdisjoint(spoken)
        or not _YOU.isdisjoint(spoken)
        or (bare[0] in _UNRESOLVED | _MOODS and spoken[1:2] != ["days"] and not done_to_me)
    ):
        return False
    behind = spoken[subjects[0] + 1 : subjects[0] + 4] if subjects else []
    if not _ATTITUDES.isdisjoint(behind) and behind[:2] not in (["wish", "to"], ["hope", "to"]):
        return False
    some_of = spoken[1:3] in (["of", "my"], ["of", "our"])
    if (
        not subjects
        and not (some_of or done_to_me)
        and spoken[0] not in DETERMINERS
        and not (spoken[0].endswith("ing") and spoken[0] not in NOUNS_IN_ING and spoken[1] not in _OTHER_FORMS)
    ):
        return False
    return len(set(bare) - _SAYS_NOTHING) > (not (_UNRESOLVED - {"don"}).isdisjoint(bare))


def _rewritten(tokens: list[str], speaker: str) -> str:
    name = speaker[0].lower() + speaker[1:] if speaker.startswith("The ") else speaker
    written: list[str] = []
    agrees = seen = False  # whether the next verb is to agree with the speaker; whether a subject has come
    for place, token in enumerate(tokens):
        word = token.lower().replace("’", "'")
        if word in _SUBJECTS:
            subject = name if word in _SINGULAR else f"{name} and others"
            written.append(f"{subject} {_verb(word, tokens[place + 1 :])}".strip())
            with_others = not seen and [one.lower() for one in tokens[place - 2 : place - 1]] == ["and"]
            with_others = with_others and tokens[place + 2 : place + 3] != ["am"]
            agrees, seen = word == "i" and not with_others, True
        elif word in _OTHER_FORMS and not _STATES.match(token):
            written.append(_OTHER_FORMS[word].format(name))
        elif agrees and word[0].isalpha() and not _is_adverb(word):
            written.append(_agreeing(token, word))
            agrees = False
        else:
            written.append(token)
    return "".join(written)


def _verb(subject: str, behind: list[str]) -> str:
    """What follows the speaker's name for a subject's verb: "would" or "had" for "I'd", nothing for "I"."""
    verb = next((one.lower() for one in behind if one[0].isalpha() and not _is_adverb(one.lower())), "")
    return "had" if subject.endswith("'d") and (_is_past(verb) or verb == "better") else _SUBJECTS[subject]


def _is_adverb(word: str) -> bool:
    return word in _ADVERBS or (word.endswith("ly") and word not in _VERBS_IN_LY)


def _is_past(word: str) -> bool:
    return (
        is_irregular_past(word)
        or is_irregular_past(word.removeprefix("re"))
        or word in _SAME_FORM
        or (word.endswith("ed") and word not in _BASE_IN_ED)
    )


def _agreeing(token: str, word: str) -> str:
    """A verb behind "I" as it is behind a name."""
    if word in _THIRD:
        return _THIRD[word]
    if _is_past(word):
        return token
    if re.search(r"[^aeiou]y$", word):
        return f"{token[:-1]}ies"
    return f"{token}es" if re.search(r"(?:s|x|z|ch|sh|o)$", word) else f"{token}s"
