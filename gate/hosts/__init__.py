"""The hosts to publish results on: their registry, one file each, and modules for GitHub's events and artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.errors import validated
from gate.hosts.base import Host, HostOptions
from gate.registry import Registry

_BUILT_IN = {
    "github": "gate.hosts.github:PullRequestHost",
    "gitlab": "gate.hosts.gitlab:MergeRequestHost",
}
HOSTS = Registry[type[Host]]("host", "agent_gate.hosts", _BUILT_IN, base="gate.hosts.base:Host")
"""The hosts, by their name under ``publish``."""


def read_host_options(name: str, options: Mapping[str, Any], where: str) -> HostOptions:
    """Return the validated options of a host.

    Raises:
        ConfigError: no host has this name, or an option is unknown to it.
    """
    return validated(HOSTS.load(name, where=where).Options, options, f"{where}: publish.{name}")
