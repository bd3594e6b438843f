"""The agent of pydantic-ai behind a server that continues its callers' traces; started with the port as argument."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry import context, propagate
from pydantic_ai_agent import agent


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        token = context.attach(propagate.extract(dict(self.headers.items())))
        try:
            said = agent.run_sync(body["messages"][-1]["content"]).output
        finally:
            context.detach(token)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(said.encode())))
        self.end_headers()
        self.wfile.write(said.encode())

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
