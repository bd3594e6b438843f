"""Baselines that somebody with a key vouches for, in any store and any CI; whoever rewrites them has no key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.model import Score
from gate.records import parse_record, write_record
from tests.acceptance.conftest import Outcome, Project, first_of
from tests.keys import new_key

AGENT = "def answer(message):\n    return 'It is on its way.'\n"
BAD = AGENT.replace("on its way", "lost")
CASES = "cases:\n" + "".join(f"  - {{id: c{n}, input: hello {n}}}\n" for n in range(12))
CONFIG = """\
suite: evals
agent: {python: 'agent:answer'}
trials: 3
criteria: {contains: {values: ['on its way'], threshold: 0.5}}
baseline:
  store: file
  path: baselines
  require_provenance: LEVEL
  key: |
KEY
"""


@pytest.fixture
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "key.pem"
    path.write_bytes(new_key()[0])
    return path


def configured(level: str, public: bytes) -> str:
    lines = "".join(f"    {line}\n" for line in public.decode().splitlines())
    return CONFIG.replace("LEVEL", level).replace("KEY\n", lines)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose first commit was measured, with the key of its baselines in its configuration."""
    project = Project(tmp_path_factory.mktemp("made"))
    private, public = new_key()
    key = tmp_path_factory.mktemp("keys") / "key.pem"
    key.write_bytes(private)
    project.write("agent.py", AGENT)
    project.write("gate.yaml", configured("block", public))
    project.write("evals/a.yaml", CASES)
    project.write(".gitignore", ".gate/\n__pycache__/\nbaselines/\nkey.pem\n")
    project.write("key.pem", key.read_text())
    project.commit()
    assert project.gate("run").code == 0
    return project


@pytest.fixture
def shop(project: Project, made: Project) -> Project:
    return made.copied(project)


def change(shop: Project, agent: str) -> Outcome:
    """A change of the agent, as CI judges it."""
    if shop.git("branch", "--show-current").strip() != "change":
        shop.git("checkout", "-q", "-b", "change")
    shop.write("agent.py", agent + "\n# changed\n")
    shop.git("commit", "-qam", "change")
    return shop.gate("run", "--json", "r.json", CI="true")


def test_doctor_asks_for_the_proof_that_a_run_asks_for(shop: Project) -> None:
    assert shop.gate("baseline", "save").code == 0
    ran = change(shop, AGENT)
    checked = shop.gate("doctor", "--no-ask", CI="true")
    assert (ran.code, checked.code) == (4, 4), checked.out
    assert "no proven baseline of 'evals'" in checked.out


def forge(shop: Project) -> None:
    """Rewrites what is stored as an agent's that never did anything right."""
    [path] = (shop.root / "baselines").glob("*/*.jsonl")
    record = parse_record(path.read_bytes())
    trials = tuple(replace(t, scores={name: Score(0.0) for name in t.scores}) for t in record.trials)
    write_record(path, replace(record, trials=trials))


@pytest.mark.slow
def test_what_was_signed_is_compared_with(shop: Project) -> None:
    saved = shop.gate("baseline", "save", "--key", "key.pem")
    assert (saved.code, "signed: " in saved.out) == (0, True), saved.err
    done = change(shop, AGENT)
    assert done.code == 0, done.out + done.err
    assert json.loads((shop.root / "r.json").read_text())["suites"][0]["baseline"]["records"] == 1
    assert "unproven" not in done.out


def test_what_nobody_signed_ends_the_run_with_exit_code_4(shop: Project) -> None:
    assert shop.gate("baseline", "save").code == 0
    done = change(shop, AGENT)
    assert done.code == 4
    assert "no proven baseline" in done.err


def test_what_was_rewritten_after_it_was_signed_ends_the_run_with_exit_code_4(shop: Project) -> None:
    assert shop.gate("baseline", "save", "--key", "key.pem").code == 0
    forge(shop)
    done = change(shop, BAD)
    assert done.code == 4
    assert "somebody has rewritten it" in done.err


@pytest.mark.slow
def test_another_key_signs_nothing(shop: Project, private: Path) -> None:
    assert shop.gate("baseline", "save").code == 0
    forge(shop)
    assert shop.gate("baseline", "save", "--key", str(private)).code in (0, 6)
    done = change(shop, BAD)
    assert done.code == 4, done.out


@pytest.mark.slow
def test_saving_again_with_the_key_proves_what_was_saved_without(shop: Project) -> None:
    assert shop.gate("baseline", "save").code == 0
    assert shop.gate("baseline", "save", "--key", "key.pem").code == 0
    done = change(shop, AGENT)
    assert done.code == 0, done.out + done.err


