"""Writing where a change may have put links; and that there is no second way to write."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gate
from gate.action.container import prepare
from gate.errors import ConfigError, PublishError
from gate.hosts.base import CopyFile, WriteFile, write
from gate.security import files

OTHERS = "what is not the change's"


class Place:
    """A work tree, and a file outside it that links lead to."""

    def __init__(self, folder: Path) -> None:
        self.top = folder / "work"
        (self.top / ".git").mkdir(parents=True)
        self.outside = folder / "home"
        self.outside.mkdir()
        self.victim = self.outside / ".bashrc"
        self.victim.write_text(OTHERS)

    def is_safe(self) -> bool:
        return self.victim.read_text() == OTHERS and [path.name for path in self.outside.iterdir()] == [".bashrc"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


WRITERS: dict[str, Callable[[Path], object]] = {
    "write_text": lambda path: files.write_text(path, "mine"),
    "write_parts": lambda path: files.write_parts(path, [b"mine"]),
    "copy": lambda path: files.copy(path.parents[len(path.parts) - 2] / "etc" / "hostname", path),
    "open_to_append": lambda path: files.open_to_append(path).write(b"mine"),
    "create": files.create,
    "remove": files.remove,
    "make_folder": files.make_folder,
    "check": files.check,
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("deep", ["", "a/", "a/b/"])
def test_a_folder_that_is_a_link_is_refused(place: Place, writer: str, deep: str) -> None:
    (place.top / deep).mkdir(parents=True, exist_ok=True)
    (place.top / deep / ".gate").symlink_to(place.outside)
    with pytest.raises(files.LinkError) as caught:
        WRITERS[writer](place.top / deep / ".gate" / "records" / "r")
    assert str(caught.value.strerror) == f"{place.top / deep / '.gate'} is a link, which is not followed: remove it"
    assert place.is_safe()


@pytest.mark.parametrize("writer", [name for name in WRITERS if name not in ("create", "make_folder", "remove")])
def test_a_file_that_is_a_link_is_refused(place: Place, writer: str) -> None:
    (place.top / "report.html").symlink_to(place.victim)
    with pytest.raises(files.LinkError):
        WRITERS[writer](place.top / "report.html")
    assert place.is_safe()


def test_what_is_removed_is_a_link_and_not_what_it_leads_to(place: Place) -> None:
    (place.top / "r.jsonl").symlink_to(place.victim)
    files.remove(place.top / "r.jsonl")
    assert not (place.top / "r.jsonl").is_symlink() and place.is_safe()


def test_a_second_name_of_a_file_is_not_written_to(place: Place) -> None:
    os.link(place.victim, place.top / "r.jsonl")
    with pytest.raises(files.LinkError, match="hard link"):
        files.open_to_append(place.top / "r.jsonl")
    files.write_text(place.top / "r.jsonl", "mine")
    assert place.is_safe()
    assert (place.top / "r.jsonl").read_text() == "mine"


def test_what_is_copied_is_no_link_either(place: Place) -> None:
    (place.top / "r.jsonl").symlink_to(place.victim)
    with pytest.raises(files.LinkError):
        files.copy(place.top / "r.jsonl", place.top / "results" / "r.jsonl")
    assert not (place.top / "results" / "r.jsonl").exists()


def test_a_pipe_in_the_place_of_a_record_does_not_hold_the_gate(place: Place) -> None:
    os.mkfifo(place.top / "r.jsonl")
    with pytest.raises(files.LinkError, match="not a regular file"):
        files.open_to_append(place.top / "r.jsonl")


def test_dots_do_not_lead_around_the_check(place: Place) -> None:
    (place.top / "in").symlink_to(place.outside)
    files.write_text(place.top / "in" / ".." / "out", "x")
    assert (place.top / "out").read_text() == "x" and place.is_safe()


def test_below_the_working_directory_there_need_be_no_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cwd").mkdir()
    (tmp_path / "cwd" / ".gate").symlink_to(tmp_path / "elsewhere")
    files.write_text(tmp_path / "cwd" / ".gate" / "x", "a user's own link")
    monkeypatch.chdir(tmp_path / "cwd")
    with pytest.raises(files.LinkError):
        files.write_text(Path(".gate/y"), "")


def test_links_of_people_and_machines_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files.write_text(tmp_path / "link" / "a" / "report.html", "x")
    (tmp_path / "latest").symlink_to(tmp_path / "real" / "a" / "report.html")
    files.write_text(tmp_path / "latest", "y")
    assert (tmp_path / "real" / "a" / "report.html").read_text() == "y"
    assert (tmp_path / "latest").is_symlink()


def test_a_file_is_replaced_whole_or_not_at_all(place: Place) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    files.write_text(place.top / "r", "before")
    with pytest.raises(OSError, match="No space"):
        files.write_parts(place.top / "r", broken())
    assert (place.top / "r").read_text() == "before"
    assert sorted(path.name for path in place.top.iterdir()) == [".git", "r"]


def test_a_new_file_has_the_rights_that_others_have(place: Place) -> None:
    (place.top / "plain").write_text("")
    files.write_text(place.top / "ours", "")
    assert (place.top / "ours").stat().st_mode == (place.top / "plain").stat().st_mode
    (place.top / "ours").chmod(0o600)
    files.write_text(place.top / "ours", "again")
    assert (place.top / "ours").stat().st_mode & 0o777 == 0o600, "and an old one keeps its own"


# --- those who write ------------------------------------------------------------------------------


def test_results_are_not_published_through_a_link(place: Place) -> None:
    (place.top / "gate-results").symlink_to(place.outside)
    source = place.top / "r.jsonl"
    source.write_text("{}")
    for effect in (
        WriteFile(place.top / "gate-results" / "x", "x"),
        CopyFile(place.top / "gate-results" / "x", source),
    ):
        with pytest.raises(PublishError, match=r"gate-results is a link, which is not followed"):
            write(effect)
    assert place.is_safe()


@pytest.mark.parametrize("name", ["", "venv", "uv", "pip"])
def test_setup_is_not_kept_behind_a_link(place: Place, name: str) -> None:
    cache = place.top / ".gate" / "setup"
    (cache / name).parent.mkdir(parents=True)
    (cache / name).symlink_to(place.outside)
    with pytest.raises(ConfigError, match=r"the setup cannot be stored: .* is a link"):
        prepare("true", root=place.top, cache=cache, environment={"PATH": "/nonexistent"}, say=print)
    assert place.is_safe()


# --- no second way --------------------------------------------------------------------------------

WRITING = {
    *("write_text", "write_bytes", "mkdir", "touch", "unlink", "rmdir", "rename", "symlink_to", "hardlink_to", "chmod"),
    *("makedirs", "removedirs", "truncate", "link", "symlink", "rmtree", "copyfile", "copy2", "copytree"),
    *("move", "mkfifo", "mknod", "extractall", "extract"),
}
ALLOWED = {
    "security/files.py": "the one place",
    "action/sealing.py": "a folder of its own, made by tempfile",
    "action/held.py": "the runner's own files, by descriptors of their folders and without following links",
    "action/runner.py": "_append: the same, by O_NOFOLLOW",
    "config/base_policy.py": "remove_outward_links: in a work tree of its own, made by tempfile",
    "action/entrypoint.py": "a file in memory",
    "__main__.py": "/dev/null",
    "commands/demo.py": "a folder of its own, new or empty",
    "system/streams.py": "/dev/null",
    "system/temporary.py": "a folder of its own, made by tempfile",
    "system/restore.py": "owners, modes and a home of its own user, once all its processes are ended",
    "system/own_user.py": "a home of its own; owners and modes, where nobody else can put a link",
    "records/writer.py": "truncates the journal by its descriptor",
    "monitor/receive.py": "truncates what it received by its descriptor",
    "guest/worker.py": "extract: a trace's context from a header",
}


def is_writing(call: ast.Call) -> bool:
    """Whether a call creates, changes or removes files, as far as its name and its literal arguments tell."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = getattr(call.func.value, "id", "") if isinstance(call.func, ast.Attribute) else ""
    if owner == "files" or (isinstance(call.func, ast.Name) and hasattr(files, name)):
        return False
    if name in WRITING or (owner, name) == ("os", "remove"):
        return True
    if name == "replace" and isinstance(call.func, ast.Attribute):
        return len(call.args) == 1 and not call.keywords and owner not in ("structs", "dataclasses")
    if name not in ("open", "fdopen"):
        return False
    if owner == "os" and name == "open":
        return any(flag in ast.unparse(call) for flag in ("O_CREAT", "O_WRONLY", "O_RDWR", "O_TRUNC", "O_APPEND"))
    modes = [arg.value for arg in (*call.args, *(k.value for k in call.keywords)) if isinstance(arg, ast.Constant)]
    first = call.args[0] if call.args else None
    of_descriptor = ast.unparse(first).endswith((")", "fd", "write")) if first is not None else False
    return not of_descriptor and any(
        isinstance(mode, str) and set(mode) & set("wax+") and len(mode) < 4 for mode in modes
    )


