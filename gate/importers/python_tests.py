"""Reads the constants of tests written in Python for DeepEval, Pydantic Evals and google-adk.

Nothing is imported or run. A case with a computed question is lost, and so is every metric of DeepEval; computed
answers come from the agent, which the gate runs itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from msgspec.structs import replace

from gate.formats.python_text import ComputedError, Constants, MadeCall, parsed
from gate.formats.shapes import as_list
from gate.importers import exports, pydantic_evals
from gate.model import Case, RecordedTrial
from gate.security.limits import shorten
from gate.suites.base import Contents, Document, Format, Loss

SUFFIX = ".py"
_KNOWN = re.compile(r"^[ \t]*(?:from|import)[ \t]+(?:deepeval|pydantic_evals|google\.adk\.evaluation)\b", re.MULTILINE)
_MADE = {
    **dict.fromkeys(("deepeval.test_case.LLMTestCase", "deepeval.dataset.Golden"), "input"),
    **dict.fromkeys(("deepeval.test_case.ConversationalTestCase", "deepeval.dataset.ConversationalGolden"), "turns"),
}
DEEPEVAL = {**_MADE, **{name.replace(".test_case.", "."): key for name, key in _MADE.items()}}
"""The calls that create a case of DeepEval, each with the argument that holds the question."""
ANSWERED = frozenset({"actual_output", "tools_called", "retrieval_context", "completion_time", "token_cost"})
"""The values that a DeepEval test takes from the agent."""
ASSERTS = ("deepeval.assert_test", "deepeval.evaluate", "deepeval.evaluate.evaluate")
CASE, DATASET, FROM_FILE = "Case", "Dataset", "Dataset.from_file"
EVALS = ("pydantic_evals.", "pydantic_evals.dataset.")
EVALUATE = "AgentEvaluator.evaluate"
GOLDENS = (".add_goldens_from_json_file", ".add_test_cases_from_json_file")
OTHER_GOLDENS = (".add_goldens_from_csv_file", ".add_test_cases_from_csv_file", ".pull")
"""Methods of DeepEval's datasets that load cases from sources that are not supported here."""
ADK = ("google.adk.evaluation.", "google.adk.evaluation.agent_evaluator.")


def _qualified(prefixes: Sequence[str], *names: str) -> tuple[str, ...]:
    return tuple(prefix + name for prefix in prefixes for name in names)


def recognises(data: Any) -> bool:
    return isinstance(data, str) and _KNOWN.search(data) is not None


def read(document: Document) -> Contents:
    """Return the cases in a file, and its losses. Raises `ConfigError` if it is not Python."""
    constants = _constants(document.data, document.folder or Path())
    if constants is None:
        raise document.error("it is not valid Python")
    losses = list[Loss]()
    try:
        rows = _goldens(constants, losses)
        datasets = _datasets(constants, losses)
        losses += _losses_of_references(constants, document)
        losses += _metrics(constants)
    except (ComputedError, RecursionError) as error:
        raise document.error(f"it cannot be read without running it: {shorten(str(error), 100)}") from None
    found = []
    if rows:
        found.append(_read_rows(document, rows, losses))
    for dataset in datasets:
        found.append(_read_dataset(document, dataset, losses))
    criteria: dict[str, Any] = {}
    cases: list[Case] = []
    recorded: list[RecordedTrial] = []
    for one in found:
        criteria |= one.criteria or {}
        cases += one.cases
        recorded += one.recorded
    return Contents(tuple(cases), tuple(recorded), criteria or None, losses=tuple(losses))


def references(path: Path, root: Path) -> list[Path]:
    """Return the files of cases that a Python test names, within ``root``."""
    text, found = _text(path), list[Path]()
    if not recognises(text):
        return []
    constants = _constants(text, path.parent)
    if constants is None:
        return []
    try:
        for _, told in _named_files(constants):
            named = _found(told, path.parent, root)
            if named is not None:
                found.append(named)
        return found
    except (ComputedError, RecursionError):
        return []


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(10_000_000).decode("utf-8", "replace")
    except OSError:
        return ""


def _constants(text: str, folder: Path) -> Constants | None:
    module = parsed(text)
    if module is None:
        return None
    return Constants(module, str(folder / "test.py"))


