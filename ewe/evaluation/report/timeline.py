"""Where everything of one generation lies on one axis: the tokens as they were written, discarded ones included."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ewe.types import Generation, TraceEvent


@dataclass(slots=True)
class Axis:
    """Written tokens of one generation.

    kept: runs [from, to) of written tokens that are in the answer, ascending. removed: runs that were discarded.
    positions: per event of the trace, how many tokens had been written. anchors: (code point, kept token) pairs.
    """

    kept: list[tuple[int, int]] = field(default_factory=list)
    removed: list[dict[str, Any]] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    anchors: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    length: int = 0

    @property
    def kept_tokens(self) -> int:
        """How many tokens are in the answer."""
        return sum(stop - start for start, stop in self.kept)

    def pieces(self, first: int, last: int) -> list[tuple[int, int]]:
        """The written runs that hold the kept tokens [first, last)."""
        runs, before = [], 0
        for start, stop in self.kept:
            low, high = max(first - before, 0), min(last - before, stop - start)
            if low < high:
                runs.append((start + low, start + high))
            before += stop - start
        return runs

    def token_of(self, code_point: int) -> int:
        """The kept token at a code point of the answer: exact at rewinds, in proportion between them."""
        index = min(bisect_right(self.anchors, (code_point, self.length)), len(self.anchors) - 1)
        (char_a, token_a), (char_b, token_b) = self.anchors[max(index - 1, 0)], self.anchors[index]
        if char_b <= char_a:
            return token_b
        return token_a + round((token_b - token_a) * min(code_point - char_a, char_b - char_a) / (char_b - char_a))


def build_axis(generation: Generation) -> Axis:
    """The axis of a generation; a rewind counts the tokens that it withdraws as still there, and says how many."""
    axis = Axis()
    kept = 0
    for event in generation.trace:
        _write(axis, event.num_tokens - kept)
        kept = max(kept, event.num_tokens)
        axis.positions.append(axis.length)
        if event.kind == "rewind":
            kept -= min(kept, int(event.data.get("discarded_tokens", 0)))
            _withdraw(axis, kept, str(event.data.get("text", "")))
            axis.anchors = [anchor for anchor in axis.anchors if anchor[1] < kept or anchor == (0, 0)]
            if kept:
                axis.anchors.append((int(event.data.get("start", 0)), kept))
    _write(axis, generation.stats.tokens_kept - kept)
    end = (len(generation.text), axis.kept_tokens)
    axis.anchors = [anchor for anchor in axis.anchors if anchor[0] < end[0] and anchor[1] <= end[1]] + [end]
    return axis


def _write(axis: Axis, count: int) -> None:
    if count <= 0:
        return
    start = axis.length
    axis.length += count
    if axis.kept and axis.kept[-1][1] == start:
        axis.kept[-1] = (axis.kept[-1][0], axis.length)
    else:
        axis.kept.append((start, axis.length))


def _withdraw(axis: Axis, remaining: int, text: str) -> None:
    runs = []
    while (surplus := axis.kept_tokens - remaining) > 0:
        start, stop = axis.kept.pop()
        cut = max(start, stop - surplus)
        runs.append({"from": cut, "to": stop, "text": text})
        if cut > start:
            axis.kept.append((start, cut))
    axis.removed.extend(reversed(runs))


def build_lanes(events: Sequence[TraceEvent], axis: Axis) -> list[dict[str, Any]]:
    """Per lane {lane, rows, units}; a unit is its refresh event with `from`, `to` (written tokens) and its `row`."""
    units: dict[tuple[str, Any], dict[str, Any]] = {}
    stays: list[dict[str, Any]] = []
    for event, position in zip(events, axis.positions, strict=True):
        key = (str(event.data.get("lane")), event.data.get("unit_id"))
        if event.kind == "refresh" or (event.kind == "restore" and key in units):
            known = units.get(key, {}) if event.kind == "restore" else event.data
            units[key] = {**known, "from": position, "to": axis.length, "time_s": event.time_s, "stays": True}
            stays.append(units[key])
        elif event.kind == "evict" and key in units:
            units[key].update({"to": position, "stays": False})
    names = dict.fromkeys(["retrieval", "verification", *(str(stay.get("lane")) for stay in stays)])
    return [_lane(name, [stay for stay in stays if str(stay.get("lane")) == name]) for name in names]


def _lane(name: str, stays: list[dict[str, Any]]) -> dict[str, Any]:
    row_ends: list[int] = []
    for stay in stays:
        row = next((index for index, end in enumerate(row_ends) if end <= stay["from"]), len(row_ends))
        row_ends[row : row + 1] = [stay["to"]]
        stay["row"] = row
    return {"lane": name, "rows": len(row_ends), "units": stays}
