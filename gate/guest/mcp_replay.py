"""A process between an MCP client and a server on standard streams: the gate's proxy decides how each message is
answered.

Standard library only, Python 3.8 and later, like everything that runs next to the user's agent. Without GATE_WORLD_URL
it becomes the server itself. The server is started for the first message that it must answer, so never if a recording
answers all.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

SECONDS = 60
SOURCES = {*(".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".sh", ".jar", ".php", ".pl")}
"""Endings of files with a server's code. Any other file on the command line may be one that it writes to."""


class Between:
    """The client on the standard streams, the proxy at an address, and the server as a process."""

    def __init__(self, command: list[str], url: str) -> None:
        self.command, self.url = command, url
        self.program = program_of(command)
        self.server: Any = None
        self.reading: Any = None
        self.numbers: dict[str, str] = {}
        """The id of a call that went to the server → the proxy's number for it."""
        self.writing = threading.Lock()

    def say(self, line: bytes) -> None:
        with self.writing:
            sys.stdout.buffer.write(line.rstrip(b"\r\n") + b"\n")
            sys.stdout.buffer.flush()

    def ask(self, body: bytes, number: str = "") -> tuple[int, bytes, str]:
        """Return status, body and number of the proxy's answer; ``number``: the call that this body is the server's
        answer to."""
        headers = {"Content-Type": "application/json", "X-Gate-Program": self.program}
        if number:
            headers["X-Gate-Call"] = number
        request = urllib.request.Request(self.url, body, headers)  # noqa: S310 - the gate's own address
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(request, timeout=SECONDS) as answer:
                return answer.status, answer.read(), answer.headers.get("X-Gate-Call") or ""
        except urllib.error.HTTPError as error:
            return error.code, error.read(), ""

    def forward(self, line: bytes) -> None:
        if self.server is None:
            self.server = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
            self.reading = threading.Thread(target=self.read)
            self.reading.start()
        self.server.stdin.write(line)
        self.server.stdin.flush()

    def read(self) -> None:
        """Pass on everything that the server says; answers to calls are recorded before the client gets them."""
        for line in self.server.stdout:
            number = self.numbers.pop(identity(line), "")
            if number:
                self.ask(line, number)
            self.say(line)

    def take(self, line: bytes) -> None:
        """Handle a message of the client."""
        message = parsed(line)
        if not isinstance(message, dict) or "method" not in message:
            return self.forward(line)
        status, body, number = self.ask(line)
        if status == 204:
            if number and "id" in message:
                self.numbers[json.dumps(message["id"])] = number
            return self.forward(line)
        if status == 200 and body:
            return self.say(body)
        if status != 202:
            text = f"gate: the proxy answers {status}: {body[:500].decode('utf-8', 'replace')}"
            error = {"code": -32000, "message": text}
            self.say(json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "error": error}).encode())
        return None

    def end(self) -> int:
        if self.server is None:
            return 0
        self.server.stdin.close()
        try:
            self.server.wait(5)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        self.reading.join()
        return int(self.server.returncode)


def program_of(command: list[str]) -> str:
    """Return a digest of the command that starts the server and of the code that it names, including a module's folder.

    So a recording no longer applies once a change edits its own server.
    """
    here, found = str(Path.cwd()), hashlib.sha256()
    files = [path for path in map(Path, command) if path.suffix in SOURCES and path.is_file()]
    for place, word in enumerate(command[1:]):
        if command[place] == "-m":
            module = Path(word.replace(".", os.sep))
            files += [*sorted(module.rglob("*.py")), Path(str(module) + ".py")]
    for word in [Path(command[0]).name, *command[1:]]:
        found.update(word.replace(here, ".").encode("utf-8", "replace") + b"\0")
    for path in files:
        try:
            with path.open("rb") as file:
                for piece in iter(lambda: file.read(1 << 20), b""):
                    found.update(piece)
        except OSError:
            continue
    return found.hexdigest()[:40]


def parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def identity(line: bytes) -> str:
    """Return the id of the call that a message answers; empty if it answers none."""
    message = parsed(line)
    if isinstance(message, dict) and "id" in message and ("result" in message or "error" in message):
        return json.dumps(message["id"])
    return ""


def main(name: str, command: list[str]) -> int:
    """Run until the client closes standard input. Return the server's exit code."""
    base = os.environ.get("GATE_WORLD_URL")
    if not base:
        os.execvp(command[0], command)  # noqa: S606 - the user's own server
    between = Between(command, f"{base}/stdio/{name}")
    try:
        for line in sys.stdin.buffer:
            if line.strip():
                between.take(line)
    finally:
        code = between.end()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
