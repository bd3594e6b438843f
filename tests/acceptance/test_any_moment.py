"""Commands that write are ended at any moment: nothing is lost, doubled, half written or left behind.

Of a gate that is killed by signal 9 temporary files may stay, since nothing of it runs any more; its processes may not.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gate.records import read_record
from tests import warm
from tests.acceptance.conftest import Project, _environment
from tests.patience import CEILING, eventually

CASES, EPOCHS, MOMENTS, QUICK = 6, 2, 36, 1
"""Four moments of each command: what goes wrong in half of the time that it takes is met with a probability of 0.94."""
AGENT = """
import time

def answer(message):
    time.sleep(0.02)
    return message
"""
Check = Callable[[Project], object]


def trials(name: str) -> Check:
    """A whole record, in which each case was measured as often as it was asked for."""

    def check(project: Project) -> object:
        (path,) = project.root.glob(name)
        record = read_record(path)
        assert record.footer is not None
        return sorted(Counter(trial.case_id for trial in record.trials).items())

    return check


def stored(project: Project) -> object:
    """What the store holds: a branch, which a push moves in one step."""
    return [line.split()[:4] for line in project.gate("baseline", "list").out.splitlines() if "suite" not in line]


def whole(*names: str) -> Check:
    """Reports of which nothing is missing at the end."""
    ends = {".html": "</html>", ".json": "}", ".xml": ">", ".md": "-->"}

    def check(project: Project) -> object:
        texts = {name: (project.root / name).read_text(encoding="utf-8").rstrip() for name in names}
        return all(
            text.removesuffix("<!-- written by Agent Gate -->")
            .rstrip()
            .endswith(ends[Path(name).suffix].removesuffix("-->"))
            for name, text in texts.items()
        )

    return check


def counted(project: Project) -> object:
    with sqlite3.connect(project.root / ".gate" / "monitor.sqlite") as db:
        return db.execute("SELECT count(*), count(DISTINCT trace), sum(passed) FROM traces").fetchone()


def pages(project: Project) -> object:
    return sorted(path.name for path in (project.root / "pages").rglob("*.html"))


def accepted(project: Project) -> object:
    """Every line of the store's log, whole: a command that was repeated accepts the same once more."""
    project.git("fetch", "-q", "origin", "stored")
    (log,) = [n for n in project.git("ls-tree", "-r", "--name-only", "FETCH_HEAD").splitlines() if "ledger" in n]
    lines = [json.loads(line) for line in project.git("show", f"FETCH_HEAD:{log}").splitlines()]
    return stored(project), {(line["kind"], line["key"], line.get("by"), line.get("why")) for line in lines}


NEEDS_A_STORED_RECORD = ("accept", "site")
COMMANDS: dict[str, tuple[tuple[str, ...], Check]] = {
    "run": (("run", "-q", "--trials", str(EPOCHS), "--record", "mine.jsonl"), trials("mine.jsonl")),
    "save": (("baseline", "save", "done.jsonl"), stored),
    "accept": (("baseline", "accept", "--by", "ada", "--why", "meant"), accepted),
    "merge": (("merge", "one.jsonl", "two.jsonl", "-o", "joined.jsonl"), trials("joined.jsonl")),
    "rescore": (("rescore", "done.jsonl", "-o", "again.jsonl"), trials("again.jsonl")),
    "report": (
        ("report", "done.jsonl", "-q", "--html", "r.html", "--json", "r.json", "--junit", "r.xml"),
        whole("r.html", "r.json", "r.xml"),
    ),
    "import": (("import", "suite.yaml", "--to", "new.json"), whole("new.json")),
    "site": (("site", "pages"), pages),
    "monitor": (("monitor", "rows.jsonl", "--once", "-q", "--sample-rate", "1"), counted),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = Project(tmp_path_factory.mktemp("prepared") / "work")
    project.root.mkdir()
    cases = [{"id": f"c{n}", "input": f"word {n}", "options": {"contains": {"values": ["word"]}}} for n in range(CASES)]
    project.write("suite.yaml", {"cases": cases})
    project.write("agent.py", AGENT)
    config: dict[str, Any] = {
        "suite": "suite.yaml",
        "name": "s",
        "agent": {"python": "agent:answer", "env": {"OF_THIS_TEST": "yes"}},
        "criteria": {"contains": 0.5, "not_contains": {"values": ["no"]}},
        "baseline": {"store": "git", "branch": "stored", "remote": "origin"},
    }
    project.write("gate.yaml", json.dumps(config))
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "word"}]
    project.write("rows.jsonl", "".join(json.dumps({"id": f"r{n}", "messages": said}) + "\n" for n in range(300)))
    project.commit()
    project.git("init", "-q", "--bare", "../origin.git")
    project.git("remote", "add", "origin", "../origin.git")
    project.git("push", "-q", "origin", "main")
    for name, more in (("done", ()), ("one", ("--shard", "1/2")), ("two", ("--shard", "2/2"))):
        ran = project.gate("run", "-q", "--trials", str(EPOCHS), "--record", f"{name}.jsonl", *more)
        assert ran.code == 0, ran.err
    return project.root.parent


