"""One way to start a child, to ask it, to end it with everything it started, and to say how it ended."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import gate
from gate import stopping
from gate.errors import Cancelled
from gate.system.child import Descendants, Dialogue, LostError, exit_reason, launch, module_command, run
from gate.system.wire import LineReader
from tests.patience import eventually

PACKAGE = Path(gate.__file__).parent
STARTERS = {
    "Popen",
    "check_call",
    "check_output",
    "create_subprocess_exec",
    "create_subprocess_shell",
    "fork",
    "forkpty",
    "killpg",
    "popen",
    "posix_spawn",
    "posix_spawnp",
    "ProcessPoolExecutor",
    "spawnv",
    "spawnve",
    "subprocess_exec",
    "system",
}
ECHO = "import sys\nfor line in sys.stdin: print(line.strip(), flush=True)"


def _started_in(source: str) -> list[str]:
    """The names in a module's calls and imports that start or signal processes."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            owner = called.value if isinstance(called, ast.Attribute) else None
            is_subprocess = isinstance(owner, ast.Name) and owner.id == "subprocess"
            found += [name] if name in STARTERS or is_subprocess else []
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names if one.name.split(".")[0] == "multiprocessing"]
    return found


@pytest.mark.slow
def test_only_the_system_room_starts_and_kills_processes() -> None:
    names = re.compile("|".join([*STARTERS, "subprocess", "multiprocessing"]))
    outside = {
        str(path.relative_to(PACKAGE)): started
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in ("system", "guest")
        and names.search(source := path.read_text(encoding="utf-8"))
        and (started := _started_in(source))
    }
    assert outside == {}


@pytest.mark.parametrize(
    "code",
    ["subprocess.run(['x'])", "Popen(['x'])", "os.fork()", "asyncio.create_subprocess_exec('x')", "os.killpg(1, 9)"],
)
def test_the_search_finds_what_starts_a_process(code: str) -> None:
    assert _started_in(code)


# --- how it ended ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (None, "is still running"),
        (0, "exited with status 0"),
        (7, "exited with status 7"),
        (-9, "was killed by SIGKILL"),
        (-200, "was killed by signal 200"),
    ],
)
def test_how_a_process_ended_in_words(code: int | None, words: str) -> None:
    assert exit_reason(code) == words


# --- one-shot commands ----------------------------------------------------------------------------


def test_a_command_is_run_to_its_end(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), sorted(os.environ)); sys.exit(len(sys.stdin.read()))"
    status, output, errors = run(
        [sys.executable, "-I", "-c", code], environment={"ONE": "1"}, cwd=tmp_path, stdin=b"four", seconds=60
    )
    assert (status, errors) == (4, b"")
    assert output.decode().startswith(f"{tmp_path} ['LC_CTYPE', 'ONE']") or output.decode() == f"{tmp_path} ['ONE']\n"


