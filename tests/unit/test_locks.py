"""The locks hold what pyproject.toml asks for, by digests, and name no place; what a release writes is what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from gate import __version__

REPOSITORY = Path(__file__).parents[2]
LOCKS = REPOSITORY / "requirements"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
ENTRY = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>[^\\]+?))? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


def entries(lock: str) -> dict[str, str]:
    """Name → version. Fails for a line that is neither a version nor one of its digests."""
    found, last = {}, ""
    for line in (LOCKS / lock).read_text(encoding="utf-8").splitlines():
        if match := ENTRY.fullmatch(line):
            assert not last.endswith("=="), f"no digest of {last}"
            found[match["name"]] = match["version"]
            last = f"{match['name']}=="
        else:
            assert HASH.fullmatch(line), line
            last = line
    assert HASH.fullmatch(last)
    return found


def wanted(lock: str) -> list[Requirement]:
    if lock == "build.txt":
        return [Requirement(text) for text in PROJECT["build-system"]["requires"]]
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    own = [*project["dependencies"], *extras["image"], *extras["traces"]]
    return [one for one in map(Requirement, own) if one.name != "agent-gate"]


@pytest.mark.parametrize("lock", ["image.txt", "build.txt"])
def test_a_lock_satisfies_the_project(lock: str) -> None:
    held = entries(lock)
    for requirement in wanted(lock):
        assert held[requirement.name.lower()] in requirement.specifier, requirement


@pytest.mark.parametrize("lock", ["image.txt", "build.txt"])
def test_a_lock_names_no_place(lock: str) -> None:
    assert not re.search(r"://|@ |--(?:extra-)?index|--find-links", (LOCKS / lock).read_text(encoding="utf-8"))


def test_the_image_installs_nothing_that_a_lock_does_not_name() -> None:
    said = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    installs = re.findall(r"-m pip [^&\n]*?install [^&\n]*", said)
    assert len(installs) == 3
    assert all("--require-hashes" in one or ("--no-deps" in one and "--no-index" in one) for one in installs)


def test_the_image_is_compiled_by_content_alone() -> None:
    """Without ``-f`` compileall keeps what an installer's own imports compiled, by the time of the build."""
    said = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"compileall (.*?) /opt", said) == ["-q -f --invalidation-mode unchecked-hash"]


