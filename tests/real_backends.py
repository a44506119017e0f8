# SPDX-License-Identifier: Apache-2.0
"""Backends as users write them, for Node.js, gunicorn and uvicorn, and a server of the websockets package."""
import contextlib
import shutil
import socket
import subprocess
import sys
import threading

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

from monkey import SECONDS
from proc import wait_until

NODE = shutil.which("node") or shutil.which("nodejs")

NODE_PROGRAM = r"""
const http = require("http"), crypto = require("crypto");
const listeners = [];
let connections = 0;

const answers = {
    seen: (ask, answer) => answer.end(JSON.stringify({url: ask.url, fields: ask.headers, connections})),
    echo: (ask, answer) => {
        answer.writeHead(200, {"Content-Type": "application/octet-stream", "X-Length": ask.headers["content-length"] || "none"});
        ask.pipe(answer);
    },
    chunked: (ask, answer) => {
        answer.writeHead(200, {"Content-Type": "text/plain", "Trailer": "X-Sum"});
        for (let i = 0; i < 100; i++) answer.write("line " + i + "\n");
        answer.addTrailers({"X-Sum": "4950"});
        answer.end();
    },
    events: (ask, answer) => {
        answer.writeHead(200, {"Content-Type": "text/event-stream", "Cache-Control": "no-store"});
        answer.write(": hello\n\n");
        listeners.push(answer);
        ask.on("close", () => listeners.splice(listeners.indexOf(answer), 1));
    },
    tell: (ask, answer) => {
        for (const each of listeners) each.write("data: " + ask.url.split("?")[1] + "\n\n");
        answer.end(String(listeners.length));
    },
    hints: (ask, answer) => answer.writeEarlyHints({link: "</a.css>; rel=preload; as=style"}, () => answer.end("hinted")),
    cookies: (ask, answer) => { answer.setHeader("Set-Cookie", ["a=1", "b=2"]); answer.writeHead(302, {Location: "/node/seen"}).end(); },
    die: (ask, answer) => { answer.write("some"); setImmediate(() => ask.socket.destroy()); },
};

const server = http.createServer((ask, answer) => answers[ask.url.split("?")[0].split("/")[2]](ask, answer));
server.on("connection", () => connections++);
server.on("upgrade", (ask, socket, head) => {  // expects one short text frame at a time; returns its text in capitals
    const sum = crypto.createHash("sha1").update(ask.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 + "Sec-WebSocket-Accept: " + sum.digest("base64") + "\r\n\r\n");
    socket.on("error", () => {});
    socket.on("data", data => {
        const size = data[1] & 127, mask = data.subarray(2, 6), text = data.subarray(6, 6 + size).map((byte, i) => byte ^ mask[i & 3]);
        const said = data[0] == 0x81 ? Buffer.from(text.toString().toUpperCase()) : text;
        socket.write(Buffer.concat([Buffer.from([data[0], said.length]), said]));
        if (data[0] == 0x88) socket.end();
    });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
"""

PYTHON_PROGRAM = '''
import json

def wsgi(environ, start_response):
    path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
    content = environ["wsgi.input"].read()
    if path == "/wsgi/stream":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return (b"%d\\n" % i * 1000 for i in range(100))
    if path == "/wsgi/echo":
        start_response("200 OK", [("Content-Type", "application/octet-stream"), ("Content-Length", str(len(content)))])
        return [content]
    texts = {name: value for name, value in environ.items() if isinstance(value, str)}
    body = json.dumps({"environ": texts, "length": len(content)}).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body if method != "HEAD" else b""]

async def asgi(scope, receive, send):
    if scope["type"] == "websocket":
        return await talk(scope, receive, send)
    if scope["path"] == "/asgi/echo":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/octet-stream")]})
        more = True
        while more:
            message = await receive()
            more = message.get("more_body", False)
            await send({"type": "http.response.body", "body": message.get("body", b""), "more_body": more})
        return
    body = json.dumps({"path": scope["path"], "query": scope["query_string"].decode(), "scheme": scope["scheme"],
                       "client": scope["client"]}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body})

async def talk(scope, receive, send):
    await receive()
    if scope["path"] == "/asgi/refused":
        return await send({"type": "websocket.close", "code": 1008})
    await send({"type": "websocket.accept", "subprotocol": scope["subprotocols"][0] if scope["subprotocols"] else None})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"].upper()})
'''


def echo_messages(connection):
    """The handler of the websockets server: it echoes messages and reports their length."""
    with contextlib.suppress(ConnectionClosed):
        for message in connection:
            connection.send(message)
            connection.send(str(len(message)))


class RealBackends:
    """Starts all backends at the same time; the addresses are in addresses[name]."""

    def __init__(self, folder):
        self.folder, self.processes, self.addresses = folder, [], {}

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        (self.folder / "program.py").write_text(PYTHON_PROGRAM)
        (self.folder / "program.js").write_text(NODE_PROGRAM)
        node = self._run(NODE, "program.js", stdout=subprocess.PIPE) if NODE else None
        gunicorn, uvicorn = self._socket("wsgi"), self._socket("asgi")
        self._run(sys.executable, "-m", "gunicorn", "--bind", f"unix:{gunicorn}", "--workers", "1", "--worker-class", "gthread",
                  "--threads", "8", "--forwarded-allow-ips", "*", "--no-control-socket", "program:wsgi")
        self._run(sys.executable, "-m", "uvicorn", "--uds", uvicorn, "--lifespan", "off", "--no-access-log",
                  "--forwarded-allow-ips", "*", "program:asgi")
        self._websockets = serve(echo_messages, "127.0.0.1", 0)
        threading.Thread(target=self._websockets.serve_forever, daemon=True).start()
        self.addresses["ws"] = "127.0.0.1:%d" % self._websockets.socket.getsockname()[1]
        for path in (gunicorn, uvicorn):
            wait_until(lambda: accepts(path), f"{path} accepts connections: {self.log}")
        if node:
            self.addresses["node"] = f"127.0.0.1:{int(node.stdout.readline())}"

    def _socket(self, name):
        self.addresses[name] = f"unix:{self.folder}/{name}.sock"
        return f"{self.folder}/{name}.sock"

    def _run(self, *command, stdout=None):
        with open(self.folder / "log", "ab") as log:
            self.processes.append(subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=stdout or log,
                                                   stderr=log, start_new_session=True))
        return self.processes[-1]

    @property
    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def __exit__(self, *_):
        self._websockets.shutdown()
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.communicate(timeout=SECONDS)


def accepts(path):
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.connect_ex(path) == 0
