"""Commands as agents, once and line by line: what they are asked, how they fail, what they leave behind."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gate.errors import ConfigError
from gate.model import ErrorKind, Trial
from tests.integration.agents.driving import case, gone, open_files, run

ONCE = """
import json, os, signal, subprocess, sys, time
what = sys.argv[1]
def hang():
    sys.stdout.flush()
    open("hanging", "w").close()
    while True: time.sleep(3600)
asked = json.load(sys.stdin)
said = asked["messages"][-1]["content"]
if what == "text": print("you said", said)
if what == "bracket": print("[note] not JSON")
if what == "json": print(json.dumps({"output": said, "tool_calls": [{"name": "t", "arguments": {"n": 1}}]}))
if what == "asked": print(json.dumps({"output": json.dumps(asked)}))
if what == "environment": print(",".join(sorted(os.environ)))
if what == "fails": print("half"); sys.stderr.write("x" * 100_000 + " no database"); sys.exit(4)
if what == "nothing": pass
if what == "quiet": sys.stderr.write("loading\\nno key was given")
if what == "coloured": print("\\x1b[32m\\x1b]0;t\\x07" + json.dumps({"output": said, "tool_calls": []}) + "\\x1b[0m")
if what == "blank": print("\\x1b[2K\\x1b[0m")
if what == "wide": os.write(1, "hello".encode("utf-16-le"))
if what == "fails after text": print(said); print('{"error": "boom"}')
if what == "fails after JSON": print('{"output": "hi"}'); print('{"error": "boom"}')
if what == "more": print('{"output": "hi"}'); print("bye")
if what == "asks": open("/dev/stdin").read(); input("Sure? ")
if what == "torn": print('{"output": "hal')
if what == "twice": print('{"output": "a"}'); print('{"output": "b"}')
if what == "latin": os.write(1, b"caf\\xe9")
if what == "huge": os.write(1, b"x" * 50_000_000)
if what == "hangs": hang()
if what == "lingers": print(json.dumps({"output": "", "tool_calls": [{"name": "wipe"}]})); hang()
if what == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hang()
if what == "polite":
    signal.signal(signal.SIGTERM, lambda *_: (open("goodbye", "w").close(), sys.exit(0)))
    hang()
if what == "closes": os.close(1); time.sleep(0.1)
if what == "floods": sys.stderr.write("noise " * 2_000_000); print("heard")
if what == "slow": time.sleep(0.3); print("late")
if what == "meets":
    with open("met", "ab", buffering=0) as file: file.write(b"+")
    while os.path.getsize("met") < 8: time.sleep(0.01)
    print("together")
if what == "leaves":
    sleeper = [sys.executable, "-c", "import time; time.sleep(3600)", "stray-of-" + said]
    subprocess.Popen(sleeper)
    subprocess.Popen(sleeper, start_new_session=True)
    print("done")
"""

LINES = """
import json, os, sys, time
what = sys.argv[1]
count = 0
for line in sys.stdin:
    asked = json.loads(line)
    said = asked["messages"][-1]["content"]
    count += 1
    reply = {"id": asked["id"], "output": f"{said} {count} {os.getpid()}"}
    if what == "wrong": reply["id"] = "other"
    if what == "guesses": reply["id"] = count
    if what == "lists": reply["id"] = [reply["id"]]
    if what == "poison" and said == "poison": sys.stderr.write("poisoned"); sys.exit(3)
    if what == "hangs" and said == "poison":
        open("hanging", "w").close()
        time.sleep(3600)
    if what == "huge": reply["output"] = "x" * 50_000_000
    if what == "garbage": print("loading model ..."); sys.stdout.flush(); continue
    time.sleep(0.05)
    print(json.dumps(reply), flush=True)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "once.py").write_text(ONCE)
    (tmp_path / "lines.py").write_text(LINES)
    return tmp_path


def once(root: Path, what: str, *turns: str, **more: Any) -> Trial:
    return run({"command": [sys.executable, str(root / "once.py"), what]}, [case("a", *turns)], root, **more)["a"]


def hanging(root: Path) -> Callable[[Sequence[Trial]], bool]:
    return lambda trials: (root / "hanging").exists()


