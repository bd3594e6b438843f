"""Resolves a URL as a browser does: by the WHATWG URL standard, which ada implements, not by RFC 3986."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

_EDGES = "".join(map(chr, range(0x21)))
_REMOVED = str.maketrans("", "", "\t\n\r")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*+):")
_NOT_IN_A_HOST = re.compile(r"[\x00-\x20/:?#@\\]")
"""Characters that would end the host of a URL, or be removed from it."""
WEB = ("http", "https")


class UrlTarget(Struct, frozen=True):
    """The target of a URL."""

    scheme: str = ""
    """Lower case; empty if it is that of the page with the URL."""
    host: str | None = None
    """As a browser looks it up, without the final dot; None if the URL has no host or an invalid one."""
    is_relative: bool = False
    """True if it stays on the page's own site."""


def place_of(url: str) -> UrlTarget:
    """Return where a browser goes if a page on the web has this URL."""
    url = url.strip(_EDGES).translate(_REMOVED)
    found = _SCHEME.match(url)
    if found is None and not url.replace("\\", "/").startswith("//"):
        return UrlTarget(is_relative=True)
    if found is None:
        return UrlTarget(host=_host(f"https:{url}"))
    scheme = found[1].lower()
    if scheme in WEB:
        return UrlTarget(scheme, _host(url))
    return UrlTarget(scheme)


@lru_cache(maxsize=1_000)
def normal(host: str) -> str | None:
    """Return a host as a resolver gets it: decoded, mapped by UTS 46, in ASCII, numbers as an address; None if it is
    invalid."""
    if _NOT_IN_A_HOST.search(host):
        return None
    return _host(f"https://{host}")


def _host(url: str) -> str | None:
    """Return the host of a web address. Empty labels, which the standard allows and no resolver does, make it
    invalid."""
    from ada_url import URL  # weight: a native library, used only if an answer holds a link

    try:
        host: str = URL(_scalar_values(url)).hostname.removesuffix(".")
    except ValueError:
        return None
    if "" in host.split("."):
        return None
    return host


def _scalar_values(text: str) -> str:
    """Return the text as a browser passes it to its URL parser: surrogates are paired, lone ones become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
