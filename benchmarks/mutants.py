"""A mutation test: a hundred small random defects of the package, and how many of them the tests find.

    python benchmarks/mutants.py [--repository PATH] [--seed 1] [--number 100] [--packages decision,records]
        [--tests PATH …] [--list] [--json FILE] [--against FILE] [--write docs/dev/evidence/mutants.md]

A mutant is one changed expression inside a function of `gate/`: a comparison turned into its opposite, another
constant, a condition that is never true, another value that is returned. Packages have mutants in proportion to their
lines, and which ones depends on the seed and the package's files alone: two states of the tests meet the same mutants.
Left alone is what decides nothing at run time: annotations, defaults, decorators, docstrings, assertions, patterns of
`match`, and whatever is within an f-string.

All mutants are written into a copy of the checkout at once, as `mutated if __mutant__(5) else original`, and one at a
time is switched on. First all that `make test` runs is run with none, which tells which tests reach which place. Then
each mutant meets the tests that reach it until one fails or takes ten times as long as before. What fails without a
mutant, because it reads the changed files, is left out; a test that fails with one is run without it again. All of it
takes two to three times as long as `make test`. Run it on a machine on which nothing else depends: a mutant may delete
or stop other things than it should.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import queue
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import page

HERE = Path(__file__).resolve().parents[1]
SESSION = Path(__file__).resolve().with_name("mutants_session.py")
TESTED = "not slow and not oracle and not container and not cluster and not browser and not connectors"
"""The tests of `make test`."""
COMPARISON, CONSTANT, BRANCH, RETURN = KINDS = (
    "comparison flipped",
    "constant changed",
    "branch dropped",
    "return value swapped",
)
KILLED, SURVIVED, NOT_REACHED = OUTCOMES = ("killed", "survived", "not reached")
FILES_AT_ONCE = 12
"""Number of files of tests that are recorded in one process."""
NONE, RECORD = -1, -2
"""Stand for no mutant in place of a number; with the second, places that are reached are written down."""


# --- places ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """An expression, its position in the file, and the expressions that may be put in its stead."""

    line: int
    start: int
    end: int
    """In bytes, from the beginning of the file."""
    kind: str
    before: str
    after: tuple[str, ...]


@dataclass(frozen=True)
class Mutant:
    number: int
    package: str
    file: str
    line: int
    kind: str
    before: str
    after: str
    start: int = field(repr=False)
    end: int = field(repr=False)


OPPOSITES: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
EMPTY = {
    "str": "''",
    "bytes": "b''",
    "int": "0",
    "float": "0.0",
    "list": "[]",
    "dict": "{}",
    "Mapping": "{}",
    "tuple": "()",
    "Sequence": "()",
    "Iterable": "()",
    "Iterator": "iter(())",
    "set": "set()",
    "frozenset": "frozenset()",
}
"""Name of a type → an empty value of it."""


def places(text: str) -> list[Place]:
    """Return all places of a module's functions, in the order of the file."""
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    return sorted(finder.found, key=lambda place: (place.start, place.end, place.kind))


