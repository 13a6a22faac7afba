"""The words that changes of a sentence take the place of others from."""

from __future__ import annotations


def _both_ways(pairs: str) -> dict[str, str]:
    """{a: b, b: a} of "a/b c/d"."""
    forth = dict(pair.split("/") for pair in pairs.split())
    return forth | {b: a for a, b in forth.items()}


MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
WORDS_OF_NUMBER = "two three four five six seven eight nine ten eleven twelve twenty thirty fifty".split()  # noqa: SIM905
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()  # noqa: SIM905
NATIONS = [
    "English",
    "French",
    "German",
    "Italian",
    "Spanish",
    "Dutch",
    "Swiss",
    "Russian",
    "Chinese",
    "Japanese",
    "Indian",
    "American",
    "British",
    "Canadian",
    "Australian",
    "Irish",
    "Scottish",
    "Polish",
    "Swedish",
    "Danish",
    "Norwegian",
    "Greek",
    "Turkish",
    "Egyptian",
    "Iranian",
    "Israeli",
    "Mexican",
    "Brazilian",
    "Korean",
    "Portuguese",
    "Austrian",
    "Belgian",
    "Hungarian",
]
AMOUNTS = {"some": "all", "many": "few", "most": "few", "several": "no", "all": "only some", "every": "not every"}
UNITS = _both_ways(
    "kilometres/miles kilometers/miles metres/feet meters/feet million/billion hectares/acres km/mi days/weeks "
    "months/years hours/minutes pounds/dollars kilograms/tonnes centuries/decades"
)
EVENTS = _both_ways(
    "born/married died/lived founded/left wrote/translated written/translated directed/reviewed produced/criticized "
    "moved/travelled joined/founded published/banned built/destroyed married/divorced won/lost elected/defeated "
    "signed/rejected developed/abandoned created/abolished opened/closed began/ended started/finished "
    "supported/opposed accepted/refused"
)
COMPARED = _both_ways(
    "more/less larger/smaller greater/lesser higher/lower better/worse older/younger earlier/later longer/shorter "
    "stronger/weaker faster/slower largest/smallest highest/lowest oldest/youngest most/least best/worst"
)
DIRECTIONS = _both_ways(
    "increase/decrease increased/decreased rose/fell before/after north/south northern/southern east/west "
    "eastern/western above/below within/outside allowed/forbade internal/external majority/minority inside/outside "
    "import/export imports/exports"
)
CERTAINTY = {"may": "must", "might": "must", "probably": "certainly", "possibly": "certainly", "perhaps": "certainly"}
CERTAINTY |= {"sometimes": "always", "often": "always", "usually": "never", "rarely": "always", "generally": "never"}
