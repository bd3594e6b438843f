"""What a change made the model see: in every report of the run, and between two records, without a call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.conftest import Project
from tests.acceptance.test_world import AGENT, CASES, PYTHON, prepared, provider, run
from tests.integration.world.provider import Provider

__all__ = ["provider"]

CHANGED = AGENT.replace(
    'messages = [{"role": "system", "content": SYSTEM}, {"role": "user"',
    'messages = [{"role": "system", "content": SYSTEM + " Be brief." * ("item 0" in message)}, {"role": "user"',
)
ONE = f"{CASES - 1} of {CASES} cases: nothing the model sees changed"


def newest(project: Project) -> Path:
    return max((project.root / ".gate").glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)


@pytest.mark.slow
def test_a_run_says_what_stayed_the_same_and_what_differed_first(project: Project, provider: Provider) -> None:
    prepared(project, PYTHON)
    project.store(trials=3, OPENAI_BASE_URL=provider.url)
    project.write("agent.py", CHANGED)
    before = provider.calls
    ran = project.gate(
        *("run", "-v"),
        *("--record", ".gate/now.jsonl", "--json", "result.json", "--markdown", "report.md", "--junit", "report.xml"),
        *("--html", "report.html"),
        OPENAI_BASE_URL=provider.url,
    )
    assert ran.code == 0, ran.out + ran.err
    (suite,) = json.loads((project.root / "result.json").read_text())["suites"]
    live = suite["replayed"]["runs"]
    assert provider.calls - before == 2 * live
    line = f"{ONE} (0 calls). 1 went live: {live} run{'' if live == 1 else 's'}."
    for text in (ran.out, *((project.root / name).read_text() for name in ("report.md", "report.xml", "report.html"))):
        plain = " ".join(text.replace("<wbr>", "").split())
        assert line in plain
        assert "Be brief." in plain
    assert [case["same_world"] for case in suite["cases"]] == [False, True, True, True]
    explained = project.gate("explain", ".gate/now.jsonl")
    assert line in explained.out and "c0: request 1 differs in messages[0].content" in explained.out
    trials = project.gate("explain", ".gate/now.jsonl", "--case", "c1").out
    assert "2 calls answered from recordings, 0 live: the model was asked the same things" in trials
    project.git("clean", "-fdq")
    project.git("checkout", "-q", "-b", "change")
    project.git("commit", "-q", "-am", "a change")
    stated = project.gate("run", "-q", "--statement", ".gate/stated.json", OPENAI_BASE_URL=provider.url)
    assert stated.code == 0, stated.out + stated.err
    rests_on = json.loads((project.root / ".gate/stated.json").read_text())["predicate"]["configuration"]
    (told,) = [one["annotations"] for one in rests_on if one["name"] == "recordings"]
    assert (told["cases"], told["sameRequests"]) == (CASES, CASES - 1)


@pytest.mark.slow
def test_two_records_show_what_was_asked_otherwise(project: Project, provider: Provider) -> None:
    prepared(project, PYTHON)
    project.store(trials=2, OPENAI_BASE_URL=provider.url)
    project.write("agent.py", CHANGED)
    run(project, provider, "--trials", "2")
    calls = provider.calls
    compared = project.gate("diff-requests", ".gate/base.jsonl", str(newest(project)))
    assert compared.code == 0, compared.err
    assert f"{ONE}. 1 differ" in compared.out
    assert "c0: request 1 differs in messages[0].content" in compared.out
    assert provider.calls == calls


@pytest.mark.slow
def test_records_that_were_never_coupled_are_compared_by_their_recordings(project: Project, provider: Provider) -> None:
    prepared(project, PYTHON)
    run(project, provider, "--trials", "2")
    first = newest(project)
    project.write("agent.py", CHANGED)
    run(project, provider, "--trials", "2", "-v")
    second = newest(project)
    assert first != second
    compared = project.gate("diff-requests", str(first), str(second))
    assert compared.code == 0, compared.err
    assert f"{ONE}. 1 differ" in compared.out
    assert "c0: request 1 differs in messages[0].content" in compared.out
    assert f"{CASES - 1} cases compared only until the model answered differently" in compared.out


def test_records_without_recordings_are_not_called_equal(project: Project) -> None:
    project.write("evals.jsonl", json.dumps({"id": "a", "input": "hi", "response": "answer"}) + "\n")
    project.write("agent.py", "def answer(message):\n    return 'answer'\n")
    project.write("gate.yaml", {"suite": "evals.jsonl", "agent": PYTHON, "criteria": {"response_match_score": 0.1}})
    for name in ("one", "two"):
        ran = project.gate("run", "-q", "--record", f".gate/{name}.jsonl")
        assert ran.code == 0, ran.err
    compared = project.gate("diff-requests", ".gate/one.jsonl", ".gate/two.jsonl")
    assert compared.code == 3
    assert "no case has recorded requests in both records" in compared.err
