"""The cookies of one conversation with a server, kept by the rules of the standard library's jar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from email.message import Message
from http.client import HTTPResponse
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import cast
from urllib.request import Request

MOST_COOKIES = 50
MOST_CHARS = 8_192
"""The most characters of a cookie, including name and attributes."""


class _Answer:
    """The parts of a response that the jar reads."""

    def __init__(self, values: Sequence[str]) -> None:
        self._message = Message()
        for value in values:
            self._message["Set-Cookie"] = value

    def info(self) -> Message:
        return self._message


class Cookies:
    """The cookies of one session; hosts, paths, expiry and ``Secure`` are respected."""

    def __init__(self) -> None:
        self._jar = CookieJar(DefaultCookiePolicy(strict_ns_domain=DefaultCookiePolicy.DomainStrict))

    def take(self, url: str, values: Sequence[str]) -> None:
        """Store the cookies that a response from this address set; cookies beyond the limits are dropped."""
        fit = [value for value in values if len(value) <= MOST_CHARS][:MOST_COOKIES]
        self._jar.extract_cookies(cast(HTTPResponse, _Answer(fit)), Request(url))  # noqa: S310 - nothing is opened
        if len(self._jar) > MOST_COOKIES:
            self._jar.clear()

    def header(self, url: str) -> str:
        """Return the value of ``Cookie`` for a request to this address; empty if there are no cookies for it."""
        request = Request(url)  # noqa: S310 - nothing is opened
        self._jar.add_cookie_header(request)
        return request.get_header("Cookie") or ""

    def beside(self, headers: Mapping[str, str], url: str) -> Mapping[str, str]:
        """Return the headers of a request to this address, with its cookies added to their own."""
        cookies = self.header(url)
        if not cookies:
            return headers
        name = next((name for name in headers if name.lower() == "cookie"), "Cookie")
        own = headers.get(name)
        return {**headers, name: f"{own}; {cookies}" if own else cookies}