def test_a_release_takes_no_action_by_a_name_that_can_move() -> None:
    text = (REPOSITORY / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", used) for used in re.findall(r"uses: (\S+)", text))
    jobs = yaml.safe_load(text)["jobs"]
    assert yaml.safe_load(text)["permissions"] == {}
    assert {name for name, job in jobs.items() if job["permissions"].get("id-token")} == {"package", "image", "publish"}
    assert all("secrets." not in str(job) for job in jobs.values())


def pin(tmp_path: Path, image: str, digest: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "action.yml"
    path.write_text((REPOSITORY / "action.yml").read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, str(LOCKS / "pin_image.py"), str(path), image, digest]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_release_names_the_image_by_its_digest(tmp_path: Path) -> None:
    digest = "sha256:" + "0f" * 32
    assert pin(tmp_path, "registry.test/owner/agent-gate", digest).returncode == 0
    text = (tmp_path / "action.yml").read_text(encoding="utf-8")
    runs = yaml.safe_load(text)["runs"]
    assert runs["image"] == f"docker://registry.test/owner/agent-gate@{digest}"
    before = (REPOSITORY / "action.yml").read_text(encoding="utf-8").splitlines()
    assert [line for line in text.splitlines() if line not in before] == [f"  image: {runs['image']}"]


TAG_NAMES = "for-each-ref", "--format=%(refname:short)", "refs/tags"


def test_a_release_tags_a_commit_of_its_own_and_moves_the_tag_of_the_major_version(tmp_path: Path) -> None:
    workflow = yaml.safe_load((REPOSITORY / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    [step] = [one for one in workflow["jobs"]["tag"]["steps"] if "run" in one]
    remote, work = tmp_path / "remote.git", tmp_path / "work"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "gh").chmod(0o755)
    environment = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

    def run(*command: str, at: Path = work, **more: str) -> str:
        done = subprocess.run(command, cwd=at, env=environment | more, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    run("git", "init", "-q", "--bare", "-b", "main", str(remote), at=tmp_path)
    run("git", "clone", "-q", str(remote), str(work), at=tmp_path)
    shutil.copytree(LOCKS, work / "requirements")
    shutil.copy(REPOSITORY / "action.yml", work)
    run("git", "add", ".")
    run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "one")
    run("git", "push", "-q", "origin", "main")
    main = run("git", "rev-parse", "HEAD")
    for version, digit in (("0.1.0", "1"), ("0.2.0", "2")):
        run("git", "checkout", "-q", "--detach", main)
        given = {"VERSION": version, "IMAGE": "registry.test/owner/agent-gate", "DIGEST": "sha256:" + digit * 64}
        run("bash", "-e", "-c", step["run"], **given)
        action = run("git", "show", "v0:action.yml", at=remote)
        assert yaml.safe_load(action)["runs"]["image"] == f"docker://registry.test/owner/agent-gate@{given['DIGEST']}"
        assert run("git", "rev-parse", "v0", at=remote) == run("git", "rev-parse", f"v{version}", at=remote)
        assert run("git", "rev-parse", "v0^", at=remote) == run("git", "rev-parse", "main", at=remote) == main
    assert run("git", *TAG_NAMES, at=remote).split() == ["v0", "v0.1.0", "v0.2.0"]


def test_what_users_copy_names_the_major_version_that_is_released() -> None:
    globs = ("*.md", "docs/**/*.md", ".github/workflows/*.yml", "examples/*/.github/workflows/*.yml", "gate/**/*.py")
    pages = [page for glob in globs for page in REPOSITORY.glob(glob)]
    named = {tag for page in pages for tag in re.findall(r"agent-gate/agent-gate\S*?@(v\w+)", page.read_text("utf-8"))}
    assert named == {f"v{__version__.partition('.')[0]}"}


@pytest.mark.parametrize(
    ("image", "digest"),
    [
        ("registry.test/owner/name", "latest"),
        ("registry.test/owner/name", "sha256:" + "0" * 63),
        ("registry.test/owner/name\n  x: y", "sha256:" + "0" * 64),
        ("", "sha256:" + "0" * 64),
    ],
)
def test_what_is_no_digest_is_not_written(tmp_path: Path, image: str, digest: str) -> None:
    done = pin(tmp_path, image, digest)
    assert done.returncode == 1
    assert "pin_image: no name and digest" in done.stderr
    assert "docker://" not in (tmp_path / "action.yml").read_text(encoding="utf-8")


BUILD = """
import os, sys, time
from setuptools import build_meta
to, umask, after = sys.argv[1:]
while int(time.time()) == int(after):
    time.sleep(0.05)
os.umask(0o22)  # a wheel keeps what it makes of the modes
build_meta.build_wheel(to)
os.umask(int(umask, 8))
build_meta.build_sdist(to)
print(int(time.time()))
"""


def built(folder: Path, umask: str, after: str) -> tuple[Path, Path, str]:
    """Source distribution and wheel of a checkout of its own, in another second than ``after``, and which that was."""
    source, to = folder / "checkout", folder / "dist"
    shutil.copytree(REPOSITORY / "gate", source / "gate", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    to.mkdir()
    moment = 1_000_000_000 + int(umask, 8)
    for path in source.rglob("*"):
        os.utime(path, (moment, moment))
    environment = {"PATH": os.environ["PATH"], "SOURCE_DATE_EPOCH": "1767225600"}
    command = [sys.executable, "-c", BUILD, str(to), umask, after]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(to.glob("*.tar.gz")), next(to.glob("*.whl")), done.stdout.splitlines()[-1]


def make_same(archive: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(LOCKS / "same_sdist.py"), str(archive)]
    environment = {"SOURCE_DATE_EPOCH": "1767225600"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def contents(archive: Path) -> dict[str, bytes | None]:
    with tarfile.open(archive) as opened:
        return {one.name: (found.read() if (found := opened.extractfile(one)) else None) for one in opened.getmembers()}


@pytest.mark.slow
def test_wheel_and_source_are_the_same_whenever_they_are_built(tmp_path: Path) -> None:
    first, wheel, second_of_first = built(tmp_path / "one", "022", "0")
    second, again, _ = built(tmp_path / "two", "077", second_of_first)
    assert wheel.read_bytes() == again.read_bytes()
    assert first.read_bytes() != second.read_bytes(), "setuptools does it by itself: the step is not needed any more"
    before = contents(first)
    assert make_same(first).returncode == make_same(second).returncode == 0
    assert first.read_bytes() == second.read_bytes()
    assert contents(first) == before
    assert int.from_bytes(first.read_bytes()[4:8], "little") == 1767225600, (
        "the time in the head of the compressed file"
    )
    with tarfile.open(first) as archive:
        assert {(one.mtime, one.uid, one.uname) for one in archive.getmembers()} == {(1767225600, 0, "")}


def test_an_archive_that_holds_a_link_or_a_name_twice_is_not_released(tmp_path: Path) -> None:
    link = tarfile.TarInfo("x/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    for nth, members in enumerate(([link], [tarfile.TarInfo("x/a"), tarfile.TarInfo("x/a")])):
        path = tmp_path / f"{nth}.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for member in members:
                archive.addfile(member)
        before = path.read_bytes()
        done = make_same(path)
        assert (done.returncode, path.read_bytes()) == (1, before)
        assert "is no file or folder, or is there twice" in done.stderr


def test_a_release_builds_twice_and_compares() -> None:
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    [step] = [one for one in workflow["jobs"]["package"]["steps"] if "uv build" in one.get("run", "")]
    loop = step["run"].partition("for folder in again dist; do\n")[2]
    assert [line.split()[0] for line in loop.splitlines()[:2]] == ["build-tools/bin/uv", "build-tools/bin/python"]
    assert "requirements/same_sdist.py" in loop
    assert loop.splitlines()[-1] == "diff --recursive again dist"
    assert step["env"]["SOURCE_DATE_EPOCH"] == "${{ needs.test.outputs.epoch }}"