@pytest.mark.slow
def test_nobody_else_writes_files() -> None:
    """A second path would be one that follows links."""
    top = Path(gate.__file__).parent
    found = {}
    named = re.compile(rf"\b({'|'.join(WRITING)}|remove|open|fdopen)\(|\.replace\(")
    for path in top.rglob("*.py"):
        if not named.search(text := path.read_text(encoding="utf-8")):
            continue
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and is_writing(node)]
        if calls:
            found[path.relative_to(top).as_posix()] = [f"{call.lineno}: {ast.unparse(call)}" for call in calls]
    assert {name: calls for name, calls in found.items() if name not in ALLOWED} == {}
    assert ALLOWED.keys() <= found.keys(), "what no longer writes needs no leave to"


def test_the_search_finds_what_writes() -> None:
    for text in ("p.open('w')", "open(p, 'ab')", "p.write_text(x)", "os.open(p, os.O_CREAT)", "draft.replace(path)"):
        assert is_writing(ast.parse(text, mode="eval").body), text
    for text in ("p.open()", "open(p, 'rb')", "text.replace('a', 'b')", "replace(a, b=1)", "files.write_text(p, x)"):
        assert not is_writing(ast.parse(text, mode="eval").body), text


def test_the_gates_own_folder_ignores_itself(place: Place) -> None:
    files.make_folder(place.top / "deep" / ".gate" / "records")
    assert (place.top / "deep" / ".gate" / ".gitignore").read_text() == "*\n"
    assert not (place.top / "deep" / ".gitignore").exists()


def test_a_folder_that_was_there_is_left_as_it_is(place: Place) -> None:
    (place.top / ".gate").mkdir()
    files.make_folder(place.top / ".gate" / "records")
    assert [path.name for path in (place.top / ".gate").iterdir()] == ["records"]
