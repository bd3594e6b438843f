"""Changes numbers in a YAML or JSON text in place: comments and layout stay. Does not interpret the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml
from msgspec import Struct

MERGE = "tag:yaml.org,2002:merge"


class Edit(Struct, frozen=True):
    """A number to set in a document."""

    path: tuple[str, ...]
    """The keys that lead to the value: a number or a mapping."""
    key: str
    """The key in the mapping; ignored if the value is a bare number."""
    value: float


def edited(text: str, edits: Sequence[Edit]) -> str | None:
    """Return the text with the new numbers; None if that takes more than replacing or adding numbers.

    This is so if the text is invalid, a key is missing or not plain, or anchors share values.
    """
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            return None
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    places = []
    for edit in edits:
        place = _place(root, edit)
        if place is None:
            return None
        places.append(place)
    for start, end, new in sorted(places, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _place(root: yaml.Node | None, edit: Edit) -> tuple[int, int, str] | None:
    """Return the start and end of the present text, and its replacement."""
    node = root
    for key in edit.path:
        node = _children(node).get(key)
    number = f"{edit.value:g}"
    if isinstance(node, yaml.MappingNode):
        inner = _children(node).get(edit.key)
        if inner is None:
            return _added(node, f"{edit.key}", number)
        node = inner
    if not isinstance(node, yaml.ScalarNode) or "\n" in node.value:
        return None
    return node.start_mark.index, node.end_mark.index, number


def _children(node: yaml.Node | None) -> Mapping[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode) or any(key.tag == MERGE for key, _ in node.value):
        return {}
    return {str(key.value): value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _added(node: yaml.MappingNode, key: str, number: str) -> tuple[int, int, str] | None:
    """Return an edit that inserts the key before all others, in the style of the mapping."""
    if not node.value:
        start = node.start_mark.index + 1
        return start, start, f"{key}: {number}"
    first = node.value[0][0]
    separator = "\n" + " " * first.start_mark.column
    if node.flow_style:
        separator = ", "
    if first.style == '"':
        key = f'"{key}"'
    return first.start_mark.index, first.start_mark.index, f"{key}: {number}{separator}"
