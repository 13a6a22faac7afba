"""Refuses what a policy yields or returns and the engine cannot do, before anything of it is done."""

import json
import logging
import math
from collections.abc import Mapping
from typing import Any, get_args

from ewe.config.config_engine import MOST_WORDINGS
from ewe.engine import effects
from ewe.engine.field_check import check_fields, check_sentences
from ewe.engine.side_texts import Ask, Decide, Generate, Reply
from ewe.types import FinishReason

_log = logging.getLogger(__name__)
_EFFECTS = get_args(effects.Effect)


def check_effect(effect: object, num_sentences: int) -> None:
    """Raises TypeError or ValueError; of what is no effect nothing is said here.

    num_sentences: how many are complete, which an effect can name.
    """
    if not isinstance(effect, _EFFECTS):
        return
    check_fields(effect)
    by = f"{type(effect).__name__}: "
    match effect:
        case effects.Write(every) if min(every, default=1) < 1:
            raise ValueError(f"Write: every holds numbers of tokens from 1 on, got {every}")
        case effects.Retrieve(top_k=int(number)) if number < 1:
            raise ValueError(f"Retrieve: top_k must be at least 1, got {number}")
        case effects.Verify(sentences):
            check_sentences(sentences, num_sentences, by)
        case effects.Restore(sentence=sentence):
            check_sentences((sentence,), num_sentences, by)
        case effects.Rewind(sentence=sentence) | effects.Quote(sentence=sentence):
            check_sentences((sentence,), num_sentences + 1, by)
        case effects.Draw(count=count) if not 1 <= count <= MOST_WORDINGS:
            raise ValueError(f"Draw: count must be 1 to {MOST_WORDINGS}, got {count}")
        case Generate(asks=asks):
            for ask in asks:
                _check_temperature(ask)
        case Decide(data=data):
            _check_data(data)


def _check_temperature(ask: Ask) -> None:
    if ask.temperature is not None and not 0 <= ask.temperature < math.inf:
        raise ValueError(f"Ask: temperature must be 0 or more, got {ask.temperature}")


def _check_data(data: Mapping[Any, Any]) -> None:
    for key in data:
        if not isinstance(key, str):
            raise TypeError(f"Decide: the keys of data must be texts, got {key!r:.80}")
    if "about" in data:
        raise ValueError("Decide: data has the key 'about', which names the decision")
    json.dumps(data)


def refuse_undeclared(policy: effects.Policy, effect: object, holds_text: bool) -> None:
    """Raises ValueError for an effect, or a returned Ask, that the engine was not made for.

    holds_text: whether text can be taken back.
    """
    name = type(effect).__name__
    if trait := policy.lacks(effect):
        raise ValueError(f"{name}: its @policy must say {trait}=True")
    if isinstance(effect, effects.Rewind | effects.Restore | effects.Quote) and not holds_text:
        raise ValueError(f"{name}: there is no verifier, so the text has been shown and cannot be taken back")


def check_ending(ending: object) -> None:
    """Raises TypeError or ValueError for what no policy can return."""
    if isinstance(ending, Ask):
        check_fields(ending)
        _check_temperature(ending)
    elif not isinstance(ending, Reply) and ending not in (None, *get_args(FinishReason)):
        raise TypeError(f"it returned {ending!r:.80}: return an Ask, a Reply, why the answer ends ('stop'), or nothing")


def log_failure(name: str, steps: Any, error: BaseException) -> None:
    """Logs a policy's fault, with the place of its yield if it has yielded what cannot be done."""
    while (inner := getattr(steps, "gi_yieldfrom", None)) is not None:
        steps = inner
    frame = getattr(steps, "gi_frame", None)
    place = "" if frame is None else f" at its yield in {frame.f_code.co_filename}, line {frame.f_lineno}"
    _log.warning("policy %s failed%s", name, place, exc_info=error)


def described(error: BaseException) -> str:
    """What an error says, whatever its class makes of that."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # it is anybody's code, too
        return type(error).__name__
