"""The commands by which a reviewer repeats a run on another machine."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import join
from typing import Any

from gate.action.inputs import INPUTS
from gate.action.step import Step


def repeat_command(step: Step, overrides: Mapping[str, Any], pull_request: int | None = None) -> str:
    """The commands that repeat this run on a reviewer's machine: fetch, check out, run."""
    words = ["gate", "run"]
    if step.inputs["config"] != INPUTS["config"].default:
        words += ["--config", step.inputs["config"]]
    for tag in step.inputs["tags"]:
        words += ["--tag", tag]
    if step.inputs["trials"]:
        words += ["--trials", str(step.inputs["trials"])]
    for key, option in (("baseline.against", "--against"), ("baseline.store", "--store")):
        words += [option, overrides[key]] if key in overrides else []
    words += ["--release", step.release] if step.release else []
    return f"{_checkout(step, overrides.get('baseline.against'), pull_request)}\n{join(words)}"


def _checkout(step: Step, base: str | None, pull_request: int | None) -> str:
    """Brings the commit, and the one it is measured against, to a reviewer's clone."""
    found, known = step.activity, [base] if base else []
    number = pull_request or (found.pull_request if found.comments else None)
    if number is not None:
        return " && ".join([f"gh pr checkout {number}", *(join(["git", "fetch", "origin", ref]) for ref in known)])
    head = found.head or ""
    return f"{join(['git', 'fetch', 'origin', *dict.fromkeys([head, *known])])} && {join(['git', 'checkout', head])}"
