"""Envelopes: what was signed comes out again, and nothing else does."""

from __future__ import annotations

import base64
import hashlib
import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import ConfigError, UntrustedError
from gate.security.signing import PAYLOAD_TYPE, opened, signed
from tests.keys import new_key
from tests.properties import examples

PRIVATE, PUBLIC = new_key()


@given(st.binary(max_size=200))
@settings(max_examples=examples(50))
def test_what_was_signed_comes_out(payload: bytes) -> None:
    assert opened(signed(payload, PRIVATE), PUBLIC) == payload


@given(st.binary(max_size=40), st.data())
@settings(max_examples=examples(200))
def test_an_envelope_with_any_other_byte_is_refused(payload: bytes, data: st.DataObject) -> None:
    envelope = bytearray(signed(payload, PRIVATE))
    place = data.draw(st.integers(0, len(envelope) - 1))
    envelope[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(UntrustedError):
        opened(bytes(envelope), PUBLIC)


def test_it_is_an_envelope_as_dsse_defines_it() -> None:
    """The signature is over the type and the payload with their lengths, checked here by hand."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    found = json.loads(signed(b"hello", PRIVATE))
    assert (found["payloadType"], base64.b64decode(found["payload"])) == (PAYLOAD_TYPE, b"hello")
    key = load_pem_public_key(PUBLIC)
    assert isinstance(key, Ed25519PublicKey)
    (signature,) = found["signatures"]
    key.verify(base64.b64decode(signature["sig"]), b"DSSEv1 28 application/vnd.in-toto+json 5 hello")
    assert signature["keyid"] == hashlib.sha256(key.public_bytes_raw()).hexdigest()


def test_another_key_does_not_open_it() -> None:
    with pytest.raises(UntrustedError, match="another key"):
        opened(signed(b"a", PRIVATE), new_key()[1])


@pytest.mark.parametrize("data", [b"", b"{}", b"[" * 100_000, b'{"payload":"","payloadType":"","signatures":[]}\n'])
def test_what_is_no_envelope_is_refused(data: bytes) -> None:
    with pytest.raises(UntrustedError):
        opened(data, PUBLIC)


@pytest.mark.parametrize("key", [b"", b"-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n", PUBLIC])
def test_what_is_no_private_key_is_said_without_showing_it(key: bytes) -> None:
    with pytest.raises(ConfigError, match="not a private key in PEM") as error:
        signed(b"a", key)
    assert "secret" not in str(error.value)


def test_keys_of_other_kinds_are_refused() -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    other = ec.generate_private_key(ec.SECP256R1())
    pem = other.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(ConfigError, match="not an ed25519 key"):
        signed(b"a", pem)
    public = other.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    with pytest.raises(ConfigError, match="not an ed25519 key"):
        opened(signed(b"a", PRIVATE), public)


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    for work in (lambda: signed(b"a", PRIVATE), lambda: opened(b"{}", PUBLIC)):
        with pytest.raises(ConfigError, match=r"agent-gate\[sign\]"):
            work()
