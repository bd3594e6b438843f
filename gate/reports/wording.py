"""Sentences from templates: ``{lost} of {of:trial} could not be scored``.

A field is a field of the finding; its format follows the colon:

- ``{text}``: unchanged; a verdict or another finding in words
- ``{of:trial}``: a number with a noun, as in ``3 trials``; ``{of:n}``: the number of names; ``{of:,}``: with separators
- ``{cases:fails|fail}``: the first word for one, the second for more; for a flag, the first if it is set
- ``{error:+; mostly: #}``: this text if there is a value, which replaces ``#``; after a ``|``, the text otherwise.
  A share, even 0, is shown in percent
- ``{cases:list}``: the first names, and the number of others; ``{cases:first}``: only the first names;
  ``{cases:all}``: all names; ``{cases:tallies}``: the first names with their passes
- ``{value:figure}``: on the criterion's scale, ``share``: a percentage, ``seconds``: a time, each with digits that show
  its difference from others of the format in the template; ``{most:%}``: without that; ``{p:chance}``: a p-value as a
  share of runs
- ``{commit:12}``: the first characters
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from string import Formatter
from typing import Any

from gate.model import Criterion, Scale
from gate.model.finding import CaseTally, Finding, KindName
from gate.reports.formatting import NAMED, agree, by_chance, count, figures, listing, percentage

Teller = Callable[[Finding, Any], str | Sequence[str]]
"""Makes words that need more than a template, from a finding and its criterion or suite."""
Words = str | tuple[str, ...] | Teller
"""A template, a template for each clause, or a function that makes the words."""
Table = Mapping[KindName, Words | Mapping[Any, Any]]
"""The words of each kind: by verdict if they depend on it, and by the finding's ``why`` if they depend on that."""


def clauses(found: Finding, table: Table, about: Any = None) -> list[str]:
    """Return the words of a finding, one text per clause; ``about``: the criterion or suite of the finding."""
    words = words_of(found, table)
    if callable(words):
        return list(filter(None, _several(words(found, about))))
    scale = Scale.UNIT
    if isinstance(about, Criterion):
        scale = about.scale
    data = {name: _in_words(value, table, about) for name, value in found.data.items()}
    texts = [fill(template, data, scale) for template in _several(words)]
    return list(filter(None, texts))


def _several(said: str | Sequence[str]) -> Sequence[str]:
    if isinstance(said, str):
        return [said]
    return said


def words_of(found: Finding, table: Table) -> Words:
    """Return the words for a finding's kind, verdict and reason."""
    words: Any = table[found.kind]
    while isinstance(words, Mapping):
        key = found.verdict
        if key not in words:
            key = found["why"]
        words = words[key]
    chosen: Words = words
    return chosen


_PLAIN = re.compile(r"[a-z]+(?=[,:;.]?(?: |$))")


def sentence(text: str) -> str:
    """Return a clause as a sentence; a name at its beginning is not capitalised."""
    said = text.strip()
    if _PLAIN.match(said):
        said = said[0].upper() + said[1:]
    if said.endswith((".", "!", "?", "…")):
        return said
    return f"{said}."


def _in_words(value: Any, table: Table, about: Any) -> Any:
    """Return a nested finding in words, and anything else unchanged."""
    if isinstance(value, Finding):
        return "; ".join(clauses(value, table, about))
    if isinstance(value, tuple) and value and isinstance(value[0], Finding):
        return "; ".join(_in_words(one, table, about) for one in value)
    return value


def fields_of(template: str) -> list[tuple[str, str]]:
    """Return the fields of a template with their formats."""
    return [(name, form or "") for _, name, form, _ in Formatter().parse(template) if name is not None]


def fill(template: str, data: Mapping[str, Any], scale: Scale = Scale.UNIT) -> str:
    """Return the filled template."""
    told_apart = _figures_told_apart(template, data, scale)
    said = ""
    for text, name, form, _ in Formatter().parse(template):
        said += text
        if name in told_apart:
            said += told_apart[name]
        elif name is not None:
            said += _shown(data[name], form or "")
    return said


def _figures_told_apart(template: str, data: Mapping[str, Any], scale: Scale) -> dict[str, str]:
    """Return the figures of a template, with digits that show their differences."""
    found: dict[str, str] = {}
    fields = fields_of(template)
    for form, of in (("figure", scale), ("share", Scale.BINARY), ("seconds", Scale.SECONDS)):
        names = [name for name, given in fields if given == form]
        if names:
            found.update(zip(names, figures([data[name] for name in names], of), strict=True))
    return found


def _shown(value: Any, form: str) -> str:
    if form.startswith("+"):
        if_any, _, otherwise = form[1:].partition("|")
        if not value and not isinstance(value, float):  # a share of 0 is a value
            return otherwise
        kind = {tuple: "list", float: "%"}.get(type(value), "")
        return if_any.replace("#", _shown(value, kind))
    if "|" in form:
        number = _number(value)
        one, _, many = form.partition("|")
        return agree(number, one, many).replace("#", str(number))
    if form.isdigit():
        return str(value)[: int(form)]
    match form:
        case "" if isinstance(value, Enum):
            return str(value.value).replace("_", " ")
        case "":
            return str(value)
        case "n":
            return str(len(value))
        case ",":
            return f"{value:,}"
        case "list":
            return listing(map(_name, value))
        case "tallies":
            return listing(map(_tally, value))
        case "all":
            return ", ".join(value)
        case "first":
            return ", ".join(value[:NAMED])
        case "%":
            return percentage(value)
        case "chance":
            return by_chance(value)
        case _:
            return count(_number(value), form)


def _name(one: Any) -> str:
    """Return a name, a pair of names, or the case id of a tally."""
    if isinstance(one, CaseTally):
        return one.case_id
    if isinstance(one, tuple):
        return " → ".join(one)
    return str(one)


def _tally(one: CaseTally) -> str:
    return f"{one.case_id} ({one.passed_before}/{one.trials_before} → {one.passed}/{one.trials})"


def _number(value: Any) -> int:
    """Return a number, or the number of names."""
    if isinstance(value, int):
        return int(value)
    return len(value)