def working_in(folder: Path) -> list[str]:
    """Processes that work in this folder, whatever their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.readlink(entry / "cwd").startswith(str(folder)):  # noqa: PTH115
                found.append((entry / "cmdline").read_text().replace("\0", " "))
    return found


@dataclass(frozen=True)
class Undisturbed:
    """A command that nobody ended: where it begins, how long it takes, and what there is after it."""

    begins: Path
    seconds: float
    found: object


@pytest.fixture(scope="module")
def undisturbed(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Undisturbed]:
    @cache
    def with_a_record() -> Path:
        """The beginning with a stored record, for commands that work on one."""
        place = tmp_path_factory.mktemp("stored") / "place"
        shutil.copytree(prepared, place, symlinks=True)
        saved = Project(place / "work").gate("baseline", "save", "done.jsonl")
        assert saved.code == 0, saved.err
        return place

    @cache
    def of(name: str) -> Undisturbed:
        arguments, check = COMMANDS[name]
        begins = with_a_record() if name in NEEDS_A_STORED_RECORD else prepared
        place = tmp_path_factory.mktemp(name) / "place"
        shutil.copytree(begins, place, symlinks=True)
        project = Project(place / "work")
        start = time.monotonic()
        ran = project.gate(*arguments)
        seconds = time.monotonic() - start
        assert ran.code == 0, ran.err
        return Undisturbed(begins, seconds, check(project))

    return of


def ended_at(moment: float, name: str, number: signal.Signals, of: Undisturbed, place: Path) -> None:
    arguments, check = COMMANDS[name]
    shutil.copytree(of.begins, place, symlinks=True)
    project, temporary = Project(place / "work"), place / "temporary"
    temporary.mkdir()
    before = {path.name for path in project.root.rglob("*")}
    environment = {**_environment(), "TMPDIR": str(temporary)}
    child = warm.Started(
        ["-m", "gate", *arguments], cwd=project.root, environment=environment, heeds=(signal.SIGINT, signal.SIGTERM)
    )
    time.sleep(moment)
    child.send_signal(number)
    _, err = child.communicate(CEILING)
    assert child.returncode in (0, -number, 128 + number), f"{child.returncode}: {err}"
    assert eventually(lambda: not working_in(place)), working_in(place)
    if number is signal.SIGTERM:
        left = [path for path in temporary.rglob("*") if "pytest" not in path.name]
        assert not left, left
        new = {path.name for path in project.root.rglob("*")} - before
        assert not [path for path in new if path.endswith(".new")], new
        assert project.git("worktree", "list").count("\n") == 0
    again = project.gate(*arguments, TMPDIR=str(temporary))
    assert again.code == 0 or (name == "import" and "the file exists" in again.err), again.err
    assert check(project) == of.found
    project.git("fsck", "--no-progress")
    shutil.rmtree(place)


def moments(seed: int, many: int) -> list[tuple[str, signal.Signals, float]]:
    """Commands, signals, and the part of the time that the command takes after which it is sent."""
    draw = random.Random(seed)
    names = [*COMMANDS]
    numbers = (signal.SIGTERM, signal.SIGKILL)
    return [(names[n % len(names)], draw.choice(numbers), draw.random()) for n in range(many)]


@pytest.mark.parametrize(
    ("seed", "many"),
    [pytest.param(7, QUICK, id="a few"), pytest.param(8, MOMENTS, id="many", marks=pytest.mark.slow)],
)
def test_whenever_a_command_is_ended_the_next_one_ends_as_if_it_had_not_been(
    undisturbed: Callable[[str], Undisturbed], tmp_path: Path, seed: int, many: int
) -> None:
    for number, (name, sent, part) in enumerate(moments(seed, many)):
        of = undisturbed(name)
        moment = part * of.seconds
        try:
            ended_at(moment, name, sent, of, tmp_path / f"{number}")
        except AssertionError as error:
            raise AssertionError(f"{name}, {sent.name} after {moment:.3f} s (seed {seed}, number {number})") from error
