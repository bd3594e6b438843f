"""Records the situations of the catalogue anew. Run by hand, since it runs projects, servers and tests for minutes.

Where a situation comes from is one of:

    row: SENTENCE      an entry of tests/acceptance/situations/*.yaml, or of made.yaml here, which is of the same form
    test: NODE         a test that runs the command; `nth` says which of its results, from 0 (the last: -1)
    pair: KIND         recorded trials of benchmarks/recorded.py, the `nth` comparison of this kind
    flow: JOB          a job of a chain of benchmarks/flow.py, as `broken-0`
    drawn: NAME        a function of drawn.py, which writes the records down
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec.structs import replace

from gate.model import Invocation, Score
from gate.records import parse_record, record_lines
from tests.recorded import drawn, files
from tests.recorded.agreement import update
from tests.recorded.differences import outcome, paths

OWN = Path(__file__).parent
REPOSITORY = OWN.parents[1]
HOOK = OWN / "hook"
INTO = "RECORDED_SITUATIONS"
SCHEDULE = ("--chains", "1", "--cases", "30", "--processes", "1")
FROM = ("row", "test", "pair", "flow", "drawn")


def catalogue() -> dict[str, dict[str, Any]]:
    """What is recorded: name → where it comes from, what it is, and whether its texts are agreed on.

    All that are drawn are in it; so it says more of those alone whose texts are agreed on.
    """
    stated = yaml.safe_load((OWN / "catalogue.yaml").read_text(encoding="utf-8"))
    found: dict[str, dict[str, Any]] = {name: {"drawn": name} for name in drawn.SITUATIONS}
    found |= {name: {**found.get(name, {}), **(entry or {})} for name, entry in stated.items()}
    for name, entry in found.items():
        assert sum(key in entry for key in FROM) == 1, f"{name} comes from one of {FROM}"
        entry.setdefault("about", entry.get("row") or name.replace("-", " "))
    return found


def record(chosen: Sequence[str]) -> int:
    """Records the situations of these names, or all; returns the exit code."""
    wanted = {name: entry for name, entry in catalogue().items() if not chosen or name in chosen}
    failed = []
    for name, kept in recorded(wanted):
        if kept is None:
            failed.append(name)
            print(f"{name}: nothing was judged", flush=True)
        else:
            print(f"{name}: {told(name, wanted[name], kept)}", flush=True)
    return 1 if failed else 0


def told(name: str, entry: Mapping[str, Any], kept: Path) -> str:
    """Saves what was kept as the situation of this name; returns its outcome, and how it differs from the run's."""
    about = json.loads((kept / "kept.json").read_text())
    source = next(f"{key}: {entry[key]}" for key in FROM if key in entry)
    suites = msgspec.convert(about["suites"], tuple[files.Suite, ...])
    renamed = [
        replace(
            suite,
            record=f"{suite.record}.gz",
            references=tuple(
                replace(one, records=tuple(f"{file}.gz" for file in one.records)) for one in suite.references
            ),
        )
        for suite in suites
    ]
    read = scores_of if entry.get("scores_only") else Path.read_bytes
    records = {f"{path.name}.gz": read(path) for path in kept.glob("*.jsonl")}
    situation = files.save(name, files.About(entry["about"], source, tuple(renamed)), records)
    for file in (files.TEXT, files.COMMENT):
        path = situation.folder / file
        path.touch() if entry.get("texts") else path.unlink(missing_ok=True)
    update([name])
    now = json.loads((situation.folder / files.RESULT).read_text())
    expected = kept / "expected.json"
    then = files.agreed(json.loads(expected.read_text())) if expected.exists() else now
    differing = [line for line in paths(then, now) if not line.startswith(("command", "stored"))]
    return "\n    ".join((outcome(now), *differing[:6]))


def scores_of(path: Path) -> bytes:
    """The record without anything that was said or called, or that a metric says of it."""
    record = parse_record(path.read_bytes())
    bare = tuple(
        replace(
            trial,
            invocations=tuple(Invocation(reports_calls=turn.shows_calls) for turn in trial.invocations),
            scores={name: Score(score.value) for name, score in trial.scores.items()},
            log="",
        )
        for trial in record.trials
    )
    plan = tuple(replace(case, expected=()) for case in record.header.plan)
    return b"".join(record_lines(replace(record, header=replace(record.header, plan=plan), trials=bare)))


