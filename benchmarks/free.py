"""The cost of commits that leave the agent alone, and a check that all commits that touch it are measured.

    python benchmarks/free.py [--outside 300] [--inside 30] [--write docs/dev/evidence/flow.md]

A repository with a Python agent whose `sources` are stated: ten cases, five stored trials each, one trial in ten fails.
Each commit is a branch of its own: outside the sources it adds, edits, moves or removes up to three files; inside, it
edits one of the agent's. The gate runs in this process, with one `gate run` in twenty as a command besides; seconds are
from the call to the verdict with its reports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))
import page

from gate import api
from gate.config.load import load_config
from gate.stored.upkeep import save_baseline

CASES, STORED, EVERY = 10, 5, 20
AGENT = """\
import random
from pathlib import Path

HERE = Path(__file__).parent


def answer(message):
    with (HERE.parent / ".gate" / "asked").open("a") as file:
        file.write("x")
    prompt = (HERE / "prompt.txt").read_text().split()[0]
    return f"{prompt} {message}" if random.random() < 0.9 else "no idea at all"
"""
CONFIG = {
    "suite": "evals",
    "agent": {"python": "app.agent:answer", "sources": ["app/"], "concurrency": 4},
    "criteria": {"response_match_score": {"threshold": 0.6}},
}
FILES = {
    "evals/suite.json": json.dumps(
        {"cases": [{"id": f"c{n}", "input": f"item {n}", "response": f"found item {n}"} for n in range(CASES)]}
    ),
    "app/agent.py": AGENT,
    "app/prompt.txt": "found\n",
    "app/tools/search.py": "LIMIT = 3\n",
    "gate.yaml": json.dumps(CONFIG),
    ".gitignore": ".gate/\n__pycache__/\n",
    **{f"{folder}/file{n}.md": f"{folder} {n}\n" for folder in ("docs", "web/src", "ops") for n in range(6)},
}
ENVIRONMENT = {"PATH": os.environ["PATH"]}


class Repository:
    """A repository with a stored baseline on `main`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, content in FILES.items():
            self.write(name, content)
        self.git("init", "-q", "-b", "main")
        self.commit("base")
        (root / ".gate").mkdir()
        result = api.run(root / "gate.yaml", overrides={"trials": STORED}, environment=ENVIRONMENT)
        save_baseline(load_config(root / "gate.yaml"), Path(result.record_paths[0]), ENVIRONMENT)
        self.asked()

    def write(self, name: str, content: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=b", "-c", "user.email=b@localhost"]
        done = subprocess.run(["git", *identity, *arguments], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def asked(self) -> int:
        """Return how often the agent was asked since this was called last."""
        path = self.root / ".gate" / "asked"
        found = len(path.read_text()) if path.exists() else 0
        path.unlink(missing_ok=True)
        return found

    def outside(self, rng: Random) -> None:
        """Change up to three files that are no part of the agent."""
        known = [name for name in self.git("ls-files").split() if name.split("/")[0] in ("docs", "web", "ops")]
        for name in rng.sample(known, rng.randint(1, 3)):
            match rng.choice(("edit", "add", "move", "remove")):
                case "edit":
                    self.write(name, f"{rng.random()}\n")
                case "add":
                    self.write(f"{name}.{rng.randrange(1000)}.txt", f"{rng.random()}\n")
                case "move":
                    self.git("mv", name, f"{name}.{rng.randrange(1000)}")
                case _:
                    (self.root / name).unlink()

    def inside(self, rng: Random) -> None:
        """Change one file of the agent, and nothing that it does."""
        name = rng.choice(["app/agent.py", "app/prompt.txt", "app/tools/search.py"])
        more = f"{rng.random()}\n" if name.endswith(".txt") else f"# {rng.random()}\n"
        path = self.root / name
        self.write(name, path.read_text(encoding="utf-8") + more)


def played(repository: Repository, commits: int, *, inside: bool) -> Iterator[tuple[str, int, float, float]]:
    """Yield the verdict, the agent runs, the seconds and the processor seconds of each commit."""
    for number in range(commits):
        rng = Random(f"{inside} {number}")
        repository.git("checkout", "-q", "-B", f"change-{inside}-{number}", "main")
        (repository.inside if inside else repository.outside)(rng)
        repository.commit(f"change {number}")
        began, used = time.perf_counter(), processor_seconds()
        result = api.run(repository.root / "gate.yaml", environment=ENVIRONMENT)
        spent, used = time.perf_counter() - began, processor_seconds() - used
        yield result.verdict.value, repository.asked(), spent, used


def processor_seconds() -> float:
    """Processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def as_command(repository: Repository) -> float:
    """Return the seconds of one more run of the commit that is checked out, as a command."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "gate", "run", "-q"], cwd=repository.root, capture_output=True, check=False)
    return time.perf_counter() - began


def table(outside: int, inside: int) -> Iterator[str]:
    columns = ["commits", "agent runs", "measured", "verdicts", "seconds: median, most"]
    columns += ["processor seconds: median, most", "as a command: median"]
    yield from page.head("changed", columns)
    with TemporaryDirectory() as folder:
        repository = Repository(Path(folder))
        for name, commits, is_inside in (("outside", outside, False), ("inside", inside, True)):
            verdicts, runs, seconds, processor, commands = Counter[str](), [], [], [], []
            for number, (verdict, asked, spent, used) in enumerate(played(repository, commits, inside=is_inside)):
                verdicts[verdict] += 1
                runs.append(asked)
                seconds.append(spent)
                processor.append(used)
                if not is_inside and number % EVERY == 0:
                    commands.append(as_command(repository))
            said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
            command = f"{median(commands):.2f}" if commands else "–"
            yield (
                f"| {name} `agent.sources` | {commits} | {sum(runs)} | {sum(one > 0 for one in runs)} | {said} "
                f"| {median(seconds):.2f}, {max(seconds):.2f} "
                f"| {median(processor):.2f}, {max(processor):.2f} | {command} |"
            )


def main(argv: Sequence[str] | None = None) -> int:
    parser = page.parser(__doc__, seed=0)
    parser.add_argument("--outside", type=int, default=300)
    parser.add_argument("--inside", type=int, default=30)
    given = parser.parse_args(argv)
    page.publish({"free": table(given.outside, given.inside)}, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
