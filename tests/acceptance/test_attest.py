"""The chain from a run to a deployment: stated, signed, checked offline, and refused where a byte was changed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from msgspec.structs import replace

from gate.errors import UntrustedError
from gate.security.signing import opened
from gate.stored.evidence import verified
from gate.stored.statement import check_files, read_statement, written
from tests.acceptance.conftest import Project, first_of
from tests.keys import new_key

AGENT = "def answer(message):\n    return 'It is on its way.'\n"
CONFIG = "suite: evals\nagent: {python: 'agent:answer'}\ntrials: 1\ncriteria: {contains: {values: ['on its way']}}\n"


AGAIN = "  evals: judged again by its record alone, and not failed\n"


@pytest.fixture
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("keys")
    private, public = new_key()
    (folder / "key.pem").write_bytes(private)
    (folder / "key.pub").write_bytes(public)
    return folder / "key.pem", folder / "key.pub"


@pytest.fixture
def shop(project: Project) -> Project:
    project.write("agent.py", AGENT)
    project.write("gate.yaml", CONFIG)
    project.write("evals/a.yaml", "cases:\n  - {id: a, input: hello}\n  - {id: b, input: well}\n")
    project.write(".gitignore", ".gate/\n__pycache__/\n")
    project.commit()
    return project


def stated(shop: Project, private: Path, *, code: int = 0) -> str:
    """Runs, states and signs; the commit."""
    ran = shop.gate("run", "--record", "r.jsonl", "--junit", "j.xml", "--statement", "s.json")
    assert ran.code == code, ran.err
    signed = shop.gate("attest", "s.json", "--key", str(private))
    assert (signed.code, signed.out) == (0, "signed: s.json.dsse.json\n"), signed.err
    return shop.git("rev-parse", "HEAD").strip()


def test_from_a_run_to_a_deployment(shop: Project, keys: tuple[Path, Path]) -> None:
    private, public = keys
    commit = stated(shop, private)
    checked = shop.gate(
        "verify", "r.jsonl", "j.xml", "--statement", "s.json.dsse.json", "--key", str(public), "--commit", commit
    )
    assert (checked.code, checked.err) == (0, "")
    assert checked.out == f"PASSED: commit {commit}\n  2 files as stated, signature valid\n{AGAIN}"
    statement = json.loads((shop.root / "s.json").read_bytes())
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert [one["name"] for one in statement["subject"]] == ["commit", "record/evals", "report/j.xml"]
    predicate = statement["predicate"]
    assert (predicate["result"], predicate["failedTests"]) == ("PASSED", [])
    assert "evals: contains" in predicate["passedTests"]
    assert {one["name"] for one in predicate["configuration"]} >= {"agent-gate", "criteria", "agent", "baseline"}
    assert all("uri" in one or "digest" in one for one in predicate["configuration"]), "as a resource has to have"


def test_a_run_that_did_not_pass_is_stated_as_such_and_not_deployed(shop: Project, keys: tuple[Path, Path]) -> None:
    private, public = keys
    shop.write("agent.py", AGENT.replace("on its way", "lost"))
    shop.git("commit", "-qam", "worse")
    stated(shop, private, code=1)
    checked = shop.gate("verify", "r.jsonl", "--statement", "s.json.dsse.json", "--key", str(public))
    assert checked.code == 1, checked.err
    assert checked.out.startswith("FAILED: ")
    assert "failed: evals: contains" in checked.out


def test_the_commit_of_the_rules_is_stated(shop: Project) -> None:
    base = shop.git("rev-parse", "HEAD")
    shop.write("gate.yaml", CONFIG.replace("on its way", "its way"))
    shop.git("commit", "-qam", "other words")
    for arguments, rules in (((), shop.git("rev-parse", "HEAD")), (("--rules-from", "HEAD~1"), base)):
        assert shop.gate("run", "--statement", "s.json", *arguments).code == 0
        found = json.loads((shop.root / "s.json").read_bytes())["predicate"]["configuration"]
        assert [one["digest"]["gitCommit"] for one in found if one["name"] == "rules"] == [rules]


def test_what_does_not_belong_together_is_refused(shop: Project, keys: tuple[Path, Path]) -> None:
    private, public = keys
    stated(shop, private)
    other, _ = new_key()
    shop.write("other.pem", other.decode())
    shop.write("other.json", (shop.root / "s.json").read_text())
    shop.gate("attest", "other.json", "--key", "other.pem")
    (shop.root / "edited.jsonl").write_bytes((shop.root / "r.jsonl").read_bytes() + b"\n")
    for arguments, said in (
        (("edited.jsonl", "--statement", "s.json.dsse.json"), "not about this file, or it was changed"),
        (("j.xml", "--statement", "s.json.dsse.json"), "'record/evals' was not given"),
        (("r.jsonl", "--statement", "s.json.dsse.json", "--commit", "0" * 40), "not 000000000000"),
        (("r.jsonl", "--statement", "other.json.dsse.json"), "signed with another key"),
        (("r.jsonl", "--statement", "s.json"), "not a signed statement"),
        (("missing.jsonl", "--statement", "s.json.dsse.json"), "No such file"),
    ):
        ran = shop.gate("verify", *arguments, "--key", str(public))
        assert (ran.code, said in ran.err) == (7, True), ran.err
        assert ran.out == ""
    bare = shop.gate("verify", "r.jsonl", "--statement", "s.json", "--unsigned")
    assert (bare.code, "NOT SIGNED" in bare.out) == (0, True), bare.err
    assert shop.gate("verify", "r.jsonl", "--statement", "s.json").code == 2, "a signature is asked for by default"
    assert shop.gate("verify", "r.jsonl", "--statement", "s.json.dsse.json", "--key", str(private)).code == 2


class Anybody(BaseHTTPRequestHandler):
    """An agent behind an address."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("Content-Length", "16")
        self.end_headers()
        self.wfile.write(b"It is on its way")

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.slow
def test_which_agent_answered_is_said_where_nobody_knows(shop: Project) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Anybody) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http: 'http://127.0.0.1:{server.server_port}'"
        shop.write("gate.yaml", CONFIG.replace("python: 'agent:answer'", address))
        shop.git("commit", "-qam", "behind an address")
        ran = shop.gate("run", "--record", "r.jsonl", "--statement", "s.json")
        server.shutdown()
    assert ran.code == 0, ran.err
    checked = shop.gate("verify", "r.jsonl", "--statement", "s.json", "--unsigned")
    assert "evals: which version of the agent answered is not known" in checked.out


