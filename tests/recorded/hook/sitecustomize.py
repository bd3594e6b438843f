"""Keeps whatever an interpreter judges, for `python -m tests.recorded record`.

An interpreter that is started with this folder in PYTHONPATH takes it up by itself. Where RECORDED_SITUATIONS names a
folder, each result that comes about is written there: its records, what they were compared with, and the JSON report.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

WATCHED = "gate.pipeline.verdict"
INTO = "RECORDED_SITUATIONS"


class Watch(MetaPathFinder):
    """Changes the watched module once it is loaded, and before anything else has taken functions from it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != WATCHED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_watch(module: ModuleType) -> None:
            load(module)
            watch(module)

        spec.loader.exec_module = load_and_watch  # type: ignore[method-assign]
        return spec


def watch(module: Any) -> None:
    """Wraps the functions on the path from a record to a result."""
    load, judge, accept, end = module.load_to_judge, module.judge_record, module.accepted, module.result_of
    loaded: list[tuple[Any, Any]] = []
    judged: dict[str, dict[str, Any]] = {}

    def load_to_judge(source: Any, **options: Any) -> Any:
        record = load(source, **options)
        loaded.append((record, source))
        return record

    def judge_record(record: Any, references: Any, terms: Any) -> Any:
        found = judge(record, references, terms)
        source = next((source for one, source in reversed(loaded) if one is record), record)
        judged[found.suite_id] = {"record": record, "source": source, "references": references, "terms": terms}
        return found

    def accepted(suite: Any, found: Any) -> Any:
        judged[suite.suite_id] |= {"accepted": found.accepted, "expired": found.expired}
        return accept(suite, found)

    def result_of(suites: Sequence[Any], settings: Any, **options: Any) -> Any:
        result = end(suites, settings, **options)
        folder = os.environ.get(INTO)
        if folder and all(suite.suite_id in judged for suite in suites):
            keep(Path(folder), [judged[suite.suite_id] for suite in suites], result)
        return result

    module.load_to_judge, module.judge_record = load_to_judge, judge_record
    module.accepted, module.result_of = accepted, result_of


def keep(folder: Path, suites: Sequence[dict[str, Any]], result: Any) -> None:
    """Writes one result, and all that it came from, into a new folder."""
    import msgspec
    from msgspec.structs import replace

    from gate.records import read_record, record_lines
    from gate.reports import load_report

    own = folder / f"{len(list(folder.iterdir())):04}-{os.getpid()}"
    own.mkdir(parents=True)

    def write(name: str, record: Any, terms: Any = None) -> str:
        plain = msgspec.json.decode(without_places(msgspec.json.encode(record)), type=type(record))
        if terms is not None:
            closed = plain.footer or footer_of(plain.trials)
            told = json.loads(without_places(json.dumps(terms.plain()).encode()))
            plain = replace(plain, footer=replace(closed, terms=told))
        (own / name).write_bytes(b"".join(record_lines(plain)))
        return name

    from gate.records import footer_of

    about = []
    for number, suite in enumerate(suites, 1):
        end = f"-{number}" if len(suites) > 1 else ""
        source = suite["source"]
        record = read_record(source) if isinstance(source, Path) else source
        references = []
        for place, reference in enumerate(suite["references"], 1):
            stored = [
                write(f"base{end}-{place}-{n}.jsonl" if len(reference.records) > 1 else f"base{end}-{place}.jsonl", one)
                for n, one in enumerate(reference.records, 1)
            ]
            info = json.loads(without_places(msgspec.json.encode(reference.info)))
            references.append(
                {"name": reference.name, "info": info, "records": stored, "of_change": reference.of_change}
            )
        about.append(
            {
                "record": write(f"run{end}.jsonl", record, suite["terms"]),
                "references": references,
                "accepted": suite.get("accepted", ""),
                "expired": suite.get("expired", ""),
            }
        )
    told = {
        "of": os.environ.get("PYTEST_CURRENT_TEST", "").removesuffix(" (call)") or Path.cwd().name,
        "words": sys.argv[1:],
        "suites": about,
    }
    (own / "expected.json").write_bytes(without_places(load_report("json")(result).encode()))
    (own / "kept.json").write_text(json.dumps(told))


def without_places(text: bytes) -> bytes:
    """The text without the paths of this machine."""
    places = {str(Path.cwd()): "/project", sys.prefix: "/python", sys.base_prefix: "/python"}
    for place, name in sorted(places.items(), key=lambda one: -len(one[0])):
        if len(place) > 5:
            text = text.replace(place.encode(), name.encode())
    return text


if os.environ.get(INTO):
    sys.meta_path.insert(0, Watch())
