"""Python agents in real child processes: what they are given, how they fail, what they leave behind."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gate.agents.base import AgentFailure, Request
from gate.agents.python import WORKER
from gate.errors import ConfigError, MeasureError
from gate.model import ErrorKind, Trial
from tests.integration.agents.driving import case, gone, make, open_files, processes_with, run
from tests.patience import until

AGENT = """
import asyncio, os, signal, subprocess, sys, threading, time

def echo(text): return "you said " + text
def everything(message, messages, session_id, state, metadata, case_id, trial, turn, request):
    assert request["messages"] == messages and request["session_id"] == session_id
    return f"{message}|{len(messages)}|{state}|{metadata}|{case_id}|{trial}|{turn}"
def only_positional(messages, /): return messages[-1]["content"]
def with_default(message, temperature=0.5): return f"{message} {temperature}"
def two_unknown(a, b): return "x"
async def slowly(message):
    await asyncio.sleep(0.2)
    return message
def answers_slowly_read(message):
    time.sleep(0.2)
    return Slow()
def process_id(message):
    time.sleep(0.05)
    return str(os.getpid())
def returns_a_coroutine(message): return slowly(message)
class Bot:
    def __init__(self): self.heard = {}
    async def __call__(self, message, session_id):
        self.heard.setdefault(session_id, []).append(message)
        return {"output": " then ".join(self.heard[session_id]),
                "tool_calls": [{"name": "note", "arguments": {"text": message}, "result": "ok"}],
                "usage": {"input_tokens": 3, "output_tokens": 2}, "cost_usd": 0.01}
bot = Bot()
def raises(message): raise KeyError("no such order")
def exits(message): sys.exit(7)
async def cancels_itself(message): raise asyncio.CancelledError
def rate_limited(message):
    error = RuntimeError("slow down")
    error.status_code = 429
    raise error
def dies_of_poison(message):
    if message == "poison":
        time.sleep(0.05)
        sys.stderr.write("poisoned\\n")
        os._exit(3)
    time.sleep(0.2)
    return "alive"
def segfaults(message): os.kill(os.getpid(), signal.SIGSEGV)
def hangs_on_poison(message):
    if message == "poison":
        open("hanging", "w").close()
        time.sleep(3600)
    return "alive"
async def hangs_asleep(message):
    if message == "poison":
        open("hanging", "w").close()
        await asyncio.sleep(3600)
    return str(os.getpid())
async def never_listens(message):
    open("hanging", "w").close()
    while True:
        try: await asyncio.sleep(3600)
        except asyncio.CancelledError: pass
def forges(message):
    if message.startswith("{") or message.startswith("["):
        import json
        os.write(json.loads(sys.argv[1])["fd"], message.encode() + b"\\n")
        time.sleep(3600)
    time.sleep(0.2)
    return "alive"
def says_back(message):
    import json
    return json.loads(message)
def returns_none(message): pass
def ends_an_iteration(message): return next(iter([]))
def does(message, case_id): return globals()[case_id](message)
def returns_an_object(message): return object()
def returns_nan(message): return {"output": "x", "cost_usd": float("nan")}
def returns_surrogates(message): return "\\ud800 half"
def returns_too_much(message): return "x" * 50_000_000
def floods(message):
    for _ in range(200):
        sys.stderr.write("noise " * 2000)
        sys.stdout.write('{"id": 0, "answer": "forged"}\\n' * 100)
    os.write(1, b"raw noise\\n")
    return "heard"
def leaves_children(message):
    sleeper = [sys.executable, "-c", "import time; time.sleep(3600)", "stray-of-" + message]
    subprocess.Popen(sleeper)
    subprocess.Popen(sleeper, start_new_session=True)
    return "done"
def environment(message): return ",".join(sorted(os.environ))
class Slow:
    def model_dump(self, mode):
        time.sleep(0.3)
        return "hi"
here = []
async def meets(message):
    here.append(message)
    while len(here) < 16: await asyncio.sleep(0.01)
    return message
def meets_in_threads(message):
    here.append(message)
    while len(here) < 16: time.sleep(0.01)
    return message
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "my_agent.py").write_text(AGENT)
    return tmp_path


def one(root: Path, function: str, *turns: str, hung: Any = None, **options: Any) -> Trial:
    return run({"python": f"my_agent:{function}", **options}, [case("a", *turns)], root, hung=hung)["a"]


def hanging(root: Path, others: int = 0) -> Callable[[Sequence[Trial]], bool]:
    """Whether one hangs, and so many others are done."""
    return lambda trials: (root / "hanging").exists() and len(trials) == others