def test_text_and_json_answers(root: Path) -> None:
    assert once(root, "text", "hi").invocations[0].text == "you said hi"
    coloured = once(root, "coloured", "hi").invocations[0]
    assert (coloured.text, coloured.reports_calls) == ("hi", True)
    assert once(root, "bracket").invocations[0].text == "[note] not JSON"
    invocation = once(root, "json", "hi").invocations[0]
    assert (invocation.text, invocation.tool_calls[0].args) == ("hi", {"n": 1})


def test_what_a_command_is_asked(root: Path) -> None:
    options = {"command": f"{sys.executable} once.py asked"}
    trial = run(options, [case("c1", "one", "two", state={"s": 1}, metadata={"m": 2})], root)["c1"]
    import json

    asked = json.loads(trial.invocations[1].text)
    assert asked.pop("session_id")
    assert [m["role"] for m in asked.pop("messages")] == ["user", "assistant", "user"]
    assert asked == {"v": 1, "case_id": "c1", "trial": 1, "turn": 1, "state": {"s": 1}, "metadata": {"m": 2}}


def test_no_shell_reads_the_command(root: Path) -> None:
    trial = run({"command": ["echo", "$HOME", ";", "touch", "pwned"]}, [case("a")], root)["a"]
    assert trial.invocations[0].text == "$HOME ; touch pwned"
    assert not (root / "pwned").exists()


@pytest.mark.parametrize(
    ("what", "kind", "message"),
    [
        ("fails", ErrorKind.CRASH, "no database"),
        ("nothing", ErrorKind.CRASH, "the command exited with status 0 without an answer: it wrote no error"),
        ("closes", ErrorKind.CRASH, "the command exited with status 0 without an answer: it wrote no error"),
        ("quiet", ErrorKind.CRASH, "without an answer: loading\nno key was given"),
        ("blank", ErrorKind.PROTOCOL, "the answer is empty"),
        ("wide", ErrorKind.PROTOCOL, "it has null characters, as UTF-16 does"),
        ("fails after text", ErrorKind.CRASH, "the agent reports an error: boom"),
        ("fails after JSON", ErrorKind.CRASH, "the agent reports an error: boom"),
        ("more", ErrorKind.PROTOCOL, "answer with the JSON alone"),
        ("asks", ErrorKind.CRASH, "EOF"),
        ("torn", ErrorKind.PROTOCOL, "the answer is not JSON"),
        ("twice", ErrorKind.PROTOCOL, "several of its events are answers; answer with one object"),
        ("latin", ErrorKind.PROTOCOL, "the answer is not UTF-8"),
        ("huge", ErrorKind.PROTOCOL, "more than 10,000,000 bytes"),
    ],
)
def test_failures_are_named(root: Path, what: str, kind: ErrorKind, message: str) -> None:
    trial = once(root, what)
    assert trial.error is not None
    assert trial.error.kind is kind
    assert message in trial.error.message
    assert len(trial.error.message) < 5000


@pytest.mark.slow
@pytest.mark.parametrize("what", ["hangs", "stubborn"])
def test_a_command_that_hangs_is_ended(root: Path, what: str) -> None:
    trial = once(root, what, hung=hanging(root))
    assert trial.error is not None
    assert trial.error.kind is ErrorKind.TIMEOUT
    assert gone(f"{root}")


def test_an_answer_of_a_command_that_does_not_end_is_told_and_its_calls_count(root: Path) -> None:
    trial = once(root, "lingers", hung=hanging(root))
    assert trial.error is not None
    assert trial.error.kind is ErrorKind.TIMEOUT
    assert trial.error.message.endswith("s: it printed text, but did not end")
    assert [call.name for call in trial.invocations[0].tool_calls] == ["wipe"]


def test_a_command_may_say_goodbye(root: Path) -> None:
    once(root, "polite", hung=hanging(root))
    assert (root / "goodbye").exists()


def test_a_flood_of_errors_is_drained(root: Path) -> None:
    assert once(root, "floods").invocations[0].text == "heard"


@pytest.mark.slow
def test_nothing_is_left_behind(root: Path) -> None:
    once(root, "text")
    before = open_files()
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    trial = once(root, "leaves", mark)
    assert trial.error is None
    assert gone(f"stray-of-{mark}")
    for what in ("fails", "huge", "closes"):
        once(root, what)
    once(root, "hangs", hung=hanging(root))
    assert open_files() <= before


