"""Where a URL leads as a browser reads it, by the WHATWG's URL standard and not by RFC 3986."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from msgspec import Struct

_EDGES = "".join(map(chr, range(0x21)))
_REMOVED = str.maketrans("", "", "\t\n\r")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*+):")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f#/:<>?@\[\\\]^|%]")
"""Forbidden domain code points."""
_PORT = re.compile(r"[0-9]{0,5}")
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]*|[0-9]+")
WEB = ("http", "https")


class Place(Struct, frozen=True):
    """Where a URL leads."""

    scheme: str = ""
    """Lower case; empty where the page's own is meant."""
    host: str | None = None
    """As a browser looks it up, without a last dot; None where there is none, or where it can be none."""
    is_relative: bool = False
    """Whether it stays on the page's own site."""


def place_of(url: str) -> Place:
    """Where a browser goes that is given this URL on a page of some site on the web."""
    url = url.strip(_EDGES).translate(_REMOVED)
    found = _SCHEME.match(url)
    if found is None:
        rest = url.replace("\\", "/")
        return Place(host=host_of(rest[2:])) if rest.startswith("//") else Place(is_relative=True)
    scheme = found[1].lower()
    if scheme not in WEB:
        return Place(scheme)
    return Place(scheme, host_of(url[found.end() :]))


def host_of(rest: str) -> str | None:
    """The host of what follows the scheme of a web address; None where it has none that is valid."""
    authority = re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0]
    host = authority.rpartition("@")[2]
    if host.startswith("["):
        return _version_6(host)
    host, _, port = host.partition(":")
    return normal(host) if _PORT.fullmatch(port) and int(port or 0) < 65_536 else None


@lru_cache(maxsize=1_000)
def normal(host: str) -> str | None:
    """A host as it is looked up: decoded, mapped by UTS 46, in ASCII, numbers as an address; None for none."""
    text = unquote_to_bytes(host.encode("utf-8", "replace")).decode("utf-8", "replace")
    mapped = text.lower() if text.isascii() else _mapped(text)
    if not mapped or _FORBIDDEN.search(mapped):
        return None
    try:
        labels = [
            label if label.isascii() else "xn--" + label.encode("punycode").decode() for label in mapped.split(".")
        ]
    except UnicodeError:
        return None
    if labels[-1] == "":
        labels.pop()
    if not labels or "" in labels:
        return None
    last = labels[-1]
    return _version_4(labels) if last.isdigit() or _NUMBER.fullmatch(last) else ".".join(labels)


def _mapped(text: str) -> str | None:
    import idna  # weight: its tables, for the few hosts that are not ASCII

    try:
        return idna.uts46_remap(text, std3_rules=False, transitional=False)
    except idna.IDNAError:
        return None


def _version_4(labels: list[str]) -> str | None:
    """An IPv4 address whose parts may be decimal, octal or hexadecimal, and fewer than four."""
    if len(labels) > 4 or not all(_NUMBER.fullmatch(label) for label in labels):
        return None
    try:
        numbers = [_number(label) for label in labels]
    except ValueError:
        return None
    *first, last = numbers
    if any(number > 255 for number in first) or last >= 256 ** (5 - len(numbers)):
        return None
    value = last + sum(number * 256 ** (3 - place) for place, number in enumerate(first))
    return str(ipaddress.IPv4Address(value))


def _number(text: str) -> int:
    if text[:2].lower() == "0x":
        return int(text[2:20] or "0", 16) if len(text) < 20 else 2**64
    if len(text) > 20:
        return 2**64
    return int(text, 8 if text.startswith("0") and len(text) > 1 else 10)


def _version_6(text: str) -> str | None:
    inside, closed, port = text[1:].partition("]")
    if not closed or not _PORT.fullmatch(port.removeprefix(":")) or "%" in inside:
        return None
    try:
        return f"[{ipaddress.IPv6Address(inside)}]"
    except ValueError:
        return None
