"""Runs the commands that a page of the documentation shows, and compares what they print with what the page says.

    python -m docs.tools.transcripts [--write] [PAGE …]     # every page that says `<!-- run -->`, unless some are named

A page is read from top to bottom. A fenced block after `<!-- file: NAME -->` is written to that file; every line of a
`console` block that begins with `$ ` is typed into one shell, which keeps its folder and its variables. What follows
is what the command prints, standard output and standard error together, without the lines that tell the progress.
`<!-- after: PAGE#MARK -->` first does, unseen, what another page does up to its `<!-- mark: MARK -->`.

Times, commits and temporary folders differ in every run: they are compared as one. `--write` puts what was printed in
place of what differs.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
RUN = "<!-- run -->"
PART = re.compile(
    r"<!-- file: (?P<file>\S+) -->\n+```\w*\n(?P<content>.*?)^```$"
    r"|^```console\n(?P<session>.*?)^```$"
    r"|<!-- after: (?P<page>[^#\s]+)#(?P<point>\S+) -->"
    r"|<!-- mark: (?P<mark>\S+) -->",
    re.MULTILINE | re.DOTALL,
)
VARYING = re.compile(
    r"\b\d+(\.\d+)? µs\b|\b\d+ ms\b|\b\d+ min( \d+ s)?\b|\b\d+(\.\d+)? ?s\b"
    r"|\b[0-9a-f]{7,40}\b|\b\d{8}T\d{6}\b|\b\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?\b"
)
PROGRESS = re.compile(
    r"^(\S+: (screen|round|confirm|rerun|side by side)\b|  \d+ of \d+ runs, .* left).*\n", re.MULTILINE
)
END = "END-OF-COMMAND"
Options = Callable[[dict[str, str]], dict[str, Any]]
WHO = {"NAME": "ada", "EMAIL": "ada@example.com", "DATE": "2026-01-05T09:00:00Z"}
HIDDEN = ("COLUMNS", "LINES", "GITHUB_", "GITLAB_", "CI", "OPENAI_", "GATE_", "GIT_", "INPUT_")
"""Variables that would change what the commands do."""


@dataclass(frozen=True)
class Step:
    """One command of a page, what the page says that it prints, and where that stands in the page."""

    command: str
    printed: str
    start: int
    end: int


@dataclass(frozen=True)
class Difference:
    """A command that printed something else than its page says."""

    step: Step
    printed: str

    def __str__(self) -> str:
        return f"$ {self.step.command}\n--- the page\n{self.step.printed}+++ printed\n{self.printed}"


def in_environment(environment: dict[str, str]) -> dict[str, Any]:
    """Return the options of a process that sees only this environment."""
    return {"env": environment}


class Shell:
    """One shell, in a folder of its own, that remembers folder and variables from command to command."""

    def __init__(self, folder: Path, options: Options = in_environment) -> None:
        """``options`` are those of `subprocess` for a shell with this environment."""
        folder = folder / "ada"  # so that `..` is ours, too
        folder.mkdir()
        environment = {name: value for name, value in os.environ.items() if not name.startswith(HIDDEN)}
        environment |= {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in WHO.items()}
        environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
        environment |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
        environment |= {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "gate.pytest_plugin.plugin",
            "TERM": "xterm",
        }
        environment |= {"HOME": str(folder), "PWD": str(folder), "LANG": "C.UTF-8"}
        self._folder = folder
        self._shell = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            text=True,
            encoding="utf-8",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **options(environment),
        )

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self._shell.kill()
        self._shell.communicate()

    def run(self, command: str) -> str:
        """What a command prints. Its exit status stays in ``$?`` for the next one."""
        assert self._shell.stdin and self._shell.stdout
        self._shell.stdin.write(f"{{ {command}\n}} </dev/null\nstatus=$?; printf '\\n{END}\\n'; (exit $status)\n")
        self._shell.stdin.flush()
        lines: list[str] = []
        for line in self._shell.stdout:
            if line == f"{END}\n":
                break
            lines.append(line)
        else:
            raise RuntimeError(f"the shell ended at {command!r}: {''.join(lines)}")
        return "".join(lines).replace(str(self._folder), "/home/ada").removesuffix("\n")

    def where(self) -> Path:
        """The shell's folder."""
        return Path(self.run("pwd -P").strip().replace("/home/ada", str(self._folder)))


def steps(session: str, offset: int) -> Iterator[Step]:
    """The commands of a console block, which begins at ``offset`` of its page."""
    parts = re.split(r"^\$ ", session, flags=re.MULTILINE)
    at = offset + len(parts[0])
    for part in parts[1:]:
        head = re.match(r"(?:.*\\\n)*.*\n", part)
        assert head is not None
        yield Step(head[0].rstrip("\n"), part[head.end() :], at + 2 + head.end(), at + 2 + len(part))
        at += 2 + len(part)


def masked(text: str) -> str:
    """The text without what differs from run to run, nor blank lines around it."""
    return VARYING.sub("~", PROGRESS.sub("", text)).strip()


def follow(page: Path, shell: Shell, until: str | None = None) -> list[Difference]:
    """Does what a page says, up to one of its marks or to its end; what was printed differently."""
    text = page.read_text(encoding="utf-8")
    found = []
    for part in PART.finditer(text):
        if part["file"]:
            path = shell.where() / part["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(part["content"], encoding="utf-8")
        elif part["page"]:
            follow((page.parent / part["page"]).resolve(), shell, part["point"])  # what differs there is found there
            time.sleep(1)  # the names of stored records tell seconds, which order them
        elif part["mark"]:
            if part["mark"] == until:
                return found
        else:
            for step in steps(part["session"], part.start("session")):
                printed = PROGRESS.sub("", shell.run(step.command))
                if masked(printed) != masked(step.printed):
                    found.append(Difference(step, printed))
    if until is not None:
        raise ValueError(f"{page} has no mark {until!r}")
    return found


def check(page: Path, folder: Path, options: Options = in_environment) -> list[Difference]:
    """Runs a page in an empty folder; ``options`` as of `Shell`."""
    with Shell(folder, options) as shell:
        return follow(page, shell)


def rewrite(page: Path, differences: list[Difference]) -> None:
    """Puts into a page what was printed."""
    text = page.read_text(encoding="utf-8")
    for difference in reversed(differences):
        printed = difference.printed.strip("\n")
        step = difference.step
        rest = "\n" if text[step.start : step.end].endswith("\n\n") else ""
        text = text[: step.start] + (f"{printed}\n" if printed else "") + rest + text[step.end :]
    page.write_text(text, encoding="utf-8")


def pages() -> list[Path]:
    """Every page whose commands are run."""
    found = sorted((REPOSITORY / "docs").rglob("*.md"))
    return [page for page in found if RUN in page.read_text(encoding="utf-8")]


def main() -> int:
    """Runs the pages; the number of those that say something else than what is printed."""
    parser = argparse.ArgumentParser(description="Runs the commands that the documentation shows.")
    parser.add_argument("--write", action="store_true", help="put what is printed into the pages")
    parser.add_argument("pages", nargs="*", type=Path)
    given = parser.parse_args()
    stale = 0
    for page in given.pages or pages():
        with tempfile.TemporaryDirectory(prefix="gate-page-") as folder:
            differences = check(page.resolve(), Path(folder).resolve())
        if differences and given.write:
            rewrite(page, differences)
        stale += bool(differences)
        print(f"{page}: {len(differences)} differ" if differences else f"{page}: as it says")
        for difference in differences:
            print(difference)
    return 0 if given.write else stale


if __name__ == "__main__":
    sys.exit(main())
