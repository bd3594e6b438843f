"""Writes the pages of the reference that the code already knows: keys of gate.yaml, metrics, and the command line.

    python -m docs.tools.reference [--check]

Keys, options, defaults and bounds come from the pydantic models, meanings from the docstrings below their fields;
metrics come from their registry, commands and options from click. A test fails while a page is stale.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any, get_args

import click
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from gate.agents import AGENTS
from gate.agents.base import AgentOptions, agent_class
from gate.baselines import STORES
from gate.commands.main import cli
from gate.config.json_schema import docstrings
from gate.config.schema import File
from gate.errors import models_in
from gate.metrics import METRICS, load_metric
from gate.metrics.base import Judged, Metric
from gate.model import Direction, Scale
from gate.suites import FORMATS, format_named

DOCS = Path(__file__).resolve().parents[1]
GENERATED_PAGES = ("configuration", "cli", "suites", "metrics", "judged-metrics", "action")
PAGES = {DOCS / "reference" / f"{page}.md" for page in GENERATED_PAGES}
BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- /generated -->)", re.DOTALL)
ELSEWHERE = {"agent", "criteria"}
"""Keys with sections of their own."""
HEAD = "| key | meaning | default |\n|---|---|---|\n"


# --- keys ---------------------------------------------------------------------------------------------


def meaning(model: type[BaseModel], name: str) -> str:
    """What a field means, as Markdown for a table."""
    inner = models_in(model.model_fields[name].annotation)
    text = docstrings(model).get(name) or (inspect.getdoc(inner[0]) if len(inner) == 1 else None)
    if not text:
        raise ValueError(f"{model.__name__}.{name} has no docstring")
    return cell(re.sub(r"\s+", " ", text)).replace("``", "`").removesuffix(".")


def default(field: FieldInfo, text: str) -> str:
    """A field's default, as it would be written; what the docstring says of it goes before."""
    if "Default: " in text:
        return text.partition("Default: ")[2]
    if field.is_required():
        return "required"
    if models_in(field.annotation):
        return ""
    value = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, IntEnum):
        value = value.name
    if value is None or value is PydanticUndefined or value in ({}, [], (), ""):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else f'{value:g}' if isinstance(value, float) else value}`"


def bounds(field: FieldInfo) -> str:
    """The words or the range that a field takes; empty where its type says all."""
    words = [word for word in get_args(field.annotation) if isinstance(word, str)]
    if len(words) > 1:
        return ": " + ", ".join(f"`{word}`" for word in words)
    signs = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = [f"{signs[sign]} {getattr(m, sign)}" for m in field.metadata for sign in signs if hasattr(m, sign)]
    return f" ({', '.join(limits)})" if limits else ""


def rows(
    model: type[BaseModel], prefix: str = "", skip: frozenset[str] = frozenset(), *, nested: bool = True
) -> Iterator[str]:
    """One row for each key of a model, then the keys of the section below it if ``nested``."""
    for name, field in model.model_fields.items():
        if name in skip:
            continue
        text, key = meaning(model, name), f"{prefix}{name.rstrip('_')}"
        said = text.partition(" Default: ")[0].removesuffix(".")
        if not any(f"`{word}`" in said for word in get_args(field.annotation)):
            said += bounds(field)
        yield f"| `{key}` | {said} | {default(field, text)} |"
        inner = models_in(field.annotation)
        if nested and key not in ELSEWHERE and len(inner) == 1:
            listed = "[]" if getattr(field.annotation, "__origin__", None) in (list, tuple) else ""
            yield from rows(inner[0], f"{key}{listed}.")
        if key == "baseline":
            for store in STORES:
                yield from rows(STORES.load(store).Options, f"{key}.")


def table(lines: Iterator[str]) -> str:
    """A table of keys."""
    return HEAD + "\n".join(lines) + "\n"


def keys() -> str:
    """Every key of gate.yaml but the agent's."""
    return table(rows(File))


def agent_keys() -> str:
    """The keys that every kind of agent has, then each kind's own."""
    common = frozenset(AgentOptions.model_fields)
    parts = [table(rows(AgentOptions, "agent."))]
    for kind in AGENTS:
        parts.append(f"### `{kind}:`\n\n{table(rows(agent_class(kind).Options, 'agent.', common))}")
    return "\n".join(parts)


def ignored_keys() -> str:
    """Return a table of the keys that each format leaves unread on purpose, those with one reason together."""
    lines, above = list[str](), set[tuple[str, str]]()
    for name in FORMATS:
        form = format_named(name)
        by_reason: dict[str, list[str]] = {}
        for path, reason in (form.ignored.reasons if form.ignored else {}).items():
            twin = any(path != spelled and path == _camel(spelled) for spelled in form.ignored.reasons)
            if not twin and not (name == "adk-results" and (path, reason) in above):  # it has all of adk's
                by_reason.setdefault(reason, []).append(f"`{path}`")
            above.add((path, reason))
        lines += [f"| `{name}` | {', '.join(sorted(paths))} | {cell(why)} |" for why, paths in by_reason.items()]
    return "| format | keys | why |\n|---|---|---|\n" + "\n".join(lines) + "\n"


def _camel(path: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), path)


def cell(text: str) -> str:
    """A text that a table can hold."""
    return text.replace("|", "\\|")


# --- metrics ----------------------------------------------------------------------------------------

RANGES = {
    Scale.BINARY: "0 or 1",
    Scale.UNIT: "0 to 1",
    Scale.SHARE: "0 to 1, shown in percent",
    Scale.LIKERT: "1 to 5",
    Scale.PERCENT: "0 to 100",
    Scale.SECONDS: "seconds, lower is better",
    Scale.USD: "US dollars, lower is better",
    Scale.COUNT: "0 and up, lower is better",
}
COMMON = frozenset({"judge_model_options", "min_kappa", "include_intermediate_responses_in_final"})
"""Options of all judged metrics; the page names them once."""


def metrics() -> str:
    """Return a section for each metric that asks no judge."""
    return "\n".join(metric_section(name) for name in METRICS if not issubclass(load_metric(name), Judged))


def judged_metrics() -> str:
    """Return a section for each metric that asks a judge."""
    return "\n".join(metric_section(name) for name in METRICS if issubclass(load_metric(name), Judged))


def metric_section(name: str) -> str:
    """Return the description of a metric, its range and threshold, and a table of its options."""
    kind = load_metric(name)
    text = (inspect.getdoc(kind) or "").replace("``", "`")
    parts = [f"### `{name}`\n", f"{text}\n", f"{metric_facts(kind)}\n"]
    options = kind.options_type
    if not options.model_config.get("defer_build") or not options.__pydantic_complete__:
        options.model_rebuild()
    lines = list(rows(options, skip=COMMON, nested=False))
    return "\n".join([*parts, table(iter(lines)).replace("| key |", "| option |")] if lines else parts)


