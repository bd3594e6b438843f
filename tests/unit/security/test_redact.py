"""Secrets are masked in every spelling, ordinary text is left alone, and no input makes it slow."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import gate.security.redact
from gate.security.redact import MARK, MAX_DEPTH, MIN_SECRET, PERSONAL_MARK, Redactor, redact, redact_json
from tests.properties import examples

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
SECRETS = {
    "github": "ghp_" + "a1B2" * 9,
    "github fine-grained": "github_pat_11ABCDEFG0" + "x" * 40,
    "gitlab": "glpat-abcdefghij0123456789",
    "openai": "sk-proj-abcDEF123456abcDEF123456",
    "anthropic": "sk-ant-api03-abcdef123456_abcdef-123456",
    "stripe": "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIza" + "SyA-1234567890abcdefghijklmnopqrstu",
    "slack": "xoxb-123456789012-abcdefghijkl",
    "huggingface": "hf_" + "abcdEFGH12345678" * 2,
    "npm": "npm_" + "a1" * 18,
    "sendgrid": "SG." + "a1" * 11 + "." + "b2" * 20,
    "jwt": JWT,
}
INNOCENT = (
    "The quick brown fox: jumps over 13 lazy dogs, 100 % of them.",
    "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "input_tokens: 123456, output_tokens=789, max_tokens: 4096",
    "Please enter your password: required fields are marked",
    "the bearer of this letter and its authorization",
    "task-force-of-many-words-in-a-row-without-an-end",
    "sk-learn-is-the-name-of-a-well-known-library",
    "PWD=/builds/some-group/project/project",
    "https://example.com:8443/path?page=2&keyword=shoes",
    "order A-1001 from 2024-05-01T12:30:45Z, card ending 4242",
    "a monkey: business",
)


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())
@pytest.mark.parametrize("around", ["{}", "key is {}.", '{{"k": "{}"}}', "({})", "x={}\n", "https://h/?t={}&u=1"])
def test_a_well_known_token_is_masked_wherever_it_stands(secret: str, around: str) -> None:
    shown = redact(around.format(secret))
    assert secret not in shown
    assert MARK in shown
    assert shown.startswith(around.split("{}", maxsplit=1)[0].replace("{{", "{")[:3])


@pytest.mark.parametrize("text", INNOCENT)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=hunter", "password=[redacted]"),
        ("DB_PASSWORD: hunter2!", "DB_PASSWORD: [redacted]"),
        ('{"password": "correct horse"}', '{"password": "[redacted]"}'),
        (r'"{\"api_key\": \"abc def\"}"', r'"{\"api_key\": \"[redacted]\"}"'),
        (r'{"secret": "a\"b"}', '{"secret": "[redacted]"}'),
        ("client_secret='s3'", "client_secret='[redacted]'"),
        ("Authorization: Bearer abcdef123", "Authorization: Bearer [redacted]"),
        ("authorization: Basic dXNlcjpwYXNzd29yZA==", "authorization: Basic [redacted]"),
        ("curl -H 'bearer abcdefghijklmnopqrstuvwxyz'", "curl -H 'bearer [redacted]'"),
        ("postgres://admin:pa55@db.internal/x", "postgres://[redacted]@db.internal/x"),
        ("https://x.blob.core/y?sv=1&sig=abcdefgh%3D&z=1", "https://x.blob.core/y?sv=1&sig=[redacted]&z=1"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = [redacted]"),
    ],
)
def test_what_a_name_or_place_gives_away_is_masked_and_the_rest_is_kept(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize("end", ["-----END RSA PRIVATE KEY-----", ""], ids=["whole", "cut off"])
def test_private_key_blocks_are_masked(end: str) -> None:
    shown = redact(f"before -----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n{end}")
    assert shown == f"before {MARK}"


def test_handed_in_values_are_masked_in_every_spelling() -> None:
    secret = 'zürich "7"/x'
    redactor = Redactor([secret])
    for text in (secret, json.dumps({"a": secret}), "z%C3%BCrich%20%227%22%2Fx", "esO8cmljaCAiNyIveA=="):
        assert MARK in redactor.redact(text), text
    assert redactor.redact("zürich") == "zürich"


@given(st.binary(max_size=7), st.text(min_size=6, max_size=40), st.binary(max_size=7), st.booleans())
def test_no_encoding_of_a_handed_in_value_passes(before: bytes, secret: str, after: bytes, lower: bool) -> None:
    """An agent that was told to give a secret away says it in another spelling."""
    assume(len(secret.strip()) >= MIN_SECRET and secret.strip() not in MARK)
    raw = secret.strip().encode("utf-8", "surrogatepass")
    each = "".join(f"%{byte:02X}" for byte in raw)
    said = [raw.hex() if lower else raw.hex().upper(), each.lower() if lower else each]
    said += [encode(before + raw + after).decode() for encode in (base64.b64encode, base64.urlsafe_b64encode)]
    for text in said:
        assert MARK in Redactor([secret]).redact(f"it is {text}."), text


def test_short_values_and_parts_of_the_mark_are_not_taken_for_secrets() -> None:
    redactor = Redactor(["", "1", "true", "redacted"])
    assert redactor.redact("true 1 redacted") == "true 1 redacted"


def test_longer_values_win_over_their_parts() -> None:
    assert Redactor(["abcdef", "abcdefghi"]).redact("abcdefghi") == MARK


def test_personal_data_only_where_asked() -> None:
    text = "ann@example.com paid with 4111 1111 1111 1111, call +41 44 668 18 00; order 1234567890123456"
    assert redact(text) == text
    assert Redactor(personal=True).redact(text) == (
        f"{PERSONAL_MARK} paid with {PERSONAL_MARK}, call {PERSONAL_MARK}; order 1234567890123456"
    )


def test_json_is_redacted_by_shape_and_by_key() -> None:
    value = {
        "apiKey": "x",
        "DB-Password": {"nested": 1},
        "token": 7,
        "password": None,
        "tokens": 300,
        "list": [SECRETS["aws"], ("ok", 1.5, True)],
        SECRETS["npm"]: "key",
    }
    assert redact_json(value) == {
        "apiKey": MARK,
        "DB-Password": MARK,
        "token": MARK,
        "password": None,
        "tokens": 300,
        "list": [MARK, ["ok", 1.5, True]],
        MARK: "key",
    }


def test_json_nested_without_end_is_cut() -> None:
    value: object = SECRETS["aws"]
    for _ in range(5_000):
        value = [value]
    shown = redact_json(value)
    assert json.dumps(shown) == "[" * MAX_DEPTH + '"[nested too deeply]"' + "]" * MAX_DEPTH


FRAGMENTS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *SECRETS.values(),
                *INNOCENT,
                MARK,
                "password",
                "passwd",
                "passphrase",
                "pwd",
                "token",
                "=",
                ": ",
                '"',
                "\\",
                "'",
                "://",
                "@",
            ]
        ),
        st.sampled_from(["Bearer ", "Authorization", "-----BEGIN PRIVATE KEY-----", "-----", "?sig=", "abc123def"]),
        st.text(max_size=5),
    ),
    max_size=12,
).map("".join)


@given(FRAGMENTS)
@settings(max_examples=examples(200))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@pytest.mark.parametrize(
    "name", ["password", "passwd", "passphrase", "pwd", "PASSWORD", "Passphrase", "PassWd", "pa\u017f\u017fword"]
)
def test_every_name_of_a_password_tells(name: str) -> None:
    assert redact(f"{name}=hunter2-and-more9") == f"{name}={MARK}"


@given(st.one_of(FRAGMENTS, st.text(), FRAGMENTS.map(str.upper), FRAGMENTS.map(str.swapcase)))
@settings(max_examples=examples(500))
def test_the_quick_look_overlooks_nothing(text: str) -> None:
    for folded in (text, text.replace("s", "ſ"), text.replace("i", "ı"), text.replace("k", "\u212a")):
        assert gate.security.redact._may_hold_secret(folded) or not gate.security.redact._secrets().search(folded)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
@settings(deadline=None)
def test_json_keeps_its_shape(value: object) -> None:
    json.dumps(redact_json(value))


@pytest.mark.parametrize(
    "piece",
    ["a", "eyJ", "eyJaaaaaaaaaa.", "sk-", "-----BEGIN PRIVATE KEY-----", "password: ", "://a:", "a@a.", "1 ", "+1 2 "],
)
def test_text_made_to_be_slow_is_not(piece: str) -> None:
    """What took time in the square of the length would not end."""
    text = (piece * 200_000)[:200_000]
    assert "hunter22" not in Redactor(["hunter22"], personal=True).redact(f"{text} hunter22")
