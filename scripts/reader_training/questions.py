"""Questions made from sentences by rules: a value is taken out, and what is left asks for it.

The questions are plain English of the kinds that people ask ("Who wrote ...?", "When was ...?", "What did ... win?");
where no rule fits, a gap is asked for.
"""

from __future__ import annotations

import re
from random import Random

from judge_training.swaps import Value, find_values

_AUXILIARY = r"is|was|are|were|can|could|will|would|has|had|may|must"
_VERBS = """
became:become began:begin brought:bring built:build came:come chose:choose cost:cost cut:cut did:do drew:draw
fell:fall fought:fight found:find gave:give got:get grew:grow had:have held:hold hit:hit kept:keep knew:know
led:lead left:leave lost:lose made:make met:meet paid:pay put:put ran:run read:read rose:rise said:say sang:sing
saw:see sent:send set:set sold:sell spent:spend spoke:speak stood:stand taught:teach thought:think threw:throw
took:take told:tell went:go won:win wore:wear wrote:write bought:buy bore:bear broke:break sought:seek
"""
_IRREGULAR = dict(pair.split(":") for pair in _VERBS.split())
_SMALL_WORDS = ("The", "A", "An", "It", "He", "She", "They", "His", "Her", "Its", "This")
_VERB = rf"[a-z]{{2,}}ed|{'|'.join(_IRREGULAR)}"
_INVERTED = re.compile(rf"(?P<subject>[^,;:()]{{2,80}}?) (?P<auxiliary>{_AUXILIARY}) (?P<rest>.+)")
_PAST = re.compile(rf"(?P<subject>[^,;:()]{{2,60}}?) (?P<verb>{_VERB}) (?P<rest>.+)")
_AFTER_SUBJECT = re.compile(rf" (?:(?:also|later|first|then|originally) )?(?:{_AUXILIARY}|{_VERB})\b")
# Stems that lose an e before "ed" ("moved", "based", "produced"), and those of like ends that do not.
_SILENT = re.compile(
    r"(?:[^e]at|creat|[aeiou][vzgcsdk]|[aou]m|[uo]t|[ai]r|[^o]ur|[ncdr]s|[ncgdr]u|[rl]v|[nr][cg]|[bcdfgkptz]l|[^aeiou]in)$"
)
_NOT_SILENT = re.compile(r"(?:[ao]ok|ea[dk]|oa[dk]|ou[td]|ai[rdm]|oo.)$")
_PREPOSITION = re.compile(r"\b(in|on|at|from|to|by|of|for|with|near|since|until|during|as|about|into) (?:the |an? )?$")
_PLACES = ("in", "at", "from", "to", "near", "into")
_FIRST_WORDS = re.compile(r"(?P<noun>(?: [a-z-]+){1,2})")
_CLAUSE = re.compile(r"(?<=[,;:—])\s+")
_LEADING = re.compile(r"(?P<phrase>(?:In|On|At|By|From|During|Since) [^,]{3,40}), (?P<clause>\w.+)")
_ASKED = {"name", "year", "month", "amount", "nationality", "country", "place", "continent", "profession", "genre"}
_MOST_WORDS = 30
_LONGEST_QUESTION = 32


def askable(text: str) -> list[Value]:
    """The values of a text that a question may ask for."""
    return [value for value in find_values(text) if value.kind in _ASKED and len(value.text) > 1]


def question_about(rng: Random, sentence: str, value: Value) -> str:
    """A question whose answer is `value`, one of the values of `sentence`; never holds the value itself."""
    body, value = _phrase_last(sentence.rstrip(" .!?\"'"), value)
    ways = [_subject_question, _inverted_question, _past_question]
    for way in ways if rng.random() < 0.9 else ():
        question = way(rng, body, value)
        if question and value.text not in question and 4 <= len(question.split()) <= _LONGEST_QUESTION:
            return question
    return _gap_question(rng, body, value)


def _phrase_last(body: str, value: Value) -> tuple[str, Value]:
    """ "In 1969, men flew." as "men flew in 1969": a subject comes first."""
    match = _LEADING.match(body)
    if match is None or value.end > match.end("phrase"):
        return body, value
    clause, phrase = match["clause"], match["phrase"]
    start = len(clause) + 1 + value.start
    turned = f"{clause} {phrase[0].lower()}{phrase[1:]}"
    return turned, Value(start, start + len(value.text), value.text, value.kind)


def _subject_question(rng: Random, body: str, value: Value) -> str | None:
    """ "Who wrote it?": the value is the subject."""
    if value.start > 4 or value.kind != "name" or not _AFTER_SUBJECT.match(body[value.end :]):
        return None
    return f"{rng.choice(('Who', 'What', 'Which one'))}{_cut(rng, body[value.end :])}?"


