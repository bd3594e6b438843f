"""The time from the start of the action's container to the agent's first call, and its requests before that.

    python benchmarks/start.py [--runs 10]

Builds the image as `make container` does (`GATE_CONTAINER_CACHE` keeps it for the next run), and measures the time
between a shell's first command in the container and the first line of the agent, a Python function, with a file store
and without `setup`: for a scheduled job without any network, not even loopback, which must still measure; for the same
with one, and for a pull request, with the requests to GitHub's API before the first call.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.integration.container.image import IMAGE, REPOSITORY, Engine, InContainer, engine
from tests.integration.github.fake_github import FakeGitHub
from tests.integration.github.job import AGENT, CONFIG, Done, suite
from tests.integration.github.scenarios import World

ENTRYPOINT: list[str] = json.loads((REPOSITORY / "Dockerfile").read_text().rpartition("ENTRYPOINT ")[2])
MARKED = ["sh", "-c", 'date +%s.%N > /github/home/began; exec "$@"', "sh", *ENTRYPOINT]
FIRST = "open('/github/home/called', 'a').write(f'{time.time()}\\n')"
STORE = CONFIG.replace("{store: git}", "{store: file}")
JOBS = (
    ("a scheduled job without a network", False, True),
    ("a scheduled job", False, False),
    ("a pull request", True, False),
)


def one(image: Engine, *, change: bool, offline: bool) -> tuple[float, list[str]]:
    """Seconds to the first call, and the requests before it."""
    with tempfile.TemporaryDirectory() as folder, FakeGitHub() as fake:
        asked: list[tuple[float, str]] = []
        watch(fake, asked)
        world = World(Path(folder), fake, InContainer(image, Path(folder), MARKED))
        agent = AGENT.replace("import os\n", "import os\nimport time\n")
        agent = agent.replace("    print(", f"    {FIRST}\n    print(", 1)
        world.repository.files |= {"agent.py": agent, "gate.yaml": STORE, "suite.yaml": suite(4)}
        world.repository.commit("good")
        with image.offline() if offline else nullcontext():
            done = world.pull_request("good") if change else scheduled(world)
        home = world.last.root / "home"
        if not (home / "called").exists() or done.outputs.get("verdict") == "error":
            raise SystemExit(f"the agent was not measured:\n{done.log}")
        began, called = (float((home / name).read_text().split()[0]) for name in ("began", "called"))
        return called - began, [what for when, what in asked if when < called]


def scheduled(world: World) -> Done:
    sha = world.repository.commit("good")
    inputs: dict[str, Any] = {"comment": "false"}
    return world.step("schedule", {"schedule": "0 3 * * *"}, "refs/heads/main", sha, inputs=inputs)


def watch(fake: FakeGitHub, asked: list[tuple[float, str]]) -> None:
    answer = fake.answer

    def noted(call: Any) -> Any:
        asked.append((time.time(), f"{call.method} {call.path}"))
        return answer(call)

    fake.answer = noted  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        image = engine(Path(os.environ.get("GATE_CONTAINER_CACHE") or folder))
        image.build()
        try:
            for name, change, offline in JOBS:
                found = [one(image, change=change, offline=offline) for _ in range(runs)]
                times = sorted(seconds for seconds, _ in found)
                print(f"{name}: median {median(times):.2f} s, {times[0]:.2f} to {times[-1]:.2f} s, n = {runs}")
                if not offline:
                    print(f"  asked of the API before the first call: {', '.join(found[0][1]) or 'nothing'}")
        finally:
            image.close()
    print(f"{date.today()}, {IMAGE}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
