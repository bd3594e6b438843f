"""Keys that earlier versions read and this one refuses, each with what to do instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

SAMPLING = "leave it out, or set it for one criterion: `judge_model_options: {judge_model_config: {…}}`"
REMOVED: Mapping[str, str] = {
    "agent.agui.forwarded": "send it under `context`, or let the server set it",
    "agent.http.teardown.response": "leave it out: nothing is read from that answer",
    "agent.http.until_close": "name the stream's last event under `response.events.done`, or send a Content-Length",
    "agent.*.socket": "let the server listen on a port, and give its address as `url`",
    "agent.mcp.stateless": "leave it out: the server is asked which version it speaks",
    "baseline.pool": "leave it out: up to 5 records of one agent are pooled",
    "criteria.*.strict": "leave it out: the mean always decides",
    "custom_metrics": "name the function in the criterion: `polite: {metric: checks.polite, threshold: 0.5}`",
    "gate.on_tradeoff": "leave it out: a trade is a regression and is accepted like any other",
    "gate.release_alpha": "set `gate.alpha`: a release takes the smaller of it and 0.01",
    "judge.calibration": "leave it out: it is calibration.json beside the configuration",
    "judge.max_output_tokens": SAMPLING,
    "judge.moderation_model": "leave it out: it is omni-moderation-latest",
    "judge.max_prompt_chars": "leave it out: questions of more than 400,000 characters are not asked",
    "judge.requests_per_minute": "leave it out: after a 429, every call waits; or lower `judge.concurrency`",
    "judge.seed": SAMPLING,
    "judge.top_p": SAMPLING,
    "monitor.every": "leave it out: new traces are looked for every 5 seconds",
    "monitor.fields": "set `fields`; if the suite's rows differ, use a file of its own: gate monitor -c FILE",
    "monitor.idle": "leave it out: a trace is complete 30 seconds after its last span",
    "monitor.max_age": "leave it out, or set a smaller `monitor.window`",
    "monitor.state": "leave it out, or give it as an option: gate monitor --state FILE",
    "seed": "leave it out: the gate's own randomness is always the same",
    "simulated_user.max_output_tokens": "leave it out: the server decides",
    "simulated_user.seed": "leave it out: the server decides",
    "simulated_user.top_p": "leave it out: the server decides",
    "world.keep_megabytes": "leave it out: all recordings together take at most 1 GB",
    "world.megabytes": "leave it out: the recording of a run takes at most 200 MB",
}
"""Path of a key → advice; ``*`` stands for any name."""


def removed_keys(data: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """Return the paths of all removed keys in a configuration, each with what to do instead."""
    found = {}
    for pattern, advice in REMOVED.items():
        for path in _matches(data, pattern.split("."), ()):
            found[path] = advice
    return found


def without_removed_keys(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without its removed keys."""
    result = dict(data)
    for path in removed_keys(data):
        section = result
        for key in path[:-1]:
            section[key] = dict(section[key])
            section = section[key]
        del section[path[-1]]
    return result


def _matches(value: Any, pattern: list[str], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not pattern:
        yield path
    elif isinstance(value, Mapping):
        names = list(value) if pattern[0] == "*" else [pattern[0]]
        for name in names:
            if name in value:
                yield from _matches(value[name], pattern[1:], (*path, name))
