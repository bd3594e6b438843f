"""What all of these tests share: clients in this process read no authorities, since none has signed a server here."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

NOBODY = Path(__file__).with_name("nobody.pem")
"""A certificate that has signed nothing."""


@pytest.fixture(autouse=True)
def no_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hundred and more that a machine has take a client longer to read than all that a test asks it for."""
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: None)
    monkeypatch.setattr("certifi.where", lambda: str(NOBODY))