def _inverted_question(rng: Random, body: str, value: Value) -> str | None:
    """ "When was she born?": there is an auxiliary to put first."""
    match = _INVERTED.match(body)
    if match is None or value.start < match.start("rest"):
        return None
    asked, left = _asked_and_left(rng, body, value, match.start("rest"))
    return f"{asked} {match['auxiliary']} {_subject(match['subject'])} {left}?".replace(" ?", "?")


def _past_question(rng: Random, body: str, value: Value) -> str | None:
    """ "What did they win?": the verb is in the past tense."""
    match = _PAST.match(body)
    if match is None or value.start < match.start("rest"):
        return None
    asked, left = _asked_and_left(rng, body, value, match.start("rest"))
    return f"{asked} did {_subject(match['subject'])} {present(match['verb'])} {left}?".replace(" ?", "?")


def _asked_and_left(rng: Random, body: str, value: Value, start: int) -> tuple[str, str]:
    """The question's first words, and what is left of the text from `start` on without the value."""
    before, after = body[start : value.start], body[value.end :]
    found = _PREPOSITION.search(before)
    preposition = found[1] if found else ""
    before = before[: found.start()] if found else re.sub(r"\b(?:the|an?) $", "", before)
    noun = _FIRST_WORDS.match(after)
    if value.kind == "year" or value.kind == "month":
        asked = rng.choice(("When", "When", "In what year" if value.kind == "year" else "In what month"))
    elif value.kind == "amount" and noun:
        asked, after = f"How many{noun['noun']}", after[noun.end() :]
        before += f"{preposition} " if preposition not in ("", "of") else ""
    elif preposition in _PLACES and value.kind in ("name", "country", "place") and rng.random() < 0.6:
        asked = "Where"
    else:
        kind = {"name": "", "amount": " number"}.get(value.kind, f" {value.kind}")
        who = "Who" if not kind and rng.random() < 0.4 else f"What{kind}"
        asked = f"{preposition.capitalize()} {who.lower()}" if preposition and rng.random() < 0.5 else who
        if preposition and asked == who:
            before += preposition + " "
    return asked, f"{before.strip()} {_cut(rng, after).strip(' ,')}".strip(" ,")


def _gap_question(rng: Random, body: str, value: Value) -> str:
    """A sentence with a gap, or with a question word where the value was."""
    word = {"year": "what year", "amount": "how many", "name": "who or what"}.get(value.kind, "____")
    gap = rng.choice(("____", word))
    before = _CLAUSE.split(body[: value.start])[-1]
    if len(before.split()) < 4 or rng.random() < 0.5:
        before = " ".join(body[: value.start].split(" ")[-_LONGEST_QUESTION // 2 :])
    text = f"{before}{gap}{_cut(rng, body[value.end :])}"
    if len(text.split()) < 6:
        text = f"{before}{gap}{body[value.end :]}"
    text = " ".join(text.split(" ")[:_LONGEST_QUESTION])
    text = re.sub(rf"(?<!\w){re.escape(value.text)}(?!\w)", "it", text)
    if gap != "____":
        return f"{text[:1].upper()}{text[1:]}?"
    return rng.choice(("Fill in the gap: {}", "Complete: {}", "What is missing? {}")).format(text + ".")


def _cut(rng: Random, after: str) -> str:
    """What follows the value, often without its further clauses."""
    return after if rng.random() < 0.4 else re.split(r"[,;:—(]| and | which | who ", after)[0]


def _subject(subject: str) -> str:
    first, _, rest = subject.partition(" ")
    lowered = first.lower() if first in _SMALL_WORDS else first
    return f"{lowered} {rest}".strip()


def present(verb: str) -> str:
    """The plain form of a verb in the past tense, by rules that are mostly right."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    stem = verb.removesuffix("ed")
    if stem.endswith("i"):
        return stem[:-1] + "y"
    if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lsz":
        return stem[:-1]
    return stem + "e" if _SILENT.search(stem) and not _NOT_SILENT.search(stem) else stem


def quote(sentence: str, value: str) -> str:
    """The sentence, or of a long one the clauses around the value."""
    if len(sentence.split()) <= _MOST_WORDS:
        return sentence
    clauses = _CLAUSE.split(sentence)
    last = next((number for number, clause in enumerate(clauses) if value in clause), 0)
    first = last
    while first > 0 and len(" ".join(clauses[first - 1 : last + 1]).split()) <= _MOST_WORDS:
        first -= 1
    while last + 1 < len(clauses) and len(" ".join(clauses[first : last + 2]).split()) <= _MOST_WORDS:
        last += 1
    text = " ".join(" ".join(clauses[first : last + 1]).split()).rstrip(",;:— ")
    if not text:  # nothing but punctuation
        return sentence
    return text[:1].upper() + text[1:] + ("" if text[-1] in ".!?\"'" else ".")
