"""Converts promptfoo's configuration to cases: prompts × tests, with inherited values and referenced files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from gate.formats.messages import FormatError
from gate.formats.positions import Key
from gate.formats.reading import carried
from gate.formats.shapes import as_mapping, in_list, mappings_in
from gate.importers.promptfoo.assertions import from_text
from gate.importers.promptfoo.cases import (
    Made,
    Prompt,
    criteria_of,
    distinct,
    losses_of,
    make,
    mapping,
    with_unique_ids,
)
from gate.importers.promptfoo.files import SCHEME, Folder, NotReadError
from gate.importers.promptfoo.templates import TemplateError, rendered
from gate.model import Location
from gate.model.strict import one_or_more
from gate.security.limits import shorten
from gate.suites.base import Contents, Document, Loss

MAX_CASES = 100_000
MAX_DEPTH = 10
"""Deepest nesting of assertion sets in which templates are inserted."""
_SEPARATOR = "\n---\n"


def read(document: Document) -> Contents:
    """Return the cases of a configuration, and its losses. Raises `ConfigError` if it cannot be read."""
    with document.errors_at():
        return _Configuration(document).read()


class _Configuration:
    """The conversion of one file."""

    def __init__(self, document: Document) -> None:
        self._document, self._folder, self._data = document, Folder(document), document.data
        self._losses = list[Loss]()
        self._made = list[Made]()

    def read(self) -> Contents:
        if carried(self._data.get("scenarios")):
            self._losses.append(Loss("", "scenarios (write each of their tests under tests)"))
        default = self._default()
        prompts = self._prompts()
        for keys, raw in self._tests():
            self._add(keys, raw, default, prompts)
        made = with_unique_ids(distinct(self._made))
        if len(made) < len(self._made):
            self._losses.append(Loss("", f"{len(self._made) - len(made)} tests that are there twice", check=False))
        cases = tuple(one.case for one in made)
        return Contents(cases, criteria=criteria_of(made), losses=(*self._losses, *losses_of(made)))

    # --- prompts ---

    def _prompts(self) -> list[Prompt]:
        listed = self._data.get("prompts", ["{{prompt}}"])
        found = list[Prompt]()
        for one in in_list(listed):
            try:
                found += self._prompt(one)
            except NotReadError as error:
                self._losses.append(Loss("", f"prompt {_short(one)}: {error}"))
        return found

    def _prompt(self, given: Any) -> Iterator[Prompt]:
        """Yield the prompts of an entry. Raises `NotReadError` if a program makes them."""
        label = ""
        if isinstance(given, Mapping):
            label = given.get("label") or ""
            given = given.get("raw", given.get("id"))
        if not isinstance(given, str) or not given or not isinstance(label, str):
            raise FormatError("prompts: expected texts, or mappings with raw or id")
        bare = "\n" not in given and "{" not in given
        named = given.startswith(SCHEME) or (
            bare and given.endswith((".txt", ".md", ".json", ".yaml", ".yml", ".js", ".py"))
        )
        if given.startswith("exec:"):
            raise NotReadError("it comes from a program, which the gate never runs")
        if not named:
            yield given, label or given
            return
        for name in self._folder.matching(given):
            yield from self._prompts_of(name, label)

    def _prompts_of(self, name: str, label: str) -> Iterator[Prompt]:
        text = self._folder.text(name)
        if name.endswith((".yaml", ".yml")):
            text = json.dumps(self._folder.value(name), ensure_ascii=False)
        parts = [text]
        if name.endswith(".txt"):
            parts = text.strip().split(_SEPARATOR)
        for part in parts:
            yield part.strip(), label or f"{name.removeprefix(SCHEME)}: {part.strip()}"

    # --- tests ---

    def _default(self) -> dict[str, Any]:
        given = self._data.get("defaultTest")
        if isinstance(given, str):
            try:
                given = self._folder.value(given)
            except NotReadError as error:
                self._losses.append(Loss("", f"defaultTest: {error}"))
                given = None
        found = mapping(given, "defaultTest")
        if found:
            found["assert"] = self._asserts(found.get("assert"))
        return found

    def _tests(self) -> Iterator[tuple[tuple[Key, ...], dict[str, Any]]]:
        """Yield tests, inline or from files, with the keys that lead to them."""
        given = self._data.get("tests")
        if given is None:
            given = [] if "scenarios" in self._data else [{}]
        for index, one in enumerate(in_list(given)):
            keys: tuple[Key, ...] = ("tests",)
            if isinstance(given, list):
                keys = ("tests", index)
            named = one
            if isinstance(one, Mapping) and "vars" not in one:
                named = one.get("path")
            if isinstance(named, str):
                for test in self._from_file(named):
                    yield keys, test
            elif isinstance(one, Mapping):
                yield keys, dict(one)
            else:
                raise FormatError("tests: expected mappings or names of files")

    def _from_file(self, reference: str) -> list[dict[str, Any]]:
        """Return the tests of a file, or of all files that match a pattern."""
        try:
            tests = []
            for name in self._folder.matching(reference):
                tests += self._tests_of(name)
            return tests
        except NotReadError as error:
            self._losses.append(Loss("", f"tests {_short(reference)}: {error}"))
            return []

    def _tests_of(self, reference: str) -> list[dict[str, Any]]:
        """Return the tests of one file. Raises `NotReadError`."""
        held = self._folder.value(reference)
        if isinstance(held, Mapping):
            held = [held]
        if not isinstance(held, list) or not all(isinstance(one, Mapping) for one in held):
            raise FormatError(f"{reference}: expected a list of tests")
        if reference.endswith(".csv"):
            return list(map(_from_row, held))
        return list(map(dict, held))

    def _over(self, lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
        """Return a test with inherited values: the assertions of both, otherwise the test's values first."""
        joined = {}
        for key in ("vars", "options", "metadata"):
            joined[key] = mapping(self._variables(lower, key), key) | mapping(self._variables(upper, key), key)
        for key in ("prefix", "suffix"):  # an empty value does not replace an inherited one
            if not joined["options"].get(key, "-"):
                joined["options"][key] = mapping(lower.get("options"), "options").get(key)
        asserts = [*self._asserts(lower.get("assert")), *self._asserts(upper.get("assert"))]
        return {**lower, **upper, **joined, "assert": asserts}

    def _variables(self, test: Mapping[str, Any], key: str) -> Any:
        """Return the variables, which may be in a separate file. Raises `NotReadError`."""
        value = test.get(key)
        if key == "vars" and isinstance(value, str):
            return self._folder.value(value)
        return value

    def _asserts(self, given: Any, depth: int = 0) -> list[Any]:
        """Return the assertions with their templates inserted."""
        if not isinstance(given or [], list):
            raise FormatError("assert: expected a list")
        return [self._assert(one, depth) for one in given or []]

    def _assert(self, one: Any, depth: int) -> Any:
        if not isinstance(one, Mapping):
            return one
        if isinstance(one.get("$ref"), str):
            own = {key: held for key, held in one.items() if key != "$ref"}
            return self._assert({**self._template(one["$ref"]), **own}, depth)
        if isinstance(one.get("assert"), list) and depth < MAX_DEPTH:
            return {**one, "assert": self._asserts(one["assert"], depth + 1)}
        return one

    def _template(self, reference: str) -> Mapping[str, Any]:
        value: Any = self._data
        for name in reference.removeprefix("#/").split("/"):
            value = as_mapping(value).get(name)
        if not reference.startswith("#/") or not isinstance(value, Mapping):
            raise FormatError(f"{_short(reference)}: no such assertion template")
        return value

    # --- cases ---

    def _add(
        self, keys: tuple[Key, ...], raw: dict[str, Any], default: Mapping[str, Any], prompts: list[Prompt]
    ) -> None:
        location = self._document.location(*keys)
        named = raw.get("description") or f"test at {location}"
        try:
            inherited = default
            if mapping(raw.get("options"), "options").get("disableDefaultAsserts") is True:
                inherited = {key: value for key, value in default.items() if key != "assert"}
            test = self._over(inherited, raw)
            if any("type" in one for one in mappings_in(test["vars"].get("assert"))):
                raise FormatError("`assert` is under `vars`, where it checks nothing: indent it like `vars`")
            wanted = self._wanted(test, prompts)
            if not wanted:
                raise TemplateError("none of its prompts could be read")
            for variables in self._combinations(test):
                for prompt in wanted:
                    self._make(test, variables, prompt, location, several=len(prompts) > 1)
        except (NotReadError, TemplateError) as error:
            self._losses.append(Loss(str(named), f"the whole test: {error}"))
        except FormatError as error:
            raise self._document.error(f"{_short(named)}: {error}", *keys) from None

    def _make(
        self,
        test: Mapping[str, Any],
        variables: Mapping[str, Any],
        prompt: Prompt,
        location: Location,
        *,
        several: bool,
    ) -> None:
        template, label = prompt
        around = mapping(test.get("options"), "options")
        template = f"{around.get('prefix') or ''}{template}{around.get('suffix') or ''}"
        inserted = variables
        if _is_json(template):
            inserted = _escaped(variables)
        if not several:
            label = ""
        text = rendered(template, inserted)
        self._made.append(make(test, variables, (text, label), self._folder, location))
        if len(self._made) > MAX_CASES:
            raise FormatError(f"more than {MAX_CASES:,} cases")

    def _wanted(self, test: Mapping[str, Any], prompts: list[Prompt]) -> list[Prompt]:
        names = test.get("prompts")
        if not names:
            return prompts
        names = one_or_more(names)
        for name in names:
            if not any(name in prompt for prompt in prompts):
                raise TemplateError(f"there is no prompt {_short(name)}")
        return [(text, label) for text, label in prompts if label in names or text in names]

    def _combinations(self, test: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the combinations of variables; a list of texts counts as several values. Raises `NotReadError`."""
        fixed = mapping(test.get("options"), "options").get("disableVarExpansion") is True
        values: dict[str, list[Any]] = {}
        for name, stated in test["vars"].items():
            value = self._value(stated)
            values[name] = [value]
            if isinstance(value, list) and value and isinstance(value[0], str) and not fixed:
                values[name] = value
        if prod(map(len, values.values())) > MAX_CASES:
            raise FormatError(f"more than {MAX_CASES:,} combinations of variables")
        for chosen in product(*values.values()):
            plain = dict(zip(values, chosen, strict=True))
            filled = dict(plain)
            for name, value in plain.items():  # other variables in it, one level deep
                if isinstance(value, str) and "{" in value:
                    filled[name] = rendered(value, plain)
            yield filled

    def _value(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(SCHEME):
            value = self._folder.value(value)
            if isinstance(value, str):
                return value.strip()
        return value


def _is_json(template: str) -> bool:
    """True if the template is a JSON text, so that variables are inserted into JSON."""
    try:
        return template.lstrip()[:1] in ("[", "{") and isinstance(json.loads(template), list | dict)
    except (ValueError, RecursionError):
        return False


def _escaped(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables with texts escaped for a JSON text."""
    found = dict(variables)
    for key, value in variables.items():
        if isinstance(value, str):
            found[key] = json.dumps(value)[1:-1]
    return found


def _from_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the test in a row of a CSV file: variables, and columns such as ``__expected``."""
    test: dict[str, Any] = {"vars": {}, "assert": [], "options": {}, "metadata": {}}
    for key, value in row.items():
        text = value or ""
        if not key.startswith("__"):
            test["vars"][key] = text
        elif not text.strip():
            continue
        elif key.startswith("__expected"):
            test["assert"].append(from_text(text.strip()))
        elif key in ("__prefix", "__suffix"):
            test["options"][key[2:]] = text
        elif key in ("__description", "__threshold", "__providerOutput"):
            test[key[2:]] = text
        elif key.startswith("__metadata:"):
            test["metadata"][key.removeprefix("__metadata:")] = text
        else:
            test[key] = text
    return test


def _short(value: Any) -> str:
    if not isinstance(value, str):
        value = repr(value)
    return shorten(value, 80)
