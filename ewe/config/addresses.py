"""Addresses in settings, which are shown in messages, logs, results and reports: so they hold no secrets."""

import re

from ewe.errors import ConfigError

_PASSWORD = re.compile(r"[^/@]*:(?!\d{1,5}/)[^@]*@")  # a port is none
_KEY = re.compile(r"[^/@]*:[^@]*@")  # addresses of S3 have no port, and its keys may hold a slash


def without_secrets(text: str) -> str:
    """A path or an address as it is; raises ConfigError, which does not repeat it, for a password or a query in it."""
    scheme, mark, rest = text.partition("://")
    secret = _KEY if scheme.endswith(("s3", "s3a")) else _PASSWORD
    if mark and (secret.match(rest) or "?" in rest):
        raise ConfigError(
            "an address must hold no password and no '?': secrets come from the environment, for files as fsspec names "
            "them (AWS_SECRET_ACCESS_KEY, FSSPEC_FTP_PASSWORD), for stores of passages as EWE_DATASTORE_TOKEN"
        )
    return text