class _Finder(ast.NodeVisitor):
    def __init__(self, text: str) -> None:
        self.found: list[Place] = []
        self._starts = [0]
        for line in text.encode().split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._returns: list[str] = []
        """The annotated result of each function around; empty outside of functions."""

    def _add(self, node: ast.expr, kind: str, *after: ast.expr | str) -> None:
        before = _text(node)
        texts = [one if isinstance(one, str) else _text(one) for one in after]
        different = tuple(dict.fromkeys(one for one in texts if one and one != before))
        if not (self._returns and before and different):
            return
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        self.found.append(Place(node.lineno, start, end, kind, before, different))

    def _condition(self, node: ast.expr) -> None:
        if not isinstance(node, ast.Constant):
            self._add(node, BRANCH, ast.BoolOp(ast.And(), [node, ast.Constant(False)]))

    # what is changed

    def visit_Compare(self, node: ast.Compare) -> None:
        flipped = []
        for at, operator in enumerate(node.ops):
            operators = [*node.ops[:at], OPPOSITES[type(operator)](), *node.ops[at + 1 :]]
            flipped.append(ast.Compare(node.left, operators, node.comparators))
        self._add(node, COMPARISON, *flipped)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add(node, CONSTANT, repr(not value))
        elif isinstance(value, int):
            self._add(node, CONSTANT, repr(value + 1))
        elif isinstance(value, float):
            self._add(node, CONSTANT, repr(value * 2 or 1.0))
        elif isinstance(value, str):
            self._add(node, CONSTANT, repr(value + "~"))
        elif isinstance(value, bytes):
            self._add(node, CONSTANT, repr(value + b"~"))

    def visit_If(self, node: ast.If) -> None:
        if _text(node.test).endswith("TYPE_CHECKING"):
            self._each(node.orelse)
            return
        self._condition(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._condition(test)
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        if node.guard is not None:
            self._condition(node.guard)
            self.visit(node.guard)
        self._each(node.body)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None or not self._returns:
            return
        said = self._returns[-1]
        empty = next((EMPTY[name] for name in re.findall(r"\w+", said) if name in EMPTY), "")
        if said == "bool" or _is_bool(node.value):
            self._add(node.value, RETURN, ast.UnaryOp(ast.Not(), node.value))
        elif isinstance(node.value, ast.Constant) and node.value.value is None:
            self._add(node.value, RETURN, empty or "0")
        else:
            self._add(node.value, RETURN, "None", empty)
        self.visit(node.value)

    # what is left alone, and what is gone through

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._returns.append(_text(node.returns) if node.returns else "object")
        self._each(node.body)
        self._returns.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        around, self._returns = self._returns, []
        self._each(node.body)
        self._returns = around

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._each(filter(None, (node.target, node.value)))

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        typed = isinstance(node.func, ast.Name) and node.func.id == "cast"
        self._each([node.func, *node.args[typed:], *node.keywords])

    def visit_JoinedStr(self, _: ast.JoinedStr) -> None:
        """Python 3.11 does not say where in the file its parts are."""

    def visit_Assert(self, _: ast.Assert) -> None:
        """It says what is true already."""

    def _each(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)


def _is_bool(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool)
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _text(node: ast.expr) -> str:
    """Return the expression in one line; empty if it cannot be written so."""
    try:
        text = ast.unparse(ast.fix_missing_locations(node))
        again = ast.parse(text, mode="eval").body
    except (ValueError, SyntaxError):
        return ""
    return text if "\n" not in text and ast.dump(again) == ast.dump(_loaded(node)) else ""


def _loaded(node: ast.expr) -> ast.expr:
    """Return the expression as one that is read, if it is one that is assigned to."""
    return ast.parse(f"({ast.unparse(node)})", mode="eval").body if hasattr(node, "ctx") else node


# --- which ones -----------------------------------------------------------------------------------


def sources(repository: Path) -> Mapping[str, Mapping[str, str]]:
    """Return package → file → text; files that are in no package are those of `gate`."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for path in sorted((repository / "gate").rglob("*.py")):
        file = path.relative_to(repository)
        package = file.parts[1] if len(file.parts) > 2 else "gate"
        found[package][file.as_posix()] = path.read_text(encoding="utf-8")
    return found


def shares(lines: Mapping[str, int], number: int) -> Mapping[str, int]:
    """Return how many mutants each package has, in proportion to its lines."""
    exact = {name: number * count / sum(lines.values()) for name, count in lines.items()}
    given = {name: int(share) for name, share in exact.items()}
    rest = sorted(exact, key=lambda name: (given[name] - exact[name], name))
    for name in rest[: number - sum(given.values())]:
        given[name] += 1
    return given


def choose(found: Mapping[str, Mapping[str, str]], number: int, seed: int) -> list[Mutant]:
    """Draw mutants: each kind is as likely as any other, and so is each place of a kind in a package."""
    lines = {package: sum(text.count("\n") for text in files.values()) for package, files in found.items()}
    chosen: list[Mutant] = []
    for package, share in sorted(shares(lines, number).items()):
        if not share:
            continue  # finding the places of a package takes most of the time
        rng = Random(f"{seed} {package}")
        left: dict[str, list[tuple[str, Place]]] = {kind: [] for kind in KINDS}
        for file, text in sorted(found[package].items()):
            for place in places(text):
                left[place.kind].append((file, place))
        for _ in range(share):
            kinds = [kind for kind in KINDS if left[kind]]
            if not kinds:
                break
            of_kind = left[rng.choice(kinds)]
            file, place = of_kind.pop(rng.randrange(len(of_kind)))
            after = rng.choice(place.after)
            told = (file, place.line, place.kind, place.before, after, place.start, place.end)
            chosen.append(Mutant(len(chosen), package, *told))
    return chosen


# --- a copy that holds them -----------------------------------------------------------------------

SWITCH = """
def mutant():
    import os, sys
    sys.__dict__.setdefault("__switched__", []).append(own)
    if hasattr(sys, "__mutant__"):
        return sys.__mutant__
    start, read, write, close = os.open, os.read, os.write, os.close
    def told(name):
        file = start(FOLDER + name, os.O_RDONLY)
        try:
            return read(file, 100).decode().strip()
        finally:
            close(file)
    seen = set()
    def reached(number):
        test = reached.test
        if test is None:
            test = reached.test = told("test")
        if (number, test) not in seen:
            seen.add((number, test))
            try:
                file = start(FOLDER + "reached", os.O_WRONLY | os.O_APPEND)
                try:
                    write(file, ("%d %s\\n" % (number, test)).encode())
                finally:
                    close(file)
            except OSError:
                pass
        return False
    def forget():
        reached.test = None
    forget()
    active = int(told("active"))
    if active == RECORD:
        os.register_at_fork(after_in_child=forget)
    sys.__mutant__ = reached if active == RECORD else active.__eq__
    sys.__reached__ = reached
    return sys.__mutant__
"""
"""The beginning of each changed module. Some run where there is no more than the standard library of Python 3.8.

`sys.__switched__` holds the names of each: a module that is loaded by its path is not among `sys.modules`.
"""


def rewritten(text: str, mutants: Iterable[Mutant], switches: Path) -> str:
    """Return the module with all of its mutants in it, each of which is on when the switch says so; no line moves."""
    parts: list[tuple[tuple[int, int, int], bytes]] = []
    for mutant in mutants:
        opening = f"(({mutant.after}) if __mutant__({mutant.number}) else ("
        parts.append(((mutant.start, 1, -mutant.end), opening.encode()))
        parts.append(((mutant.end, 0, 0), b"))"))
    code = SWITCH.replace("FOLDER", repr(f"{switches}/")).replace("RECORD", str(RECORD))
    prelude = f"__mutant__ = (lambda names: (exec({code!r}, names), names['mutant']())[1])({{'own': globals()}})"
    at = _after_the_head(text)
    parts.append(((at, 1, 0), f"; {prelude}".encode() if at else f"{prelude}; ".encode()))
    data, pieces, done = text.encode(), [], 0
    for (position, _, _), piece in sorted(parts, key=lambda part: part[0]):
        pieces += [data[done:position], piece]
        done = position
    return b"".join([*pieces, data[done:]]).decode()


def _after_the_head(text: str) -> int:
    """Return the end of the docstring and of the imports from `__future__`, in bytes."""
    last = None
    for at, node in enumerate(ast.parse(text).body):
        doc = at == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not doc and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        last = node
    if last is None:
        return 0
    before = text.encode().split(b"\n")[: (last.end_lineno or 1) - 1]
    return sum(len(line) + 1 for line in before) + (last.end_col_offset or 0)


def copy(repository: Path, to: Path, mutants: Sequence[Mutant]) -> None:
    """Copy the checkout and its environment, whose interpreter imports the copy's package wherever it is started."""
    git = ["git", "-C", str(repository)]
    subprocess.run(["git", "clone", "--quiet", "--shared", str(repository), str(to)], check=True)
    for name in _names(git, "--deleted"):
        (to / name).unlink(missing_ok=True)
    for name in _names(git, "--cached", "--others", "--exclude-standard"):
        if (repository / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository / name, to / name, follow_symlinks=False)
    copy_environment(repository, to)
    switches = to.with_name(f"{to.name}-switches")
    switches.mkdir()
    (switches / "active").write_text(str(NONE))
    (switches / "test").write_text("")
    (switches / "reached").write_text("")
    by_file: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_file[mutant.file].append(mutant)
    for file, of_file in by_file.items():
        text = rewritten((to / file).read_text(encoding="utf-8"), of_file, switches)
        compile(text, file, "exec")
        (to / file).write_text(text, encoding="utf-8")
    command = [str(to / ".venv/bin/python"), "-I", "-c", "import gate; print(gate.__file__)"]
    imported = subprocess.run(command, cwd="/", check=True, capture_output=True, text=True).stdout.strip()
    if imported != str(to / "gate/__init__.py"):
        raise SystemExit(f"the copy's interpreter imports {imported}")


def _names(git: Sequence[str], *options: str) -> list[str]:
    done = subprocess.run([*git, "ls-files", "-z", *options], check=True, capture_output=True, text=True)
    return [name for name in done.stdout.split("\0") if name]


def copy_environment(repository: Path, to: Path) -> None:
    """Link the files of the virtual environment, and write those anew that name its place or the package's."""
    environment = repository / ".venv" if (repository / ".venv").exists() else Path(sys.prefix)
    shutil.copytree(environment, to / ".venv", symlinks=True, copy_function=_link, dirs_exist_ok=True)
    [packages] = (to / ".venv/lib").glob("python*/site-packages")
    told = json.loads(next(packages.glob("agent_gate-*.dist-info/direct_url.json")).read_text())["url"]
    installed = told.removeprefix("file://")
    patterns = ("__editable__*", "agent_gate-*.dist-info/*")
    files = [file for pattern in patterns for file in packages.glob(pattern)]
    for file in [*files, *(to / ".venv/bin").iterdir(), to / ".venv/pyvenv.cfg"]:
        if file.is_symlink() or not file.is_file():
            continue
        data, mode = file.read_bytes(), file.stat().st_mode
        new = data.replace(str(environment).encode(), str(to / ".venv").encode())
        new = new.replace(installed.encode(), str(to).encode())
        if new != data:
            file.unlink()
            file.write_bytes(new)
            file.chmod(mode)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


# --- running tests --------------------------------------------------------------------------------


@dataclass
class Played:
    """The outcome of tests that were run one after the other."""

    failed: list[int] = field(default_factory=list)
    late: int | None = None
    """The test that took too long, which ended them all."""
    seconds: dict[int, float] = field(default_factory=dict)

    @property
    def lost(self) -> list[int]:
        return self.failed if self.late is None else [*self.failed, self.late]


class Lane:
    """A copy of the checkout, and a process of pytest in it that has collected all tests and forks for each job."""

    def __init__(self, folder: Path, tests: Sequence[str] = (), active: int = NONE) -> None:
        self.folder, self.asked = folder, tests
        self.switches = folder.with_name(f"{folder.name}-switches")
        self.switch("active", active)
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        command = [str(folder / ".venv/bin/python"), str(SESSION), str(orders), str(answers)]
        command += [str(self.switches), "-q", "-p", "no:cacheprovider", "-m", TESTED, *tests]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
        with (self.switches / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                pass_fds=(orders, answers),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        os.close(orders)
        os.close(answers)
        self._unread = b""
        self.tests: list[str] = []
        self.users: dict[str, list[int]] = {}
        """Fixture that outlives a test → the tests that use it."""
        for word, rest in self._told(900):
            if word == "collected":
                told = json.loads(Path(rest).read_text(encoding="utf-8"))
                self.tests = [test.replace(str(folder), "…") for test in told["tests"]]
                self.users = told["users"]
                break

    def close(self) -> None:
        for end in (self._orders, self._answers):
            os.close(end)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def switch(self, name: str, value: object) -> None:
        (self.switches / name).write_text(str(value))

    def play(self, active: int, tests: Sequence[int], limits: Mapping[int, float], *, stop: bool = True) -> Played:
        """Run the tests in this order, up to the first that fails if ``stop`` says so."""
        self.switch("active", active)
        order = {"active": active, "tests": list(tests), "stop": stop}
        (self.switches / "order").write_text(json.dumps(order))
        os.write(self._orders, b"play\n")
        played, pid, limit = Played(), 0, 120.0
        current: int | None = None
        while True:
            told = next(self._told(limit), None)
            if told is None:
                if pid == 0:
                    raise SystemExit(f"the tests in {self.folder} do not answer")
                played.late, limit = current if current is not None else tests[0], 120.0
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                continue
            word, rest = told
            if word == "pid":
                pid = int(rest)
            elif word == "start":
                current = int(rest)
                limit = limits.get(current, 600.0)
            elif word in ("passed", "failed"):
                played.seconds[current if current is not None else -1] = float(rest)
                if word == "failed" and current is not None:
                    played.failed.append(current)
            elif word == "ended":
                if rest != "0" and not played.lost:
                    played.failed.append(current if current is not None else tests[0])  # the process itself is gone
                return played

    def _told(self, seconds: float) -> Iterator[tuple[str, str]]:
        """Yield lines as they come, as long as each comes within these seconds."""
        while True:
            while b"\n" not in self._unread:
                if not select.select([self._answers], [], [], seconds)[0]:
                    return
                more = os.read(self._answers, 65536)
                if not more:
                    return
                self._unread += more
            line, _, self._unread = self._unread.partition(b"\n")
            word, _, rest = line.decode().partition(" ")
            yield word, rest


@dataclass
class Record:
    """The tests as they are when no mutant is on."""

    tests: list[str]
    reached: Mapping[int, set[int]]
    """Mutant → the tests that reach it."""
    at_import: set[int]
    """Mutants that are reached when tests are collected."""
    seconds: Mapping[int, float]
    fails: set[int]

    def limit(self, test: int) -> float:
        return 30.0 + 10 * self.seconds[test]

    def file(self, test: int) -> str:
        return self.tests[test].partition("::")[0]

    def ordered(self, tests: Iterable[int], module: str) -> list[int]:
        """Return them file by file: first the file that mirrors the module, then those that take least."""
        by_file: dict[str, list[int]] = defaultdict(list)
        for test in sorted(tests):
            by_file[self.file(test)].append(test)
        path = Path(module)
        mirror = str(Path("tests/unit", *path.parts[1:-1], f"test_{path.stem}.py"))

        def rank(file: str) -> tuple[bool, float]:
            return file != mirror, sum(self.seconds[test] for test in by_file[file])

        return [test for file in sorted(by_file, key=rank) for test in by_file[file]]


def record(lanes: Sequence[Lane]) -> Record:
    """Run all tests once with no mutant, to see which places each reaches."""
    tests, users = lanes[0].tests, lanes[0].users
    for lane in lanes[1:]:
        if different := [one for one, other in zip(tests, lane.tests, strict=True) if one != other]:
            raise SystemExit(f"the copies have not the same tests: {different[:3]}")
    by_file: dict[str, list[int]] = defaultdict(list)
    for at, test in enumerate(tests):
        by_file[test.partition("::")[0]].append(at)
    files = list(by_file)
    chunks = [files[at : at + FILES_AT_ONCE] for at in range(0, len(files), FILES_AT_ONCE)]
    seconds: dict[int, float] = {}
    fails: set[int] = set()

    def run(lane: Lane, chunk: Sequence[str]) -> None:
        left = [test for file in chunk for test in by_file[file]]
        while left:  # again without those that were run, if one ended the process
            played = lane.play(RECORD, left, {}, stop=False)
            seconds.update(played.seconds)
            fails.update(played.lost)
            left = [test for test in left if test not in played.seconds and test not in fails]

    shared(lanes, chunks, run)
    reached: dict[int, set[int]] = defaultdict(set)
    at_import: set[int] = set()
    for lane in lanes:
        for line in (lane.switches / "reached").read_text().splitlines():
            mutant, _, test = line.partition(" ")
            if test.isdecimal():
                reached[int(mutant)].add(int(test))
            elif test in users:
                reached[int(mutant)].update(users[test])
            else:
                at_import.add(int(mutant))
    passing = {mutant: found - fails for mutant, found in reached.items()}
    return Record(list(tests), passing, at_import, {**dict.fromkeys(fails, 0.0), **seconds}, fails)


def shared(lanes: Sequence[Lane], jobs: Iterable[Any], run: Any) -> list[Any]:
    """Run each job in whichever lane is free; the results are in the order of the jobs."""
    free: queue.SimpleQueue[Lane] = queue.SimpleQueue()
    for lane in lanes:
        free.put(lane)

    def one(job: Any) -> Any:
        lane = free.get()
        try:
            return run(lane, job)
        finally:
            free.put(lane)

    with ThreadPoolExecutor(len(lanes)) as pool:
        return list(pool.map(one, jobs))


@dataclass(frozen=True)
class Result:
    mutant: Mutant
    outcome: str
    tests: int = 0
    """The number of tests that reach it."""
    by: str = ""
    """The test that found it."""
    seconds: float = 0.0


def judge(lane: Lane, mutant: Mutant, known: Record) -> Result:
    """Switch the mutant on, and run the tests that reach it until one finds it."""
    began = time.monotonic()
    tests = known.ordered(known.reached.get(mutant.number, set()), mutant.file)
    found = _found(lane, mutant.number, tests, known)
    if found is None and mutant.number in known.at_import:
        tests = known.ordered(set(range(len(known.tests))) - known.fails, mutant.file)
        found = _found_from_the_start(lane, mutant.number, tests, known)
    outcome = NOT_REACHED if not tests else SURVIVED if found is None else KILLED
    return Result(mutant, outcome, len(tests), found or "", round(time.monotonic() - began, 1))


def _found(lane: Lane, number: int, tests: Sequence[int], known: Record) -> str | None:
    left = list(tests)
    while left:
        lost = lane.play(number, left, {test: known.limit(test) for test in left}).lost
        if not lost:
            return None
        before = left[: left.index(lost[0])]
        same = [test for test in before if known.file(test) == known.file(lost[0])]
        again = lane.play(NONE, [*same, lost[0]], {test: known.limit(test) for test in left})
        if not again.lost:
            return known.tests[lost[0]]
        left = left[len(before) + 1 :]
    return None


def _found_from_the_start(lane: Lane, number: int, tests: Sequence[int], known: Record) -> str | None:
    """Run them in a process that has the mutant from its start, since it is reached while modules are imported."""
    fresh = Lane(lane.folder, lane.asked, number)
    try:
        at = {test: place for place, test in enumerate(fresh.tests)}
        if not at:
            return "collection"
        left = [at[known.tests[test]] for test in tests if known.tests[test] in at]
        limits = {at[known.tests[test]]: known.limit(test) for test in tests if known.tests[test] in at}
        lost = fresh.play(number, left, limits).lost
        return fresh.tests[lost[0]] if lost else None
    finally:
        fresh.close()
        lane.switch("active", NONE)


# --- what is told ---------------------------------------------------------------------------------


def table(results: Sequence[Result]) -> Iterator[str]:
    yield f"| package | mutants | {' | '.join(OUTCOMES)} | share killed (95 % interval) |"
    yield "|---" * (len(OUTCOMES) + 3) + "|"
    packages = sorted({result.mutant.package for result in results})
    for name in packages:
        yield _row(name, [result for result in results if result.mutant.package == name])
    yield _row("**all**", results)


def kinds(results: Sequence[Result]) -> Iterator[str]:
    yield f"| kind | mutants | {' | '.join(OUTCOMES)} | share killed (95 % interval) |"
    yield "|---" * (len(OUTCOMES) + 3) + "|"
    for kind in KINDS:
        yield _row(kind, [result for result in results if result.mutant.kind == kind])


def _row(name: str, results: Sequence[Result]) -> str:
    counts, n = Counter(result.outcome for result in results), len(results)
    cells = [name, str(n), *(str(counts[outcome]) for outcome in OUTCOMES), page.share(counts[KILLED], n, 2)]
    return f"| {' | '.join(cells)} |"


def survivors(results: Sequence[Result]) -> Iterator[str]:
    yield "| place | kind | original | mutant | tests that reach it |"
    yield "|---|---|---|---|---|"
    for result in results:
        mutant = result.mutant
        if result.outcome != KILLED:
            cells = [f"{mutant.file}:{mutant.line}", mutant.kind, _code(mutant.before), _code(mutant.after)]
            yield f"| {' | '.join(cells)} | {result.tests} |"


def different(results: Sequence[Result], before: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each mutant that met another end before, or was not tried."""
    names = ("file", "line", "kind", "before", "after")
    earlier = {tuple(one[name] for name in names): one["outcome"] for one in before}
    for result in results:
        mutant = result.mutant
        was = earlier.get(tuple(getattr(mutant, name) for name in names), "not tried")
        if was != result.outcome:
            yield f"{mutant.file}:{mutant.line} {mutant.kind}: {was} before, {result.outcome} now"


def _code(text: str) -> str:
    """Return an expression for a cell of a table, without its middle if it is long."""
    shown = text if len(text) <= 90 else f"{text[:45]} … {text[-40:]}"
    fence = "``" if "`" in shown else "`"
    return f"{fence}{shown}{fence}".replace("|", "\\|")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, default=HERE, help="The checkout; default: this one.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--packages", default="", help="Only mutants of these, by comma; all of `--number` are theirs.")
    parser.add_argument("--tests", nargs="+", default=(), help="Files and folders of tests; default: all.")
    parser.add_argument("--list", action="store_true", help="Show the mutants, and run nothing.")
    parser.add_argument("--json", type=Path, help="Keep all results here, also while they come.")
    parser.add_argument("--against", type=Path, help="Say which mutants were found, or not, in an earlier --json.")
    parser.add_argument("--write", type=Path, help="Put the tables between the marks of this page.")
    given = parser.parse_args(argv)
    found = sources(given.repository)
    if given.packages:
        found = {name: found[name] for name in given.packages.split(",")}
    mutants = choose(found, given.number, given.seed)
    if given.list:
        for one in mutants:
            print(f"{one.number:3} {one.file}:{one.line} {one.kind}: {one.before}  →  {one.after}")
        return 0
    results = measure(given.repository.resolve(), mutants, given.json, given.tests)
    tables = {"mutants": table(results), "kinds": kinds(results), "survivors": survivors(results)}
    page.publish(tables, given.write)
    if given.against is not None:
        page.show(different(results, json.loads(given.against.read_text(encoding="utf-8"))["mutants"]))
    return 0


def measure(
    repository: Path, mutants: Sequence[Mutant], kept: Path | None, tests: Sequence[str] = (), lanes: int = 2
) -> list[Result]:
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", file=sys.stderr, flush=True)

    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True)))
        folders = [work / f"copy-{at}" for at in range(lanes)]
        for folder in folders:
            copy(repository, folder, mutants)
        say("copied")
        with ThreadPoolExecutor(lanes) as pool:
            started = list(pool.map(lambda folder: Lane(folder, tests, RECORD), folders))
        for lane in started:
            stack.callback(lane.close)
        say(f"collected {len(started[0].tests)} tests")
        known = record(started)
        say(f"recorded {sum(known.seconds.values()):.0f} s of tests; {len(known.fails)} fail without a mutant")
        for test in sorted(known.fails):
            say(f"left out: {known.tests[test]}")
        done: list[Result] = []

        def run(lane: Lane, mutant: Mutant) -> Result:
            result = judge(lane, mutant, known)
            done.append(result)
            place = f"{mutant.file}:{mutant.line} {mutant.kind}"
            say(f"{len(done)}/{len(mutants)} {result.outcome} {place} ({result.seconds} s) {result.by}")
            if kept is not None:
                _keep(kept, done, known, time.monotonic() - began)
            return result

        results: list[Result] = shared(started, mutants, run)
        say("done")
    return results


def _keep(path: Path, results: Iterable[Result], known: Record, seconds: float) -> None:
    def told(result: Result) -> dict[str, object]:
        mutant = asdict(result.mutant)
        del mutant["start"], mutant["end"]
        return {**mutant, "outcome": result.outcome, "tests": result.tests, "by": result.by, "seconds": result.seconds}

    document = {
        "seconds": round(seconds),
        "tests": len(known.tests),
        "seconds_of_tests": round(sum(known.seconds.values())),
        "left_out": sorted(known.tests[test] for test in known.fails),
        "mutants": sorted(map(told, results), key=lambda one: str(one["number"]).zfill(6)),
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