def metric_facts(kind: type[Metric[Any]]) -> str:
    """Return the range of a metric's scores, its default threshold, and whether one failure is enough."""
    assert (kind.direction is Direction.LOWER) == ("lower" in RANGES[kind.scale])
    limit = "Limits: `max`, `p50`, `p95`" if kind.direction is Direction.LOWER else "Threshold: none by default"
    if kind.default_threshold is not None:
        limit = f"Threshold: {kind.default_threshold:g} by default"
    hard = " **Hard**: one violation in one trial fails the gate." if kind.hard else ""
    return f"Range: {RANGES[kind.scale]}. {limit}.{hard}"


# --- commands -----------------------------------------------------------------------------------------


def commands(command: click.Command = cli, name: str = "gate") -> str:
    """Every command with its help, arguments and options."""
    context = click.Context(command, info_name=name, max_content_width=110)
    if isinstance(command, click.Group):
        found = ((part, command.get_command(context, part)) for part in command.list_commands(context))
        below = "\n".join(commands(one, f"{name} {part}") for part, one in found if one is not None)
        return below if not command.invoke_without_command else f"{_own_entry(command, name, context)}\n{below}"
    return _own_entry(command, name, context)


def _own_entry(command: click.Command, name: str, context: click.Context) -> str:
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    parts = [f"## {name}\n", f"{inspect.cleandoc(command.help or '')}\n", f"```text\n{usage}\n```\n"]
    options = [param.get_help_record(context) for param in command.params if isinstance(param, click.Option)]
    lines = [f"| `{names}` | {text} |" for names, text in (tuple(map(cell, record)) for record in options if record)]
    if lines:
        parts.append("| option | |\n|---|---|\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


# --- the action -----------------------------------------------------------------------------------


def action() -> Any:
    """Return the content of action.yml."""
    return yaml.safe_load((DOCS.parent / "action.yml").read_text(encoding="utf-8"))


def action_inputs() -> str:
    """Return a table of the action's inputs."""
    lines = ["| input | default | meaning |", "|---|---|---|"]
    for name, stated in action()["inputs"].items():
        default = f"`{stated['default']}`" if stated["default"] else ""
        lines.append(f"| `{name}` | {default} | {cell(stated['description'])} |")
    return "\n".join(lines) + "\n"


def action_outputs() -> str:
    """Return a table of the action's outputs."""
    lines = ["| output | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {cell(stated['description'])} |" for name, stated in action()["outputs"].items()]
    return "\n".join(lines) + "\n"


GENERATED = {"keys": keys, "agents": agent_keys, "commands": commands, "ignored_keys": ignored_keys}
GENERATED |= {"metrics": metrics, "judged_metrics": judged_metrics}
GENERATED |= {"action_inputs": action_inputs, "action_outputs": action_outputs}


def written(page: Path) -> str:
    """A page as it should be."""
    text = page.read_text(encoding="utf-8")
    return BLOCK.sub(lambda block: f"{block[1]}\n{GENERATED[block[2]]()}\n{block[3]}", text)


def main() -> int:
    """Writes the pages, or says which are stale."""
    parser = argparse.ArgumentParser(description="Writes the generated parts of the reference.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is stale")
    given = parser.parse_args()
    stale = [page for page in sorted(PAGES) if page.read_text(encoding="utf-8") != written(page)]
    for page in stale:
        if not given.check:
            page.write_text(written(page), encoding="utf-8")
        print(f"{page}: {'stale' if given.check else 'written'}")
    return int(given.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
