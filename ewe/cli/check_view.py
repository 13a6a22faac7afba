"""A checked text in the terminal or in a pipe: every sentence with its mark, its claims and what decided them."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from ewe.cli.terminal import MARKS, clean, listed_verdicts, mark, verdict_text
from ewe.evaluation.veriscore import VeriScore
from ewe.text.check_result import NO_CLAIM, CheckedSentence, CheckedText
from ewe.text.words import counted
from ewe.types import Claim, Evidence, Verdict

_MOST_PIECES = 2  # Pieces of evidence shown per claim and side; the page and the JSON hold all.
_STANCES = {Verdict.SUPPORTED: "for", Verdict.REFUTED: "against", Verdict.INCONCLUSIVE: "undecided"}


def print_checked(console: Console, name: str, checked: CheckedText) -> None:
    """Prints the report of one text."""
    console.print(Text(clean(name), style="bold"), soft_wrap=True)
    for item in checked.sentences:
        for line, indent in _sentence_lines(item):
            _print_indented(console, line, indent)
    console.print()
    for text in outcome_lines(checked):
        console.print(text, markup=False)
    console.print()


def outcome_lines(checked: CheckedText) -> list[str]:
    """How many sentences and claims have which verdict, and on how many claims the evidence is at odds."""
    sentences, claims = checked.count_sentences(), checked.count_claims()
    lines = [f"{counted(sum(sentences.values()), 'sentence')}: {listed_verdicts(sentences)}"]
    if any(claims.values()):
        lines.append(f"{counted(sum(claims.values()), 'claim')}: {listed_verdicts(claims)}")
    if checked.num_conflicts:
        lines.append(f"sources disagree on {counted(checked.num_conflicts, 'claim')}")
    return lines


def score_line(score: VeriScore) -> str:
    """VeriScore in one line, the mean where there are several texts."""
    texts = f", mean of {len(score.responses)} texts" if len(score.responses) > 1 else ""
    return (
        f"VeriScore{texts}: precision {score.precision:.3f}, recall {score.recall:.3f}, "
        f"F1 {score.f1:.3f} at K = {score.k:g}"
    )


def _sentence_lines(item: CheckedSentence) -> Iterator[tuple[Text, int]]:
    sentence = item.sentence
    text = " ".join(sentence.text.split())
    yield mark(sentence.verdict).append(" ").append_text(verdict_text(text, sentence.verdict)), 0
    if sentence.reason and sentence.reason != NO_CLAIM:
        yield Text(clean(sentence.reason), style="bright_black"), 2
    for note in item.notes:
        yield Text(clean(f"! {note}"), style="yellow"), 2
    for claim in sentence.claims:
        yield from _claim_lines(item, claim, is_whole=claim.text.rstrip(".") == text.rstrip("."))


def _claim_lines(item: CheckedSentence, claim: Claim, is_whole: bool) -> Iterator[tuple[Text, int]]:
    """The claim, unless it is the whole sentence and said already, and its evidence, the deciding side first."""
    if not is_whole:
        yield mark(claim.verdict).append(" ").append(clean(claim.text)), 4
    if claim.reason:
        yield Text(clean(claim.reason), style="bright_black"), 6
    if item.is_conflicting(claim):
        yield Text("sources disagree", style="yellow"), 6
    evidence = item.evidence_of(claim)
    sides = (claim.verdict, *(side for side in MARKS if side is not claim.verdict))
    for side in sides:
        by_text = {piece.excerpt or piece.passage.text: piece for piece in reversed(evidence) if piece.stance is side}
        for piece in sorted(by_text.values(), key=lambda piece: -piece.score)[:_MOST_PIECES]:
            yield _evidence_line(piece, "found instead" if claim.reason else _side(piece, item)), 6


def _side(piece: Evidence, item: CheckedSentence) -> str:
    stance = _STANCES.get(piece.stance, "undecided")
    return f"decided {stance}" if piece == item.deciding else stance


def _evidence_line(piece: Evidence, side: str) -> Text:
    passage = piece.passage
    origin = passage.title or passage.id
    source = f" ({clean(passage.source)})" if passage.source and passage.source != origin else ""
    line = Text(f"{side} ", style=f"{MARKS[piece.stance][1]}")
    if piece.score:
        line.append(f"{piece.score:.2f} ", style="bright_black")
    line.append(f"{clean(origin)}{source}: ", style="bright_black")
    return line.append(f"“{clean(' '.join((piece.excerpt or passage.text).split()))}”", style="default")


def _print_indented(console: Console, line: Text, indent: int) -> None:
    """Prints with every wrapped line indented; in a pipe nothing is wrapped, so that programs find whole lines."""
    if not console.is_terminal:
        console.print(Text(" " * indent).append_text(line), soft_wrap=True)
        return
    for part in line.wrap(console, max(console.width - indent - 2, 20)):
        console.print(Text(" " * indent).append_text(part), soft_wrap=True)
