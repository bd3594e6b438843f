"""A suite split over machines comes to the verdict of a single run, and refuses anything that is not all of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.records import read_record, write_record
from tests.acceptance.conftest import Project, untimed

CASES = 24
AGENT = """
import hashlib, time

def answer(message, case_id, trial):
    luck = int(hashlib.sha256(f"{case_id}:{trial}".encode()).hexdigest(), 16) % 100
    good = luck < 92 and not (BROKEN and int(case_id.partition("-")[2]) < 8)
    return {"output": "done", "tool_calls": [{"name": "lookup" if good else "guess", "arguments": {}}]}
"""
CONFIG = """
suite: suite.json
agent: {python: agent:answer, concurrency: 8}
criteria: {tool_trajectory_avg_score: {match_type: IN_ORDER, threshold: 0.5}}
trials: 2
"""


@pytest.fixture
def sharded(project: Project) -> Project:

    cases = [{"id": f"case-{n}", "input": f"question {n}", "tools": [{"name": "lookup"}]} for n in range(CASES)]
    project.write("suite.json", {"cases": cases})
    project.write("gate.yaml", CONFIG)
    project.write("agent.py", AGENT.replace("BROKEN", "False"))
    return project


def shards(project: Project, total: int, *, name: str = "shard") -> list[Path]:
    paths = [project.root / f"{name}-{index}.jsonl" for index in range(1, total + 1)]
    for index, path in enumerate(paths, 1):
        ran = project.gate("run", "--shard", f"{index}/{total}", "--record", str(path))
        assert ran.code == 0, ran.out + ran.err
        assert f"Shard {index} of {total}" in ran.out
    return paths


def trials_of(path: Path) -> set[tuple[str, int]]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row["case"], row["n"]) for row in rows if "case" in row}


@pytest.mark.slow
def test_three_shards_come_to_the_verdict_of_one_run(sharded: Project) -> None:
    whole = sharded.root / "base.jsonl"
    assert sharded.gate("run", "--record", str(whole), "--quiet").code == 0
    assert sharded.gate("baseline", "save", str(whole)).code == 0
    sharded.write("agent.py", AGENT.replace("BROKEN", "True"))

    code, one = sharded.result("run", "--record", str(sharded.root / "one.jsonl"))
    assert (code, one["verdict"]) == (1, "regressed")
    paths = shards(sharded, 3)
    measured = [trials_of(path) for path in paths]
    assert sum(map(len, measured)) == len(set.union(*measured)) == 2 * CASES
    merged_path = str(sharded.root / "whole.jsonl")
    code, merged = sharded.result("merge", *map(str, paths), "-o", merged_path, "--config", "gate.yaml")
    assert (code, merged["verdict"]) == (1, "regressed")
    alike = ("headline", "criteria", "cases", "changes", "story")
    for key in alike:
        assert untimed(merged["suites"][0], key) == untimed(one["suites"][0], key), key
    code, report = sharded.result("report", merged_path, "--against", str(whole))
    assert (code, report["verdict"]) == (1, "regressed")


@pytest.mark.slow
def test_a_shard_alone_is_reported_by_no_verdict(sharded: Project) -> None:
    first, _ = shards(sharded, 2)
    for command in (("report", str(first)), ("compare", str(first), str(first))):
        ran = sharded.gate(*command)
        assert ran.code != 0
        assert ran.err.count("\n") == 1
    assert (
        "shard 1 of 2, which decides nothing (`gate merge` joins the shards)" in sharded.gate("report", str(first)).err
    )


@pytest.mark.slow
def test_a_shard_that_lacks_planned_trials_is_refused(sharded: Project) -> None:
    """Closed like any other, so that neither its checksum nor its counts say so."""
    first, second = shards(sharded, 2)
    record = read_record(second)
    assert record.header.epochs == 2
    write_record(second, replace(record, trials=record.trials[:-3]))
    ran = sharded.gate("merge", str(first), str(second), "-o", "whole.jsonl")
    assert ran.code == 3
    assert "shard 2 of 2 lacks 3 of 24 planned trials (continue it with --resume)" in ran.err


@pytest.mark.slow
def test_a_merged_record_is_a_baseline(sharded: Project) -> None:
    paths = shards(sharded, 2)
    whole = str(sharded.root / "whole.jsonl")
    ran = sharded.gate("merge", *map(str, paths), "-o", whole)
    assert ran.code == 0, ran.err
    assert sharded.gate("baseline", "save", whole).code == 0
    code, result = sharded.result("run")
    assert code == 0
    assert result["suites"][0]["baseline"]["trials_per_case"] == 2


@pytest.mark.slow
def test_cases_are_spread_by_how_long_they_took(sharded: Project) -> None:
    slow = AGENT.replace("BROKEN", "False").replace(
        "    luck =", "    time.sleep(4 if case_id in ('case-0', 'case-1', 'case-2', 'case-3') else 0)\n    luck ="
    )
    sharded.write("agent.py", slow)
    base = sharded.root / "base.jsonl"
    assert sharded.gate("run", "--record", str(base), "--quiet").code == 0
    assert sharded.gate("baseline", "save", str(base)).code == 0
    sharded.write("agent.py", AGENT.replace("BROKEN", "False"))
    first, second = (trials_of(path) for path in shards(sharded, 2))
    slowest = {f"case-{n}" for n in range(4)}
    assert len({case for case, _ in first} & slowest) == len({case for case, _ in second} & slowest) == 2


@pytest.mark.slow
def test_what_is_not_the_whole_is_refused(sharded: Project) -> None:
    first, second = shards(sharded, 2)
    whole = str(sharded.root / "whole.jsonl")

    def refused(*records: Path) -> str:
        ran = sharded.gate("merge", *map(str, records), "-o", whole, "-c", "gate.yaml")
        assert ran.code == 3, ran.out
        assert not Path(whole).exists()
        return ran.err

    assert "missing" in refused(first)
    assert "twice" in refused(first, first)
    torn = sharded.write("torn.jsonl", second.read_text().rsplit("\n", 2)[0] + "\n")
    assert "truncated" in refused(first, torn)
    other = shards(sharded, 3, name="other")[0]
    assert "belongs to another run" in refused(first, other)
    sharded.write("suite.json", (sharded.root / "suite.json").read_text().replace("question 3", "question three"))
    edited = shards(sharded, 2, name="edited")[1]
    assert "belongs to another run" in refused(first, edited)


@pytest.mark.slow
def test_a_shard_of_failing_trials_says_so(sharded: Project) -> None:
    agent = "def answer(message, case_id):\n    if '-1' in case_id: raise ConnectionRefusedError\n    return 'ok'\n"
    sharded.write("agent.py", agent)
    config = CONFIG.replace("agent:answer", "agent:answer, retries: 0")
    sharded.write("gate.yaml", config)
    ran = sharded.gate("run", "--shard", "1/2")
    assert ran.code == 3
    assert "10 of 24 trials gave no result" in ran.out


@pytest.mark.slow
def test_a_shard_is_resumed_and_repeats_nothing(sharded: Project) -> None:
    path = sharded.root / "shard.jsonl"
    arguments = ("run", "--shard", "1/2", "--record", str(path))
    assert sharded.gate(*arguments).code == 0
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-10]))
    before = trials_of(path)
    assert sharded.gate(*arguments).code == 0
    after = trials_of(path)
    assert before < after
    assert len(after) == CASES


@pytest.mark.slow
def test_more_shards_than_cases_is_no_error(sharded: Project) -> None:
    ran = sharded.gate("run", "--shard", "30/30", "--record", str(sharded.root / "s.jsonl"))
    assert ran.code == 0, ran.err


@pytest.mark.slow
def test_a_verdict_needs_the_commit_that_was_measured(sharded: Project) -> None:
    paths = shards(sharded, 2)
    sharded.git("init", "-q")
    sharded.git("add", "gate.yaml")
    sharded.git("commit", "-qm", "first")
    whole = str(sharded.root / "whole.jsonl")
    ran = sharded.gate("merge", *map(str, paths), "-o", whole, "-c", "gate.yaml")
    assert ran.code == 2
    assert "checked out" in ran.err
