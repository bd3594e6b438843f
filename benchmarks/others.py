"""Other gates, as they install from the package index, asked about the same outcomes as ours.

Each is asked through its public interface, with its defaults but for ``alpha`` (and 2,000
relabellings of regressgate instead of 10,000, to save time), in an environment of its own that is
made at the first use. They see what ours sees in one look: 0/1 outcomes of the same cases, so many stored and so many
new ones a case. A gate that does not install is left out, with a line that says so.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path.home() / ".cache" / "agent-gate-peers"
Outcomes = Sequence[Sequence[float]]
"""Per case, whether each of its trials passed."""


@dataclass(frozen=True)
class Gate:
    package: str
    what: str
    """The data that it decides on, and the meaning of its verdicts."""
    code: str
    """Defines ``decide(before, now, alpha)``, which answers ``blocked``, ``inconclusive`` or ``pass``."""


GATES: Mapping[str, Gate] = {
    "regressgate": Gate(
        "regressgate==0.1.0",
        "mean by relabelling, and each case by Fisher's test with Tarone's correction; its *warn* is inconclusive",
        """
from regressgate import GateConfig, RunReport, compare_reports

def report(cases):
    listed = [
        {"id": f"c{i}", "trials": [{"passed": bool(v), "latency_s": 1.0} for v in case]} for i, case in enumerate(cases)
    ]
    return RunReport(regressgate_version="0.1.0", created_at="2026-01-01T00:00:00Z", target="agent",
                     repeats=min(map(len, cases)), cases=listed)

def decide(before, now, alpha):
    said = compare_reports(report(before), report(now), GateConfig(alpha=alpha, permutations=2000)).verdict
    return {"regression": "blocked", "warn": "inconclusive"}.get(said, "pass")
""",
    ),
    "agentassay": Gate(
        "agentassay==0.2.3",
        "Fisher's test on the pooled trials; its *inconclusive*: power below .80 for the difference seen",
        """
from agentassay.verdicts import VerdictFunction

def decide(before, now, alpha):
    pooled = [[bool(v) for case in side for v in case] for side in (before, now)]
    said = VerdictFunction(alpha=alpha).evaluate_regression(*pooled).status.value
    return {"fail": "blocked"}.get(said, said)
""",
    ),
    "siggate": Gate(
        "siggate==0.1.1",
        "paired test of the cases' means; blocked: its rule `regression`; its *underpowered* is inconclusive",
        """
import siggate

def decide(before, now, alpha):
    means = [[sum(case) / len(case) for case in side] for side in (before, now)]
    found = siggate.compare(*means, alpha=alpha, n_boot=1000)
    if "regression" in siggate.failures(found, ["regression"]):
        return "blocked"
    return "inconclusive" if found.label in (siggate.UNDERPOWERED, siggate.INVALID) else "pass"
""",
    ),
}
LOOP = """
import json, sys, warnings
warnings.filterwarnings("ignore")
for line in sys.stdin:
    print(json.dumps(decide(*json.loads(line))), flush=True)
"""


def install(name: str, folder: Path = FOLDER) -> Path | None:
    """The interpreter of an environment that has the gate; None where it does not install."""
    made = folder / name
    python = made / "bin" / "python"
    if not (made / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", str(made)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", GATES[name].package]
        if subprocess.run(pip, capture_output=True, check=False).returncode:
            return None
        (made / "installed").touch()
    return python


def ask(name: str, asked: Sequence[tuple[Outcomes, Outcomes]], alpha: float, folder: Path = FOLDER) -> list[str] | None:
    """Return the gate's verdict on each pair of stored and new outcomes; None where it does not install.

    Answers are kept beside its environment: the version is pinned, and some of them take a second each.
    """
    python = install(name, folder)
    if python is None:
        return None
    program = GATES[name].code + LOOP
    lines = "".join(json.dumps([before, now, alpha]) + "\n" for before, now in asked)
    kept = folder / name / "answers" / f"{hashlib.sha256((program + lines).encode()).hexdigest()}.json"
    if not kept.exists():
        done = subprocess.run([str(python), "-c", program], input=lines, capture_output=True, text=True, check=True)
        assert len(done.stdout.splitlines()) == len(asked), done.stderr
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps([json.loads(line) for line in done.stdout.splitlines()]), encoding="utf-8")
    said: list[str] = json.loads(kept.read_text(encoding="utf-8"))
    return said
