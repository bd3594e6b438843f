"""`pytest --gate gate.yaml` in real processes of pytest: an item per case, the verdict and exit code of `gate run`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import warm
from tests.acceptance.conftest import Outcome, Project
from tests.patience import eventually

AGENT = """\
from pathlib import Path


def answer(message):
    with Path("asked.txt").open("a") as asked:
        asked.write(message + "\\n")
    if "crash" in message:
        raise OSError("the disk is gone")
    return "It is on its way." if "order" in message else "I do not know."
"""
CASES = [
    {"id": "order", "input": "Where is my order?", "response": "It is on its way."},
    {"id": "again", "input": "And my other order?", "response": "It is on its way."},
    {"id": "hours", "input": "When do you open?", "response": "We open at nine."},
]
PASSES = "suite: cases.json\nagent: {python: 'agent:answer'}\ncriteria: {response_match_score: 0.3}\ntrials: 3\n"


@pytest.fixture
def shop(project: Project) -> Project:
    project.write("agent.py", AGENT)
    project.write("cases.json", {"cases": CASES})
    project.write("gate.yaml", PASSES)
    project.write("test_own.py", "def test_own():\n    pass\n")
    return project


def run_pytest(project: Project, *words: str, gate: bool = True, cold: bool = False) -> Outcome:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "GITHUB_"))}
    asked = project.root / "asked.txt"
    asked.unlink(missing_ok=True)
    command = ["-m", "pytest", "-p", "no:cacheprovider", *(("--gate", "gate.yaml") if gate else ())]
    done = warm.run([*command, *words], cwd=project.root, environment=environment, timeout=300, cold=cold)
    assert "INTERNALERROR" not in done.stdout + done.stderr, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return Outcome(done.returncode, done.stdout, done.stderr)


def results(ran: Outcome) -> dict[str, str]:
    """Node → outcome, of a run with ``-v``."""
    return dict(re.findall(r"^(\S+::\S+) (PASSED|FAILED|ERROR|SKIPPED)", ran.out, re.MULTILINE))


def asked(project: Project) -> int:
    path = project.root / "asked.txt"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.slow
def test_a_case_is_an_item_and_a_pass_is_green(shop: Project) -> None:
    ran = run_pytest(shop, "-v", cold=True)
    assert ran.code == 0, ran.out
    assert results(ran) == {
        "gate.yaml::cases.json::verdict": "PASSED",
        "gate.yaml::cases.json::order": "PASSED",
        "gate.yaml::cases.json::again": "PASSED",
        "gate.yaml::cases.json::hours": "SKIPPED",
        "test_own.py::test_own": "PASSED",
    }
    assert "exit code 0: pass" in ran.out
    assert asked(shop) == 9


OUTCOMES = {
    "a threshold that does not hold": (PASSES.replace("0.3", "{threshold: 1.0, margin: 0}"), "cases.json", 1),
    "undecided, and that blocks": (
        PASSES.replace("0.3", "{margin: 0.1}") + "gate: {on_inconclusive: block}\n",
        "cases.json",
        1,
    ),
    "undecided, and that warns": (PASSES.replace("0.3", "{margin: 0.1}"), "cases.json", 0),
    "an agent that is not there": (PASSES.replace(":answer", ":nobody"), "cases.json", 3),
    "a suite that is not there": (PASSES.replace("cases.json", "nothing.json"), "nothing.json", 2),
    "a key that nobody knows": (PASSES + "margins: 3\n", "cases.json", 2),
    "a baseline that has to be there": (PASSES + "baseline: {on_missing: fail}\n", "cases.json", 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTCOMES)
def test_the_exit_code_is_that_of_the_command(shop: Project, name: str) -> None:
    config, _, code = OUTCOMES[name]
    shop.write("gate.yaml", config)
    assert shop.gate("run", "-q").code == code
    ran = run_pytest(shop, "-v")
    assert ran.code == code, ran.out
    failed = {node for node, outcome in results(ran).items() if outcome in ("FAILED", "ERROR")}
    assert bool(failed) == (code in (1, 3, 4))
    if code == 1:
        assert "gate.yaml::cases.json::verdict" in failed


@pytest.mark.slow
def test_a_part_is_said_to_be_one_and_is_no_baseline(shop: Project) -> None:
    ran = run_pytest(shop, "-k", "order or own")
    assert ran.code == 0, ran.out
    assert asked(shop) == 3
    assert "a part: 1 of 3 cases; the verdict is of these alone" in ran.out
    (record,) = (shop.root / ".gate" / "records").rglob("*.jsonl")
    assert shop.gate("baseline", "save", str(record)).code == 6


@pytest.mark.slow
def test_a_case_is_named_by_its_node(shop: Project) -> None:
    ran = run_pytest(shop, "-v", "gate.yaml::cases.json::again")
    assert (ran.code, results(ran)) == (0, {"gate.yaml::cases.json::again": "PASSED"})
    assert asked(shop) == 3
    assert "a part: 1 of 3 cases" in ran.out


@pytest.mark.slow
def test_the_verdict_alone_is_of_the_whole_suite(shop: Project) -> None:
    ran = run_pytest(shop, "-v", "gate.yaml::cases.json::verdict")
    assert (ran.code, results(ran)) == (0, {"gate.yaml::cases.json::verdict": "PASSED"})
    assert asked(shop) == 9
    assert "a part" not in ran.out


@pytest.mark.slow
def test_nothing_selected_is_not_green(shop: Project) -> None:
    ran = run_pytest(shop, "-k", "test_own")
    assert ran.code == 3
    assert "no case was run, so nothing was measured" in ran.out
    assert asked(shop) == 0


@pytest.mark.slow
def test_the_first_failure_can_end_it(shop: Project) -> None:
    shop.write("gate.yaml", OUTCOMES["a threshold that does not hold"][0])
    ran = run_pytest(shop, "-v", "-x")
    assert ran.code == 1
    assert results(ran) == {"test_own.py::test_own": "PASSED", "gate.yaml::cases.json::verdict": "FAILED"}
    shop.write("a_test.py", "def test_bad():\n    assert False\n")
    ran = run_pytest(shop, "-x", "a_test.py")
    assert (ran.code, asked(shop)) == (1, 0)


@pytest.mark.slow
def test_a_failing_test_of_your_own_counts_too(shop: Project) -> None:
    shop.write("test_own.py", "def test_own():\n    assert False\n")
    assert run_pytest(shop).code == 1
    shop.write("gate.yaml", OUTCOMES["an agent that is not there"][0])
    assert run_pytest(shop).code == 1


@pytest.mark.slow
def test_junit_has_the_cases_with_what_they_came_to(shop: Project) -> None:
    shop.write("gate.yaml", OUTCOMES["a threshold that does not hold"][0])
    assert run_pytest(shop, "--junitxml", "junit.xml").code == 1
    tests = ElementTree.parse(shop.root / "junit.xml").iter("testcase")
    found = {test.get("name"): [child.tag for child in test if child.tag != "properties"] for test in tests}
    assert found == {"verdict": ["failure"], "order": [], "again": [], "hours": ["failure"], "test_own": []}


@pytest.mark.slow
def test_xdist_spreads_the_tests_and_the_gate_runs_once(shop: Project) -> None:
    shop.write("gate.yaml", OUTCOMES["a threshold that does not hold"][0])
    # Cold: the threads of pytest-xdist may hold a lock, which a worker forked from their process could never take.
    ran = run_pytest(shop, "-n", "2", "-rA", cold=True)
    assert ran.code == 1, ran.out
    assert asked(shop) == 9
    for line in ("PASSED test_own.py::test_own", "PASSED gate.yaml::cases.json::order", "FAILED gate.yaml::"):
        assert line in ran.out
    shop.write("gate.yaml", PASSES)
    ran = run_pytest(shop, "-n", "2", "-k", "hours or own", cold=True)
    assert asked(shop) == 3
    assert "a part: 1 of 3 cases" in ran.out


@pytest.mark.slow
def test_without_the_option_nothing_of_the_gate_is_imported(shop: Project) -> None:
    code = "import sys\n\ndef test_own():\n    found = {m for m in sys.modules if m.split('.')[0] == 'gate'}\n"
    code += "    assert found == {'gate', 'gate.pytest_plugin', 'gate.pytest_plugin.plugin'}\n"
    code += "    assert not {'msgspec', 'yaml', 'httpx', 'click'} & set(sys.modules)\n"
    shop.write("test_own.py", code)
    ran = run_pytest(shop, gate=False, cold=True)
    assert ran.code == 0, ran.out
    assert "agent gate" not in ran.out
    assert asked(shop) == 0


@pytest.mark.slow
def test_what_a_case_is_called_is_shown_harmless(shop: Project) -> None:
    hostile = "a::b\x1b]0;owned\x07\n::error::x"
    shop.write("cases.json", {"cases": [{**CASES[0], "id": hostile}, {**CASES[2], "id": "verdict"}]})
    shop.write("gate.yaml", OUTCOMES["a threshold that does not hold"][0])
    ran = run_pytest(shop, "-v", "--color=no")
    assert ran.code == 1, ran.out
    assert "\x1b" not in ran.out
    assert "\n::error" not in ran.out


@pytest.mark.slow
def test_an_interrupt_ends_the_agent_and_keeps_pytests_code(shop: Project) -> None:
    # Several processes answer at once: each says so in a file of its own, which is there whole or not at all.
    code = "import os, time\n\ndef answer(message):\n    open(f'{os.getpid()}.pid', 'w').close()\n    time.sleep(600)\n"
    shop.write("agent.py", code)
    heard = ["env", "--default-signal=INT"]  # what is started in the background ignores it
    command = [*heard, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--gate", "gate.yaml"]
    process = subprocess.Popen(command, cwd=shop.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert eventually(lambda: any(shop.root.glob("*.pid")))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 2, out
    assert "KeyboardInterrupt" in out
    assert eventually(lambda: not any(Path(f"/proc/{said.stem}").exists() for said in shop.root.glob("*.pid")))


@pytest.mark.slow
def test_two_configurations_end_with_the_worse(shop: Project) -> None:
    shop.write("other.yaml", OUTCOMES["a threshold that does not hold"][0])
    ran = run_pytest(shop, "--gate", "other.yaml", "-q")
    assert ran.code == 1
    assert "exit code 0: pass" in ran.out
    assert "exit code 1" in ran.out


@pytest.mark.slow
def test_a_configuration_that_is_not_there_is_one_line(shop: Project) -> None:
    (shop.root / "gate.yaml").unlink()
    ran = run_pytest(shop)
    assert ran.code == 2
    assert "gate: gate.yaml: no such configuration file" in ran.out + ran.err


@pytest.mark.slow
def test_a_folder_that_pytest_does_not_enter_is_run_all_the_same(shop: Project) -> None:
    for name in ("agent.py", "cases.json", "gate.yaml"):
        Path(shop.root, "build").mkdir(exist_ok=True)
        Path(shop.root, name).rename(shop.root / "build" / name)
    ran = run_pytest(shop, "-v", "--gate", "build/gate.yaml", ".", gate=False)
    assert ran.code == 0, ran.out
    assert results(ran)["build/gate.yaml::cases.json::order"] == "PASSED"
