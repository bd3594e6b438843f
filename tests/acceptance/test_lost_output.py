"""Standard output that is closed or full: the verdict's exit code stands, and one line says what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import REPOSITORY, Project, _environment, first_of

LOST = {">&-": "standard output is closed", ">/dev/full": "No space left on device"}


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run that falls short of its threshold."""
    made = Project(tmp_path_factory.mktemp("failed"))
    made.write("suite.yaml", "cases:\n  - {id: hello, input: Hello, response: Hi there}\n")
    made.write("agent.py", "def answer(message):\n    return 'no'\n")
    made.write("gate.yaml", "suite: suite.yaml\nagent: {python: agent:answer}\ncriteria: {response_match_score: 0.5}\n")
    assert made.gate("run", "-q").code == 1
    return made


def shell(project: Project, command: str, redirected: str) -> tuple[int, list[str]]:
    """The exit code, and what the gate itself says on standard error."""
    line = f"exec {sys.executable} -m gate {command} {redirected}"
    environment = {**_environment(), "PYTHONPATH": str(REPOSITORY), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        ["sh", "-c", line], cwd=project.root, env=environment, stderr=subprocess.PIPE, text=True, check=False
    )
    said = [one for one in done.stderr.splitlines() if one.startswith("gate: ")]
    return done.returncode, [one for one in said if not one.startswith("gate: the newest record")]


@pytest.mark.slow
@pytest.mark.parametrize("redirected", LOST)
@pytest.mark.parametrize(
    ("command", "code"),
    first_of(
        [("report", 1), ("run", 1), ("run -q", 1), ("explain", 0), ("baseline list", 0), ("schema", 0), ("--help", 0)]
    ),
)
def test_the_exit_code_stands(failed: Project, command: str, code: int, redirected: str) -> None:
    """But for a 0, which would say that everything is there; a stream that was closed before, nobody reads."""
    code = code or (3 if redirected == ">/dev/full" else 0)
    assert shell(failed, command, redirected) == (
        code,
        [f"gate: the output could not be written: {LOST[redirected]}"],
    )


@pytest.mark.slow
def test_no_stream_at_all_changes_no_exit_code(failed: Project) -> None:
    assert shell(failed, "run", "<&- >&- 2>&-") == (1, [])
    assert shell(failed, "run", ">/dev/full 2>/dev/full") == (1, [])


@pytest.mark.slow
def test_nothing_that_is_opened_gets_the_number_of_a_closed_stream(failed: Project) -> None:
    """A child's words would be written into it."""
    failed.write("agent.py", "print('from the module')\ndef answer(message):\n    print('said')\n    return 'no'\n")
    assert shell(failed, "run --record fresh.jsonl", ">&-")[0] == 1
    assert b"said" not in Path(failed.root / "fresh.jsonl").read_bytes().split(b"\n")
    assert failed.gate("report", "fresh.jsonl").code == 1


@pytest.mark.parametrize("place", ["/dev/null", "."])
def test_a_record_that_could_not_be_read_again_is_refused(failed: Project, place: str) -> None:
    done = failed.gate("run", "-q", "--record", place)
    assert done.code == 2
    assert done.err.startswith(f"gate: {place}: a record is a file that can be read again")
