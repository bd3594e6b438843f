"""`make demo`: one agent, four branches, three verdicts. Works in a temporary git repository; nothing else is touched.

1. The agent on the main branch is measured five times a case and kept as the baseline.
2. A branch rephrases the prompt and changes nothing else: pass.
3. A careless branch shortens one tool's description: regressed.
4. The rephrased prompt again, measured on five cases only: inconclusive.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent / "support-agent"
GATE = [sys.executable, "-m", "gate"]
EXPECTED = {"rephrased": 0, "careless": 1, "too-few": 0}
"""Exit codes; the inconclusive one warns by default."""


def say(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n=== {text}", flush=True)


def run(*command: str, seed: int, cwd: Path) -> int:
    """Show a command, run it, and return its exit code."""
    shown = " ".join("gate" if part == GATE[0] else part for part in command if part not in GATE[1:])
    print(f"$ {shown}", flush=True)
    return subprocess.run(command, cwd=cwd, env={**os.environ, "SUPPORT_SEED": str(seed)}, check=False).returncode


def git(*arguments: str, cwd: Path) -> None:
    identity = ["-c", "user.name=demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


def branch(name: str, prompt: str, cwd: Path) -> None:
    """Create a branch off main on which the agent reads another prompt."""
    git("checkout", "-q", "main", cwd=cwd)
    git("checkout", "-q", "-b", name, cwd=cwd)
    shutil.copy(cwd / "prompts" / prompt, cwd / "prompts" / "current.txt")
    git("commit", "-qam", name, cwd=cwd)


def listed(codes: Mapping[str, int]) -> str:
    """Return ``rephrased 0, careless 1``."""
    return ", ".join(f"{name} {code}" for name, code in codes.items())


def main() -> int:
    started = time.monotonic()
    codes = {}
    with tempfile.TemporaryDirectory(prefix="gate-demo-") as folder:
        project = Path(folder) / "support-agent"
        shutil.copytree(HERE, project, ignore=shutil.ignore_patterns("__pycache__", ".gate", "baselines"))
        git("init", "-q", "-b", "main", cwd=project)
        git("add", ".", cwd=project)
        git("commit", "-qm", "The support agent", cwd=project)

        say("1. Main: measure the agent, keep the record as baseline")
        run(*GATE, "run", "--quiet", "--trials", "5", "--record", ".gate/main.jsonl", seed=1, cwd=project)
        run(*GATE, "baseline", "save", ".gate/main.jsonl", seed=1, cwd=project)

        say("2. A harmless branch: the prompt is rephrased")
        branch("rephrased", "rephrased.txt", project)
        codes["rephrased"] = run(*GATE, "run", seed=2, cwd=project)

        say("3. A careless branch: the description of one tool is cut short")
        branch("careless", "regressed.txt", project)
        codes["careless"] = run(*GATE, "run", seed=3, cwd=project)

        say("4. Too few cases to tell: the gate says so instead of guessing")
        branch("too-few", "rephrased.txt", project)
        codes["too-few"] = run(*GATE, "run", "--case", "track-*", seed=8, cwd=project)

    told = "as expected" if codes == EXPECTED else f"expected: {listed(EXPECTED)}"
    say(f"Exit codes: {listed(codes)}, {told}; {time.monotonic() - started:.0f} s")
    return 0 if codes == EXPECTED else 1


if __name__ == "__main__":
    sys.exit(main())