# --- DeepEval -------------------------------------------------------------------------------------


def _goldens(constants: Constants, losses: list[Loss]) -> list[tuple[int, dict[str, Any]]]:
    """Return the line and the row of each case, in the form of DeepEval's files."""
    rows, seen = list[tuple[int, dict[str, Any]]](), dict[str, int]()
    for made in constants.calls(tuple(DEEPEVAL)):
        about = DEEPEVAL[made.name]
        if about not in made.fields:
            told = f"without {about}"
            if about in made.computed:
                told = f"whose {about} is computed"
            losses.append(Loss("", f"line {made.line}: a case {told}"))
            continue
        row = {name: _plain(value) for name, value in made.fields.items() if not name.isdecimal()}
        row.setdefault("additional_metadata", {})  # a row with this key is recognized as DeepEval's
        name = str(row.get("name") or made.within or "case")
        seen[name] = seen.get(name, 0) + 1
        row["name"] = name
        if seen[name] > 1:
            row["name"] = f"{name}-{seen[name]}"
        for key in made.computed:
            if key not in ANSWERED:
                losses.append(Loss(row["name"], f"{key}, which is computed", check="expected" in key))
        rows.append((made.line, row))
    return rows


def _plain(value: Any) -> Any:
    """Return an object as the mapping of its arguments: ``ToolCall(name="x")`` → ``{"name": "x"}``."""
    if isinstance(value, MadeCall):
        value = value.fields
    if isinstance(value, list):
        return list(map(_plain, value))
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, PurePath):
        return str(value)
    return value


def _metrics(constants: Constants) -> list[Loss]:
    """Return each asserted metric once, with its source text."""
    found = dict[str, Loss]()
    for made in constants.calls(ASSERTS):
        listed = made.fields.get("metrics", made.fields.get("1"))
        told = list(map(_metric, as_list(listed)))
        if not told and ("metrics" in made.computed or "1" in made.computed):
            told = ["which are computed"]
        for text in told:
            found.setdefault(text, Loss("", f"line {made.line}: metric {text}"))
    return list(found.values())


def _metric(one: Any) -> str:
    if not isinstance(one, MadeCall):
        return shorten(repr(one), 100)
    given = ", ".join(f"{name}={shorten(repr(value), 100)}" for name, value in one.fields.items() if name != "model")
    return f"{one.name.rpartition('.')[2]}({given})"


def _read_rows(document: Document, rows: Sequence[tuple[int, dict[str, Any]]], losses: list[Loss]) -> Contents:
    lines, data = zip(*rows, strict=True)
    found = exports.read(Document(list(data), document.where, document.name, row_lines=lines))
    losses += found.losses
    return found


# --- Pydantic Evals -------------------------------------------------------------------------------


_Dataset = tuple[dict[str, Any], list[int]]
"""A dataset in the form of its files, and the lines of its cases."""


def _datasets(constants: Constants, losses: list[Loss]) -> list[_Dataset]:
    """Return the datasets defined in the file, and one for its separate cases."""
    found, taken, shared = list[_Dataset](), set[int](), list[MadeCall]()
    for made in constants.calls(_qualified(EVALS, DATASET)):
        listed = made.fields.get("cases")
        if not isinstance(listed, list):
            shared.append(made)  # computed: its cases are found where they are created
            continue
        cases = [one for one in listed if isinstance(one, MadeCall)]
        taken |= {one.line for one in cases}
        found.append(_dataset(made, cases, losses))
    alone = [one for one in constants.calls(_qualified(EVALS, CASE)) if one.line not in taken]
    if alone and len(shared) == 1:
        found.append(_dataset(shared[0], alone, losses))
    elif alone:
        found.append(_dataset(None, alone, losses))
        if shared:
            losses.append(Loss("", "evaluators of several datasets whose cases the program puts together"))
    return [(data, lines) for data, lines in found if lines]


