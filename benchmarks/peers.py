"""The same cases and the same scorings through other evaluation tools, each in an environment of its own.

    python benchmarks/peers.py [--folder ~/.cache/agent-gate-peers] [--only evalview --only promptfoo]

Installs them from the package indexes at the first run (promptfoo with npm). 1,000 cases go to one agent on loopback
that answers in 50 ms, 64 at once; 10,000 pairs of 200 words are scored by the word overlap that a tool has. Processes
are measured whole. Prints one line of JSON: tool → figures, or why a figure cannot be had. Not a test: it needs the
network once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import run as bench

CASES = 1_000
PAIRS = 10_000
PROMPTFOO = "promptfoo"
PEERS = {
    "google-adk": ("google-adk[eval]==2.13.0", "rouge-score==0.1.2"),
    "inspect-ai": ("inspect-ai", "httpx"),
    "deepeval": ("deepeval", "rouge-score"),
    "evalview": ("evalview",),
    PROMPTFOO: ("promptfoo@0.120.27",),
}

ASK_INSPECT = """
import json, os, sys, logging
import httpx
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import solver

client = httpx.AsyncClient(limits=httpx.Limits(max_connections=64, max_keepalive_connections=64), timeout=60)

@solver
def agent():
    async def solve(state, generate):
        body = {"messages": [{"role": "user", "content": state.input_text}]}
        answer = await client.post(os.environ["AGENT_URL"], json=body)
        state.output.completion = answer.json()["output"]
        return state
    return solve

samples = [Sample(input="hello " * 20, target="The answer is 42", id=f"case-{n}") for n in range(1000)]
log, = eval(Task(dataset=samples, solver=agent(), scorer=includes()), model="mockllm/model", max_samples=64,
            display="none", log_dir="logs")
print(json.dumps({"done": log.results.completed_samples}))
"""

SCORE = {
    "google-adk": """
from google.adk.evaluation.final_response_match_v1 import _calculate_rouge_1_scores
for said, wanted in pairs: _calculate_rouge_1_scores(said, wanted)
""",
    "deepeval": """
from deepeval.scorer import Scorer
for said, wanted in pairs: Scorer.rouge_score(wanted, said, "rouge1")
""",
    "inspect-ai": """
from inspect_ai.scorer._classification import compute_f1
for said, wanted in pairs: compute_f1(said, wanted)
""",
    "agent-gate": """
from gate.metrics.rouge import rouge_1
for said, wanted in pairs: rouge_1(said, wanted)
""",
}
LOAD = "import json, sys, warnings\nwarnings.filterwarnings('ignore')\npairs = json.load(open('pairs.json'))\n"
WHAT = {
    "google-adk": "ROUGE-1 with stemming",
    "agent-gate": "ROUGE-1 with stemming, google-adk's values",
    "deepeval": "ROUGE-1 with stemming (rouge-score)",
    "inspect-ai": "word F1, without stemming",
}
NOT_DRIVEN = {
    "google-adk": "its evaluation runs agents built on its own library, not one behind HTTP",
    "deepeval": "drives no agent: outputs are handed to it",
}
NOT_SCORED = {
    "evalview": "compares texts character by character; no word overlap",
    PROMPTFOO: "scores within its own runs alone",
}


def install(name: str, folder: Path) -> Path:
    """The program of an environment that has the tool: an interpreter, or promptfoo's command."""
    if name == PROMPTFOO:
        return install_with_npm(name, folder)
    python = folder / name / "bin" / "python"
    if not (folder / name / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS[name]], check=True)
        (folder / name / "installed").touch()
    return python


def install_with_npm(name: str, folder: Path) -> Path:
    """The command of a tool that npm installs."""
    made = folder / name
    if not (made / "installed").exists():
        made.mkdir(parents=True, exist_ok=True)
        npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(made), *PEERS[name]]
        subprocess.run(npm, check=True, capture_output=True)
        (made / "installed").touch()
    return made / "node_modules" / ".bin" / name


def version(name: str, python: Path) -> str:
    if name == PROMPTFOO:
        return PEERS[name][0].partition("@")[2]
    code = f"from importlib.metadata import version; print(version({name!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def figures(used: bench.Used) -> str:
    if used.code != 0:
        return f"failed with exit code {used.code}"
    return took(used)


def took(used: bench.Used) -> str:
    return f"{used.wall:.1f} s wall, {used.cpu:.1f} s CPU, {used.mb:.0f} MB"


