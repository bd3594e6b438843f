"""Replaces secrets (and, on request, personal data) by a mark before anything is stored or shown.

Knows the token formats of well-known issuers, and the values that it is given; never reads the environment. It is a
safety net, not a proof: a secret without a known shape, name or value passes. Every pattern runs in linear time.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any
from urllib.parse import quote

MARK = "[redacted]"
PERSONAL_MARK = "[personal data]"
MIN_SECRET = 6
"""Given values shorter than this are not masked: masking every ``1`` or ``true`` would destroy the text."""
MAX_DEPTH = 100

# A token starts at a boundary, so that each run of token characters is scanned only once, in linear time.
_START = r"(?<![A-Za-z0-9_-])"
_TOKENS = (
    r"gh[pousr]_[A-Za-z0-9]{30,255}",
    r"github_pat_[A-Za-z0-9_]{22,255}",
    r"gl(?:pat|dt|rt|cbt|ptt|ft|agent)-[A-Za-z0-9_.-]{20,300}",
    r"sk-(?=[A-Za-z_-]{0,100}[0-9])[A-Za-z0-9_-]{20,300}",  # OpenAI, Anthropic and the many that follow them
    r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}",  # Stripe
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",  # AWS key ids
    r"AIza[A-Za-z0-9_-]{35}",  # Google API keys
    r"ya29\.[A-Za-z0-9_-]{20,2000}",
    r"GOCSPX-[A-Za-z0-9_-]{20,60}",
    r"xox[abceoprs]-[A-Za-z0-9-]{10,300}",  # Slack
    r"xapp-[A-Za-z0-9-]{20,300}",
    r"hf_[A-Za-z0-9]{30,100}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[A-Za-z0-9_-]{50,500}",
    r"dckr_pat_[A-Za-z0-9_-]{20,60}",
    r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,100}",  # SendGrid
    r"eyJ[A-Za-z0-9_-]{8,10000}\.eyJ[A-Za-z0-9_-]{8,10000}(?:\.[A-Za-z0-9_-]{0,10000})?",  # JSON Web Tokens
)
_KEY_BLOCK = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S])*+(?:-----END [^-\n]{0,60}-----)?"
)
_NAMES = (
    r"pass(?:word|wd|phrase)|pwd(?![ \t]{0,4}=[ \t]{0,4}/)|secret(?:[_-]?(?:access[_-]?)?key)?|"
    r"api[_-]?key|access[_-]?key|account[_-]?key|"
    r"private[_-]?key|client[_-]?secret|credentials?|(?:access|auth|refresh|bearer|session|id)[_-]?token|token"
)
_QUOTED = "|".join(
    (
        r'\\"(?!\[redacted\])(?:[^"\n\\]|\\[^"\n]){1,2000}',
        r'"(?!\[redacted\])(?:[^"\n\\]|\\.){1,2000}',
        r"'(?!\[redacted\])(?:[^'\n\\]|\\.){1,2000}",
    )
)
_BARE = r"""[^\s"'\\,;&|<>(){}\[\]]"""
_IN_PROSE = r"(?:api|secret|(?:secret )?access|account|private) key"
_RANDOM = r"[\"']?(?=[A-Za-z0-9_+/=-]{0,200}[0-9])[A-Za-z0-9_+/=-]{16,2000}"
"""The value after a name in prose, where "API key: 32-character" and "access key: Alt+Shift+A" tell no key."""
_NO_VALUE = r"https?://|www\.|(?:\*{1,200}|\$\{?[A-Z_]{1,100})(?![A-Za-z0-9*_])"
"""An address, a value that is masked already, or the name of a variable."""
_PAIR = (
    rf"(?P<name>(?:{_NAMES}|(?P<prose>{_IN_PROSE}))\\?[\"']?)(?P<sign>[ \t]{{0,4}}(?:=>|=|:)[ \t]{{0,4}})"
    rf"(?P<value>(?(prose){_RANDOM}|(?:{_QUOTED}|(?<==){_BARE}{{4,2000}}"
    rf"|(?!{_NO_VALUE})(?={_BARE}{{0,200}}[0-9!@#$%^*+/]){_BARE}{{6,2000}})))"
)
_HEADER = (
    r"(?P<header>authorization\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\?[\"']?(?:(?:bearer|basic|token|digest)[ \t]{1,4})?+)"
    r"(?=[^\s\"'\\,;\[\]]{0,200}[0-9]|(?<=[ \t])[^\s\"'\\,;\[\]]{16})[^\s\"'\\,;\[\]]{6,4000}"
)
_BEARER = r"(?P<bearer>\bbearer[ \t]{1,4})[A-Za-z0-9._~+/-]{20,4000}={0,2}"
_QUERY = r"(?P<query>[?&](?:key|sig|signature|code)=)[^&\s\"'<>\[\]]{8,2000}"
_USERINFO = r"(?<=://)[^\s/:@\[\]]{0,200}:[^\s/@\[\]]{1,200}(?=@)"


@cache
def _secrets() -> re.Pattern[str]:
    """Return one pattern for all shapes; compiled when a text first contains a clue, which happens in few runs."""
    return re.compile(
        "|".join(
            (
                _START + "(?:" + "|".join(_TOKENS) + ")[A-Za-z0-9_-]*+",  # a run is masked whole
                _KEY_BLOCK,
                rf"(?i:{_HEADER})",
                rf"(?i:{_BEARER})",
                rf"(?i:{_PAIR})",
                rf"(?i:{_QUERY})",
                _USERINFO,
            )
        )
    )


# Parts of every secret of a known shape that are quick to find: each begins with one letter, which
# `re` finds as fast as memory is read; the text before it is checked only there.
_CLUES = tuple(
    re.compile(clue)
    for clue in (
        r"y(?:a29\.)",
        r"A(?:KIA|SIA|BIA|CCA|Iza)",
        r"G(?:(?<=SG)\.|OCSPX-)",
        r"J(?<=eyJ)",
        r"B(?<=-----B)EGIN ",
        r"_(?:(?<=gh[pousr]_)|(?<=github_)pat_|(?<=k_)(?:live|test)_|(?<=hf_)|(?<=npm_)|(?<=dckr_)pat_)",
        r"-(?:(?<=gl(?:dt|rt|ft)-)|(?<=gl(?:pat|cbt|ptt)-)|(?<=glagent-)|(?<=sk-)|(?<=xox[abceoprs]-)|(?<=xapp-)|(?<=pypi-))",
    )
)
_FOLDED_CLUES = tuple(
    re.compile(clue)
    for clue in (
        r"/(?<=:/)/",
        r"=(?:(?<=sig=)|(?<=signature=)|(?<=code=))",
        r"k(?:ey|(?<=tok)en)",
        r"z(?<=authoriz)ation",
        r"p(?:ass[wp]|wd)",
        r"b(?:earer)",
        r"c(?:redential|(?<=sec)ret)",
    )
)
_SHORT = 80
"""The longest text, such as a tool's name, whose result is cached, because short texts recur."""


def _may_hold_secret(text: str) -> bool:
    """True unless no pattern can match; letters are folded as `re` folds them."""
    return _short_may(text) if len(text) <= _SHORT else _look(text)


def _look(text: str) -> bool:
    folded = text.lower()
    if not text.isascii():
        folded = text.casefold()
        if "ı" in folded or "\u0307" in folded:
            return True
    for clue in _CLUES:  # loops, because a generator for `any` costs more than the search
        if clue.search(text):
            return True
    for clue in _FOLDED_CLUES:  # noqa: SIM110
        if clue.search(folded):
            return True
    return False


_short_may = lru_cache(maxsize=4096)(_look)


INTERNATIONAL = r"\+(?=(?:[ .()-]{0,2}[0-9]){8})[1-9][0-9]{0,2}(?:[ .-]?(?:\([0-9]{1,4}\)|[0-9]{1,4})){2,5}"
"""A telephone number with its country's code: eight digits or more, unlike "+125 %" and "+5 000 000"."""
_PERSONAL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])"
    r"|(?P<card>(?<![0-9A-Za-z-])[0-9](?:[ -]?[0-9]){12,18}(?![0-9A-Za-z-]))"
    rf"|(?<![0-9A-Za-z+]){INTERNATIONAL}(?![0-9A-Za-z])"
)

