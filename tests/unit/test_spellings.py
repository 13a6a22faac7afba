"""An address in another order and a command without its option are others."""

import pytest

from ewe.verification.spellings import spells_another


@pytest.mark.parametrize(
    ("claim", "evidence", "is_another"),
    [
        ("The file b/a/c.txt holds them.", "The file a/b/c.txt holds them.", True),
        ("The file a/b/c.txt holds them.", "The settings are in a/b/c.txt.", False),
        ("It is at https://example.org/b/a.", "It is at https://example.org/a/b.", True),
        ("It is at https://example.org/a/b.", "It is at https://Example.org/a/b, and there only.", False),
        ("Ask lind.anna@example.org.", "Ask anna.lind@example.org.", True),
        ("git push is forbidden.", "git push --force is forbidden.", True),
        ("`git push --force` is forbidden.", "git push --force is forbidden.", False),
        ("git pull is allowed.", "git push --force is forbidden, git pull is allowed.", False),
        ("It is -5 °C in Oslo - or so.", "It is -5 °C in Oslo - or so.", False),
    ],
)
def test_what_is_spelled_otherwise(claim: str, evidence: str, is_another: bool) -> None:
    assert spells_another(claim, evidence) is is_another
