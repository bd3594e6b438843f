"""Tags as a browser reads them, wherever they stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.metrics.markup import MAX_WORK, MarkupError, targets

EVIL = "//evil.test/x"


def test_what_is_loaded_unasked() -> None:
    for text in [
        f"<img src={EVIL}>",
        f"<IMG\nSRC\t=\r\n'{EVIL}'/>",
        f"<img/src={EVIL}>",
        f'<img alt=">" src="{EVIL}">',
        f"<img alt='\"' src={EVIL}>",
        f'<img alt=a"b src={EVIL}>',
        f"<img =x src={EVIL}>",
        f"<img a==b src={EVIL}>",
        "<img src=//evil&#46;test/x>",
        "<img src='&#x2f;&sol;evil.test/x'>",
        f"<!--><img src={EVIL}>-->",
        f"<!-- --!><img src={EVIL}> -->",
        f"<script><!--<script></script><img src={EVIL}>",
        f"<style></style ><img src={EVIL}>",
        f"<title><img src={EVIL}></title>",
        f"<noscript><p title='</noscript><img src={EVIL}>'>",
        f"<svg><![CDATA[><image xlink:href={EVIL}>]]>",
        f"<svg><image href={EVIL}></svg>",
        f"<video poster={EVIL}>",
        f"<picture><source srcset='a 1x, {EVIL} 2x'>",
        f"<table background={EVIL}>",
        f"<object data={EVIL}>",
        f"<link rel=stylesheet href={EVIL}>",
        f"<base href={EVIL}>",
        f"<meta http-equiv=refresh content='0; URL={EVIL}'>",
        f"<meta http-equiv=refresh content='0;{EVIL}'>",
        f"<iframe srcdoc='<img src={EVIL}>'>",
        f"<iframe srcdoc='&lt;img src={EVIL}&gt;'>",
        f"<p style='background:url({EVIL})'>",
        f"<p style='background:\\75 rl({EVIL})'>",
        f"<p style='background:u/**/rl(x); background:url(\"{EVIL}\")'>",
        f"<style>@import '{EVIL}';</style>",
        f"<style>p{{background:image-set('{EVIL}' 1x)}}",
        f"<style></style><style>@import url({EVIL});",
        f"<unknown-tag data-later-src={EVIL}>",
    ]:
        assert ("image", EVIL) in targets(text), text


def test_what_has_to_be_clicked() -> None:
    for text in [
        f"<a href={EVIL}>",
        f"<svg><a xlink:href='{EVIL}'>",
        f"<area href={EVIL}>",
        f"<form action={EVIL}>",
        f"<button formaction={EVIL}>",
    ]:
        assert list(targets(text)) == [("link", EVIL)], text


def test_what_leads_nowhere() -> None:
    for text in [
        "no tag",
        "a < b > c",
        "1 <2> 3",
        "<p>",
        "</a href=//x>",
        f"<img src={EVIL}",
        f'<img src="{EVIL}>',
        "<",
        "<a",
        "<a ",
        "<a x",
        "<a x=",
        "<a x='",
        "<p class='//x' title='//x' xmlns:x='http://www.w3.org/'>",
        "<style>p{color:red}</style>",
    ]:
        assert list(targets(text)) == [], text


def test_code_in_an_attribute_is_a_link_of_its_own_kind() -> None:
    assert list(targets("<p onclick='location=1'>")) == [("image", "javascript:location=1")]


TAGS = st.text(alphabet="<>a=\"' /x!-s", max_size=200)


@given(TAGS)
def test_any_markup_is_read(text: str) -> None:
    list(targets(text))


@given(TAGS.filter(lambda text: not text.endswith("<")), st.sampled_from([EVIL, f"'{EVIL}'", f'"{EVIL}"']))
def test_a_tag_is_seen_whatever_stands_before_it(before: str, value: str) -> None:
    assert ("image", EVIL) in targets(f"{before}<img src={value}>")


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["<a x='", "<style>", "<a b=c ", "<!--"])
def test_work_is_bounded(piece: str) -> None:
    """By what is counted, not by the clock: tags that lie in one another are read again and again."""
    text = piece * (200_000 // len(piece)) + ">"
    try:
        list(targets(text))
    except MarkupError as error:
        assert "too many" in str(error)
    assert MAX_WORK <= 10_000_000


def test_documents_lie_in_one_another_only_so_deep() -> None:
    text = f"<img src={EVIL}>"
    for _ in range(5):
        text = text.replace("&", "&amp;").replace("'", "&#39;").replace('"', "&quot;")
        text = f'<iframe srcdoc="{text}">'
    with pytest.raises(MarkupError, match="too deeply"):
        list(targets(text))
