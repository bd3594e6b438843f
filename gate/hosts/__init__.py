"""Hosts that results are published on: their registry, one file each, and the parts that GitHub's events and runner
need."""

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
"""The hosts, by the name under ``publish``."""


def read_host_options(name: str, options: Mapping[str, Any], where: str) -> HostOptions:
    """The options of a host as it reads them.

    Raises:
        ConfigError: nobody offers such a host, or it does not know an option.
    """
    return validated(HOSTS.load(name, where=where).Options, options, f"{where}: publish.{name}")
