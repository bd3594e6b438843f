"""Recorded trials scored by worker processes: the same record and verdict, whatever becomes of them."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.integration.scoring.recordings import (
    UNHURRIED,
    Folder,
    alive,
    assert_same,
    children,
    held,
    kill,
    scored,
    until,
    write_suite,
)
from tests.patience import CEILING

TWO = {"executor": {"processes": 2}}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    write_suite(tmp_path)
    return Folder(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Recorded by one process, with a check of the user's."""
    made = Folder(tmp_path_factory.mktemp("whole"))
    write_suite(made.root, cases=15, criteria=UNHURRIED)
    assert made.record("whole").code == 0
    (made.root / "scored-by").unlink()
    made.configure(**TWO)
    return made


@pytest.fixture
def unhurried(tmp_path: Path, whole: Folder) -> Folder:
    """Long enough to be interrupted: 150 trials, of which `held` lets about a hundred pass."""
    shutil.copytree(whole.root, tmp_path, dirs_exist_ok=True)
    return Folder(tmp_path)


@pytest.mark.slow
def test_the_record_and_the_verdict_are_those_of_one_process(folder: Folder) -> None:
    assert folder.record("one").code == 0
    folder.configure(**TWO)
    assert folder.record("two").code == 0
    assert_same(folder, "one", "two")
    assert len(folder.trials("two")) == 300
    assert '"password": "[redacted]"' in folder.trials("two")["case-1", 1]


@pytest.mark.slow
def test_checks_of_ones_own_are_scored_by_the_workers(unhurried: Folder) -> None:
    assert unhurried.record("two").code == 0
    assert_same(unhurried, "whole", "two")
    assert len(set((unhurried.root / "scored-by").read_text().split())) == 2


@pytest.mark.slow
def test_a_small_suite_starts_nobody(tmp_path: Path) -> None:
    write_suite(tmp_path, cases=5, trials=2, criteria=UNHURRIED)
    folder = Folder(tmp_path)
    run = folder.start("--quiet", "--record", "r.jsonl")
    until(lambda: scored(folder, "r"), run)
    assert not children(run.pid)
    out, err = run.communicate()
    assert run.returncode == 0, err
    assert {int(pid) for pid in (tmp_path / "scored-by").read_text().split()} == {run.pid}, out


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(unhurried: Folder) -> None:
    with held(unhurried):
        run = unhurried.start("--quiet", "--record", "killed.jsonl", "--json", "killed.json")
        for _ in range(2):
            until(lambda: scored(unhurried, "killed") > 10 and len(children(run.pid)) == 2, run)
            victim = children(run.pid)[0]
            kill(victim)
            until(lambda pid=victim: not alive(pid), run)
    _, err = run.communicate()
    assert run.returncode == 0, err
    assert_same(unhurried, "whole", "killed")


@pytest.mark.slow
def test_workers_that_die_again_and_again_are_an_error(tmp_path: Path) -> None:
    write_suite(tmp_path, criteria={"checks:fatal": 0.5}, **TWO)
    (tmp_path / "checks.py").write_text("import os\n\ndef fatal(actual, expected):\n    os.kill(os.getppid(), 9)\n")
    ran = Folder(tmp_path).record("dead")
    assert ran.code == 3
    assert "3 worker processes died over the same trials; the last one was killed by SIGKILL" in ran.err
    assert "--resume" in ran.err


def test_a_check_that_no_worker_can_import_is_a_configuration_error(tmp_path: Path) -> None:
    write_suite(tmp_path, criteria={"checks:here": 0.5}, **TWO)
    only_once = "import os\nif 'SEEN' in os.environ: os.environ.pop('SEEN')\nelse: raise RuntimeError('not twice')\n"
    (tmp_path / "checks.py").write_text(only_once + "\ndef here(actual, expected):\n    return 1.0\n")
    ran = Folder(tmp_path).run("--quiet", SEEN="1")
    assert ran.code == 2
    assert "cannot be imported: RuntimeError: not twice" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_stopped_by_a_signal(unhurried: Folder, number: signal.Signals, code: int) -> None:
    with held(unhurried):
        run = unhurried.start("--quiet", "--record", "stopped.jsonl")
        until(lambda: scored(unhurried, "stopped") > 20, run)
        left = children(run.pid)
        run.send_signal(number)
        _, err = run.communicate(timeout=CEILING)
        assert len(left) == 2
        until(lambda: not any(map(alive, left)))
    assert run.returncode == code
    assert "Traceback" not in err
    before = unhurried.trials("stopped")
    assert 20 < len(before) < 150
    assert unhurried.record("stopped").code == 0
    assert_same(unhurried, "whole", "stopped")


