"""A provider that moved since the baseline was stored, and a change that really is worse: real agents, whole runs."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import Project

AGENT = """
import collections, pathlib, random, time
asked = collections.Counter()
def answer(message):
    time.sleep(SLOW)
    moved = float(pathlib.Path(PROVIDER).read_text())
    asked[message] += 1
    drawn = random.Random(f"{message}:{asked[message]}:OWN").random()
    return "no idea" if drawn < moved + OWN else "the right answer"
"""
"""The same draws in every run of a test: a verdict at an error rate is wrong now and then."""


def prepared(project: Project, *, slow: float = 0.0) -> str:
    """Forty cases with five stored trials each, all passed; returns the agent's source."""
    provider = project.write("../provider.txt", "0.0")
    source = AGENT.replace("PROVIDER", repr(str(provider))).replace("SLOW", str(slow))
    cases = [{"id": f"c{n}", "input": f"item {n}", "response": "the right answer"} for n in range(40)]
    project.write("suite.yaml", {"cases": cases})
    project.write(
        "gate.yaml",
        "suite: suite.yaml\nagent: {python: 'agent:answer', timeout: 20s}\ncriteria: {response_match_score: 0.5}\n",
    )
    project.write("agent.py", source.replace("OWN", "0"))
    project.write(".gitignore", ".gate/\n*.jsonl\n*.json\n__pycache__/\n")
    project.commit()
    project.store(record="base.jsonl")
    return source


@pytest.mark.slow
def test_a_provider_that_moved_blocks_no_change(project: Project) -> None:
    source = prepared(project)
    project.write("../provider.txt", "0.4")
    project.write("agent.py", source.replace("OWN", "0.0"))
    project.commit("change")
    code, result = project.result("run", "-q", "--record", "change.jsonl")
    suite = result["suites"][0]
    assert (code, suite["verdict"]) == (0, "inconclusive"), suite
    assert "not against the base commit's agent run now" in str(suite)


def test_a_change_that_is_worse_is_blocked_beside_the_base(project: Project) -> None:
    source = prepared(project)
    project.write("agent.py", source.replace("OWN", "0.4"))
    project.commit("change")
    code, result = project.result("run", "-q", "--record", "change.jsonl")
    suite = result["suites"][0]
    assert (code, suite["verdict"]) == (1, "regressed")
    assert "of the baseline's agent)" in str(suite)


@pytest.mark.slow
@pytest.mark.parametrize(("broken", "code", "named"), [((), 0, set()), (("item 9",), 1, {"c9"})])
def test_cases_that_the_provider_broke_are_not_the_changes(
    project: Project, broken: tuple[str, ...], code: int, named: set[str]
) -> None:
    source = prepared(project).replace("drawn < moved + OWN", f"drawn < OWN or (moved and message in {OF_PROVIDER})")
    project.write("agent.py", source.replace("OWN", "0.0"))
    project.commit("an agent whose provider can break four cases")
    project.store(record="again.jsonl")
    project.git("checkout", "-qb", "change")
    project.write("../provider.txt", "1.0")
    project.write("agent.py", source.replace("drawn < OWN", f"message in {broken}").replace("OWN", "0"))
    project.commit("change")
    found, result = project.result("run", "-q", "--record", "change.jsonl")
    cases = {case["id"] for case in result["suites"][0]["cases"] if case["status"] == "broken"}
    assert (found, cases) == (code, named), result["suites"][0]["headline"]


OF_PROVIDER = ("item 1", "item 2", "item 3", "item 4")
LAID = {
    "agent.py": "open(tree + '/agent.py', 'a').write('\\ndef answer(message): return 0\\n')",
    "json.py": "open(tree + '/json.py', 'w').write('1/0')",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAID)