def test_an_acceptance_counts_with_a_signature_alone(shop: Project) -> None:
    assert shop.gate("baseline", "save", "--key", "key.pem").code == 0
    assert shop.gate("baseline", "accept", "--why", "wanted").code == 0
    listed = shop.gate("baseline", "show", CI="true")
    assert "accepted by" not in listed.out
    assert shop.gate("baseline", "accept", "--why", "wanted", "--key", "key.pem").code == 0
    listed = shop.gate("baseline", "show", CI="true")
    assert "accepted by" in listed.out


@pytest.mark.slow
def test_on_ones_own_machine_it_is_said_and_blocks_nobody(shop: Project) -> None:
    assert shop.gate("baseline", "save").code == 0
    shop.git("checkout", "-q", "-b", "change")
    shop.write("agent.py", AGENT + "\n# changed\n")
    shop.git("commit", "-qam", "change")
    done = shop.gate("run")
    assert done.code == 0, done.out + done.err
    assert "unproven" in done.out


@pytest.mark.parametrize("key", first_of(["nothing", "-----BEGIN PUBLIC KEY-----\nx\n", "../key.pem"]))
def test_what_is_no_key_is_refused(shop: Project, key: str) -> None:
    text = (shop.root / "gate.yaml").read_text().partition("  key:")[0]
    shop.write("gate.yaml", f"{text}  key: {json.dumps(key)}\n")
    done = shop.gate("run")
    assert done.code == 2
    assert "key" in done.err


@pytest.mark.parametrize("signed", first_of([False, True]))
def test_a_release_is_decided_on_a_record_of_its_own_only_if_somebody_vouches_for_it(
    shop: Project, signed: bool
) -> None:
    """Whoever may rewrite what is stored would else release what they like."""
    shop.write("gate.yaml", (shop.root / "gate.yaml").read_text().replace(": block", ": warn"))
    shop.git("commit", "-qam", "warn")
    assert shop.gate("run").code == 0
    assert shop.gate("baseline", "save", *(("--key", "key.pem") if signed else ())).code == 0
    shop.git("tag", "v1")
    done = shop.gate("run", "--release", "v1", "--json", "r.json", CI="true")
    assert done.code == 0, done.out + done.err
    said = json.loads((shop.root / "r.json").read_text())["suites"][0]["warnings"]
    assert any("decided on what was measured of this commit" in one for one in said) == signed, said


@pytest.mark.slow
def test_where_a_baseline_comes_from_is_shown_and_stated(shop: Project) -> None:
    """By the commands that list and show, by the JSON report, by what a run states, and by who checks that."""
    [measured] = (shop.root / ".gate/records").glob("*/*.jsonl")
    assert shop.gate("baseline", "save").code == 0
    warn = (shop.root / "gate.yaml").read_text().replace("block", "warn")
    shop.write("gate.yaml", warn)
    shop.git("commit", "-qam", "warn")
    standing = [seen(shop)]
    first = shop.git("rev-list", "--max-parents=0", "HEAD")[:12]
    assert shop.gate("baseline", "save", str(measured), "--key", "key.pem").code == 0
    standing.append(seen(shop))
    assert standing == [
        ("unproven", "unproven", "unproven", "unproven", f"{first}: nothing showed the run who measured that baseline"),
        ("proven", "proven", "proven", "proven", ""),
    ]
    forge(shop)
    listed = shop.gate("baseline", "list")
    assert " rewritten " in listed.out


def seen(shop: Project) -> tuple[str, str, str, str, str]:
    """What each place says of the one baseline that is stored."""
    listed, shown = shop.gate("baseline", "list").out, shop.gate("baseline", "show").out
    ran = shop.gate("run", "--json", "r.json", "--statement", "s.json", "--record", ".gate/r.jsonl")
    assert ran.code == 0, ran.err
    checked = shop.gate("verify", ".gate/r.jsonl", "--statement", "s.json", "--unsigned")
    for name in (".gate/r.jsonl", "r.json", "s.json"):
        (shop.root / name).rename(shop.root / ".gate" / f"last-{Path(name).name}")
    told = [line.rpartition("evals: ")[2] for line in checked.out.splitlines() if "nothing showed" in line]
    rests_on = json.loads((shop.root / ".gate/last-s.json").read_text())["predicate"]["configuration"]
    return (
        listed.splitlines()[1].split()[4],
        shown.splitlines()[0].rpartition(", ")[2],
        json.loads((shop.root / ".gate/last-r.json").read_text())["suites"][0]["baseline"]["provenance"],
        next(one["annotations"]["provenance"] for one in rests_on if one["name"] == "baseline"),
        next(iter(told), ""),
    )
