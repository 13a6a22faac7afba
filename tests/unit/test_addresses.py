"""No setting holds a secret, since settings are shown: addresses with one are refused and not repeated."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.config import Config
from ewe.config.addresses import without_secrets
from ewe.engine.units.unit_folder import open_folder
from ewe.errors import ConfigError

WITH_SECRETS = [
    "ftp://ann:hidden@host/units",
    "s3://KEY:hid/den@bucket/units",
    "s3://KEY:@bucket",
    "s3://KEY:12/hidden@bucket/units",
    "ftp://ann:1234567/hidden@host/units",
    "https://host/units?sig=hidden",
    "simplecache::sftp://ann:hidden@host/units",
    "milvus+http://ann:hidden@host:9000/passages",
]


@pytest.mark.parametrize("address", WITH_SECRETS)
@pytest.mark.parametrize("setting", ["datastore", "memory.precomputed"])
def test_a_setting_with_a_secret_is_refused_and_not_repeated(address: str, setting: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{setting}: .*FSSPEC_FTP_PASSWORD") as caught:
        Config().override([f"{setting}={address}"])
    assert "hid" not in str(caught.value)
    done = CliRunner().invoke(app, ["serve", "builtin", "--set", f"{setting}={address}"])
    assert done.exit_code == 2
    assert "hid" not in done.output


@pytest.mark.parametrize("address", WITH_SECRETS)
def test_a_place_for_units_too(address: str) -> None:
    with pytest.raises(ConfigError, match="no password") as caught:
        open_folder(address)
    assert "hid" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "C:/a@b?",
        "my store/what?",
        "s3://bucket/units:1",
        "http://host:9000/a@b",
        "abfs://container@account.example/units",
        "sftp://ann@host:22/units",
        "milvus+http://[::1]:19530/passages",
        "memory://units",
    ],
)
def test_other_paths_and_addresses_stay_as_they_are(address: str) -> None:
    assert without_secrets(address) == address
    assert Config(datastore=address).datastore == address
