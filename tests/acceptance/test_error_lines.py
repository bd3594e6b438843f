"""Errors name what to write instead, and where the wrong value came from: the file with its line, or the option."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Project

CONFIG = "suite: evals/\nagent: {python: bot:answer}\ncriteria: {response_match_score: 0.5}\n"
KINDS = "name how it is asked: one of python, command, http, "


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("project"))
    made.write("evals/first.yaml", "cases:\n  - {id: a, input: Hi, response: Hello, tags: [booking]}\n")
    made.write("bot.py", "def answer(message):\n    return 'Hello'\n")
    made.write("concierge/__init__.py", "")
    made.write("concierge/bot.py", "def answer(message):\n    return 'Hello'\n")
    made.write("gate.yaml", CONFIG)
    return made


def last_line(project: Project, *arguments: str) -> tuple[int, str]:
    ran = project.gate(*arguments)
    return ran.code, ran.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ("evals/", "eval/", 2, "{}:1: suite 'eval/' does not exist (did you mean 'evals/'?)"),
        ("evals/", "qqq/", 2, "{}:1: suite 'qqq/' does not exist (it is looked for in "),
        ("{python: bot:answer}", "{}", 2, "{}:2: agent: is empty (" + KINDS),
        ("{python: bot:answer}", "bot:answer", 2, "{}:2: agent: expected a mapping, found text (" + KINDS),
        ("bot:answer", "concierge.bot", 3, "(expected module:attribute, as in concierge.bot:answer)"),
        ("criteria", "select: {tags: [bookin]}\ncriteria", 2, "{}:3: no case has the tag 'bookin' (did you mean"),
        ("criteria", "baseline: {against: nope}\ncriteria", 2, "{}:3: 'nope' names a commit, but this is not a git"),
    ],
)
def test_what_is_wrong_in_the_file(project: Project, old: str, new: str, code: int, said: str) -> None:
    project.write("wrong.yaml", CONFIG.replace(old, new, 1))
    ended, line = last_line(project, "run", "-c", "wrong.yaml")
    assert (ended, said.replace("{}", "wrong.yaml", 1) in line) == (code, True), line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--against", "nope"), "--against: 'nope' names a commit, but this is not a git repository ("),
        (("--tag", "bookin"), "--tag: no case has the tag 'bookin' (did you mean 'booking'?)"),
        (("--case", "b"), "--case: no case has the id 'b' (known: a)"),
        (("--where", "team=x"), "--where: no case has the key 'team' in its metadata (no case has any metadata)"),
        (("--store", "s3"), "--store: unknown store 's3' (known: bucket, file, git, none)"),
        (("--store", "non"), "--store: unknown store 'non' (did you mean 'none'?)"),
        (("--nope",), "no such option '--nope' (gate run --help)"),
        (("--trails", "3"), "no such option '--trails': did you mean '--trials'? (gate run --help)"),
    ],
)
def test_what_is_wrong_on_the_command_line(project: Project, arguments: tuple[str, ...], said: str) -> None:
    code, line = last_line(project, "run", *arguments)
    assert (code, line.startswith(f"gate: {said}")) == (2, True), line


def test_a_commit_that_is_not_here(tmp_path: Path) -> None:
    made = Project(tmp_path)
    made.write("evals/first.yaml", "cases:\n  - {id: a, input: Hi, response: Hello}\n")
    made.write("bot.py", "def answer(message):\n    return 'Hello'\n")
    made.write("gate.yaml", CONFIG)
    made.commit()
    assert last_line(made, "run", "--against", "nope") == (
        2,
        "gate: --against: no commit 'nope' here (fetch it first)",
    )


@pytest.mark.parametrize("command", ["report", "explain"])
def test_a_folder_is_no_record(project: Project, command: str) -> None:
    code, line = last_line(project, command, ".")
    assert code == 3
    assert line.startswith("gate: .: this is a folder, and a record is a file (name a file in it, or none")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("monitor", "--receive", "4318"), "--receive was removed: set `monitor.receive` in gate.yaml"),
        (("monitor", "--prometheus", "x"), "--prometheus was removed: set `monitor.prometheus` in gate.yaml"),
        (("run", "--ctrf", "x"), "--ctrf was removed: write --report ctrf=PATH"),
        (("decide", "--jsonl"), "--jsonl was removed: leave it out, as there is only one format"),
        (("run", "--jsonl"), "no such option '--jsonl'"),
    ],
)
def test_a_removed_option_says_what_to_do_instead(project: Project, command: tuple[str, ...], said: str) -> None:
    code, line = last_line(project, *command)
    assert (code, line.startswith(f"gate: {said}")) == (2, True), line
