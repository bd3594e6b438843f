"""GitHub on loopback: stateful, and held to GitHub's own OpenAPI description in every request and every response.

By hand, because the description cannot say it: pages and ``Link``, at most 100 a page, permissions, authors, limits,
the length of a comment, GraphQL, and that the store behind an artifact, which is another host, must not be sent our
credentials.
"""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from openapi_core import Config, OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.testing import MockRequest, MockResponse

from tests.integration.github.schema_example import Examples

DESCRIPTION = json.loads(Path(__file__).with_name("openapi.json").read_text(encoding="utf-8"))
EXAMPLES = Examples(DESCRIPTION)
OPENAPI = OpenAPI.from_dict(DESCRIPTION, config=Config(spec_validator_cls=None))  # which a test has
REPOSITORY = "octo/agents"
WORKFLOW = ".github/workflows/gate.yml"
COMMENT_LIMIT = 65_536


@dataclass
class Identity:
    """Whose token it is, and what it may do."""

    login: str = "github-actions[bot]"
    may_comment: bool = True
    may_read: bool = True


@dataclass
class Answer:
    """What is sent back."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None
    """Instead of JSON."""
    lost: bool = False
    """Done, but the connection breaks before the answer is sent."""
    lawless: bool = False
    """Breaks the description on purpose."""


@dataclass
class Call:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


FORBIDDEN = Answer(403, {"message": "Resource not accessible by integration", "status": "403"})


def user(login: str, id: int = 7) -> dict[str, Any]:
    kind = "Bot" if login.endswith("[bot]") else "User"
    return EXAMPLES.make("simple-user", login=login, id=id, type=kind)


class FakeGitHub:
    """One repository. Use as a context manager; ``violations`` must be empty afterwards.

    ``certificate``: the folder of a certificate for ``localhost``, which makes it a company's own server: asked over
    TLS, its API is below a path, and it states no digests of artifacts.
    """

    def __init__(
        self, repository: str = REPOSITORY, host: str = "127.0.0.1", *, certificate: Path | None = None
    ) -> None:
        self.repository, self.branch = repository, "main"
        self.tokens = {
            "good": Identity(),
            "reader": Identity(may_comment=False),
            "person": Identity("alice"),
        }
        self.permissions = {"alice": "admin", "wendy": "write", "reed": "read", "trish": "read"}
        self.pulls: dict[int, dict[str, Any]] = {}
        self.comments: dict[int, list[dict[str, Any]]] = {}
        self.events: dict[int, list[dict[str, Any]]] = {}
        self.artifacts: dict[int, list[dict[str, Any]]] = {}
        self.contents: dict[int, bytes] = {}
        self.runs: list[dict[str, Any]] = []
        self.calls: list[Call] = []
        self.downloads: list[str] = []
        """What was fetched of artifacts, where they are stored."""
        self.violations: list[str] = []
        self.faults: list[tuple[Callable[[Call], bool], Answer]] = []
        """Answers that are given once instead of the real one, in order, to calls that match."""
        self.commits_know_forks = True
        """Whether a commit of a fork is found through ``commits/{sha}/pulls``."""
        self.page_limit = 100
        self._lock = threading.Lock()
        self._ids = iter(range(1000, 10**9))
        self._states_digests = certificate is None
        self._servers = [ThreadingHTTPServer((host, 0), handler) for handler in (self._handler(), self._store())]
        ports = [server.server_port for server in self._servers]
        if certificate is None:
            self._root, at = "", f"http://{host}"
            self.graphql_url = f"{at}:{ports[0]}/graphql"
        else:
            self._root, at = "/api/v3", "https://localhost"
            self.graphql_url = f"{at}:{ports[0]}/api/graphql"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
            for server in self._servers:
                server.socket = context.wrap_socket(server.socket, server_side=True)
        self.url, self.store_url = f"{at}:{ports[0]}{self._root}", f"{at}:{ports[1]}"

    def __enter__(self) -> Self:
        for server in self._servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    # --- what a test puts in ----------------------------------------------------------------------

    def take_over(self, other: FakeGitHub) -> None:
        """Knows the pull requests, comments, runs and artifacts that another knew."""
        self.pulls, self.comments, self.runs = deepcopy((other.pulls, other.comments, other.runs))
        self.artifacts, self.contents = deepcopy((other.artifacts, other.contents))
        self._ids = iter(range(100_000, 10**9))

    def add_pull(self, number: int, head: str, *, head_repository: str | None = None, **parts: Any) -> dict[str, Any]:
        """An open pull request; ``head_repository`` where it comes from a fork."""
        from_repository = head_repository or self.repository
        owner = from_repository.partition("/")[0]
        branch, base = parts.pop("branch", f"branch-{number}"), parts.pop("onto", self.branch)
        own = EXAMPLES.make("repository", full_name=self.repository, name=self.repository.partition("/")[2])
        pull = EXAMPLES.make(
            "pull-request",
            number=number,
            state=parts.pop("state", "open"),
            head={
                "sha": head,
                "ref": branch,
                "label": f"{owner}:{branch}",
                "repo": {**own, "full_name": from_repository},
                "user": user(owner),
            },
            base={"sha": "b" * 40, "ref": base, "label": f"{owner}:{base}", "repo": own, "user": user("octo")},
            user=user("author"),
            labels=[],
            **parts,
        )
        self.pulls[number] = pull
        return pull

    def set_label(self, number: int, name: str, by: str, at: str = "2026-01-01T00:00:00Z") -> None:
        label = {"id": 1, "node_id": "x", "url": "https://example.com/x", "description": "", "color": "ffffff"}
        self.pulls[number]["labels"].append({**label, "name": name, "default": False})
        self.add_event(number, "labeled", by, at, label={"name": name, "color": "ffffff"})

    def add_event(self, number: int, event: str, by: str, at: str, **parts: Any) -> None:
        made = EXAMPLES.make(
            "labeled-issue-event", event=event, actor=user(by), created_at=at, id=next(self._ids), **parts
        )
        self.events.setdefault(number, []).append(made)

    def add_comment(self, number: int, login: str, body: str) -> dict[str, Any]:
        id_ = next(self._ids)
        page = f"https://github.example/{self.repository}/pull/{number}#issuecomment-{id_}"
        comment = EXAMPLES.make("issue-comment", id=id_, body=body, user=user(login), html_url=page)
        self.comments.setdefault(number, []).append(comment)
        return comment

    def add_artifact(self, run: int, name: str, content: bytes, **parts: Any) -> dict[str, Any]:
        id_ = next(self._ids)
        origin = {"id": run, "head_sha": "d" * 40, "head_repository_id": 99, "repository_id": 1, "head_branch": "x"}
        artifact = EXAMPLES.make(
            "artifact",
            id=id_,
            name=name,
            size_in_bytes=len(content),
            digest=f"sha256:{hashlib.sha256(content).hexdigest()}" if self._states_digests else None,
            workflow_run=origin | parts.pop("workflow_run", {}),
            **parts,
        )
        self.artifacts.setdefault(run, []).append(artifact)
        self.contents[id_] = content
        return artifact

    def add_run(self, id: int, head: str, event: str, *, repository: str = "", **parts: Any) -> dict[str, Any]:
        """A completed run of the workflow; ``repository`` where its head comes from a fork."""
        parts = {"status": "completed", "conclusion": "success", "path": WORKFLOW, "run_attempt": 1, **parts}
        about = {"full_name": repository or self.repository, "id": 98 if repository else 99}
        branches = [pull["head"]["ref"] for pull in self.pulls.values() if pull["head"]["sha"] == head]
        parts.setdefault("head_branch", branches[0] if branches else self.branch)
        run = EXAMPLES.make("workflow-run", id=id, head_sha=head, event=event, head_repository=about, **parts)
        self.runs.append(run)
        return run

    def fail_once(self, answer: Answer, method: str = "", path: str = "") -> None:
        self.faults.append((lambda call: call.method.startswith(method) and path in call.path, answer))

    # --- what the API does ------------------------------------------------------------------------

    def answer(self, call: Call) -> Answer:
        for fault in self.faults:
            if fault[0](call):
                self.faults.remove(fault)
                return self._do(call) if fault[1].lost else fault[1]
        return self._do(call)

    def _do(self, call: Call) -> Answer:
        token = call.headers.get("authorization", "").removeprefix("Bearer ")
        identity = self.tokens.get(token)
        if identity is None:
            return Answer(401, {"message": "Bad credentials"})
        if call.path == "/graphql":
            return self._graphql(call, identity)
        prefix = f"/repos/{self.repository}/"
        if not call.path.startswith(prefix) or not identity.may_read:
            return Answer(404, {"message": "Not Found"})
        return self._route(call, call.path.removeprefix(prefix).split("/"), identity)

    def _graphql(self, call: Call, identity: Identity) -> Answer:
        if call.method != "POST" or "viewer" not in call.body.get("query", ""):
            self.violations.append(f"unexpected GraphQL: {call.body}")
        return Answer(200, {"data": {"viewer": {"login": identity.login}}})

    def _route(self, call: Call, parts: list[str], identity: Identity) -> Answer:
        match (call.method, *parts):
            case ("GET", "pulls"):
                return self._pages(call, [p for p in self.pulls.values() if self._is_asked_for(p, call)])
            case ("GET", "pulls", number) if int(number) in self.pulls:
                return Answer(200, self.pulls[int(number)])
            case ("GET", "commits", sha, "pulls"):
                of = [p for p in self.pulls.values() if sha in (p["head"]["sha"], p["merge_commit_sha"])]
                known = [p for p in of if self._is_known(p)]
                return self._pages(call, [simple(p) for p in known])
            case ("GET", "issues", number, "events"):
                return self._pages(call, self.events.get(int(number), []))
            case ("GET", "issues", number, "comments"):
                return self._pages(call, self.comments.get(int(number), []))
            case ("POST", "issues", number, "comments"):
                return self._write(call, identity, lambda body: self.add_comment(int(number), identity.login, body))
            case ("PATCH", "issues", "comments", id_):
                return self._patch(call, identity, int(id_))
            case ("DELETE", "issues", "comments", id_):
                return self._delete(call, identity, int(id_))
            case ("GET", "collaborators", login, "permission"):
                return self._permission(login)
            case ("GET", "actions", "runs", run, "artifacts"):
                found = self.artifacts.get(int(run), [])
                named = [a for a in found if call.query.get("name", a["name"]) == a["name"]]
                return self._pages(call, named, key="artifacts")
            case ("GET", "actions", "runs"):
                return self._pages(call, [r for r in self.runs if ran_as_asked(r, call)], key="workflow_runs")
            case ("GET", "actions", "artifacts", id_, "zip"):
                return Answer(302, headers={"Location": f"{self.store_url}/{id_}?signature=s"})
        return Answer(404, {"message": "Not Found"})

    def _is_asked_for(self, pull: dict[str, Any], call: Call) -> bool:
        state, head = call.query.get("state", "open"), call.query.get("head")
        return state in ("all", pull["state"]) and head in (None, pull["head"]["label"])

    def _is_known(self, pull: dict[str, Any]) -> bool:
        return self.commits_know_forks or pull["head"]["repo"]["full_name"] == self.repository

    def _write(self, call: Call, identity: Identity, store: Callable[[str], Any]) -> Answer:
        if not identity.may_comment:
            return Answer(403, {"message": "Resource not accessible by integration", "status": "403"})
        body = call.body["body"]
        if len(body) > COMMENT_LIMIT:
            problem = {
                "resource": "IssueComment",
                "code": "unprocessable",
                "field": "data",
                "message": "Body is too long",
            }
            return Answer(422, {"message": "Validation Failed", "documentation_url": "x", "errors": [problem]})
        return Answer(201 if call.method == "POST" else 200, store(body), {"Location": "https://github.example/x"})

    def _patch(self, call: Call, identity: Identity, id_: int) -> Answer:
        comment = next((c for found in self.comments.values() for c in found if c["id"] == id_), None)
        if comment is None:
            return Answer(404, {"message": "Not Found"})
        if comment["user"]["login"] != identity.login:
            self.violations.append(f"comment {id_} of {comment['user']['login']} was edited")

        def store(body: str) -> dict[str, Any]:
            comment["body"] = body
            return comment

        return replace(self._write(call, identity, store), headers={})

    def _delete(self, call: Call, identity: Identity, id_: int) -> Answer:
        [comment] = [c for found in self.comments.values() for c in found if c["id"] == id_]
        if comment["user"]["login"] != identity.login:
            self.violations.append(f"comment {id_} of {comment['user']['login']} was deleted")
        for found in self.comments.values():
            found[:] = [c for c in found if c["id"] != id_]
        return Answer(204)

    def _permission(self, login: str) -> Answer:
        if login not in self.permissions:
            return Answer(404, {"message": f"{login} is not a user"})
        body = {"permission": self.permissions[login], "role_name": self.permissions[login], "user": None}
        return Answer(200, body)

    def _pages(self, call: Call, items: list[Any], key: str = "") -> Answer:
        size = min(int(call.query.get("per_page", 30)), self.page_limit)
        page = int(call.query.get("page", 1))
        last = max(-(-len(items) // size), 1)
        shown = items[(page - 1) * size : page * size]
        link = ""
        if page < last:
            targets = {"next": page + 1, "last": last}
            link = ", ".join(
                f'<{self.url}{call.path}?{urlencode({**call.query, "page": n})}>; rel="{r}"' for r, n in targets.items()
            )
        return Answer(200, {"total_count": len(items), key: shown} if key else shown, {"Link": link} if link else {})

    # --- the wire ---------------------------------------------------------------------------------

    def _respond(self, call: Call, raw: bytes) -> Answer:
        """Does what was asked where it is well asked, and holds both sides to the official description."""
        if call.path == "/graphql":
            return self.answer(call)
        if int(call.query.get("per_page", 1)) > 100:
            self.violations.append(f"{call.path}: more than 100 a page")
        if not self._holds(call, lambda: as_described(call.method, call.path, call.query, call.headers, raw)):
            return Answer(400, {"message": "Problems parsing JSON"})
        answer = self.answer(call)
        if (
            answer.status < 500 and answer.status not in (401, 403, 429) and not answer.lawless
        ):  # few operations say these
            answered = encode(answer.body), answer.status, answer.headers
            self._holds(call, lambda: as_described(call.method, call.path, call.query, call.headers, raw, answered))
        return answer

    def _holds(self, call: Call, validate: Callable[[], None]) -> bool:
        try:
            validate()
        except OpenAPIError as error:
            wrong = getattr(error.__cause__, "schema_errors", ())
            causes = [f"{list(found.path)}: {found.message[:300]}" for found in wrong] or [
                repr(error),
                repr(error.__cause__),
            ]
            self.violations.append(f"{call.method} {call.path}: {' / '.join(causes)}")
            return False
        return True

    def _in_api(self, path: str) -> str:
        """A path of the server, as the description has it."""
        if path == urlsplit(self.graphql_url).path:
            return "/graphql"
        if not path.startswith(f"{self._root}/"):
            self.violations.append(f"{path} is outside of the API")
        return path.removeprefix(self._root)

    def _store(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Store(BaseHTTPRequestHandler):
            """Where artifacts are: another host, which is told nothing but its own signed address."""

            def do_GET(self) -> None:
                if "Authorization" in self.headers:
                    fake.violations.append("credentials were sent to the artifact store")
                path, _, query = self.path.partition("?")
                content = fake.contents[int(path.removeprefix("/"))]
                fake.downloads.append(self.path)
                self.send_response(200 if query == "signature=s" else 403)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Store

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                parts = urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                path = fake._in_api(parts.path)
                call = Call(self.command, path, dict(parse_qsl(parts.query)), json.loads(raw or b"null"), headers)
                with fake._lock:
                    lost = any(fault[0](call) and fault[1].lost for fault in fake.faults)
                    fake.calls.append(call)
                    answer = fake._respond(call, raw)
                if lost:
                    self.close_connection = True
                    return
                content = answer.content if answer.content is not None else encode(answer.body)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def as_described(
    method: str,
    path: str,
    query: dict[str, str],
    headers: dict[str, str],
    raw: bytes,
    answered: tuple[bytes, int, dict[str, str]] | None = None,
) -> None:
    """Raises OpenAPIError where a request, or the answer to it, is not as described. What has passed passes again."""
    told = {name: value for name, value in headers.items() if name not in ("host", "authorization")}
    known = hashlib.sha256(repr((method, path, query, told, raw, answered)).encode()).digest()
    if known in _PASSED:
        return
    host = DESCRIPTION["servers"][0]["url"]
    request = MockRequest(host, method.lower(), path, args=query, headers=headers, data=raw or None)
    if answered is None:
        OPENAPI.validate_request(request)
    else:
        content, status, also = answered
        OPENAPI.validate_response(request, MockResponse(content, status, also, "application/json"))
    _PASSED.add(known)


_PASSED: set[bytes] = set()


def ran_as_asked(run: dict[str, Any], call: Call) -> bool:
    asked = {name: call.query.get(name) for name in ("head_sha", "event")} | {"head_branch": call.query.get("branch")}
    state = call.query.get("status")
    return all(value in (None, run[name]) for name, value in asked.items()) and state in (
        None,
        run["status"],
        run["conclusion"],
    )


def simple(pull: dict[str, Any]) -> dict[str, Any]:
    """A pull request as lists show it."""
    made = EXAMPLES.make("pull-request-simple")
    return {**made, **{key: pull[key] for key in made if key in pull}}


def encode(body: Any) -> bytes:
    return b"" if body is None else json.dumps(body).encode()
