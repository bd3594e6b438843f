"""Hosts as a browser finds them: the cases are those of the WHATWG's own tests, as far as they are about hosts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gate.metrics.weburl import UrlTarget, normal, place_of


def test_hosts() -> None:
    for url, host in [
        ("http://user:pass@foo:21/bar;par?b#c", "foo"),
        ("https://test:@test", "test"),
        ("https://:@test", "test"),
        ("http://a@b@c:/d", "c"),
        ("http:foo.com", "foo.com"),
        ("http:/example.com/", "example.com"),
        ("http:\\\\x:80\\a", "x"),
        ("http:\\\\foo.com\\", "foo.com"),
        ("https:////foo.com//", "foo.com"),
        ("http://foo\\@bar/", "foo"),
        ("h\tt\nt\rp://h\to\ns\rt/p", "host"),
        ("  \x00 https://evil.test \x1f", "evil.test"),
        ("//foo/bar", "foo"),
        ("\\\\foo\\bar", "foo"),
        ("/\\foo", "foo"),
        ("/\t/foo", "foo"),
        ("///foo", "foo"),
        ("http://EXAMPLE.com", "example.com"),
        ("http://ex%41mple.com", "example.com"),
        ("http://%65xample.com", "example.com"),
        ("http://ＧＯ.com", "go.com"),
        ("http://％４１.com", None),
        ("http://ex\u00adample.com", "example.com"),
        ("http://a\u200bb.com", "ab.com"),
        ("http://foo。bar", "foo.bar"),
        ("http://faß.ExAmPlE/", "xn--fa-hia.example"),
        ("http://Bücher.de", "xn--bcher-kva.de"),
        ("http://xn--bcher-kva.de", "xn--bcher-kva.de"),
        ("http://example.com./x", "example.com"),
        ("http://0x7f.1/test", "127.0.0.1"),
        ("http://0300.168.0xF0", "192.168.0.240"),
        ("http://2130706433", "127.0.0.1"),
        ("http://192.0x00A80001", "192.168.0.1"),
        ("http://０Ｘｃ０．０２５０．０１", "192.168.0.1"),
        ("http://127.0.0.1.", "127.0.0.1"),
        ("http://0x", "0.0.0.0"),
        ("http://[1::2]:3:4", None),
        ("http://[::1]/", "[::1]"),
        ("http://[0:0::0001]:80/", "[::1]"),
        ("http://user@-host/", "-host"),
        ("http://a_b/", "a_b"),
        ("http://", None),
        ("http://@/x", None),
        ("http://foo:99999/", None),
        ("http://foo:x/", None),
        ("http://a b", None),
        ("http://a<b", None),
        ("http://a%00b", None),
        ("http://%25", None),
        ("http://1.2.3.4.5", None),
        ("http://256.256.256.256", None),
        ("http://foo.0x4", None),
        ("http://09", None),
        ("http://[::1%eth0]", None),
        ("http://a..b", None),
        ("http://.", None),
        ("http://a\ud800.com", None),
        ("http://\u0660.com", None),
        ("http://\u200d", None),
    ]:
        place = place_of(url)
        assert not place.is_relative, (url, host)
        assert place.host == host, (url, host)


def test_relative() -> None:
    for url in ["", "#part", "?q", "a/b", "/a//b", "./x", "a@b", "a.b/c:d", "../..", "1:2", ":x", ".//foo"]:
        assert place_of(url) == UrlTarget(is_relative=True), url


def test_other_schemes() -> None:
    for url, scheme in [
        ("JavaScript:alert(1)", "javascript"),
        ("\x01java\nscript:x", "javascript"),
        ("data:text/html,x", "data"),
    ]:
        assert place_of(url) == UrlTarget(scheme), (url, scheme)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for url in (text, f"//{text}", f"https://{text}", f"https://[{text}"):
        place = place_of(url)
        assert place.host is None or place.host == normal(place.host) or place.host.startswith("[")


@given(
    st.integers(0, 2**32 - 1), st.lists(st.sampled_from(["{}", "0x{:x}", "0{:o}", "0X{:X}"]), min_size=4, max_size=4)
)
def test_every_form_of_an_address_is_one(value: int, forms: list[str]) -> None:
    parts = list(value.to_bytes(4))
    dotted = ".".join(map(str, parts))
    spelled = ".".join(form.format(part) for form, part in zip(forms, parts, strict=True))
    hosts = {place_of(f"http://{host}").host for host in (spelled, forms[0].format(value), dotted)}
    assert hosts == {normal(spelled)} == {dotted}


def test_a_pattern_is_a_host_and_nothing_else() -> None:
    for pattern in ["a.test/x", "a@b.test", "a.test:80", "a.test?", "a.test#", "a\\b", "", " a.test"]:
        assert normal(pattern) is None, pattern
