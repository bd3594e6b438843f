"""Trims GitHub's official OpenAPI description to the operations that the gate uses; what is kept is kept word for word.

Usage: ``npm pack @octokit/openapi && python trim_openapi.py octokit-openapi-*.tgz`` writes ``openapi.json`` beside this
file.
"""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import Any

REPOSITORY = "/repos/{owner}/{repo}"
OPERATIONS = {
    f"{REPOSITORY}/issues/{{issue_number}}/comments": ("get", "post"),
    f"{REPOSITORY}/issues/comments/{{comment_id}}": ("patch", "delete"),
    f"{REPOSITORY}/issues/{{issue_number}}/events": ("get",),
    f"{REPOSITORY}/pulls": ("get",),
    f"{REPOSITORY}/pulls/{{pull_number}}": ("get",),
    f"{REPOSITORY}/commits/{{commit_sha}}/pulls": ("get",),
    f"{REPOSITORY}/collaborators/{{username}}/permission": ("get",),
    f"{REPOSITORY}/actions/runs": ("get",),
    f"{REPOSITORY}/actions/runs/{{run_id}}/artifacts": ("get",),
    f"{REPOSITORY}/actions/artifacts/{{artifact_id}}/{{archive_format}}": ("get",),
}
MEMBER = "package/generated/api.github.com.json"
PROSE = {"description", "summary", "examples", "example", "externalDocs", "title", "x-github-breaking-changes"}
NAMED = {"properties", "patternProperties", "parameters", "responses", "headers", "schemas"}
"""Where keys are names that the API's authors chose, so that a property called ``title`` stays."""


def trim(description: dict[str, Any]) -> dict[str, Any]:
    """The description with the operations above, everything that they refer to, and no prose."""
    paths = {
        path: {key: value for key, value in description["paths"][path].items() if key in methods or key == "parameters"}
        for path, methods in OPERATIONS.items()
    }
    kept: dict[str, Any] = {
        "openapi": description["openapi"],
        "info": {key: description["info"][key] for key in ("version", "title", "license")},
        "servers": description["servers"],
        "paths": without_prose(paths, named=True),
        "components": {},
    }
    pending = references(kept["paths"])
    while pending:
        reference = pending.pop()
        section, name = reference.removeprefix("#/components/").split("/")
        if name in kept["components"].setdefault(section, {}):
            continue
        component = without_prose(description["components"][section][name])
        kept["components"][section][name] = component
        pending |= references(component)
    return kept


def without_prose(node: Any, *, named: bool = False) -> Any:
    if isinstance(node, list):
        return [without_prose(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: without_prose(value, named=not named and key in NAMED and isinstance(value, dict))
        for key, value in node.items()
        if named or key not in PROSE
    }
    if "description" in node and is_response(node):
        kept["description"] = ""  # the specification requires one of every response
    return kept


def is_response(node: dict[str, Any]) -> bool:
    return set(node) <= {"description", "headers", "content", "links"}


def references(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(references, node)) if node else set()
    if not isinstance(node, dict):
        return set()
    found = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
    return found.union(*map(references, node.values()))


def main(archive: Path) -> None:
    with tarfile.open(archive) as package:
        member = package.extractfile(MEMBER)
        assert member is not None, f"{archive} holds no {MEMBER}"
        description = json.load(member)
    target = Path(__file__).with_name("openapi.json")
    target.write_text(json.dumps(trim(description), separators=(",", ":"), sort_keys=True) + "\n", encoding="utf-8")
    print(f"{target}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
