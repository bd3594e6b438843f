"""What every error says: one line, without the password of an address."""

from __future__ import annotations

import pytest

from gate.errors import ConfigError


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no server at http://ana:s3cret@host:8000/x", "no server at http://***@host:8000/x"),
        ("'https://tok3n@host/' and 'git+ssh://a:b@c@host/x'", "'https://***@host/' and 'git+ssh://***@host/x'"),
        ("write to ana@example.org about http://host/@x", "write to ana@example.org about http://host/@x"),
    ],
)
def test_no_address_is_echoed_with_its_password(said: str, shown: str) -> None:
    assert str(ConfigError(said)) == shown
    assert str(ConfigError("x", where=said, hint=said)) == f"{shown}: x ({shown})"
