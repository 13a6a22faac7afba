"""Sentence boundaries in finished and in streaming text."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

import nupunkt

from ewe.text.english import words_of

Span = tuple[int, int]

# White space between words, or an end mark that is no full stop of ours, with what closes behind it.
_GAP = re.compile(r"\s+|([。！？｡।؟][。！？｡।؟」』）”’]*)\s*")
_RUN = re.compile(r"\S*")
_OWN_ENDING = re.compile(r"[。！？｡।؟][。！？｡।؟」』）”’\"')\]»]*\Z")
_ENDING = re.compile(r"[.!?…][.!?…\"')\]}”’»*]*+\Z")
_ONLY_PUNCTUATION = re.compile(r"[.!?…\"')\]}”’»*]+\Z")
_BLANK_LINE = re.compile(r"\n\s*\n")
_FENCE = re.compile(r"(?:`{3,}|~{3,})\S*\Z")
_CODE_BLOCK = re.compile(
    r"^[ \t]*(`{3,}|~{3,})[^`\n]*$.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)  # an opening fence that is never closed opens code up to the end, as in CommonMark
_MARKS = frozenset(".!?…\"')]}”’»*。！？｡।؟」』）")  # the last character of any word that can end a sentence
_LIST_MARKER = re.compile(r"(?:[-*•–]|\d{1,3}[.)]|#{1,6})\Z")
_WORD = re.compile(r"[^\W\d_]{2,}|\d[\d,.-]*")
_ENUMERATOR = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivxlcIVXLC]{1,6})\)?\.\Z")
_NUMBER = "##number##"  # nupunkt's name for every number
# The decision looks at this many characters on each side at most, so that text without spaces cannot make it slow.
_REACH = 80
# Longer abbreviations that could be pronounced and yet are none of the debris; those without vowels need no mention.
_LONG = words_of("""\
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
_SHORT_WORDS = words_of("""\
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
_MISSING = frozenset({"bros"})  # "Warner Bros."
BEFORE_NUMBERS = frozenset({"no", "nos", "art", "arts"})
"""Abbreviations only in front of a number ("No. 5"); words everywhere else ("He said no. Keller left.")."""


class SentenceSplitter:
    """Splits text into sentences; equal results for text that arrives whole or piece by piece.

    nupunkt alone is unstable while text streams: it decides on the word after a full stop, which may still be growing,
    and takes the end of the text for the end of a sentence. Here each boundary is decided from a window: the word
    before the white space and the whole word after it. `completed` reports a boundary once that window is complete,
    or earlier if no continuation can change the decision. Guaranteed, for every text and every prefix of it:

    - every span that `completed(prefix)` reports is a span of `split(text)` and of `completed(text)`;
    - after a reported span, the rest of the text can be looked at alone: with `end` the end of that span, the further
      spans of `split(text)` are those of `split(text[end:])`, moved by `end`.

    Besides nupunkt's full stops, a blank line and a line break before a list marker, heading or fence of code end a
    sentence, and so do the line break after a fence and the end marks of other scripts ("。", "؟"). An enumerator
    ("1.", "b)") belongs to the sentence that it opens.
    """

    def __init__(self) -> None:
        self._rules = _boundary_rules()

    def split(self, text: str) -> list[Span]:
        """Code-point spans of all sentences, without surrounding white space; the last one may be unfinished."""
        spans, rest = self._scan(text)
        end = len(text.rstrip())
        if rest < end:
            spans.append((rest, end))
        return spans

    def completed(self, text: str) -> list[Span]:
        """Code-point spans of the sentences that stay as they are whatever text follows."""
        return self._scan(text, streaming=True)[0]

    def _scan(self, text: str, streaming: bool = False) -> tuple[list[Span], int]:
        """Spans that end at a boundary, and where the rest starts; while streaming, up to the first open boundary."""
        spans: list[Span] = []
        start = len(text) - len(text.lstrip())
        for before, after in _gaps(text):
            if before <= start:
                continue
            boundary = self._rules.is_boundary(text, start, before, after)
            if boundary is None and streaming:
                break
            if boundary:
                spans.append((start, before))
                start = after
        return spans, start


def code_blocks(text: str) -> list[Span]:
    """Code-point spans of the fenced code blocks of Markdown, in order; one that is still open ends with the text."""
    return [match.span() for match in _CODE_BLOCK.finditer(text)]


def is_inside(position: int, spans: Sequence[Span]) -> bool:
    """Whether a position lies in one of the spans, which are in order and apart."""
    before = bisect_right(spans, position, key=itemgetter(0))
    return before > 0 and position < spans[before - 1][1]


def _gaps(text: str) -> Iterator[Span]:
    """Every place where a sentence could end: (end of what is before it, start of what is after it)."""
    for match in _GAP.finditer(text):
        yield match.start() if match[1] is None else match.end(1), match.end()


class _BoundaryRules:
    """Decides one gap at a time, from the words around it."""

    def __init__(self) -> None:
        self._punkt = _corrected_punkt()
        self._abbreviations: frozenset[str] = self._punkt.abbreviations
        # nupunkt's pairs that begin with a number are debris of its training text ("1901. Euronet"): left out.
        self._collocated = {first for first, _ in self._punkt.parameters.collocations} - {_NUMBER}
        self._breaks = lru_cache(maxsize=8192)(self._ask_punkt)

    def is_boundary(self, text: str, start: int, before: int, after: int) -> bool | None:
        """Whether the sentence that begins at `start` ends at `before`; None while further text may decide."""
        if before == after or not text[before].isspace():
            return None if after >= len(text) and before == after else True
        gap = text[before:after]
        if "\n" not in gap and text[before - 1] not in _MARKS:
            return False  # so are nearly all gaps
        if _BLANK_LINE.search(gap):
            return True
        following, is_whole = _word_after(text, after)
        if "\n" in gap and is_whole and (_LIST_MARKER.match(following) or _FENCE.match(following)):
            return True
        chunk = _chunk_before(text, start, before)
        opens = _opens_line(text, start, before - len(chunk))
        if _OWN_ENDING.search(chunk) or ("\n" in gap and opens and _FENCE.match(chunk)):
            return True
        if not _ENDING.search(chunk):
            return None if "\n" in gap and not is_whole else False
        capital = following[:1].isalpha() and not following[:1].islower()  # or of a script without capitals
        if ("\n" in gap or capital) and self._is_plain_end(chunk, opens, capital):
            return True
        if not is_whole:
            return None
        return not _ONLY_PUNCTUATION.match(following) and self._breaks(chunk, opens, gap, following)

    def _is_plain_end(self, chunk: str, opens: bool, capital: bool) -> bool:
        """Whether the chunk ends a sentence before any capitalised word: no abbreviation, initial or enumerator."""
        mark = _ENDING.search(chunk)
        if mark is None or "…" in mark.group() or ".." in mark.group():
            return False
        word = chunk[: mark.start()].lstrip("\"'([{“‘«*")
        if not _WORD.fullmatch(word) or (opens and _ENUMERATOR.match(chunk)):
            return False
        if capital and word.lower() in BEFORE_NUMBERS:
            return True
        kind = _NUMBER if word[0].isdigit() else word.lower()
        return kind not in self._abbreviations and kind not in self._collocated

    def _ask_punkt(self, chunk: str, opens: bool, gap: str, following: str) -> bool:
        """nupunkt's decision between two words, with nothing else of the text in sight."""
        lead = "" if opens else "x "
        window = lead + chunk + gap + following
        end = len(lead) + len(chunk)
        return any(stop == end for _, stop in self._punkt.span_tokenize(window))


@lru_cache(maxsize=1)
def _boundary_rules() -> _BoundaryRules:
    """Those of all splitters, which is safe from several threads.

    Each of its own would hold itself, with thousands of words, until the collector of garbage came by: and that would
    let no other thread go on for some tens of milliseconds after a hundred requests.
    """
    return _BoundaryRules()


@lru_cache(maxsize=1)
def _corrected_punkt() -> Any:
    """nupunkt with its default model, less the ordinary words among its abbreviations, and what it lacks."""
    learnt = nupunkt.load("default").parameters
    kept = {entry for entry in learnt.abbrev_types if is_abbreviation(entry)} | _MISSING
    return nupunkt.PunktSentenceTokenizer(replace(learnt, abbrev_types=kept), include_common_abbrevs=False)


def _word_after(text: str, after: int) -> tuple[str, bool]:
    """The word at `after` and whether it can no longer grow (within the reach)."""
    match = _RUN.match(text, after, after + _REACH)
    word = match[0] if match else ""
    return word, bool(word) and (after + len(word) < len(text) or len(word) == _REACH)


def _chunk_before(text: str, start: int, before: int) -> str:
    """The word that ends at `before`, with the words before it if it is punctuation only (". . .", '. "')."""
    floor = max(start, before - _REACH)
    begin = before
    while begin > floor:
        while begin > floor and not text[begin - 1].isspace():
            begin -= 1
        if begin == floor or not _ONLY_PUNCTUATION.match(text[begin:before].split(None, 1)[0]):
            break
        while begin > floor and text[begin - 1].isspace():
            begin -= 1
    return text[begin:before]


def _opens_line(text: str, start: int, position: int) -> bool:
    """Whether the word at `position` is the first of its sentence or of its line."""
    return position <= start or text[position - 1] == "\n"


def is_abbreviation(entry: str) -> bool:
    """Whether an entry of nupunkt's list (lower-case, without its last full stop) is kept.

    The list holds words that often end lines in its training text ("book", "life", "park"): with those in it, "It is a
    book. Keller wrote it." is one sentence.
    """
    if not entry.isalpha() or not entry.isascii():
        return True
    if entry in BEFORE_NUMBERS or entry in _LONG:
        return True
    if len(entry) <= 3:
        return entry not in _SHORT_WORDS
    return not any(letter in "aeiouy" for letter in entry)
