"""Walk three first hours as a stranger would, and print the commands, the seconds, the words and the stops.

    python benchmarks/first_hours.py --environments FOLDER [--only NAME]

FOLDER has a virtual environment for each walk, `agents-sdk`, `fastapi` and `google-adk`, in which the framework and the
gate are installed. Each walk begins in an empty folder with git and an agent, types the commands that the gate prints,
writes five cases (google-adk brings its own), breaks the agent on a branch, and ends with the exit code of that run. A
stop is a command that does not succeed before the break. Only the model is scripted, by examples/frameworks.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MODEL = Path(__file__).parents[1] / "examples" / "frameworks" / "scripted_model.py"
TOOLS = '''
def lookup_order(order_id: str) -> dict:
    """Look an order up."""
    return {"order_id": order_id, "status": "shipped"}


def refund_order(order_id: str) -> dict:
    """Pay the price of an order back."""
    return {"order_id": order_id, "refunded": True}
'''
PROMPT = "You are a support agent. Look an order up before you act on it."
AGENTS_SDK = f"""from agents import Agent, function_tool
{TOOLS}

support = Agent(
    name="support",
    model="gpt-5-mini",
    instructions="{PROMPT}",
    tools=[function_tool(lookup_order), function_tool(refund_order)],
)
"""
GOOGLE_ADK = f"""from google.adk.agents import Agent
{TOOLS}

root_agent = Agent(
    name="support",
    model="gemini-2.5-flash",
    instruction="{PROMPT}",
    tools=[lookup_order, refund_order],
)
"""
FASTAPI = """import re

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Question(BaseModel):
    message: str
    session_id: str = ""


@app.post("/chat")
async def chat(question: Question):
    order = re.search(r"[A-Z][0-9]", question.message)
    if order is None:
        return {"reply": "Which order do you mean?", "tool_calls": []}
    calls = [{"name": "lookup_order", "args": {"order_id": order[0]}}]
    if "refund" in question.message.lower():
        calls.append({"name": "refund_order", "args": {"order_id": order[0]}})
        return {"reply": f"Order {order[0]} has been refunded.", "tool_calls": calls}
    return {"reply": f"Order {order[0]} has shipped.", "tool_calls": calls}
"""
ASKED = (
    ("Where is order A1?", "shipped"),
    ("Has B2 left?", "shipped"),
    ("Any news of C3?", "shipped"),
    ("Please refund D4, it broke.", "been refunded"),
    ("I want a refund for E5.", "been refunded"),
)
LOOK_UP, REFUND = "lookup_order", "refund_order"


@dataclass
class Walk:
    """A first hour: the agent as it is found, the stop that its owner has to solve, and the break."""

    files: Mapping[str, str]
    broken: tuple[str, str, str]
    """A file, and the words that are replaced in it by others."""
    server: Sequence[str] = ()
    """The command that starts the agent, if the gate does not."""
    cases: str = "evals/first.yaml"
    """The file for the five cases; empty if the project has cases."""


@dataclass
class Typed:
    """A command that was typed, and what came of it."""

    command: str
    seconds: float
    processor: float
    """Seconds of processor time, the scripted model's included."""
    words: int
    code: int
    printed: str = field(repr=False)


def own_cases() -> str:
    """Return five cases in the gate's format."""
    lines = ["cases:"]
    for question, outcome in ASKED:
        (order,) = re.findall(r"\b[A-Z]\d\b", question)
        tools = [LOOK_UP, REFUND] if "refunded" in outcome else [LOOK_UP]
        case = {"id": f"order-{order}", "input": question, "tools": tools, "response": f"Order {order} has {outcome}."}
        lines.append(f"  - {json.dumps(case)}")
    return "\n".join(lines) + "\n"


def eval_set() -> str:
    """Return the same cases as an eval set of ADK."""
    cases = []
    for number, (question, outcome) in enumerate(ASKED):
        (order,) = re.findall(r"\b[A-Z]\d\b", question)
        tools = [LOOK_UP, REFUND] if "refunded" in outcome else [LOOK_UP]
        turn = {
            "invocation_id": f"turn-{number}",
            "user_content": {"role": "user", "parts": [{"text": question}]},
            "final_response": {"role": "model", "parts": [{"text": f"Order {order} has {outcome}."}]},
            "intermediate_data": {"tool_uses": [{"name": name, "args": {"order_id": order}} for name in tools]},
        }
        cases.append({"eval_id": f"case-{number}", "conversation": [turn]})
    return json.dumps({"eval_set_id": "support", "eval_cases": cases}, indent=1)


WALKS = {
    "agents-sdk": Walk({"support.py": AGENTS_SDK}, ("support.py", "function_tool(lookup_order), ", "")),
    "fastapi": Walk(
        {"main.py": FASTAPI, "requirements.txt": "fastapi\nuvicorn\n"},
        ("main.py", '[{"name": "lookup_order", "args": {"order_id": order[0]}}]', "[]"),
        server=("uvicorn", "main:app", "--port", "8000"),
    ),
    "google-adk": Walk(
        {
            "support/__init__.py": "from . import agent\n",
            "support/agent.py": GOOGLE_ADK,
            "support/evals/support.evalset.json": eval_set(),
            "support/evals/test_config.json": '{"criteria": {"tool_trajectory_avg_score": 1.0}}',
        },
        ("support/agent.py", "[lookup_order, refund_order]", "[refund_order]"),
        cases="",
    ),
}