def test_commands_run_side_by_side(root: Path) -> None:
    options = {"command": [sys.executable, "once.py", "meets"], "concurrency": 8}
    trials = run(options, [case(f"c{n}") for n in range(8)], root)
    assert [trial.error for trial in trials.values()] == [None] * 8


@pytest.mark.slow
def test_duration_is_the_process_alone(root: Path) -> None:
    """All of it, and not the waiting for what it left behind, which may hold its output open."""
    slow = once(root, "slow")
    assert slow.duration is not None
    assert slow.duration >= 0.3
    start = time.perf_counter()
    left = once(root, "leaves", "nothing")
    elapsed = time.perf_counter() - start
    assert left.duration is not None
    assert elapsed - left.duration > 1.9


def test_a_program_that_is_not_there_is_a_configuration_error(root: Path) -> None:
    with pytest.raises(ConfigError, match="cannot run 'no-such-program'"):
        run({"command": "no-such-program --flag"}, [case("a")], root)
    (root / "script").write_text("echo hi\n")
    (root / "script").chmod(0o755)
    with pytest.raises(ConfigError, match=r"cannot run '\./script': Exec format error"):
        run({"command": "./script"}, [case("a")], root)


def test_the_child_sees_only_what_is_allowed(root: Path) -> None:
    outside = {"PATH": os.environ["PATH"], "SECRET": "s", "MY_KEY": "k"}
    options = {"command": [sys.executable, "once.py", "environment"], "env": ["MY_KEY"]}
    seen = run(options, [case("a")], root, environment=outside)["a"].invocations[0].text.split(",")
    assert "MY_KEY" in seen
    assert "SECRET" not in seen


# --- persistent ---


def lines(root: Path, what: str, *texts: str, hung: Any = None, **options: object) -> dict[str, Trial]:
    settings = {"command": [sys.executable, str(root / "lines.py"), what], "persistent": True, **options}
    return run(settings, [case(f"c{n}", text) for n, text in enumerate(texts)], root, hung=hung)


def test_a_persistent_command_answers_many(root: Path) -> None:
    trials = lines(root, "fine", *["hi"] * 12, concurrency=3)
    said = [trial.invocations[0].text.split() for trial in trials.values()]
    assert len({pid for *_, pid in said}) == 3
    assert max(int(count) for _, count, _ in said) >= 4
    assert gone(f"{root}")


def test_a_session_keeps_its_process(root: Path) -> None:
    options = {"command": [sys.executable, "lines.py", "fine"], "persistent": True}
    trials = run(options, [case(f"c{n}", "one", "two", "three") for n in range(6)], root)
    for trial in trials.values():
        assert len({invocation.text.split()[2] for invocation in trial.invocations}) == 1


@pytest.mark.parametrize(
    ("what", "kind", "message"),
    [
        ("wrong", ErrorKind.PROTOCOL, "does not answer the request"),
        ("guesses", ErrorKind.PROTOCOL, "does not answer the request"),
        ("lists", ErrorKind.PROTOCOL, "does not answer the request"),
        ("garbage", ErrorKind.PROTOCOL, "does not answer the request, whose id it must have: b'loading model"),
        ("huge", ErrorKind.PROTOCOL, "more than 10,000,000 bytes"),
    ],
)
def test_persistent_failures_are_named(root: Path, what: str, kind: ErrorKind, message: str) -> None:
    error = lines(root, what, "hi")["c0"].error
    assert error is not None
    assert error.kind is kind
    assert message in error.message


def test_a_persistent_process_that_ends_costs_one_trial(root: Path) -> None:
    trials = lines(root, "poison", *["water"] * 4, "poison", *["water"] * 4, concurrency=2, retries=1)
    assert [name for name, trial in trials.items() if trial.error] == ["c4"]
    error = trials["c4"].error
    assert error is not None
    assert error.message == "the command exited with status 3: poisoned"
    assert trials["c4"].attempts == 1, "what the agent fails at is not tried away"


def test_a_persistent_process_that_hangs_is_replaced(root: Path) -> None:
    before = open_files()
    trials = lines(root, "hangs", "poison", *["water"] * 4, concurrency=1, hung=hanging(root))
    assert [name for name, trial in trials.items() if trial.error] == ["c0"]
    assert gone(f"{root}")
    assert open_files() <= before + 1
