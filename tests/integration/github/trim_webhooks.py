"""Trims GitHub's official sample payloads to one of each event and action, without addresses and node ids.

Usage: ``npm pack @octokit/webhooks-examples && python trim_webhooks.py octokit-webhooks-examples-*.tgz`` writes
``webhooks.json`` beside this file.
"""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import Any

EVENTS = (
    "issue_comment",
    "merge_group",
    "pull_request",
    "push",
    "release",
    "repository_dispatch",
    "workflow_dispatch",
    "workflow_run",
)
MEMBER = "package/api.github.com/index.json"


def trim(events: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {event["name"]: distinct(event["examples"]) for event in events if event["name"] in EVENTS}


def distinct(examples: list[dict[str, Any]]) -> list[Any]:
    """The first sample of each action; of a push, each that differs in what happened to the ref."""
    kept = {}
    for example in examples:
        kind = (example.get("action"), example.get("created"), example.get("deleted"), example.get("ref"))
        kept.setdefault(kind if "before" in example else kind[:1], without_addresses(example))
    return list(kept.values())


def without_addresses(node: Any) -> Any:
    if isinstance(node, list):
        return [without_addresses(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: without_addresses(value) for key, value in node.items() if not is_address(key)}


def is_address(key: str) -> bool:
    return key.endswith("url") or key in ("_links", "node_id", "gravatar_id")


def main(archive: Path) -> None:
    with tarfile.open(archive) as package:
        member = package.extractfile(MEMBER)
        assert member is not None, f"{archive} holds no {MEMBER}"
        samples = trim(json.load(member))
    target = Path(__file__).with_name("webhooks.json")
    target.write_text(json.dumps(samples, separators=(",", ":"), sort_keys=True) + "\n", encoding="utf-8")
    print(f"{target}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
