"""The action's image, built for real and run as GitHub's runner runs it: by a Docker engine, or without one by buildah.

Without an engine the base image is a Debian made by debootstrap, and nothing is isolated but the file system; this
needs root, buildah, debootstrap and iproute2. ``GATE_CONTAINER_CACHE`` keeps base and layers for the next run.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.integration.github.job import Step

REPOSITORY = Path(__file__).parents[3]
IMAGE = "localhost/agent-gate:test"
BASE = "localhost/agent-gate-base:bookworm"
CERTIFICATES = Path("/etc/ssl/certs")
RUNNER = 1001
"""The user that owns the workspace on GitHub's hosted runners."""
MOUNTS = {"workspace": "/github/workspace", "home": "/github/home", "workflow": "/github/workflow"}


class Unavailable(Exception):  # noqa: N818  (what happened, and no error)
    """The image cannot be built on this machine; says what is missing."""


class Engine(Protocol):
    entrypoint: list[str]

    def build(self) -> None: ...

    def close(self) -> None: ...

    def network(self) -> AbstractContextManager[str]:
        """Starts containers in a network of their own, as the runner does; gives the runner's address there."""

    def offline(self) -> AbstractContextManager[None]:
        """Starts containers without any network."""

    def start(
        self, command: list[str], environment: dict[str, str], mounts: dict[str, str]
    ) -> subprocess.CompletedProcess[str]: ...


def engine(cache: Path) -> Engine:
    """What this machine can build and run images with. Raises Unavailable."""
    docker = shutil.which("docker")
    if docker and subprocess.run([docker, "info"], capture_output=True, check=False).returncode == 0:
        return Docker()
    if os.geteuid() != 0:
        raise Unavailable("no Docker engine, and buildah in chroot isolation needs root")
    for tool in ("buildah", "debootstrap", "ip"):
        if shutil.which(tool) is None:
            raise Unavailable(f"no Docker engine, and no {tool}")
    return Buildah(cache)


def mirror() -> list[str]:
    """The mirror that this machine's own packages come from; none where apt does not say, for debootstrap's default."""
    sites = call("apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages").stdout.split()
    return sites[:1]


def call(*command: str, timeout: float = 600, **options: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout,
        check=False,
        **options,  # type: ignore[call-overload]
    )
    assert isinstance(done, subprocess.CompletedProcess)
    return done


def checked(*command: str, timeout: float = 600) -> str:
    done = call(*command, timeout=timeout)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def pip_mounts(folder: Path) -> dict[str, str]:
    """This machine's package index, mounted for the build rather than written into the image: path here → inside."""
    listed = checked(sys.executable, "-m", "pip", "config", "list")
    settings = dict(re.findall(r"^(?:global|:env:)\.([\w-]+)='(.*)'$", listed, re.MULTILINE))
    wanted = ("index-url", "extra-index-url", "find-links", "cert", "trusted-host", "timeout")
    kept = {key: value for key, value in settings.items() if key in wanted}
    file = folder / "pip.conf"
    file.write_text("\n".join(["[global]", *(f"{key} = {value}" for key, value in kept.items()), ""]))
    mounts = {str(file): "/etc/pip.conf"}
    for path in re.findall(r"(?:^|file://|\s)(/[^\s']+)", " ".join(kept.values())):
        top = Path(*Path(path).parts[:3])
        if top.is_dir() and top != CERTIFICATES.parent:
            mounts[str(top)] = str(top)
    if CERTIFICATES.is_dir():
        mounts[str(CERTIFICATES)] = str(CERTIFICATES)
    return mounts