def test_what_never_ends_is_not_read(shop: Project) -> None:
    assert shop.gate("run", "--record", "r.jsonl", "--statement", "s.json").code == 0
    (shop.root / "r.jsonl").unlink()
    (shop.root / "r.jsonl").symlink_to("/dev/zero")
    os.mkfifo(shop.root / "pipe")
    for path in ("r.jsonl", "pipe", "evals"):
        ran = shop.gate("verify", path, "--statement", "s.json", "--unsigned")
        assert (ran.code, "not a regular file" in ran.err) == (7, True), ran.err
    ran = shop.gate("verify", "s.json", "--statement", "pipe", "--unsigned")
    assert (ran.code, "not a regular file" in ran.err) == (7, True), ran.err


@pytest.mark.slow
def test_a_statement_about_no_record_is_refused(shop: Project) -> None:
    """Of a report alone nothing can be judged again, and whoever wrote it could have written anything."""
    assert shop.gate("run", "--record", "r.jsonl", "--junit", "j.xml", "--statement", "s.json").code == 0
    statement = read_statement((shop.root / "s.json").read_bytes(), "")
    subject = tuple(one for one in statement.subject if not one.name.startswith("record/"))
    (shop.root / "f.json").write_bytes(written(replace(statement, subject=subject)))
    ran = shop.gate("verify", "j.xml", "--statement", "f.json", "--unsigned")
    assert (ran.code, "covers no record" in ran.err) == (7, True), ran.err


def test_what_was_recorded_before_is_no_run_of_a_commit(shop: Project) -> None:
    shop.write(".gate/chats.jsonl", "{}")
    refused = shop.gate("run", "--replay", ".gate/chats.jsonl", "--statement", "s.json")
    assert (refused.code, "not a run of a commit" in refused.err) == (2, True), refused.err


