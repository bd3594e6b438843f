"""The text of `gate suite`: what a run would measure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.config.load import Config
from gate.config.resolve import Plan, make_plans
from gate.reports.formatting import count, threshold
from gate.security.escape import console
from gate.suites import distribution


def describe_suites(config: Config, environment: Mapping[str, str]) -> str:
    """Return the plan of a run: cases by complexity, tag and turns, and the criteria with their demands."""
    return "\n\n".join(_describe(plan) for plan in make_plans(config, environment))


def _describe(plan: Plan) -> str:
    found = distribution(plan.suite)
    lines = [f"{console(plan.suite.id)}: {count(found.cases, 'case')}, {count(found.turns, 'turn')}"]
    if found.recorded:
        lines[0] += f", {count(found.recorded, 'recorded trial')}"
    lines.append("  complexity  " + _counts(found.by_complexity))
    lines.append("  tags        " + _counts({tag or "(none)": n for tag, n in found.by_tag.items()}))
    lines.append("  turns       " + _counts({f"{turns}-turn": n for turns, n in found.by_turns.items()}))
    stated = {"calls": found.expects_calls, "no call": found.expects_no_call, "calls not stated": found.states_no_calls}
    lines.append("  expects     " + _counts({**stated, "a response": found.expects_response}))
    lines.append("  criteria    " + "\n              ".join(_demand(plan)))
    lines += [f"  note: {note}" for note in plan.notes]
    return "\n".join(lines)


def _counts(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{console(str(name))} {n}" for name, n in counts.items() if n) or "–"


def _demand(plan: Plan) -> list[str]:
    return [f"{console(c.name)}: {threshold(c)}{'' if c.blocking else ' (informational)'}" for c in plan.criteria]