def answer(root: Path, function: str, *turns: str, **options: Any) -> str:
    trial = one(root, function, *turns, **options)
    assert trial.error is None, trial.error
    return trial.invocations[-1].text


# --- what a function is given ---


def test_a_single_parameter_of_any_name_is_the_message(root: Path) -> None:
    assert answer(root, "echo", "hi") == "you said hi"


def test_parameters_are_filled_by_name(root: Path) -> None:
    options = {"python": "my_agent:everything"}
    asked = case("c1", "one", "two", state={"k": 1}, metadata={"m": 2})
    trial = run(options, [asked], root)["c1"]
    assert [i.text for i in trial.invocations] == [
        "one|1|{'k': 1}|{'m': 2}|c1|1|0",
        "two|3|{'k': 1}|{'m': 2}|c1|1|1",
    ]


def test_functions_of_every_shape(root: Path) -> None:
    said = {"with_default": "hi 0.5", "slowly": "hi", "returns_a_coroutine": "hi"}
    trials = run({"python": "my_agent:does"}, [case(name, "hi") for name in said], root)
    assert {name: trial.invocations[0].text for name, trial in trials.items()} == said
    assert answer(root, "only_positional", "hi") == "hi"
    assert answer(root, "slowly", "hi") == "hi"


def test_the_dotted_form_of_adk(root: Path) -> None:
    assert run({"python": "my_agent.echo"}, [case("a", "hi")], root)["a"].invocations[0].text == "you said hi"


def test_an_object_that_remembers_its_sessions(root: Path) -> None:
    options = {"python": "my_agent:bot", "workers": 3}
    trials = run(options, [case(f"c{n}", f"{n}a", f"{n}b", f"{n}c") for n in range(12)], root)
    for number in range(12):
        last = trials[f"c{number}"].invocations[-1]
        assert last.text == f"{number}a then {number}b then {number}c"
        assert (last.tool_calls[0].name, last.tool_calls[0].result) == ("note", "ok")
        assert last.usage is not None
        assert (last.usage.tokens, last.usage.cost_usd) == (5, 0.01)


def test_an_agent_beside_modules_named_like_ours_and_the_standard_librarys(root: Path) -> None:
    (root / "errors.py").write_text("name = 'mine'")
    (root / "uses.py").write_text(
        "import http.client, errors, sys\n"
        "def answer(message): return f'{http.client.__name__} {errors.name} {\"gate\" in sys.modules}'\n"
    )
    assert run({"python": "uses:answer"}, [case("a")], root)["a"].invocations[0].text == "http.client mine False"


def test_further_import_folders(root: Path) -> None:
    (root / "src").mkdir()
    (root / "src" / "elsewhere.py").write_text("def answer(message): return 'found'")
    assert run({"python": "elsewhere:answer", "path": ["src"]}, [case("a")], root)["a"].invocations[0].text == "found"


def test_the_users_own_virtual_environment(root: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(root / "venv")], check=True)
    (root / "where.py").write_text(
        "import sys, importlib.util\n"
        "def answer(message): return f'{sys.prefix} {importlib.util.find_spec(\"pydantic\")}'\n"
    )
    trial = run({"python": "where:answer", "executable": "venv"}, [case("a")], root)["a"]
    assert trial.invocations[0].text == f"{root}/venv None"


# --- time ---


@pytest.mark.parametrize("function", ["meets", "meets_in_threads"])
def test_one_process_answers_several_at_once(root: Path, function: str) -> None:
    trials = run({"python": f"my_agent:{function}", "concurrency": 16}, [case(f"c{n}") for n in range(16)], root)
    assert [trial.error for trial in trials.values()] == [None] * 16


def test_duration_is_the_function_alone(root: Path) -> None:
    """All of it, and not what comes after it: here, an answer that takes long to read."""
    start = time.perf_counter()
    duration = one(root, "answers_slowly_read").duration
    elapsed = time.perf_counter() - start
    assert duration is not None
    assert duration >= 0.2
    assert elapsed - duration >= 0.3


def test_several_workers_share_the_work(root: Path) -> None:
    options = {"python": "my_agent:process_id", "workers": 2, "concurrency": 4}
    trials = run(options, [case(f"c{n}") for n in range(12)], root)
    assert len({trial.invocations[0].text for trial in trials.values()}) == 2


# --- failures ---