def test_what_is_no_commit_is_not_stated(shop: Project) -> None:
    shop.write("agent.py", AGENT + "\n# being worked on\n")
    ran = shop.gate("run", "--statement", "s.json")
    assert (ran.code, "the work tree differed from its commit" in ran.out + ran.err) == (3, True), ran.out
    assert not (shop.root / "s.json").exists()
    assert shop.gate("run", "--statement", "s.json", "--shard", "1/2").code == 2


def test_the_predicate_goes_to_the_cis_own_attestation(shop: Project, keys: tuple[Path, Path]) -> None:
    stated(shop, keys[0])
    ran = shop.gate("attest", "s.json", "--predicate", "p.json")
    sums = subprocess.run(["sha256sum", "r.jsonl", "j.xml"], cwd=shop.root, capture_output=True, text=True, check=True)
    digests = [line.split()[0] for line in sums.stdout.splitlines()]
    assert ran.out.splitlines() == [f"{digests[0]}  record/evals", f"{digests[1]}  report/j.xml"]
    assert json.loads((shop.root / "p.json").read_bytes())["result"] == "PASSED"


def merged(shop: Project, private: Path, *, code: int = 0) -> str:
    """The same of two shards that are joined."""
    parts = [f".gate/{number}.jsonl" for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        assert shop.gate("run", "--shard", f"{number}/2", "--record", part).code == 0
    joined = ("merge", *parts, "-o", "r.jsonl", "-c", "gate.yaml", "--junit", "j.xml", "--statement", "s.json")
    ran = shop.gate(*joined)
    assert ran.code == code, ran.err
    assert shop.gate("attest", "s.json", "--key", str(private)).code == 0
    return shop.git("rev-parse", "HEAD").strip()


def reported(shop: Project, private: Path, *, code: int = 0) -> str:
    """The same of a record that is shown again."""
    assert shop.gate("run", "--record", "r.jsonl").code == code
    ran = shop.gate("report", "r.jsonl", "--junit", "j.xml", "--statement", "s.json")
    assert ran.code == code, ran.err
    assert shop.gate("attest", "s.json", "--key", str(private)).code == 0
    return shop.git("rev-parse", "HEAD").strip()


ROADS = [stated, reported, merged]


@pytest.mark.slow
@pytest.mark.parametrize("road", first_of(ROADS[1:]))
def test_what_shards_and_a_second_look_find_is_stated_as_a_run_states_it(
    shop: Project, keys: tuple[Path, Path], road: Callable[..., str]
) -> None:
    stated(shop, keys[0])
    own = read_statement((shop.root / "s.json").read_bytes(), "")
    shop.git("clean", "-qf")
    commit = road(shop, keys[0])
    found = read_statement((shop.root / "s.json").read_bytes(), "")
    assert (found.predicate, found.commit) == (own.predicate, commit)
    assert [one.name for one in found.subject] == [one.name for one in own.subject]
    arguments = ("r.jsonl", "j.xml", "--statement", "s.json.dsse.json", "--key", str(keys[1]), "--commit", commit)
    checked = shop.gate("verify", *arguments)
    assert (checked.code, AGAIN in checked.out) == (0, True), checked.err


@pytest.mark.parametrize("road", first_of(ROADS[1:]))
def test_what_did_not_pass_is_stated_so_by_every_road(
    shop: Project, keys: tuple[Path, Path], road: Callable[..., str]
) -> None:
    shop.write("agent.py", AGENT.replace("on its way", "lost"))
    shop.git("commit", "-qam", "worse")
    road(shop, keys[0], code=1)
    assert shop.gate("verify", "r.jsonl", "--statement", "s.json.dsse.json", "--key", str(keys[1])).code == 1
    code, said = forged(shop, "r.jsonl", result="PASSED", failed_tests=(), passed_tests=("evals: contains",))
    assert (code, "its record judged again: below threshold" in said) == (7, True), said


@pytest.mark.slow
def test_the_rules_that_a_record_was_judged_by_are_stated_again(shop: Project) -> None:
    base = shop.git("rev-parse", "HEAD").strip()
    shop.write("gate.yaml", CONFIG.replace("on its way", "its way"))
    shop.git("commit", "-qam", "other words")
    assert shop.gate("run", "--rules-from", "HEAD~1", "--record", "r.jsonl").code == 0
    assert shop.gate("report", "r.jsonl", "--statement", "s.json").code == 0
    found = json.loads((shop.root / "s.json").read_bytes())["predicate"]["configuration"]
    assert [one["digest"]["gitCommit"] for one in found if one["name"] == "rules"] == [base]


def test_a_comparison_that_somebody_chose_is_not_stated(shop: Project) -> None:
    assert shop.gate("run", "--record", "r.jsonl").code == 0
    refused = shop.gate("report", "r.jsonl", "--against", "none", "--statement", "s.json")
    assert (refused.code, "cannot be combined with --against" in refused.err) == (2, True), refused.err
    assert not (shop.root / "s.json").exists()


def test_recordings_are_not_stated_by_a_second_look(shop: Project) -> None:
    said = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "It is on its way."}]
    shop.write("chats.jsonl", json.dumps({"id": "a", "messages": said}) + "\n")
    shop.write(
        "replay.yaml",
        CONFIG.replace("suite: evals", "suite: chats.jsonl").replace("python: 'agent:answer'", "replay: true"),
    )
    shop.git("add", "-A")
    shop.git("commit", "-qm", "recordings")
    assert shop.gate("run", "-c", "replay.yaml", "--record", ".gate/r.jsonl").code == 0
    assert (shop.root / ".gate/r.jsonl").exists()
    refused = shop.gate("report", ".gate/r.jsonl", "--statement", "s.json")
    assert (refused.code, "another agent than the one that is configured" in refused.err) == (2, True), refused.err
    assert not (shop.root / "s.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("road", first_of(ROADS))
def test_any_changed_byte_is_found(shop: Project, keys: tuple[Path, Path], road: Callable[..., str]) -> None:
    """Many bytes of the signed statement, of the record and of the report."""
    private, public = keys
    road(shop, private)
    envelope, key = (shop.root / "s.json.dsse.json").read_bytes(), public.read_bytes()
    whole = {path: (shop.root / path).read_bytes() for path in ("r.jsonl", "j.xml")}

    def is_believed(data: bytes) -> bool:
        try:
            check_files(read_statement(opened(data, key), ""), [shop.root / path for path in whole], None)
        except UntrustedError:
            return False
        return True

    assert is_believed(envelope)
    for place in range(0, len(envelope), 5):
        assert not is_believed(_flipped(envelope, place, 1 if place % 2 else 32)), place
    assert not is_believed(envelope[:-1])
    assert not is_believed(envelope + b"\n")
    for path, data in whole.items():
        for place in range(0, len(data), max(1, len(data) // 200)):
            (shop.root / path).write_bytes(_flipped(data, place, 1))
            assert not is_believed(envelope), (path, place)
        (shop.root / path).write_bytes(data)


def _flipped(data: bytes, place: int, bit: int) -> bytes:
    return data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]


def forged(shop: Project, record: str, **changes: object) -> tuple[int, str]:
    """What `gate verify` says of a statement that was changed by somebody who could sign it, or need not."""
    statement = read_statement((shop.root / "s.json").read_bytes(), "")
    configuration = changes.pop("configuration", statement.predicate.configuration)
    predicate = replace(statement.predicate, configuration=configuration, **changes)
    (shop.root / "f.json").write_bytes(written(replace(statement, predicate=predicate)))
    ran = shop.gate("verify", record, "--statement", "f.json", "--unsigned")
    return ran.code, ran.err


def test_a_pass_that_is_stated_of_a_record_that_fails_is_refused(shop: Project) -> None:
    """Nobody needs to be believed of what the record itself shows."""
    shop.write("agent.py", AGENT.replace("on its way", "lost"))
    shop.git("commit", "-qam", "worse")
    assert shop.gate("run", "--record", "r.jsonl", "--statement", "s.json").code == 1
    code, said = forged(shop, "r.jsonl", result="PASSED")
    assert (code, "contradicts itself" in said) == (7, True), said
    code, said = forged(shop, "r.jsonl", result="PASSED", failed_tests=(), passed_tests=("evals: contains",))
    assert (code, "its record judged again: below threshold" in said) == (7, True), said


def test_a_record_of_another_agent_or_other_criteria_than_stated_is_refused(shop: Project) -> None:
    assert shop.gate("run", "--record", "r.jsonl", "--statement", "s.json").code == 0
    whole = read_statement((shop.root / "s.json").read_bytes(), "").predicate.configuration
    assert forged(shop, "r.jsonl") == (0, "")
    for name in ("agent", "criteria"):
        code, said = forged(shop, "r.jsonl", configuration=tuple(one for one in whole if one.name != name))
        assert (code, f"the record's {name} is another" in said) == (7, True), said


def test_a_part_of_the_cases_is_no_pass_of_the_commit(shop: Project, keys: tuple[Path, Path]) -> None:
    assert shop.gate("run", "--case", "a", "--record", "r.jsonl", "--statement", "s.json").code == 0
    shop.gate("attest", "s.json", "--key", str(keys[0]))
    arguments = ("verify", "r.jsonl", "--statement", "s.json.dsse.json", "--key", str(keys[1]))
    checked = shop.gate(*arguments)
    assert (checked.code, "inconclusive: evals: only 1 of 2 cases" in checked.out) == (1, True), checked.out
    assert shop.gate(*arguments, "--allow-warned").code == 0
    code, said = forged(shop, "r.jsonl", result="PASSED")
    assert (code, "a part of the cases" in said) == (7, True), said


@pytest.mark.slow
def test_what_cannot_be_judged_again_without_its_baseline_is_said(shop: Project) -> None:
    assert shop.gate("run", "--record", ".gate/first.jsonl").code == 0
    assert shop.gate("baseline", "save", ".gate/first.jsonl").code == 0
    before = shop.git("rev-parse", "HEAD").strip()
    shop.write("agent.py", AGENT + "\n# worded otherwise\n")
    shop.git("add", "agent.py")
    shop.git("commit", "-qm", "other")
    again = shop.gate("run", "--record", ".gate/r.jsonl", "--statement", ".gate/s.json", "--against", before)
    assert again.code == 0, again.err
    checked = shop.gate("verify", ".gate/r.jsonl", "--statement", ".gate/s.json", "--unsigned")
    assert checked.code == 0, checked.err
    assert f"evals: compared with {before[:12]}: not judged again, without the baseline" in checked.out


@pytest.mark.slow
def test_a_run_that_ends_badly_states_no_pass(shop: Project) -> None:
    """A report that could not be written may be an older run's, and the run's exit code says so."""
    blocked = "    Path(__file__).with_name('j.xml').mkdir(exist_ok=True)\n    return"
    shop.write("agent.py", "from pathlib import Path\n" + AGENT.replace("    return", blocked))
    shop.git("commit", "-qam", "in the way")
    ran = shop.gate("run", "--record", "r.jsonl", "--junit", "j.xml", "--statement", "s.json")
    assert ran.code == 3, ran.err
    assert json.loads((shop.root / "s.json").read_bytes())["predicate"]["result"] == "FAILED"


@pytest.mark.slow
def test_a_record_is_read_once(shop: Project, keys: tuple[Path, Path]) -> None:
    """So what is judged again is what the digest is of, whoever writes to the file meanwhile."""
    private, public = keys
    shop.write("agent.py", "def answer(message):\n    return 'It is on its way. ' + message * 4000\n")
    cases = "".join(f"  - {{id: c{number}, input: hello}}\n" for number in range(100))
    shop.write("evals/a.yaml", f"cases:\n{cases}")
    shop.git("commit", "-qam", "long answers")
    commit = stated(shop, private)
    given = [shop.root / "r.jsonl"], shop.root / "s.json.dsse.json", public, commit
    size = given[0][0].stat().st_size
    assert size > 1_000_000
    assert verified(*given, allow_warned=False)[0] == 0, "everything is imported by then"
    before = bytes_read()
    code, text = verified(*given, allow_warned=False)
    assert (code, AGAIN in f"{text}\n") == (0, True)
    assert size <= bytes_read() - before < 1.2 * size


def bytes_read() -> int:
    """By this process, as Linux counts it."""
    [line] = [one for one in Path("/proc/self/io").read_text().splitlines() if one.startswith("rchar: ")]
    return int(line.removeprefix("rchar: "))
