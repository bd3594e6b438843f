"""The documentation holds together: every page is reached, every link leads somewhere, what is shown exists."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path

import click
import yaml

from docs.tools.words import words_by_page
from gate.baselines import STORES
from gate.commands.main import cli as command_line
from gate.reports import REPORTS
from tests.acceptance.conftest import REPOSITORY

DOCS = REPOSITORY / "docs"
INDEX = DOCS / "index.md"
PAGES = sorted([*DOCS.rglob("*.md"), *REPOSITORY.glob("*.md")])
FENCE = re.compile(r"^(?P<fence>```+)(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
QUICK_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LINK = re.compile(r"\]\((?!https?:|mailto:)(?P<target>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")


@cache
def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    texts = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings)
    return frozenset(re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts)


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Where the links of a page lead within the repository."""
    for found in LINK.finditer(re.sub(r"`[^`\n]*`", "``", prose(page))):
        target = (page.parent / found["target"]).resolve() if found["target"] else page
        yield target, found["anchor"] or ""


def test_links_and_anchors_lead_somewhere() -> None:
    found = [(page.name, target, anchor) for page in PAGES for target, anchor in links(page)]
    assert [link for link in found if not link[1].exists()] == []
    assert [link for link in found if link[2] and link[2] not in anchors(link[1])] == []


def test_every_page_is_reached_from_the_index() -> None:
    seen, waiting = set(), [INDEX]
    while waiting:
        page = waiting.pop()
        if page not in seen:
            seen.add(page)
            waiting += [target for target, _ in links(page) if target.suffix == ".md"]
    assert [str(page) for page in sorted(DOCS.rglob("*.md")) if page not in seen] == []


def test_the_readme_leads_to_the_index() -> None:
    assert INDEX in {target for target, _ in links(REPOSITORY / "README.md")}


def test_the_pages_for_users_stay_few_and_short() -> None:
    words = words_by_page()
    assert len(words) <= 25
    assert sum(words.values()) <= 20_000
    assert max(words.values()) <= 1_800


def is_readable(block: re.Match[str]) -> bool:
    """True if the block is of no language that is known here, too."""
    try:
        if block["language"] == "python":
            ast.parse(block["text"])
        elif block["language"] in ("yaml", "yml"):
            return list(yaml.load_all(block["text"], QUICK_YAML)) != [None]
        elif block["language"] == "json" and "…" not in block["text"]:
            json.loads(block["text"])
    except (SyntaxError, ValueError, yaml.YAMLError):
        return False
    return True


def test_blocks_of_code_can_be_read() -> None:
    blocks = [(page.name, block) for page in PAGES for block in FENCE.finditer(page.read_text(encoding="utf-8"))]
    assert [(name, block["text"]) for name, block in blocks if not is_readable(block)] == []


def test_paths_of_the_repository_that_a_page_names_exist() -> None:
    path = re.compile(r"(?<![\w/.-])(?:gate|tests|benchmarks|docs|examples)/[\w/.-]*\w")
    named = [(page.name, found) for page in PAGES for found in path.findall(page.read_text(encoding="utf-8"))]
    assert [one for one in named if "NAME" not in one[1] and not (REPOSITORY / one[1]).exists()] == []


def test_the_architecture_has_the_layers_of_the_linter() -> None:
    page = (DOCS / "dev" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[a-z_]+`(?: · `[a-z_]+`)*) \| ", page.partition("## Rooms")[2], re.MULTILINE)
    stated = [sorted(re.findall(r"`([a-z_]+)`", row)) for row in rows]
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    assert stated == [sorted(layer.split(" | ")) for layer in layers]


# --- what is registered ------------------------------------------------------------------------------


def test_every_store_has_a_section() -> None:
    assert {f"{name}-store" for name in STORES} <= anchors(DOCS / "reference" / "baselines.md")


def test_every_report_is_described() -> None:
    page = (DOCS / "reference" / "reports.md").read_text(encoding="utf-8")
    assert [name for name in REPORTS if f"| {name} |" not in page] == []


# --- commands ---------------------------------------------------------------------------------------


def shown(page: Path) -> Iterator[str]:
    """The command lines of a page that begin with `gate`: in blocks, in workflows, between backticks."""
    text = page.read_text(encoding="utf-8")
    for block in FENCE.finditer(text):
        if block["language"] in ("", "sh", "console", "text", "yaml", "yml", "groovy"):
            for line in re.sub(r"\\\n\s*", " ", block["text"]).splitlines():
                if "COMP_WORDS" in line:  # what a shell asks for completion is unfinished
                    continue
                yield from re.findall(r"(?:^\s*(?:- |\$ |- run: |script: )?|&& |; |\"|'|\()(gate [a-z].*)", line)
    yield from re.findall(r"`(gate(?: [^`\n]+)?)`", prose(page))


def words(line: str) -> list[str]:
    """The arguments of a command line, up to where another command, a comment or a redirection begins."""
    ends = {"&&", "||", "|", ";", ">", "#", "…"}
    try:
        parts = shlex.split(line.replace("`", " ").replace(";", " ; "), comments=True)
    except ValueError:
        parts = line.split()
    return list(takewhile(lambda part: part not in ends, parts[1:]))


def unknown(line: str) -> str:
    """What of a command line the program does not know; empty if it knows all of it."""
    command: click.Command = command_line
    known: set[str] = set()
    for word in words(line):
        if word.startswith("-"):
            known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
            option = word.partition("=")[0]
            if option.rstrip(",.])") not in known | {"--help", "-h", "--version", "--debug"}:
                return option
        elif isinstance(command, click.Group) and (name := re.fullmatch(r"([a-z]+)(,?)", word)):
            found = command.get_command(click.Context(command), name[1])
            if found is None:
                return word
            if name[2]:  # the sentence around it goes on
                break
            command = found
    return ""


def test_commands_and_options_that_a_page_shows_exist() -> None:
    assert {(page.name, line): unknown(line) for page in PAGES for line in shown(page) if unknown(line)} == {}


def test_a_command_that_does_not_exist_is_found() -> None:
    assert unknown("gate runn --quiet") == "runn"
    assert unknown("gate run --quieet") == "--quieet"
    assert unknown("gate baseline save --release v1 || exit 6") == ""
    assert len([line for page in PAGES for line in shown(page)]) > 100