def test_a_change_cannot_make_its_base_worse(project: Project, name: str) -> None:
    """What the change's agent leaves behind waits for the base commit's work tree, and writes into it."""
    source = prepared(project, slow=0.2)
    waiting = f"""
import os, time
if "gate-base-" not in __file__ and os.fork() == 0:
    os.setsid()
    for fd in (0, 1, 2):
        os.close(fd)
    end = time.time() + 30
    while time.time() < end:
        import glob, tempfile
        for tree in glob.glob(tempfile.gettempdir() + "/gate-base-*/tree"):
            if os.path.exists(tree + "/suite.yaml"):
                time.sleep(0.1)
                {LAID[name]}
                os._exit(0)
        time.sleep(0.01)
    os._exit(0)
"""
    project.write("agent.py", source.replace("OWN", "0.4") + waiting)
    project.commit("change")
    outcome = project.gate("run", "-q", "--record", "change.jsonl", TMPDIR=str(project.root.parent))
    assert outcome.code == 2, outcome.out
    assert f"'{name}' was changed in the base commit's work tree" in outcome.err


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("import made_here\nread = str", id="imported"),
        pytest.param("read = lambda: open('made_here.py').read()", marks=pytest.mark.slow, id="read for each answer"),
    ],
)
def test_a_base_that_lacks_a_file_that_is_in_no_commit_does_not_stand_for_drift(project: Project, lines: str) -> None:
    """Its work tree has only what is committed: what was generated, or holds a key, is missing there."""
    project.write("agent.py", f"{lines}\n\n\ndef answer(message):\n    read()\n    return 'good'\n")
    project.write("made_here.py", "")
    project.write("suite.yaml", {"cases": [{"id": f"c{n}", "input": f"item {n}", "contains": "good"} for n in "123"]})
    project.write(
        "gate.yaml",
        {
            "suite": "suite.yaml",
            "agent": {"python": "agent:answer"},
            "criteria": {"contains": 0.3},
            "gate": {"confirm_after": "100ms"},
        },
    )
    project.write(".gitignore", ".gate/\n__pycache__/\nmade_here.py\nresult.json\n")
    project.commit("base")
    project.store()
    project.git("checkout", "-qb", "change")
    source = (project.root / "agent.py").read_text(encoding="utf-8")
    project.write("agent.py", source.replace("'good'", "'bad' if '1' in message else 'good'"))
    project.commit("change")
    code, result = project.result("run")
    assert (code, result["verdict"]) == (1, "regressed")
    assert "the base commit's agent" in " ".join(result["suites"][0]["warnings"])


def test_a_base_that_answers_otherwise_without_an_ignored_file_is_told_from_drift(project: Project) -> None:
    """The verdict may then call a loss drift: a line says what was missing."""
    source = "import os\n\n\ndef answer(message):\n    return 'good' if os.path.exists('tone.txt') else 'bad'\n"
    project.write("agent.py", source)
    project.write("tone.txt", "")
    project.write("suite.yaml", {"cases": [{"id": f"c{n}", "input": f"item {n}", "contains": "good"} for n in "123"]})
    agent = {"python": "agent:answer"}
    project.write("gate.yaml", {"suite": "suite.yaml", "agent": agent, "criteria": {"contains": 0.3}})
    project.write(".gitignore", ".gate/\n__pycache__/\ntone.txt\nresult.json\n")
    project.commit("base")
    project.store()
    project.git("checkout", "-qb", "change")
    project.write("agent.py", source.replace("if os", "if '1' in message and os"))
    project.commit("change")
    _, result = project.result("run")
    note = "the base's agent ran without what git does not track here, and may differ for that: tone.txt"
    assert note in result["suites"][0]["warnings"]


def test_a_base_that_would_import_the_changes_modules_does_not_stand_for_drift(project: Project) -> None:
    """`PYTHONPATH` leads into the change's work tree, so the base's agent would fail as the change's does."""
    project.write("src/acme.py", "def answer(message):\n    return 'good'\n")
    cases = [{"id": f"c{n}", "input": f"item {n}", "contains": "good"} for n in range(12)]
    project.write("evals/suite.yaml", {"cases": cases})
    agent = {"python": "acme:answer"}
    project.write("evals/gate.yaml", {"suite": "suite.yaml", "agent": agent, "criteria": {"contains": 0.1}})
    project.write(".gitignore", ".gate/\n__pycache__/\nresult.json\n")
    project.commit("base")
    environment = {"PYTHONPATH": str(project.root / "src")}
    config = ("--config", "evals/gate.yaml")
    assert project.gate("run", "-q", *config, "--trials", "5", **environment).code == 0
    assert project.gate("baseline", "save", *config, **environment).code == 0
    project.git("checkout", "-qb", "change")
    project.write("src/acme.py", "def answer(message):\n    return 'good' if message[-1] in '1234' else 'bad'\n")
    project.commit("change")
    outcome = project.gate("run", *config, **environment)
    assert outcome.code == 1, outcome.out + outcome.err
    assert "the base commit's agent is not run again: src/acme.py differs" in " ".join(outcome.out.split())
