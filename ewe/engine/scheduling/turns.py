"""Who comes next of those that wait: tenants take turns, so that one with many requests holds up only its own."""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from operator import attrgetter

from ewe.engine.sequence import Sequence


class Turns:
    """Remembers who had a turn, of the tenants that waited or were served when turns were last given."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._last: dict[str, int] = {}

    def order(self, waiting: Iterable[Sequence], served: Iterable[Sequence]) -> list[Sequence]:
        """Those that wait, given in order of arrival, in the order of their turns.

        served: those that have been let in; whose tenant has the fewest of them comes first, and of tenants that have
        as many the one whose last turn is the longest ago. Prompts that are only scored take no place: they come first.
        """
        under_way = Counter(map(_tenant, served))
        turns: list[tuple[int, int, Sequence]] = []
        for sequence in waiting:
            tenant = _tenant(sequence)
            turns.append((-1 if sequence.is_scored else under_way[tenant], self._last.get(tenant, 0), sequence))
            under_way[tenant] += not sequence.is_scored
        self._last = {tenant: number for tenant, number in self._last.items() if tenant in under_way}
        return [sequence for *_, sequence in sorted(turns, key=lambda turn: turn[:2])]

    def take(self, sequence: Sequence) -> None:
        """A sequence has been let in."""
        self._last[_tenant(sequence)] = next(self._numbers)


# Asked of every sequence in every step, and so no function of Python's.
_tenant: Callable[[Sequence], str] = attrgetter("request.original.tenant")