def run_cases(name: str, python: Path, folder: Path, url: Mapping[str, str]) -> str:
    if name in NOT_DRIVEN:
        return NOT_DRIVEN[name]
    if name == "agent-gate":
        (folder / "gate.yaml").write_text(bench.HTTP_CONFIG)
        bench.write_suite(folder, CASES)
        return figures(bench.timed(bench.gate("run", "--junit", "j.xml"), folder=folder, environment=url))
    if name == "evalview":
        return _run_evalview(python.parent / "evalview", folder, url["AGENT_URL"])
    if name == PROMPTFOO:
        return _run_promptfoo(python, folder, url["AGENT_URL"])
    return figures(bench.timed([str(python), "-c", ASK_INSPECT], folder=folder, environment=url))


def _run_evalview(program: Path, folder: Path, url: str) -> str:
    """Without its judge, one file a case, as it wants them."""
    (folder / ".evalview").mkdir()
    (folder / ".evalview" / "config.yaml").write_text(
        f"adapter: http\nendpoint: {url}\ntimeout: 60\nallow_private_urls: true\n"
    )
    (folder / "tests").mkdir()
    for n in range(CASES):
        expected = {"tools": ["lookup"], "output": {"contains": ["The answer is 42"]}}
        case = {"name": f"case-{n}", "input": {"query": "hello " * 20}, "expected": expected}
        (folder / "tests" / f"case-{n}.yaml").write_text(json.dumps({**case, "thresholds": {"min_score": 50}}))
    argv = [str(program), "run", "tests", "--no-judge", "--no-open", "--max-workers", "64"]
    return f"{figures(bench.timed(argv, folder=folder))} (without a judge)"


def _run_promptfoo(program: Path, folder: Path, url: str) -> str:
    """One configuration with all cases, its cache and its telemetry off."""
    http = {
        "url": url,
        "method": "POST",
        "headers": {"Content-Type": "application/json"},
        "body": {"messages": [{"role": "user", "content": "{{prompt}}"}]},
        "transformResponse": "json.output",
    }
    asserted = [{"type": "contains", "value": "The answer is 42"}]
    config = {
        "prompts": ["{{question}}"],
        "providers": [{"id": "http", "config": http}],
        "tests": [{"vars": {"question": f"{n} " + "hello " * 20}, "assert": asserted} for n in range(CASES)],
    }
    (folder / "promptfooconfig.json").write_text(json.dumps(config))
    argv = [str(program), "eval", "-c", "promptfooconfig.json", "-j", "64", "--no-cache", "--no-table"]
    argv += ["--no-progress-bar", "-o", "promptfoo.json"]
    silent = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_CONFIG_DIR": str(folder)}
    used = bench.timed(argv, folder=folder, environment=silent)
    results = folder / "promptfoo.json"
    if not results.exists():
        return figures(used)
    answered = json.loads(results.read_text())["results"]["stats"]["successes"]
    return f"{took(used)} ({answered:,} passed, exit code {used.code})"


def score_pairs(name: str, python: Path, folder: Path) -> str:
    if name in NOT_SCORED:
        return NOT_SCORED[name]
    return f"{figures(bench.timed([str(python), '-c', LOAD + SCORE[name]], folder=folder))} ({WHAT[name]})"


def write_pairs(path: Path) -> None:
    rng = random.Random(3)
    words = ["".join(rng.choices("aeioubcdlmnrst", k=rng.randint(3, 9))) for _ in range(3_000)]
    with path.open("w") as file:  # not as one value: a child's peak memory begins at its parent's
        for n in range(PAIRS):
            pair = [" ".join(rng.choices(words, k=200)) for _ in range(2)]
            file.write(("," if n else "[") + json.dumps(pair))
        file.write("]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "agent-gate-peers")
    parser.add_argument("--only", action="append", choices=PEERS, help="Measure these alone, beside the gate.")
    given = parser.parse_args()
    folder = given.folder
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name, bench.agent_on_loopback() as port:
        work, url = Path(name), {"AGENT_URL": f"http://127.0.0.1:{port}/"}
        write_pairs(work / "pairs.json")
        bare = [bench.PYTHON, str(bench.HTTP), "--one", "bare", "--cases", str(CASES), "--port", str(port)]
        found[f"bare client: {CASES:,} cases"] = figures(bench.timed(bare, folder=work))
        for tool in ("agent-gate", *(given.only or PEERS)):
            python = Path(sys.executable) if tool == "agent-gate" else install(tool, folder)
            label = f"{tool} {version(tool, python)}"
            found[f"{label}: 1,000 cases"] = run_cases(tool, python, work, url)
            found[f"{label}: 10,000 scorings"] = score_pairs(tool, python, work)
    print(json.dumps(found))


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