def test_failures_are_named(root: Path) -> None:
    named = {
        "ends_an_iteration": (ErrorKind.CRASH, "RuntimeError: StopIteration (my_agent.py:"),
        "raises": (ErrorKind.CRASH, "KeyError: 'no such order' (my_agent.py:29)"),
        "exits": (ErrorKind.CRASH, "SystemExit: 7 (my_agent.py:30)"),
        "cancels_itself": (ErrorKind.CRASH, "CancelledError"),
        "rate_limited": (ErrorKind.UNREACHABLE, "RuntimeError: slow down"),
        "returns_none": (ErrorKind.PROTOCOL, "the answer cannot be read"),
        "returns_an_object": (ErrorKind.PROTOCOL, "returned a value of type object, which is not JSON"),
        "returns_nan": (ErrorKind.PROTOCOL, "not JSON compliant"),
        "returns_too_much": (ErrorKind.PROTOCOL, "an answer of more than 10,000,000 bytes"),
        "segfaults": (ErrorKind.CRASH, "the agent's process was killed by SIGSEGV"),
    }
    trials = run({"python": "my_agent:does", "retries": 0, "concurrency": 1}, [case(name) for name in named], root)
    for name, (kind, message) in named.items():
        trial = trials[name]
        assert trial.error is not None
        assert (trial.error.kind, message in trial.error.message) == (kind, True), trial.error
        assert not trial.invocations


def test_rate_limits_are_tried_again_and_defects_are_not(root: Path) -> None:
    assert one(root, "rate_limited", retries=1).attempts == 2
    assert one(root, "raises", retries=1).attempts == 1


def test_a_lone_surrogate_does_no_harm(root: Path) -> None:
    answer(root, "returns_surrogates").encode("utf-8")


@pytest.mark.slow
def test_a_process_that_ends_costs_only_the_trial_that_ended_it(root: Path) -> None:
    cases = [case(f"c{n}", "poison" if n == 5 else "water") for n in range(20)]
    trials = run({"python": "my_agent:dies_of_poison", "retries": 1}, cases, root)
    assert [name for name, trial in trials.items() if trial.error] == ["c5"]
    error = trials["c5"].error
    assert error is not None
    assert error.message == "the agent's process exited with status 3: poisoned"
    assert trials["c5"].attempts == 1, "what the agent fails at is not tried away"


NO_REPLIES = (
    "{}",
    "[1]",
    '{"id": 0, "answer": "forged"}',
    '{"id": 0, "answer": "forged", "duration": "long"}',
    '{"id": 0, "answer": "forged", "duration": 1.0}',
    '{"id": "0", "answer": "forged", "duration": 1.0}',
    '{"id": 0, "error": 1}',
    '{"id": 0, "error": {"kind": "odd", "message": "x", "transient": false}}',
    '{"id": [], "answer": "x", "duration": 1.0}',
    '{"id": 0, "answer',
    "[" * 100_000,
)


def is_no_reply(trial: Trial) -> bool:
    assert trial.error is not None
    return trial.error.kind is ErrorKind.CRASH and "is no reply" in trial.error.message


def test_what_is_no_reply_of_the_worker_costs_only_the_trial_that_wrote_it(root: Path) -> None:
    cases = [case("forger", NO_REPLIES[0]), *(case(f"c{n}", "fine") for n in range(3))]
    trials = run({"python": "my_agent:forges", "retries": 0}, cases, root)
    assert is_no_reply(trials["forger"])
    assert [trials[f"c{n}"].invocations[0].text for n in range(3)] == ["alive"] * 3


@pytest.mark.slow
def test_nothing_that_an_agent_can_write_is_taken_for_a_reply_of_the_worker(root: Path) -> None:
    cases = [case("fine", "fine"), *(case(line[:100], line) for line in NO_REPLIES)]
    trials = run({"python": "my_agent:forges", "retries": 0, "concurrency": 1}, cases, root)
    assert trials.pop("fine").invocations[0].text == "alive"
    assert [name for name, trial in trials.items() if not is_no_reply(trial)] == []
    assert len(trials) == len(NO_REPLIES)


