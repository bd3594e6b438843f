"""JSON over HTTP for code hosts: waits for rate limits, retries failures, follows pages; knows no particular host."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gate.errors import PublishError, UntrustedError
from gate.system.http import PARTIAL, proxy_for

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 30.0
ATTEMPTS = 4
"""Attempts per request, including the first."""
WAIT_BUDGET_SECONDS = 240.0
"""Maximum number of seconds that a client waits in total; a longer limit is an error at once, and no job hangs."""
SECONDARY_WAIT_SECONDS = 60.0
"""Seconds to wait after a secondary limit of GitHub that states no time."""
MAX_PAGES = 1000
_NEXT = re.compile(r'<([^<>]+)>\s*;[^,<]*\brel="?next"?')


class RestError(PublishError):
    """A request that got no usable answer."""

    def __init__(
        self, what: str, *, where: str, status: int | None = None, executed: bool = False, wait: float | None = None
    ) -> None:
        super().__init__(what, where=where)
        self.status = status
        """The HTTP status; None if no answer came."""
        self.executed = executed
        """True if the host may have executed the request nevertheless."""
        self.wait = wait
        """Seconds after which the same request may succeed; None if a retry would not help."""

    @property
    def is_limit(self) -> bool:
        """True if the host refused because of too many requests, not because of a missing permission."""
        return self.status == 429 or (
            self.status == 403 and (self.wait is not None or "rate limit" in self.what.lower())
        )

    @property
    def is_refusal(self) -> bool:
        """True if the host refused because of a missing permission or an unknown token."""
        return self.status in (401, 403, 404) and not self.is_limit


def unreadable(error: Exception, host: str) -> PublishError:
    """Return the error for an answer that lacks a field or has another form than the host documents."""
    missing = f"it lacks {error}" if isinstance(error, KeyError) else "it has another form than expected"
    return PublishError(f"an answer of the API cannot be read: {missing}", where=host)


class Rest:
    """A client of one host. Sends its credentials only to that host.

    ``environment`` may define proxies (``HTTPS_PROXY``, ``NO_PROXY``) and certificates (``SSL_CERT_FILE``,
    ``SSL_CERT_DIR``).
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        environment: Mapping[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.url = url.rstrip("/")
        self._headers = {"User-Agent": "agent-gate", **headers}
        self._environment = environment or {}
        self._sleep = sleep
        self._clock = clock
        self._patience = WAIT_BUDGET_SECONDS
        self._client: httpx.Client | None = None

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def get(self, path: str, **query: str | int) -> Any:
        return self._json(self._request("GET", self._at(path), query=query))

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, repeatable: bool = False) -> Any:
        """Send a POST, PUT, PATCH or DELETE request.

        ``repeatable``: sending a POST twice does no harm, so it is retried like the others even if the failed request
        may have been executed. Otherwise RestError.executed states that it may have been executed.
        """
        again = repeatable or method != "POST"
        return self._json(self._request(method, self._at(path), body=body, repeatable=again))

    def pages(self, path: str, key: str | None = None, **query: str | int) -> Iterator[Any]:
        """Yield the items of every page; ``key`` names the list if pages are mappings. Follows only this host's
        ``Link``."""
        url: str | None = self._at(path)
        seen: set[str] = set()
        parameters: Mapping[str, str | int] = {"per_page": 100, **query}
        for _ in range(MAX_PAGES):
            if url is None:
                return
            if url in seen:
                raise RestError("the next page was read before", where=url)
            seen.add(url)
            response = self._request("GET", url, query=parameters)
            page = self._json(response)
            items = page.get(key) if key and isinstance(page, dict) else page
            if not isinstance(items, list):
                raise RestError("the answer is not a list", where=url)
            yield from items
            found = _NEXT.search(response.headers.get("link", ""))
            url, parameters = (found[1] if found else None), {}
            if url is not None and urlsplit(url)[:2] != urlsplit(self.url)[:2]:
                raise RestError("the next page is on another host", where=url)
        raise RestError(f"more than {MAX_PAGES} pages", where=path)

    def download(self, path: str, limit: int) -> bytes:
        """Return the bytes behind a redirect to a store, which gets no credentials. UntrustedError above ``limit``
        bytes."""
        url = self._at(path)
        response = self._request("GET", url, expect=(302, 307))
        target = response.headers.get("location", "")
        if urlsplit(target).scheme not in ("https", urlsplit(url).scheme):
            raise RestError("the redirect leads nowhere, or away from HTTPS", where=url)
        return self._fetch(target, limit)

    def _fetch(self, url: str, limit: int) -> bytes:
        import httpx  # weight: most commands need no HTTP client

        where = url.partition("?")[0]  # the query is a credential
        content = b""
        try:
            with self._new_client({}, url) as client, client.stream("GET", url) as response:
                if response.status_code != 200:
                    raise RestError(f"HTTP {response.status_code}", where=where, status=response.status_code)
                for piece in response.iter_bytes():
                    content += piece
                    if len(content) > limit:
                        raise UntrustedError(f"more than {limit:,} bytes", where=where)
        except httpx.HTTPError as error:
            raise RestError(f"the download failed: {error or type(error).__name__}", where=where) from error
        return content

    def _request(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        expect: tuple[int, ...] = (),
        repeatable: bool = True,
    ) -> httpx.Response:
        client = self._connected()
        request = client.build_request(method, url, params=query or None, json=body)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._once(client, request, expect, repeatable, backoff=float(2 ** (attempt - 1)))
            except RestError as error:
                wait = error.wait
                if wait is None or attempt == ATTEMPTS or wait > self._patience:
                    raise
            self._patience -= wait
            self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _once(
        self, client: httpx.Client, request: httpx.Request, expect: tuple[int, ...], repeatable: bool, *, backoff: float
    ) -> httpx.Response:
        import httpx  # weight: most commands need no HTTP client

        again = backoff if repeatable else None
        where = f"{request.method} {request.url}"
        try:
            response = client.send(request)
        except httpx.ConnectError as error:
            raise RestError(f"cannot be reached: {error or type(error).__name__}", where=where, wait=backoff) from error
        except httpx.HTTPError as error:
            text = f"no answer: {error or type(error).__name__}"
            raise RestError(text, where=where, executed=not repeatable, wait=again) from error
        status = response.status_code
        if (200 <= status < 300 and status != PARTIAL) or status in expect:
            return response
        text = f"HTTP {status}: {message_of(response)}"
        if status >= 500:
            raise RestError(text, where=where, status=status, executed=not repeatable, wait=again)
        wait = limit_wait(response, self._clock()) if status in (403, 429) else None
        refused = RestError(text, where=where, status=status, wait=wait)
        if refused.is_limit:
            refused.what = f"the host's rate limit: {text}"
            refused.hint = "nothing is wrong with the token: run the job again later"
        raise refused

    def _json(self, response: httpx.Response) -> Any:
        if not response.content:
            return None
        try:
            return response.json()
        except (ValueError, RecursionError) as error:
            raise RestError("the answer is not JSON", where=str(response.url)) from error

    def _at(self, path: str) -> str:
        return path if path.startswith(("http://", "https://")) else f"{self.url}/{path.lstrip('/')}"

    def _connected(self) -> httpx.Client:
        if self._client is None:
            self._client = self._new_client(self._headers, self.url)
        return self._client

    def _new_client(self, headers: Mapping[str, str], url: str) -> httpx.Client:
        import httpx  # weight: most commands need no HTTP client

        for name, value in headers.items():
            if not (value.isascii() and value.isprintable() and value == value.strip()):  # h11 would quote it
                what = f"{name} cannot be sent: the token is empty, or has characters that no token has"
                raise RestError(what, where=self.url)
        trust = ssl.create_default_context(
            cafile=self._environment.get("SSL_CERT_FILE"), capath=self._environment.get("SSL_CERT_DIR")
        )
        proxy = proxy_for(urlsplit(url), self._environment)
        return httpx.Client(headers=headers, timeout=TIMEOUT_SECONDS, verify=trust, proxy=proxy, trust_env=False)


def limit_wait(response: httpx.Response, now: float) -> float | None:
    """Return the seconds until a refused request may be repeated; None if the reason was not a rate limit."""
    headers = response.headers
    after, reset = _number(headers.get("retry-after")), _number(headers.get("x-ratelimit-reset"))
    if after is not None:
        return after
    if reset is not None and headers.get("x-ratelimit-remaining") == "0":
        return max(reset - now, 0) + 1  # its clock ticks in whole seconds
    if response.status_code == 429 or "secondary rate limit" in message_of(response).lower():
        return SECONDARY_WAIT_SECONDS
    return None


def _number(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else None


def message_of(response: httpx.Response) -> str:
    """Return the host's message about an error, on one short line."""
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return response.reason_phrase
    message = body.get("message") or body.get("error") if isinstance(body, dict) else None
    return " ".join(str(message or response.reason_phrase).split())[:300]