def recorded(wanted: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Path | None]]:
    """Runs what is wanted; the folder in which each was kept."""
    with tempfile.TemporaryDirectory(prefix="situations-") as name:
        folder = Path(name)
        for key, run in KINDS.items():
            own = {name: entry for name, entry in wanted.items() if key in entry}
            if own:
                (folder / key).mkdir()
                yield from run(own, folder / key)


def _drawn(wanted: Mapping[str, Mapping[str, Any]], folder: Path) -> Iterator[tuple[str, Path | None]]:
    for name, entry in wanted.items():
        yield name, drawn.write(entry["drawn"], folder / name)


def _pairs(wanted: Mapping[str, Mapping[str, Any]], folder: Path) -> Iterator[tuple[str, Path | None]]:
    sys.path.insert(0, str(REPOSITORY / "benchmarks"))
    recorded = importlib.import_module("recorded")
    known = list(recorded.pairs(recorded.read(recorded.SHARED)))
    for name, entry in wanted.items():
        pair = [pair for pair in known if pair.kind == entry["pair"]][entry["nth"]]
        yield name, drawn.write_pair(pair.before, pair.now, folder / name)


@contextmanager
def _watched(folder: Path | None) -> Iterator[None]:
    """What is started in between is watched; None: it is, and nothing is kept."""
    before = dict(os.environ)
    os.environ |= {"PYTHONPATH": str(HOOK), INTO: str(folder or os.devnull)}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _rows(wanted: Mapping[str, Mapping[str, Any]], folder: Path) -> Iterator[tuple[str, Path | None]]:
    from tests.acceptance import test_situations as situations

    entries = yaml.safe_load((OWN / "made.yaml").read_text(encoding="utf-8"))
    made = [row for entry in entries for row in situations.variants(entry)]
    rows = {row["situation"]: row for row in (*situations.read_tables(), *made)}
    bases = {"": folder / "bases"}
    for name, entry in wanted.items():
        row, root, kept = rows[entry["row"]], folder / name / "project", folder / name / "kept"
        kept.mkdir(parents=True)
        with ExitStack() as stack:
            stack.enter_context(_watched(kept))
            port = stack.enter_context(situations.serve(root)) if row.get("agent") == "http" else 0
            project = situations.at_base(row, root, bases, port)
            situations.make_change(project, row, port)
            for words, _ in row.get("steps", []):
                project.gate(*words)
            before = set(kept.iterdir())
            ran = project.gate(*map(str, row.get("run", ["run"])))
            new = sorted(set(kept.iterdir()) - before)
            if ran.code != row["exit"]:
                print(f"{name}: exit {ran.code}, not {row['exit']}: {ran.out}{ran.err}")
            yield name, new[0] if new else None


def _flow(wanted: Mapping[str, Mapping[str, Any]], folder: Path) -> Iterator[tuple[str, Path | None]]:
    kept = folder / "kept"
    kept.mkdir()
    with _watched(kept):
        command = [sys.executable, str(REPOSITORY / "benchmarks" / "flow.py"), *SCHEDULE]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    yield from _found(wanted, kept, lambda entry: f"job-{entry['flow']}")


def _tests(wanted: Mapping[str, Mapping[str, Any]], folder: Path) -> Iterator[tuple[str, Path | None]]:
    kept = folder / "kept"
    kept.mkdir()
    nodes = sorted({entry["test"] for entry in wanted.values()})
    with _watched(kept):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *nodes]
        subprocess.run(command, check=False, cwd=REPOSITORY)
    yield from _found(wanted, kept, lambda entry: entry["test"])


def _found(wanted: Mapping[str, Mapping[str, Any]], kept: Path, of: Any) -> Iterator[tuple[str, Path | None]]:
    by_name = defaultdict(list)
    for path in sorted(kept.iterdir()):
        by_name[json.loads((path / "kept.json").read_text())["of"]].append(path)
    for name, entry in wanted.items():
        found, nth = by_name[of(entry)], entry.get("nth", 0)
        yield name, found[nth] if -len(found) <= nth < len(found) else None


KINDS = {"drawn": _drawn, "row": _rows, "pair": _pairs, "flow": _flow, "test": _tests}