def test_half_an_answer_is_an_error_and_no_quality(root: Path) -> None:
    halves: list[tuple[Any, ErrorKind, str]] = [
        ('{"output": "good day to yo', ErrorKind.PROTOCOL, "the answer is not JSON"),
        ('[{"role": "assistant", "con', ErrorKind.PROTOCOL, "the answer is not JSON"),
        ("{} is an empty object", ErrorKind.PROTOCOL, "the answer is not JSON"),
        ("data: Half\n\ndata: an answer\n\n", ErrorKind.PROTOCOL, "the answer is a stream"),
        ('Half an answer\n{"error": "boom"}', ErrorKind.CRASH, "the agent reports an error: boom"),
        ({"output": "", "error": "quota exceeded"}, ErrorKind.LIMIT, "the agent reports an error: quota exceeded"),
        ({"output": "x", "error": {"code": 429}}, ErrorKind.LIMIT, 'the agent reports an error: {"code": 429}'),
        ({"messages": []}, ErrorKind.PROTOCOL, "there is no message"),
        ({"output": None}, ErrorKind.PROTOCOL, "no tool call"),
        ([], ErrorKind.PROTOCOL, "there is no message"),
        (None, ErrorKind.PROTOCOL, "must be text or an object"),
    ]
    whole = ["", '{"city": "Köln"}', {"output": ""}]
    asked = [case(str(n), json.dumps(said)) for n, said in enumerate([*(half[0] for half in halves), *whole])]
    trials = run({"python": "my_agent:says_back", "retries": 0}, asked, root)
    for n, (said, kind, message) in enumerate(halves):
        error = trials[str(n)].error
        assert error is not None, said
        assert (error.kind, message in error.message) == (kind, True), error
    assert [trials[str(n)].error for n in range(len(halves), len(asked))] == [None] * len(whole)


def test_a_hang_costs_only_the_trial_that_hangs(root: Path) -> None:
    cases = [case(f"c{n}", "poison" if n == 3 else "water") for n in range(8)]
    options = {"python": "my_agent:hangs_on_poison", "concurrency": 8}
    trials = run(options, cases, root, hung=hanging(root, others=7))
    assert [(n, t.error.kind) for n, t in trials.items() if t.error] == [("c3", ErrorKind.TIMEOUT)]
    assert gone(f"{root}")


