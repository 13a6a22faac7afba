"""Which values can be sent on as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ewe.text.json_values import MOST_LEVELS, check_json


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 1, 10**400, 1.5, "a", "\u0000", {}, [], {"a": [1, {"b": ["c"]}]}),
        *(json.loads("[" * MOST_LEVELS + end + "]" * MOST_LEVELS) for end in ("", "1")),
    ],
)
def test_what_json_can_say_is_taken(value: Any) -> None:
    check_json(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *((value, "half of a surrogate pair at 1") for value in ("a\ud800", ["a\udfff"], {"a": {"b": ["a\ud800"]}})),
        *(({name: 1}, "half of a surrogate pair at 0") for name in ("\ud800", "\udfffa")),
        *((float(number), "NaN and infinities") for number in ("nan", "inf", "-inf")),
        (json.loads("[" * 201 + "]" * 201), "more than 200 levels"),
        (json.loads('{"a":' * 900 + "1" + "}" * 900), "more than 200 levels"),
    ],
)
def test_what_it_cannot_is_refused(value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_json(value)
