"""Signs bytes with the user's own key, and verifies signed ones: ed25519 in a DSSE envelope, as in-toto uses it.

An envelope has exactly one valid form; any other is refused, so that no byte can change unnoticed.
"""

from __future__ import annotations

import base64
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from msgspec import MsgspecError, Struct
from msgspec.json import decode, encode

from gate.errors import ConfigError, UntrustedError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
INSTALL = "pip install 'agent-gate[sign]'"


class _Signature(Struct, forbid_unknown_fields=True):
    keyid: str
    sig: str


class _Envelope(Struct, forbid_unknown_fields=True, rename="camel"):
    payload: str
    payload_type: str
    signatures: tuple[_Signature, ...]


def signed(payload: bytes, private_key: bytes) -> bytes:
    """Return the envelope of a payload. Raises ConfigError unless the key is an ed25519 key in PEM."""
    key: Ed25519PrivateKey = _loaded(private_key, "private")
    found = _Signature(_key_id(key.public_key()), _text(key.sign(_encoded(payload))))
    return encode(_Envelope(_text(payload), PAYLOAD_TYPE, (found,))) + b"\n"


def opened(envelope: bytes, public_key: bytes) -> bytes:
    """Return the content that was signed with the key.

    Raises:
        UntrustedError: not an envelope, or it was changed or signed with another key.
        ConfigError: the key is not a public ed25519 key in PEM.
    """
    key: Ed25519PublicKey = _loaded(public_key, "public")
    from cryptography.exceptions import InvalidSignature

    try:
        found = decode(envelope, type=_Envelope)
        payload = base64.b64decode(found.payload, validate=True)
        signatures = [base64.b64decode(one.sig, validate=True) for one in found.signatures]
    except (MsgspecError, ValueError, RecursionError):
        raise UntrustedError("not a signed statement", hint="`gate attest --key` writes one") from None
    if encode(found) + b"\n" != envelope or found.payload_type != PAYLOAD_TYPE or len(signatures) != 1:
        raise UntrustedError("the envelope is not in `gate attest`'s form: it was changed, or another tool made it")
    if found.signatures[0].keyid != _key_id(key) or _text(payload) != found.payload:
        raise UntrustedError("it was signed with another key")
    try:
        key.verify(signatures[0], _encoded(payload))
    except InvalidSignature:
        raise UntrustedError("the signature does not match: the statement was changed") from None
    return payload


def _encoded(payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding: the payload with its type and the lengths of both."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _key_id(key: Ed25519PublicKey) -> str:
    return sha256(key.public_bytes_raw()).hexdigest()


def _loaded(pem: bytes, kind: Literal["private", "public"]) -> Any:
    """Return an ed25519 key. Raises ConfigError."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
    except ImportError as error:
        raise ConfigError("signatures need the package cryptography", hint=INSTALL) from error
    try:
        found: object = load_pem_private_key(pem, None) if kind == "private" else load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # the library's message may contain parts of the key
        hint = "`openssl genpkey -algorithm ed25519` makes one; an encrypted one is not read"
        raise ConfigError(f"not a {kind} key in PEM", where="--key", hint=hint) from None
    if not isinstance(found, Ed25519PrivateKey | Ed25519PublicKey):
        raise ConfigError("the key is not an ed25519 key", where="--key")
    return found
