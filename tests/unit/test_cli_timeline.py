"""The axis of written tokens and the memory lanes, rebuilt from events."""

from hypothesis import given
from hypothesis import strategies as st

from ewe.evaluation.report.timeline import build_axis, build_lanes
from ewe.types import Generation, GenerationStats, TraceEvent


def generation(events: list[TraceEvent], kept: int, text: str = "") -> Generation:
    return Generation("p", text, (), "stop", (), {}, GenerationStats(tokens_kept=kept), tuple(events))


def rewind(at: int, discarded: int, start: int = 0) -> TraceEvent:
    return TraceEvent("rewind", 0.0, at, {"discarded_tokens": discarded, "start": start, "text": "gone"})


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=12))
def test_every_written_token_is_kept_or_removed_once(steps: list[tuple[int, int]]) -> None:
    kept, discarded, events, owners = 0, 0, [], []
    for written, back in steps:
        kept += written
        owners += [None] * written
        events.append(TraceEvent("pause", 0.0, kept))
        back = min(back, kept)
        events.append(rewind(kept, back))
        kept -= back
        discarded += back
    axis = build_axis(generation(events, kept))
    runs = sorted([*axis.kept, *((item["from"], item["to"]) for item in axis.removed)])
    assert axis.length == kept + discarded
    assert [token for start, stop in runs for token in range(start, stop)] == list(range(axis.length))
    assert axis.kept_tokens == kept
    assert axis.positions == sorted(axis.positions)


def test_a_rewind_that_crosses_an_earlier_one_removes_both_runs() -> None:
    events = [rewind(20, 10), TraceEvent("pause", 0, 20), rewind(20, 15)]
    axis = build_axis(generation(events, 9))
    assert [(item["from"], item["to"]) for item in axis.removed] == [(10, 20), (5, 10), (20, 30)]
    assert axis.kept == [(0, 5), (30, 34)]
    assert axis.pieces(3, 7) == [(3, 5), (30, 32)]


def test_code_points_map_exactly_at_rewinds_and_in_proportion_between() -> None:
    axis = build_axis(generation([rewind(30, 10, start=100)], 40, "x" * 200))
    assert [axis.token_of(place) for place in (0, 50, 100, 150, 200)] == [0, 10, 20, 30, 40]


def test_an_anchor_behind_a_later_rewind_is_forgotten() -> None:
    axis = build_axis(generation([rewind(30, 10, start=100), rewind(30, 25, start=10)], 25, "x" * 90))
    assert axis.anchors == [(0, 0), (10, 5), (90, 25)]


def unit(kind: str, at: int, unit_id: int, lane: str = "retrieval") -> TraceEvent:
    return TraceEvent(
        kind, 0.0, at, {"lane": lane, "unit_id": unit_id, "passage": {"id": f"p{unit_id}"}, "weight": 1.0}
    )


def test_units_lie_in_their_lane_from_refresh_to_eviction() -> None:
    events = [
        unit("refresh", 0, 0),
        unit("refresh", 0, 1),
        unit("evict", 10, 0),
        unit("refresh", 10, 2),
        rewind(10, 4),
        unit("refresh", 6, 3, "verification"),
    ]
    retrieval, verification = build_lanes(events, build_axis(generation(events, 8)))
    places = [(item["unit_id"], item["row"], item["from"], item["to"], item["stays"]) for item in retrieval["units"]]
    assert places == [(0, 0, 0, 10, False), (1, 1, 0, 12, True), (2, 0, 10, 12, True)]
    assert [(item["unit_id"], item["from"], item["to"]) for item in verification["units"]] == [(3, 10, 12)]
    assert (retrieval["rows"], verification["rows"]) == (2, 1)


def test_a_unit_that_a_rewind_brings_back_is_there_twice() -> None:
    events = [unit("refresh", 0, 0), unit("evict", 10, 0), unit("refresh", 10, 1), rewind(20, 15)]
    events += [unit("evict", 5, 1), unit("restore", 5, 0)]
    [lane, _] = build_lanes(events, build_axis(generation(events, 8)))
    places = [(item["unit_id"], item["passage"]["id"], item["from"], item["to"]) for item in lane["units"]]
    assert places == [(0, "p0", 0, 10), (1, "p1", 10, 20), (0, "p0", 20, 23)]
    assert lane["rows"] == 1


def test_without_memory_both_lanes_are_empty() -> None:
    lanes = build_lanes([], build_axis(generation([], 5)))
    assert [(lane["lane"], lane["rows"], lane["units"]) for lane in lanes] == [
        ("retrieval", 0, []),
        ("verification", 0, []),
    ]