def test_a_command_that_takes_too_long_is_killed_with_what_it_started(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        run(["/bin/sh", "-c", "sleep 3600 & echo $! > pid; wait"], environment={}, cwd=tmp_path, seconds=1)
    assert eventually(lambda: not _alive(int((tmp_path / "pid").read_text())))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- a module of the gate's -----------------------------------------------------------------------


@pytest.fixture
def usurpers(tmp_path: Path) -> Path:
    """A folder of modules named like ours and like the standard library's."""
    (tmp_path / "gate").mkdir()
    for name in ("gate/__init__.py", "json.py", "msgspec.py", "runpy.py", "sitecustomize.py"):
        (tmp_path / name).write_text("open(__file__ + '.imported', 'w').close()\nraise SystemExit(9)\n")
    return tmp_path


def test_nothing_in_the_working_directory_or_pythonpath_stands_in_for_ours(usurpers: Path) -> None:
    argv, environment = module_command("gate.scoring.worker", environment={"PYTHONPATH": str(usurpers)})
    status, output, errors = run(argv, environment=environment, cwd=usurpers, seconds=60)
    assert (status, output, errors) == (0, b"", b"")
    assert not list(usurpers.rglob("*.imported"))


def test_what_a_child_starts_sees_the_pythonpath_again(tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(
        "import json, os, sys\nprint(json.dumps([os.environ.get('PYTHONPATH'), sys.argv[1:]]))"
    )
    argv, environment = module_command("told", "one", environment={"PYTHONPATH": "/x"}, path=[*sys.path, str(tmp_path)])
    assert json.loads(run(argv, environment=environment, cwd=tmp_path, seconds=60)[1]) == ["/x", ["one"]]


# --- asked ----------------------------------------------------------------------------------------


def asked(code: str) -> Iterator[Dialogue[bytes]]:
    dialogue = Dialogue([sys.executable, "-I", "-S", "-c", code], LineReader(1_000), environment={})
    yield dialogue
    dialogue.end()


def test_it_answers_one_question_after_another() -> None:
    for dialogue in asked(ECHO):
        assert [dialogue.ask(b"%d\n" % number, 60) for number in range(3)] == [b"0", b"1", b"2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "lost"),
    [
        ("import os; input(); os._exit(7)", "exited with status 7"),
        ("import os; input(); os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
        ("import os; input(); os.write(1, b'half an ans'); os._exit(0)", "exited with status 0"),
        ("import os; input(); os.write(1, b'x' * 2000); input()", "wrote an answer of more than 1,000 bytes"),
        ("import os, time; input(); os.close(1); time.sleep(3600)", "closed the pipe between it and the gate"),
        ("import time; input(); time.sleep(3600)", "gave no answer within 0.5 s"),
        ("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(3600)", "gave no answer within 0.5 s"),
    ],
)
def test_a_child_without_an_answer_says_why(code: str, lost: str) -> None:
    patience = 0.5 if "no answer" in lost else 60
    for dialogue in asked(code):
        with pytest.raises(LostError, match=lost):
            dialogue.ask(b"go\n", patience)
        dialogue.end()
        assert not _alive(dialogue._process.pid)


def test_a_program_that_cannot_be_started_is_lost_too() -> None:
    with pytest.raises(LostError, match="cannot be started: No such file"):
        Dialogue(["/no/such/program"], LineReader(10), environment={})


@pytest.mark.slow
def test_a_signal_is_heard_while_a_child_is_waited_for() -> None:
    """The handler only notes it; whoever waits looks."""
    for dialogue in asked("import time; time.sleep(3600)"):
        timer = threading.Timer(0.3, stopping.STOPPING.set, (signal.SIGTERM,))
        timer.start()
        try:
            with pytest.raises(Cancelled) as stopped:
                dialogue.ask(b"go\n")
            assert stopped.value.exit_code == 143
        finally:
            timer.join()
            stopping.STOPPING.set(0)


# --- descendants ----------------------------------------------------------------------------------

LEAVES = (
    "import subprocess, sys; p = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(3600)'],"
    "start_new_session=True); open('pid', 'w').write(str(p.pid))"
)


def test_what_left_its_session_is_ended_too(tmp_path: Path) -> None:
    descendants = Descendants()
    descendants.watch()
    command = [sys.executable, "-I", "-S", "-c", LEAVES]
    assert launch(command, environment=descendants.marked({}), cwd=tmp_path).wait() == 0
    stray = int((tmp_path / "pid").read_text())
    assert _alive(stray)
    descendants.end()
    assert eventually(lambda: not _alive(stray))


def test_a_guardian_ends_it_where_the_gate_itself_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\n"
        "from gate.system.child import Descendants, launch\n"
        "descendants = Descendants()\n"
        "descendants.watch()\n"
        f"launch([sys.executable, '-I', '-S', '-c', {LEAVES!r}], environment=descendants.marked({{}})).wait()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    status, _, errors = run([sys.executable, "-P", "-c", code], environment=dict(os.environ), cwd=tmp_path, seconds=60)
    assert status == -9, errors
    assert eventually(lambda: not _alive(int((tmp_path / "pid").read_text())))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("in_loop", [False, True])
def test_a_signal_ends_what_is_waited_for(tmp_path: Path, number: int, in_loop: bool) -> None:
    """A git that hangs is killed with its own children, and the temporary folder of its work is gone."""
    (tmp_path / "hang").write_text("#!/bin/sh\nsleep 60 &\necho $! > pid\nsleep 60\n")
    (tmp_path / "hang").chmod(0o755)
    code = f"""
import signal, sys, tempfile
from pathlib import Path
from gate.errors import Cancelled
from gate import stopping
from gate.system import signals
from gate.system.child import run
def work():
    with tempfile.TemporaryDirectory(dir="."):
        run(["./hang"], environment={{"PATH": "/bin:/usr/bin"}}, cwd=Path("."), seconds=60)
async def later():
    work()
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts in the background
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and nohup ignores this one
stopping.heed()
try:
    signals.run(later()) if {in_loop} else work()
except (Cancelled, KeyboardInterrupt):
    sys.exit(7)
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    assert eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
    process.send_signal(number)
    assert process.wait(timeout=20) == 7, "long before the program would end"
    grandchild = Path("/proc", (tmp_path / "pid").read_text().strip(), "stat")
    assert eventually(lambda: not grandchild.exists() or grandchild.read_text().rpartition(") ")[2][0] == "Z")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hang", "pid"]
