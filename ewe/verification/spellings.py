"""Addresses, paths and options of commands, which say another thing where their parts are moved or left out."""

import re

_ADDRESS = re.compile(r"[^\s\"'`“”<>()]*\w[/@]\w[^\s\"'`“”<>()]*", re.ASCII)
_OPTION = re.compile(r"([^\s`]+) (--?[A-Za-z][\w-]*)", re.ASCII)
_END = ".,;:!?"


def spells_another(claim: str, evidence: str) -> bool:
    """Whether a claim has an address or path that the evidence does not have, or a command without its option.

    "The file b/a.txt" does on "The file a/b.txt", and "git push is forbidden" on "git push --force is forbidden".
    """
    claimed, own = claim.lower(), evidence.lower()
    addresses = (match[0].rstrip(_END) for match in _ADDRESS.finditer(claimed))
    commands = (
        match[0] for match in _OPTION.finditer(own) if re.search(rf"(?<!\w){re.escape(match[1])}(?!\w)", claimed)
    )
    return any(one not in own for one in addresses) or any(one not in claimed for one in commands)