class Stranger:
    """Types commands in a folder of its own, by the programs of one virtual environment."""

    def __init__(self, folder: Path, environment: Path) -> None:
        names = ("GITHUB_", "GITLAB_", "GATE_", "OPENAI_", "GOOGLE_", "GEMINI_", "GIT_", "CI")
        self.folder = folder
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith(names)}
        self.variables |= {"PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
        self.variables |= {f"GIT_{role}_NAME": "ada" for role in ("AUTHOR", "COMMITTER")}
        self.variables |= {f"GIT_{role}_EMAIL": "ada@example.com" for role in ("AUTHOR", "COMMITTER")}
        self.typed: list[Typed] = []

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, encoding="utf-8")

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.folder, env=self.variables, check=True, capture_output=True)

    def type(self, command: str, *, with_model: bool) -> None:
        """Run a command of the gate; with the scripted model, it has a key."""
        words = [sys.executable, str(MODEL), *command.split()] if with_model else command.split()
        begun, used = time.monotonic(), processor_seconds()
        done = subprocess.run(words, cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False)
        printed = done.stdout + done.stderr
        seconds, processor = time.monotonic() - begun, processor_seconds() - used
        self.typed.append(Typed(command, seconds, processor, len(printed.split()), done.returncode, printed))


def processor_seconds() -> float:
    """Return the processor time of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def walk(name: str, folder: Path, environment: Path) -> list[Typed]:
    """Return the commands of a first hour."""
    plan, stranger = WALKS[name], Stranger(folder, environment)
    for file, text in {**plan.files, ".gitignore": "__pycache__/\n"}.items():
        stranger.write(file, text)
    stranger.git("init", "-q", "-b", "main")
    stranger.git("add", ".")
    stranger.git("commit", "-q", "-m", "An agent")
    stranger.type("gate init", with_model=False)  # stops: no key is set, or no server is started
    with_model = not plan.server
    server = started(plan, stranger)
    try:
        stranger.type("gate init", with_model=with_model)
        if plan.cases:
            stranger.write(plan.cases, own_cases())
            stranger.type("gate run", with_model=with_model)
        stranger.git("add", ".")
        stranger.git("commit", "-q", "-m", "Add Agent Gate")
        stranger.type("gate baseline", with_model=with_model)
        stranger.git("checkout", "-q", "-b", "change")
        file, before, after = plan.broken
        text = (folder / file).read_text(encoding="utf-8")
        assert before in text
        stranger.write(file, text.replace(before, after))
        stranger.git("commit", "-q", "-a", "-m", "A change")
        if server is not None:
            server.kill()
            server.wait()
            server = started(plan, stranger)
        stranger.type("gate run", with_model=with_model)
    finally:
        if server is not None:
            server.kill()
            server.wait()
    return stranger.typed


def started(plan: Walk, stranger: Stranger) -> subprocess.Popen[bytes] | None:
    """Start the agent's server, if it has one, and give it time to listen."""
    if not plan.server:
        return None
    server = subprocess.Popen(
        plan.server, cwd=stranger.folder, env=stranger.variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(5)
    return server


def main() -> None:
    """Print a table of each walk and one of all."""
    parser = argparse.ArgumentParser(description="Walks three first hours.")
    parser.add_argument("--environments", type=Path, required=True, help="a folder of virtual environments")
    parser.add_argument("--only", choices=sorted(WALKS), help="one walk")
    parser.add_argument("--show", action="store_true", help="print what the commands printed")
    given = parser.parse_args()
    print("| first hour | command | s | processor s | words | exit code |\n|---|---|---|---|---|---|")
    sums = []
    for name in [given.only] if given.only else list(WALKS):
        with tempfile.TemporaryDirectory(prefix="gate-hour-") as folder:
            typed = walk(name, Path(folder), (given.environments / name).resolve())
        for one in typed:
            times = f"{one.seconds:.1f} | {one.processor:.1f}"
            print(f"| {name} | `{one.command}` | {times} | {one.words} | {one.code} |", flush=True)
            if given.show:
                print(one.printed)
        stops = sum(one.code != 0 for one in typed[:-1])
        seconds, processor = sum(one.seconds for one in typed), sum(one.processor for one in typed)
        words = sum(one.words for one in typed)
        sums.append(f"| {name} | {len(typed)} | {seconds:.0f} | {processor:.0f} | {words} | {stops} |")
    print("\n| first hour | commands | s | processor s | words | stops |\n|---|---|---|---|---|---|")
    print("\n".join(sums))
    print(f"\nThe load average was {os.getloadavg()[0]:.1f} at the end.")


if __name__ == "__main__":
    main()
