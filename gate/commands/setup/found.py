"""The findings of `gate init`: agents with the way to call them, existing cases, and notes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from gate.commands.setup import adapters
from gate.commands.setup.tree import Tree
from gate.model import Suite

PREFERRED = ("root_agent", "graph", "app", "agent", "crew", "assistant", "main_agent", "triage_agent")
"""Usual names of the variable that holds a repository's main agent."""

STAMP = "# written by gate init, "
"""The beginning of the last line of a file that `gate init` wrote; a digest of the lines above follows."""


class FoundAgent(Struct, frozen=True):
    """An agent that the repository seems to contain or that a server offers, and how to call it."""

    framework: str
    why: str
    agent: Mapping[str, Any]
    """The section ``agent`` in gate.yaml."""
    fill: tuple[str, ...] = ()
    """The parts that only a person who knows the agent can fill in."""
    where: str = ""
    """File and line, or the server's address."""
    rank: tuple[int, ...] = (9,)
    """The rank among the proposals; the lowest comes first."""
    adapter: str = ""
    """The content of the adapter file that calls it, if it needs one."""
    module: Path | None = None
    """The module of the agent, if the gate starts it."""
    start: str = ""
    """The command that starts its server."""

    @property
    def place(self) -> str:
        """Its place, in words: ``in bot.py:3`` or ``at http://127.0.0.1:8000``."""
        preposition = "at" if "://" in self.where else "in"
        return f"{preposition} {self.where}"

    @property
    def is_server(self) -> bool:
        """True if the gate calls it at an address, and does not start it."""
        return any("://" in str(options) for options in self.agent.values())


class FoundSuite(Struct, frozen=True):
    """Existing cases, in any format."""

    source: str
    kind: str
    suites: tuple[Suite, ...] = ()
    problem: str = ""
    """The reason why they cannot be used in place."""
    conversion: str = ""
    """The command that converts the cases and leaves out the checks that the gate lacks."""


class Survey(Struct):
    """All findings in a repository."""

    agents: list[FoundAgent] = field(default_factory=list)
    suites: list[FoundSuite] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    """Prefixes of API keys' names, such as ``OPENAI``."""
    executable: str = ""
    """The folder of a virtual environment in the repository."""

    def add_adapted(
        self,
        tree: Tree,
        framework: str,
        path: Path,
        name: str,
        line: int,
        why: str,
        *,
        call: str = "",
        rank: int = 2,
    ) -> None:
        """Add the agent that a module has under a name, called by the adapter of its framework.

        ``call`` is the expression for it, if it is not the name. An agent is added once: langgraph.json names a
        module's graph, too. It is left out if its module cannot be imported.
        """
        place = tree.import_name(path)
        if place is None:
            return
        adapter = adapters.adapter(framework, place[0], name, call or name)
        if any(agent.adapter == adapter for agent in self.agents):
            return
        preferred = PREFERRED.index(name) if name in PREFERRED else len(PREFERRED)
        agent = FoundAgent(
            framework,
            why,
            python_section(f"{adapters.MODULE}:answer", place[1]),
            where=f"{path.as_posix()}:{line}",
            rank=(rank, preferred, -line),
            adapter=adapter,
            module=path,
        )
        self.agents.append(agent)


def python_section(target: str, folder: str) -> dict[str, Any]:
    """Return the section ``agent``; ``folder`` is where modules are imported from, empty for the root."""
    if folder:
        return {"python": target, "path": [folder]}
    return {"python": target}