_WHOLE = frozenset(
    {"password", "passwd", "pwd", "passphrase", "secret", "token", "authorization", "cookie", "setcookie"}
)
_ENDINGS = (
    *("password", "passphrase", "secret", "apikey", "accesskey", "secretkey", "privatekey", "accountkey"),
    *("credential", "credentials", "accesstoken", "authtoken", "refreshtoken", "bearertoken", "sessiontoken"),
    *("idtoken", "authorization"),
)


def _mask_secret(match: re.Match[str]) -> str:
    if match["name"]:
        quote_mark = re.match(r"\\?[\"']", match["value"])
        return match["name"] + match["sign"] + (quote_mark[0] if quote_mark else "") + MARK
    kept = match["header"] or match["bearer"] or match["query"] or ""
    return kept + MARK


def _mask_personal(match: re.Match[str]) -> str:
    if match["card"] and not luhn(match["card"]):
        return match[0]
    return PERSONAL_MARK


def luhn(number: str) -> bool:
    """True if the check digit of ISO/IEC 7812-1 is right, as in a card number but not in most other long numbers.

    A single repeated digit is no card number.
    """
    digits = [int(c) for c in reversed(number) if c.isdigit()]
    doubled = [sum(divmod(2 * d, 10)) for d in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


def _spellings(secret: str) -> set[str]:
    """Return a given value as it may appear: unchanged, in JSON, in a URL, in hexadecimal, inside any base64."""
    raw = secret.encode("utf-8", "surrogatepass")
    spelled = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    in_url, each = quote(raw, safe=""), "".join(f"%{byte:02X}" for byte in raw)
    lower = re.compile("%[0-9A-F]{2}").sub
    for url in (in_url, each):
        spelled |= {url, lower(lambda found: found[0].lower(), url)}
    spelled |= {raw.hex(), raw.hex().upper(), base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()}
    for before in range(3):  # other bytes in the first group
        first, end = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            spelled.add(encode(bytes(before) + raw + bytes(2)).decode()[first:end])
    return spelled


class Redactor:
    """Replaces secrets in text and in JSON values.

    ``extra_secrets`` are values to mask wherever they appear, such as those of environment variables passed on to the
    agent. ``personal`` also masks mail addresses, card and telephone numbers.
    """

    def __init__(self, extra_secrets: Iterable[str] = (), *, personal: bool = False) -> None:
        spelled = set[str]()
        for secret in {s.strip() for s in extra_secrets}:
            if len(secret) >= MIN_SECRET and secret not in MARK:
                spelled |= _spellings(secret)
        longest_first = sorted(spelled, key=lambda s: (-len(s), s))
        self._extra = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._spelled = tuple(longest_first)
        in_json = {json.dumps(form, ensure_ascii=False)[1:-1] for form in spelled}
        self._in_bytes = [form.encode("utf-8", "surrogatepass") for form in spelled | in_json]
        self._holds_escaped = not in_json <= spelled
        """True if a value is escaped differently inside JSON, so that it cannot be searched for there."""
        self._personal = personal

    def redact(self, text: str) -> str:
        """Return the text with every secret found replaced by ``[redacted]``; repeating it changes nothing more."""
        if self._holds_value(text):
            assert self._extra is not None
            text = self._extra.sub(MARK, text)
        if _may_hold_secret(text):
            text = _secrets().sub(_mask_secret, text)
        return _PERSONAL.sub(_mask_personal, text) if self._personal else text

    def _holds_value(self, text: str) -> bool:
        """True if the text contains a given value. Searching one by one takes a tenth of the time of a joint
        pattern."""
        return bool(self._spelled) and any(value in text for value in self._spelled)

    def holds_value(self, data: bytes) -> bool:
        """True if bytes, packed or JSON, contain one of the given values, in any spelling."""
        return any(value in data for value in self._in_bytes)

    def passes(self, encoded: str, values: Iterable[Any]) -> bool:
        """True if `redact` and `redact_json` certainly change nothing in what was encoded as this JSON text.

        ``values`` are the JSON values in it, whose keys may name a secret. Takes a fifth of the time of masking.
        """
        looks = self._personal or self._holds_escaped or _look(encoded) or self._holds_value(encoded)
        return not looks and all(map(_tells_nothing, values))

    def redact_json(self, value: Any, *, depth: int = 0) -> Any:
        """Return a JSON value with every string redacted, including keys; a value whose key names a secret is masked
        whole."""
        if isinstance(value, str):
            return self.redact(value)
        if not isinstance(value, Mapping | list | tuple):
            return value
        if depth >= MAX_DEPTH:
            return "[nested too deeply]"
        if isinstance(value, Mapping):
            masked = {}
            for key, held in value.items():
                name = str(key)
                masked[self.redact(name)] = MARK if _telling(name, held) else self.redact_json(held, depth=depth + 1)
            return masked
        return [self.redact_json(item, depth=depth + 1) for item in value]


def _telling(key: str, held: Any) -> bool:
    if held is None or isinstance(held, bool) or held in ("", [], {}):
        return False  # nothing to hide, and it is useful to see that no password was given
    return _names_secret(key)


def _tells_nothing(value: Any, depth: int = 0) -> bool:
    """True if no key of a JSON value names a secret, and `redact_json` would keep the value's form."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if depth >= MAX_DEPTH or kind not in (dict, list):
        return False
    if kind is dict:
        for key in value:
            if type(key) is not str or _names_secret(key):
                return False
        value = value.values()
    for held in value:  # noqa: SIM110 - a generator costs more than the loop
        if not _tells_nothing(held, depth + 1):
            return False
    return True


_SCALARS = frozenset({str, int, float, bool, type(None)})


@lru_cache(maxsize=4096)
def _names_secret(key: str) -> bool:
    word = re.sub(r"[^a-z]", "", key.lower())
    return word in _WHOLE or word.endswith(_ENDINGS)


_DEFAULT = Redactor()


def redact(text: str) -> str:
    """Mask everything that has the shape of a secret; `Redactor` also masks given values."""
    return _DEFAULT.redact(text)


def redact_json(value: Any) -> Any:
    """Mask everything in a JSON value that has the shape or the name of a secret."""
    return _DEFAULT.redact_json(value)