@pytest.mark.slow
def test_nobody_outlives_a_gate_that_is_killed(unhurried: Folder) -> None:
    with held(unhurried):
        run = unhurried.start("--quiet", "--record", "shot.jsonl")
        until(lambda: scored(unhurried, "shot") > 20, run)
        left = children(run.pid)
        kill(run.pid)
        run.communicate()
    assert len(left) == 2
    until(lambda: not any(map(alive, left)))
    before = unhurried.trials("shot")
    assert unhurried.record("shot").code == 0
    assert before.items() <= unhurried.trials("shot").items(), "what was measured before is kept as it was"
    assert_same(unhurried, "whole", "shot")


@pytest.mark.slow
def test_shards_come_to_the_same(folder: Folder) -> None:
    assert folder.record("one").code == 0
    folder.configure(trials=10, **TWO)
    for shard in ("1", "2"):
        assert folder.run("--quiet", "--shard", f"{shard}/2", "--record", f"part-{shard}.jsonl").code == 0
    halves = [folder.trials(f"part-{shard}") for shard in ("1", "2")]
    assert {**halves[0], **halves[1]} == folder.trials("one")
    assert all(halves)


@pytest.mark.slow
def test_a_budget_leaves_whole_passes(folder: Folder) -> None:
    folder.configure(budget={"runs": 75}, **TWO)
    ran = folder.record("some")
    assert ran.code == 0, ran.err
    numbers = sorted(n for _, n in folder.trials("some"))
    assert numbers == [1] * 30 + [2] * 30 + [3] * 15
    assert "the budget of 75 agent runs is spent" in (folder.root / "some.jsonl").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [200, 1000])
def test_a_budget_of_tokens_is_kept(folder: Folder, tokens: int) -> None:
    folder.configure(budget={"tokens": tokens}, **TWO)
    folder.record("some")
    rows = [json.loads(line) for line in folder.trials("some").values()]
    spent = sum(turn["usage"]["input_tokens"] + 5 for row in rows for turn in row.get("turns", ()))
    assert 0 < spent <= tokens


@pytest.mark.slow
def test_the_value_of_a_secret_is_sent_to_nobody(tmp_path: Path) -> None:
    """The check runs in the process that may know: the gate's own."""
    secret = "correct horse battery staple"
    write_suite(tmp_path, cases=4, trials=5, said=f"The word is {secret}.", criteria=UNHURRIED, **TWO)
    folder = Folder(tmp_path)
    run = folder.start("--quiet", "--record", "r.jsonl", THE_PASSWORD=secret)
    _, err = run.communicate()
    assert run.returncode == 0, err
    assert {int(pid) for pid in (tmp_path / "scored-by").read_text().split()} == {run.pid}
    lines = folder.trials("r").values()
    assert not any(secret in line for line in lines)
    assert sum("The word is [redacted]." in line for line in lines) == 19


@pytest.mark.slow
def test_what_was_recorded_as_failed_is_not_scored_twice(unhurried: Folder) -> None:
    """A record that is continued takes recorded failures as they were."""
    with held(unhurried):
        run = unhurried.start("--quiet", "--record", "again.jsonl")
        until(lambda: "recorded as failed" in _text(unhurried, "again") and scored(unhurried, "again") > 30, run)
        run.kill()
        run.communicate()
    ran = unhurried.record("again")
    assert ran.code == 0, ran.err
    assert_same(unhurried, "whole", "again")


def _text(folder: Folder, name: str) -> str:
    path = folder.root / f"{name}.jsonl"
    return path.read_text() if path.exists() else ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "says"),
    [
        (
            {"agent": {"command": "true"}, "executor": {"processes": 2}},
            "gate.yaml:1: executor.processes scores recorded trials, and this agent is command:",
        ),
        (
            {"agent": {"python": "a:b"}, "executor": {"ray": "auto"}},
            "gate.yaml:1: executor.ray scores recorded trials, and this agent is python:",
        ),
        (
            {"criteria": {"response_evaluation_score": 3}, "executor": {"processes": 2}, "judge": {"model": "m"}},
            "executor.processes scores without a judge, and response_evaluation_score asks one",
        ),
        ({"executor": {"processes": 2, "ray": "auto"}}, "either processes or ray, not both"),
        ({"executor": "remote"}, "executor: expected a mapping, found text (known keys: processes, ray)"),
        ({"executor": {"rays": "auto"}}, "unknown key 'rays' (did you mean 'ray'?)"),
        ({"executor": {"ray": "somewhere"}}, "executor.ray"),
        ({"executor": {"processes": 0}}, "executor.processes"),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Folder, config: dict[str, Any], says: str) -> None:
    folder.configure(**config)
    ran = folder.run("--quiet", OPENAI_API_KEY="sk-none")
    assert ran.code == 2, ran.err
    assert says in ran.err
    assert not scored(folder, ".gate")


def test_without_ray_its_name_is_said(folder: Folder) -> None:
    folder.configure(executor={"ray": "local"})
    ran = folder.run("--quiet")
    assert ran.code == 2
    assert 'executor.ray needs Ray, which is not installed (pip install "agent-gate[ray]")' in ran.err