def test_an_async_hang_is_cancelled_without_ending_the_process(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gate.agents.python.CANCEL_SECONDS", 120)
    cases = [case(f"c{n}", "poison" if n == 0 else "water") for n in range(12)]
    options = {"python": "my_agent:hangs_asleep", "concurrency": 4}
    trials = run(options, cases, root, hung=hanging(root, others=11))
    assert [(n, t.error.kind) for n, t in trials.items() if t.error] == [("c0", ErrorKind.TIMEOUT)]
    assert len({trial.invocations[0].text for name, trial in trials.items() if name != "c0"}) == 1


@pytest.mark.slow
def test_an_async_function_that_refuses_to_stop_is_ended(root: Path) -> None:
    trial = one(root, "never_listens", hung=hanging(root))
    assert trial.error is not None
    assert trial.error.kind is ErrorKind.TIMEOUT
    assert gone(f"{root}")


def test_what_an_agent_prints_is_not_an_answer(root: Path) -> None:
    assert answer(root, "floods") == "heard"


@pytest.mark.parametrize(
    ("target", "files", "message"),
    [
        (
            "my_agnet:echo",
            {},
            "agent.python: my_agnet:echo: no module named 'my_agnet' (did you mean 'my_agent'?)",
        ),
        ("nowhere:answer", {}, "agent.python: nowhere:answer: no module named 'nowhere' (modules are looked for"),
        (
            "app.agnet:answer",
            {"app/__init__.py": "", "app/agent.py": ""},
            "agent.python: app.agnet:answer: no module named 'app.agnet' (did you mean 'app.agent'?)",
        ),
        (
            "needs:answer",
            {"needs.py": "\nimport absent_package"},
            "cannot import the agent: ModuleNotFoundError: No module named 'absent_package' (needs.py:2)",
        ),
        ("my_agent:nothing", {}, "has no attribute 'nothing'"),
        ("my_agent:AGENT_NAME", {"my_agent.py": "AGENT_NAME = 'x'"}, "is not callable"),
        ("my_agent:two_unknown", {}, "nothing fills 'b': give it a default (filled are message, messages"),
        ("broken:answer", {"broken.py": "def answer(message:\n  return 1"}, "(broken.py:1)"),
        ("dead:answer", {"dead.py": "import os, sys; sys.stderr.write('no key'); os._exit(9)"}, "status 9: no key"),
        (
            "raising:answer",
            {"raising.py": "import os\nos.environ['NO_SUCH_KEY']"},
            "KeyError: 'NO_SUCH_KEY' (raising.py:2)",
        ),
    ],
)
def test_an_agent_that_cannot_be_imported_ends_the_run_at_once(
    root: Path, target: str, files: dict[str, str], message: str
) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    with pytest.raises(MeasureError) as caught:
        run({"python": target}, [case("a")], root)
    assert message in str(caught.value)
    assert "importlib" not in str(caught.value)
    assert "../" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert gone(f"{root}")


def test_an_import_that_never_ends(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gate.agents.python.START_SECONDS", 0.3)
    (root / "endless.py").write_text("import time; time.sleep(3600)")
    with pytest.raises(MeasureError, match=r"not imported within 0\.3 s"):
        run({"python": "endless:answer"}, [case("a")], root)
    assert gone(f"{root}")


@pytest.mark.parametrize("name", ["nope/bin/python", "my_agent.py", "/"])
def test_an_interpreter_that_is_none(root: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no interpreter at"):
        run({"python": "my_agent:echo", "executable": name}, [case("a")], root)


# --- what is let in and what is left behind ---


def test_the_child_sees_only_what_is_allowed(root: Path) -> None:
    outside = {"PATH": os.environ["PATH"], "HOME": "/h", "SECRET": "s", "OPENAI_API_KEY": "k", "PYTHONHOME": "/bad"}
    options = {"python": "my_agent:environment", "env": ["OPENAI_*"]}
    seen = set(run(options, [case("a")], root, environment=outside)["a"].invocations[0].text.split(","))
    assert {"PATH", "HOME", "OPENAI_API_KEY"} <= seen
    assert not {"SECRET", "PYTHONHOME"} & seen


def test_no_process_outlives_the_run(root: Path) -> None:
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    assert answer(root, "leaves_children", mark) == "done"
    assert gone(f"stray-of-{mark}")
    assert gone(f"{root}")


@pytest.mark.slow
def test_no_descriptor_is_leaked(root: Path) -> None:
    one(root, "echo")
    before = open_files()
    for function in ("echo", "segfaults", "returns_none", "floods"):
        one(root, function, retries=1)
    one(root, "hangs_on_poison", "poison", hung=hanging(root))
    with pytest.raises(MeasureError):
        one(root, "nothing")
    assert open_files() <= before


def test_exit_handlers_of_the_agent_run(root: Path) -> None:
    (root / "tidy.py").write_text(
        "import atexit, pathlib\natexit.register(lambda: pathlib.Path('flushed').write_text('yes'))\n"
        "def answer(message): return 'x'\n"
    )
    run({"python": "tidy:answer"}, [case("a")], root)
    assert (root / "flushed").read_text() == "yes"


def test_the_worker_ends_with_what_started_it(root: Path) -> None:
    """A gate that is killed cannot clean up; its workers notice."""
    script = (
        "import asyncio, os, sys\nfrom pathlib import Path\nsys.path.insert(0, sys.argv[2])\n"
        "from tests.integration.agents.driving import make\n"
        "async def main():\n"
        "    async with make({'python': 'my_agent:echo'}, Path(sys.argv[1])):\n"
        "        os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    here = str(Path(__file__).parents[3])
    done = subprocess.run([sys.executable, "-c", script, str(root), here], check=False)
    assert done.returncode == -9
    assert gone(f"{root}")


def test_a_lost_session_is_begun_again(root: Path) -> None:
    """Between two turns nothing is in flight, but what the process remembered is lost with it."""

    async def main() -> None:
        async with make({"python": "my_agent:bot"}, root) as agent:
            first = Request("a", 1, "s", 0, "one", ({"role": "user", "content": "one"},))
            assert (await agent.answer(first)).text == "one"
            held = agent._sessions["s"]  # type: ignore[attr-defined]
            for pid in processes_with(f'"{root}"'):
                os.kill(pid, 9)
            await until(lambda: not held.alive)
            second = Request("a", 1, "s", 1, "two", ({"role": "user", "content": "two"},))
            with pytest.raises(AgentFailure) as caught:
                await agent.answer(second)
            assert caught.value.collateral
            again = Request("a", 1, "s2", 0, "one", ({"role": "user", "content": "one"},))
            assert (await agent.answer(again)).text == "one"

    asyncio.run(main())


def test_a_process_that_ends_while_another_starts_is_asked_nothing(root: Path) -> None:
    """It would never answer, and the request would have its time."""

    async def main() -> None:
        async with make({"python": "my_agent:echo", "workers": 2}, root) as agent:
            first, second = agent._workers  # type: ignore[attr-defined]
            start = agent._start  # type: ignore[attr-defined]

            async def end(worker: Any) -> None:
                await worker.child.end(0)
                await until(lambda: not worker.alive)

            async def while_the_first_ends() -> Any:
                await end(first)
                return await start()

            await end(second)
            agent._start = while_the_first_ends  # type: ignore[attr-defined]
            async with asyncio.timeout(60):
                assert (
                    await agent.answer(Request("a", 1, "s", 0, "hi", ({"role": "user", "content": "hi"},)))
                ).text == "you said hi"

    asyncio.run(main())


def test_the_worker_needs_nothing_of_ours() -> None:
    code = f"import runpy, sys; sys.argv = ['x']; runpy.run_path({str(WORKER)!r}); print('gate' in sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
