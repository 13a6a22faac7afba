"""From a sentence to its clauses.

There is no parser behind it: word order, prepositions and marks decide.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ewe.text import english
from ewe.verification.value_comparison.clauses import MODIFIER, Argument, Clause
from ewe.verification.value_comparison.coreference import Discourse
from ewe.verification.value_comparison.lexicon import KIND_OF_NOUN, RELATIONS, NameKind, is_trade
from ewe.verification.value_comparison.mentions import find_mentions
from ewe.verification.value_comparison.tokens import Mention, Token, norm_at, tokenize
from ewe.verification.value_comparison.values import Name, Term, Value

_BREAKS = frozenset(",;:–—()[]")
_RELATIVES = english.words_of("who which whom whose where when while whereas although though because that")
_CONJUNCTIONS = english.words_of("and but or")
_COPULAS = ("be", "becom")
_HAVE = english.stem("have")
_ORIGIN = re.compile(r"(?:ish|ese|ian|ean|ican|rman|nch|tch|iss|reek|lsh|aeli|aqi|stani)$")
_ALIKE = {"within": "in", "inside": "in", "on": "at", "during": "at", "into": "to", "onto": "to", "between": "since"}
_ALIKE |= {"till": "until", "about": "for"} | dict.fromkeys(("under", "alongside", "against"), "with")
_POSSESSIVES = english.words_of("his her hers its their theirs")
_BEFORE_PHRASES = english.PREPOSITIONS | english.DETERMINERS | _CONJUNCTIONS
_GOVERNING = english.words_of("of by at in for to")


def cut_clauses(sentence: str, discourse: Discourse) -> list[Clause]:
    """The clauses of a sentence, in order; `discourse` resolves pronouns and learns the names as they are met."""
    return _Reader(sentence, discourse).read()


class _Reader:
    def __init__(self, sentence: str, discourse: Discourse) -> None:
        discourse.begin_sentence()
        self._sentence = sentence
        self._discourse = discourse
        self._tokens = tokenize(sentence)
        self._mentions = {mention.first: mention for mention in find_mentions(sentence, self._tokens)}
        self._clauses = [Clause()]
        self._preposition = ""
        self._may_describe = False  # Behind a copula or a comma, where an article begins a description,
        self._is_description = False  # and in it: "was a weaver", ", a weaver", "as a weaver".
        self._is_bare = False  # Behind a relation or preposition, before any article.
        self._follows_copula = False
        self._noun: Token | None = None

    def read(self) -> list[Clause]:
        index = 0
        while index < len(self._tokens):
            index = self._take(index)
        self._open("")
        return [clause for clause in self._clauses if clause.start >= 0]

    def _take(self, index: int) -> int:
        """Accounts for what begins at a token; returns where to go on."""
        token, mention = self._tokens[index], self._mentions.get(index)
        if mention is not None:
            self._cover(token, self._tokens[mention.last - 1].end)
            self._mentioned(mention)
            return mention.last
        if token.kind == "mark":
            if token.text in _BREAKS and not (token.text in "–—" and self._clauses[-1].opener == "("):
                self._open(token.text)
            return index + 1
        if token.norm == "that" and norm_at(self._tokens, index + 1) == "of" and self._may_describe:
            return index + 2  # "her profession was that of a weaver"
        if token.norm in _RELATIVES and (self._clauses[-1].start >= 0 or self._clauses[1:]):
            self._open(token.norm)
            return index + 1
        if token.norm in _CONJUNCTIONS:
            self._conjunction(index)
            return index + 1
        noun = self._definite(index)
        if noun is not None:
            self._cover(token, self._tokens[index + 1].end)
            self._value(noun, owner=self._tokens[index + 1].possessive, is_explicit=False)
            return index + 2
        self._cover(token, token.end)
        self._word(index)
        return index + 1

    def _cover(self, first: Token, end: int) -> None:
        clause = self._clauses[-1]
        clause.opening = clause.opening or first
        clause.start, clause.end = clause.opening.start, end

    def _open(self, opener: str) -> None:
        self._end_of_phrase()
        if self._clauses[-1].start < 0:  # ", who": the word says more than the mark
            self._clauses.pop()
        self._clauses.append(Clause(opener))
        self._preposition, self._is_description, self._may_describe = "", False, opener in (",", "–", "—")

    def _conjunction(self, index: int) -> None:
        """Opens a clause before another verb, or before another date's name ("in 1831 and the Medal in 1842")."""
        rest, at = Clause(), index + 1
        has_verb = False
        while at < len(self._tokens) and not self._ends(at):
            mention = self._mentions.get(at)
            if mention is not None:
                rest.arguments.append(Argument(mention.value))
            has_verb |= mention is None and bool(self._relations(at) or self._tokens[at].stem in _COPULAS)
            at = mention.last if mention is not None else at + 1
        if self._clauses[-1].relations and (has_verb or (rest.is_gapped and self._clauses[-1].is_dated)):
            self._open("and")
            self._cover(self._tokens[index], self._tokens[index].end)
        elif self._clauses[-1].arguments and not self._preposition:  # "in Ulm and Bern"
            self._end_of_phrase()
            self._preposition = self._clauses[-1].arguments[-1].preposition

    def _ends(self, index: int) -> bool:
        token = self._tokens[index]
        is_break = token.kind == "mark" and token.text in _BREAKS
        return index not in self._mentions and (is_break or token.norm in _RELATIVES | _CONJUNCTIONS)

    def _mentioned(self, mention: Mention) -> None:
        """A value of the text; a common noun before a name says what kind of thing it is."""
        value, last = mention.value, self._tokens[mention.last - 1]
        if isinstance(value, Name):
            start = self._tokens[mention.first].start
            wording = value.text or self._sentence[start : last.end].removesuffix("'s").removesuffix("’s")
            before = mention.first - 2 if norm_at(self._tokens, mention.first - 1) == "of" else mention.first - 1
            kind = KIND_OF_NOUN.get(norm_at(self._tokens, before), NameKind.UNKNOWN)
            kind = kind if value.kind is NameKind.UNKNOWN else value.kind
            value = self._discourse.notice(replace(value, kind=kind, text=wording))
            if not self._preposition and not any(clause.names() for clause in self._clauses):
                self._discourse.open_with(value)
            if self._is_adjective(mention, value):
                self._clauses[-1].arguments.append(Argument(value, MODIFIER))
                return
        self._value(value, owner=last.possessive)

    def _is_adjective(self, mention: Mention, name: Name) -> bool:
        """Whether a name only describes: "a Polish botanist", "is English"."""
        ahead = self._tokens[mention.first - 1] if mention.first else None
        behind = self._tokens[mention.last] if mention.last < len(self._tokens) else None
        if ahead is not None and ahead.stem in _COPULAS:
            return len(name.words) == 1 and _ORIGIN.search(name.words[0]) is not None
        is_noun = behind is not None and behind.is_word and behind.norm not in english.FUNCTION_WORDS
        is_before_title = self._preposition == "by" and mention.last + 1 in self._mentions  # "by Ulm painter Jan Holm"
        described = self._is_description or is_before_title or (ahead is not None and ahead.norm in ("a", "an"))
        return is_noun and described and not self._tokens[mention.last - 1].possessive

    def _value(self, value: Value, owner: bool = False, is_explicit: bool = True) -> None:
        clause = self._clauses[-1]
        self._noun = None  # "the novel Emma": the noun only names the kind of the value
        if isinstance(value, Name):
            clause.last_name = value
        opens = not clause.relations or self._follows_copula  # "Among those who studied there was Ada Byron"
        if isinstance(value, Name) and clause.subject is None and opens and not self._preposition:
            clause.subject = value
        elif is_explicit or not owner:  # "her novel": whose it is says the subject
            clause.arguments.append(Argument(value, self._preposition))
        self._preposition = ""
        self._is_description &= not isinstance(value, Name)  # "a 1931 novel"
        self._may_describe = self._follows_copula = self._is_bare = False

    def _definite(self, index: int) -> Name | None:
        """What "the prize" stands for, if it stands for a name."""
        behind = index + 2
        if self._tokens[index].norm not in ("the", "this") or behind > len(self._tokens):
            return None
        noun = self._tokens[index + 1]
        is_named = {index + 1, behind} & self._mentions.keys() or norm_at(self._tokens, behind) in ("of", "for")
        return None if is_named or noun.is_capital else self._discourse.definite(noun.norm)

    def _word(self, index: int) -> None:
        token, clause = self._tokens[index], self._clauses[-1]
        clause.negated |= token.norm in english.NEGATIONS or token.norm.endswith("n't")
        clause.restricted |= token.norm in english.RESTRICTIONS
        name = self._discourse.pronoun(token.norm) if token.norm in english.PRONOUNS else None
        relations = self._relations(index)
        if name is not None:
            is_object = token.norm == "her" and self._ends_phrase(index + 1)
            self._value(name, token.norm in _POSSESSIVES and not is_object, is_explicit=False)
        elif token.stem in _COPULAS:
            self._end_of_phrase()
            self._follows_copula = bool(clause.arguments) and not clause.of_noun
            clause.relations.add("be")
            self._preposition, self._may_describe = "", True
        elif token.stem == _HAVE:
            clause.relations.add("have")
        elif token.norm in english.PREPOSITIONS:
            self._take_preposition(index)
        elif token.norm in english.DETERMINERS:
            self._is_bare = False
            self._is_description |= self._may_describe and token.norm in ("a", "an", "the")
        elif relations:
            if self._begins_noun_clause(index) and clause.relations.isdisjoint(relations):
                self._open("and")
                self._cover(self._tokens[index - 1], token.end)
                clause = self._clauses[-1]
            self._end_of_phrase()
            clause.relations |= relations
            self._is_bare = not all(name.startswith("~") for name in relations)
            self._preposition, self._is_description = "", False
        elif token.norm in english.TIME_NOUNS:  # "in later years"
            self._preposition, self._noun = "", None
        elif token.norm not in english.FUNCTION_WORDS:
            self._noun = token

    def _take_preposition(self, index: int) -> None:
        norm, ahead, clause = self._tokens[index].norm, norm_at(self._tokens, index - 1), self._clauses[-1]
        if norm == "of" and not clause.names() and norm_at(self._tokens, index - 2) in english.DETERMINERS:
            clause.of_noun = ahead
        self._end_of_phrase()
        if not (norm == "of" and self._preposition and ahead in KIND_OF_NOUN):  # "in the town of Ulm" is in Ulm
            self._preposition = _ALIKE.get(norm, norm)
        self._is_description, self._is_bare = norm == "as", True

    def _begins_noun_clause(self, index: int) -> bool:
        """Whether a noun says with a preposition what else there was: "lived there until her death in 1901"."""
        is_led = norm_at(self._tokens, index - 2) in english.PREPOSITIONS - {"of", "as"}
        return is_led and norm_at(self._tokens, index - 1) in english.DETERMINERS and bool(self._clauses[-1].relations)

    def _relations(self, index: int) -> frozenset[str]:
        """What relations a word speaks of; none for a noun that only says what its subject is ("was a writer")."""
        token = self._tokens[index]
        ahead, behind = norm_at(self._tokens, index - 1), index + 1
        if token.norm in ("work", "works") and ahead in english.DETERMINERS:
            return frozenset({"create"})  # "a work by X", not "X works in Y"
        if self._preposition == "by" and behind in self._mentions and not token.norm.endswith("ing"):
            return frozenset()  # a title: "by director Jan Holm"
        if token.stem in RELATIONS:
            governs = norm_at(self._tokens, behind) in _GOVERNING or behind in self._mentions
            return frozenset() if self._is_description and not governs else RELATIONS[token.stem]
        if token.norm in english.FUNCTION_WORDS:
            return frozenset()
        past = (token.norm.endswith("ed") and len(token.norm) > 4) or english.is_irregular_past(token.norm)
        attributive = ahead in english.DETERMINERS or ahead in english.PREPOSITIONS
        return frozenset({f"~{token.stem}"}) if past and not attributive and not token.is_capital else frozenset()

    def _ends_phrase(self, index: int) -> bool:
        """Whether no noun can follow: "her" is then an object ("met her in Paris"), not a possessive."""
        following = self._tokens[index : index + 1]
        return not following or following[0].kind == "mark" or following[0].norm in _BEFORE_PHRASES

    def _end_of_phrase(self) -> None:
        """Notes the last noun of a phrase that says what something is, or that has no article ("studied physics")."""
        noun, self._noun = self._noun, None
        if noun is None or noun.norm in english.EVALUATIONS or not (self._is_description or self._is_bare):
            return
        clause, preposition = self._clauses[-1], "as" if self._is_description else self._preposition
        clause.arguments.append(Argument(Term(noun.stem, is_trade(noun.norm)), preposition))
        if self._is_description:
            clause.relations.add("occupation")