def _dataset(made: MadeCall | None, cases: Sequence[MadeCall], losses: list[Loss]) -> _Dataset:
    rows, lines = list[dict[str, Any]](), list[int]()
    shared = {}
    if made is not None:
        shared = {key: _evaluators(made, key, losses) for key in ("evaluators", "report_evaluators")}
    for one in cases:
        if "inputs" not in one.fields:
            losses.append(Loss("", f"line {one.line}: a case whose inputs are computed"))
            continue
        row = {}
        for key in ("name", "inputs", "metadata", "expected_output"):
            if key in one.fields:
                row[key] = _plain(one.fields[key])
        name = str(row.get("name") or f"line {one.line}")
        for key in one.computed:
            losses.append(Loss(name, f"{key}, which is computed", check=key in ("expected_output", "evaluators")))
        row["evaluators"] = _evaluators(one, "evaluators", losses)
        rows.append(row)
        lines.append(one.line)
    return {"cases": rows, **shared}, lines


def _evaluators(made: MadeCall, key: str, losses: list[Loss]) -> list[Any]:
    """Return evaluators in the form of a dataset's file; a computed argument gets an unknown key, and so is lost."""
    listed = made.fields.get(key, [])
    if key in made.computed or not isinstance(listed, list):
        losses.append(Loss("", f"line {made.line}: {key}, which are computed"))
        return []
    found = list[Any]()
    for one in listed:
        if not isinstance(one, MadeCall):
            losses.append(Loss("", f"line {made.line}: evaluator {shorten(repr(one), 100)}"))
            continue
        given = _plain(one) | dict.fromkeys(one.computed, "computed")
        name = one.name.rpartition(".")[2]
        if one.computed:
            given["computed"] = True
        if not given:
            found.append(name)
        elif given.keys() == {"0"}:
            found.append({name: given["0"]})
        else:
            found.append({name: given})
    return found


def _read_dataset(document: Document, dataset: _Dataset, losses: list[Loss]) -> Contents:
    data, lines = dataset
    found = pydantic_evals.read(Document(data, document.where, document.name))
    losses += found.losses
    cases: list[Case] = []
    for case, line in zip(found.cases, lines, strict=True):
        cases.append(replace(case, location=document.location(line - 1)))
    return replace(found, cases=tuple(cases))


# --- files that are named -------------------------------------------------------------------------


def _named_files(constants: Constants) -> Iterator[tuple[MadeCall, Any]]:
    """Yield each call that loads cases from a file, and the file; None if its name is computed."""
    for made in constants.calls((*_qualified(ADK, EVALUATE), *_qualified(EVALS, FROM_FILE), *GOLDENS)):
        keys: tuple[str, ...] = ("path", "file_path", "0")
        if made.name.endswith(EVALUATE):
            keys = ("eval_dataset_file_path_or_dir", "1")
        told = next((made.fields[key] for key in keys if key in made.fields), None)
        if isinstance(told, str | PurePath):
            yield made, str(told)
        else:
            yield made, None


def _found(told: str | None, folder: Path, root: Path) -> Path | None:
    """Return the file or folder that a test names, relative to the project or the test; None if outside the project."""
    if not told:
        return None
    for base in (root, folder):
        path = base / told
        if path.exists() and path.resolve().is_relative_to(root.resolve()):
            return path
    return None


def _losses_of_references(constants: Constants, document: Document) -> list[Loss]:
    losses = list[Loss]()
    for made, told in _named_files(constants):
        where = _found(told, document.folder or Path(), document.root or Path())
        if where is None:
            text = "computed"
            if told is not None:
                text = f"not there: {told}"
            losses.append(Loss("", f"line {made.line}: the file of cases, which is {text}"))
        for key, check in (("initial_session_file", True), ("eval_metrics", True), ("num_runs", False)):
            if key in made.fields or key in made.computed:
                losses.append(Loss("", f"line {made.line}: {key} of {made.name.rpartition('.')[2]}", check))
    if any(name.startswith("deepeval") for name in constants.names.values()):
        for made in constants.calls(OTHER_GOLDENS):
            losses.append(Loss("", f"line {made.line}: the cases of {made.name.rpartition('.')[2]}"))
    return losses


FORMAT = Format(
    shape="tests in Python of DeepEval, Pydantic Evals or google-adk",
    recognises=recognises,
    read=read,
    suffixes=(SUFFIX,),
    refers=references,
)
