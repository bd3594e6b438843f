"""The same agent of google-adk, served over A2A as google-adk does it."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import uvicorn
from google.adk.a2a.utils.agent_to_a2a import to_a2a

sys.path.insert(0, str(Path(__file__).parent / "adk_apps"))


def main() -> None:
    from shop.agent import root_agent

    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        port = listening.getsockname()[1]
        app = to_a2a(root_agent, port=port)
        print(port, flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main()