@dataclass
class Docker:
    """The engine that GitHub's runner itself uses."""

    entrypoint: list[str] = field(default_factory=list)
    _network: str = "host"

    def build(self) -> None:
        checked("docker", "build", "--tag", IMAGE, str(REPOSITORY), timeout=900)

    def close(self) -> None: ...

    @contextmanager
    def network(self) -> Iterator[str]:
        self._network = "bridge"
        form = "{{(index .IPAM.Config 0).Gateway}}"
        try:
            yield checked("docker", "network", "inspect", "bridge", "--format", form).strip()
        finally:
            self._network = "host"

    @contextmanager
    def offline(self) -> Iterator[None]:
        self._network = "none"
        try:
            yield
        finally:
            self._network = "host"

    def start(
        self, command: list[str], environment: dict[str, str], mounts: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        variables = [part for name, value in environment.items() for part in ("--env", f"{name}={value}")]
        volumes = [part for host, inside in mounts.items() for part in ("--volume", f"{host}:{inside}")]
        place = ["--network", self._network, "--workdir", MOUNTS["workspace"]]
        extra = ["--entrypoint", command[0]] if command else []
        return call("docker", "run", "--rm", *place, *variables, *volumes, *extra, IMAGE, *command[1:])


@dataclass
class Buildah:
    """Builds and runs the Dockerfile in a chroot."""

    cache: Path
    entrypoint: list[str] = field(default_factory=list)
    _namespace: str = ""
    """Of the network that containers are started in; empty for this machine's own."""

    def __post_init__(self) -> None:
        self.cache.mkdir(parents=True, exist_ok=True)
        self._buildah = ("buildah", "--storage-driver", "vfs", "--root", str(self.cache / "storage"))
        self._buildah += ("--runroot", str(self.cache / "run"))

    def build(self) -> None:
        if BASE not in checked(*self._buildah, "images", "--format", "{{.Name}}:{{.Tag}}"):
            self._make_base()
        volumes = [f"--volume={host}:{inside}:ro" for host, inside in pip_mounts(self.cache).items()]
        options = ["--isolation", "chroot", "--network", "host", f"--build-arg=BASE={BASE}", *volumes]
        checked(*self._buildah, "bud", *options, "--tag", IMAGE, str(REPOSITORY), timeout=900)
        form = "{{range .OCIv1.Config.Entrypoint}}{{.}}\n{{end}}"
        # One for all steps, since each would be a copy of the whole image; what a step changes is mounted.
        self._container = checked(*self._buildah, "from", "--pull-never", IMAGE).strip()
        self.entrypoint = checked(*self._buildah, "inspect", "--type", "image", "--format", form, IMAGE).split()

    def close(self) -> None:
        checked(*self._buildah, "rm", self._container)

    @contextmanager
    def network(self) -> Iterator[str]:
        """A namespace with one wire to this machine, which is its default route."""
        name = f"gate{secrets.token_hex(3)}"
        # Of its own: one that a killed run left behind is in nobody's way.
        net, four = secrets.randbelow(256), 4 * secrets.randbelow(64)
        runner, inside = (f"10.213.{net}.{four + host}" for host in (1, 2))
        run = ("ip", "netns", "exec", name, "ip")
        if call("ip", "netns", "add", name).returncode:
            raise Unavailable("no network namespaces here")
        try:
            checked("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
            checked("ip", "address", "add", f"{runner}/30", "dev", name)
            checked("ip", "link", "set", name, "up")
            checked(*run, "address", "add", f"{inside}/30", "dev", "eth0")
            for device in ("lo", "eth0"):
                checked(*run, "link", "set", device, "up")
            checked(*run, "route", "add", "default", "via", runner)
            self._namespace = name
            yield runner
        finally:
            self._namespace = ""
            call("ip", "link", "delete", name)
            checked("ip", "netns", "delete", name)

    @contextmanager
    def offline(self) -> Iterator[None]:
        """A namespace in which nothing is up, not even loopback."""
        name = f"gate{secrets.token_hex(3)}"
        if call("ip", "netns", "add", name).returncode:
            raise Unavailable("no network namespaces here")
        self._namespace = name
        try:
            yield
        finally:
            self._namespace = ""
            checked("ip", "netns", "delete", name)

    def _make_base(self) -> None:
        context = self.cache / "base"
        shutil.rmtree(context, ignore_errors=True)
        context.mkdir()
        include = "--include=python3,python3-venv,ca-certificates"
        done = call(
            "debootstrap", "--variant=minbase", include, "bookworm", str(context / "root"), *mirror(), timeout=900
        )
        if done.returncode:
            raise Unavailable(f"debootstrap could not make a base image: {done.stdout[-500:]}")
        excluded = [f"--exclude=./{name}/*" for name in ("proc", "sys", "dev", "var/cache/apt")]
        checked("tar", "-C", str(context / "root"), *excluded, "-cf", str(context / "root.tar"), ".")
        shutil.rmtree(context / "root")
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        (context / "Dockerfile").write_text(f"FROM scratch\nADD root.tar /\nENV PATH={path}\n")
        checked(*self._buildah, "bud", "--isolation", "chroot", "--tag", BASE, str(context))
        shutil.rmtree(context)

    def start(
        self, command: list[str], environment: dict[str, str], mounts: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        variables = [f"--env={name}={value}" for name, value in environment.items()]
        volumes = [f"--volume={host}:{inside}" for host, inside in mounts.items()]
        place = ["--isolation", "chroot", "--network", "host", "--workingdir", MOUNTS["workspace"]]
        enter = ["ip", "netns", "exec", self._namespace] if self._namespace else []
        return call(
            *enter,
            *self._buildah,
            "run",
            *place,
            *variables,
            *volumes,
            self._container,
            "--",
            *(command or self.entrypoint),
        )


@dataclass
class InContainer:
    """Starts a step in the image, with the folders that the runner mounts and a workspace that is not root's."""

    engine: Engine
    shared: Path
    """Seen under its own path inside: the git remote that stands for GitHub's."""
    command: list[str] = field(default_factory=list)
    """Started instead of the image's entrypoint; empty: the entrypoint."""

    def __call__(self, step: Step, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        for path in [step.workspace, *step.workspace.rglob("*")]:
            os.chown(path, RUNNER, RUNNER, follow_symlinks=False)
        mounts = {str(step.root / name): inside for name, inside in MOUNTS.items()}
        mounts |= {str(step.root / "file_commands"): "/github/file_commands", str(self.shared): str(self.shared)}
        if CERTIFICATES.is_dir():
            mounts[str(CERTIFICATES)] = str(CERTIFICATES)
        places = {
            "HOME": "/github/home",
            "GITHUB_WORKSPACE": "/github/workspace",
            "GITHUB_EVENT_PATH": "/github/workflow/event.json",
            "GITHUB_OUTPUT": "/github/file_commands/output",
            "GITHUB_STEP_SUMMARY": "/github/file_commands/summary",
        }
        return self.engine.start(self.command, places | environment, mounts)
