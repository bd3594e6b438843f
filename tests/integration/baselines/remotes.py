"""Real remotes for the tests: bare repositories, and git's own smart HTTP server on loopback."""

import os
import subprocess
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def bare(path: Path) -> Path:
    path.mkdir(parents=True)
    git(path, "init", "-q", "--bare", ".")
    git(path, "config", "uploadpack.allowFilter", "true")
    git(path, "config", "http.receivepack", "true")
    return path


def clone_with_history(remote: Path, path: Path, commits: int = 3) -> Path:
    """A work tree whose commits are on the remote's main branch."""
    path.mkdir()
    git(path, "init", "-q")
    git(path, "remote", "add", "origin", f"file://{remote}")
    for number in range(commits):
        (path / "agent.py").write_text(f"version = {number}\n")
        git(path, "add", "-A")
        git(path, "commit", "-q", "-m", f"commit {number}")
    git(path, "push", "-q", "origin", "main")
    return path


class GitHandler(BaseHTTPRequestHandler):
    """Hands requests to git http-backend, if they are signed in."""

    root: Path
    token: str
    seen: list[str]

    def log_message(self, format: str, *arguments: object) -> None: ...

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b"".join(iter(self._chunk, b""))
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._serve(body)

    def _chunk(self) -> bytes:
        data = self.rfile.read(int(self.rfile.readline(), 16))
        self.rfile.readline()
        return data

    def _serve(self, body: bytes) -> None:
        given = self.headers.get_all("Authorization") or []
        signed = [b64decode(value.partition(" ")[2]).decode() for value in given]
        self.seen.append(",".join(signed))
        if signed != [f"x-access-token:{self.token}"]:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "t",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "CONTENT_LENGTH": str(len(body)),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n") if line]
        status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200)
        self.send_response(status)
        for name, value in headers:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def http_remote(root: Path, token: str) -> Iterator[tuple[str, list[str]]]:
    """Serves the bare repositories below ``root``; yields the base URL, and who signed in, per request."""
    seen: list[str] = []
    handler = type("Handler", (GitHandler,), {"root": root, "token": token, "seen": seen})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
