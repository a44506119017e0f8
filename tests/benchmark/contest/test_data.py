# SPDX-License-Identifier: Apache-2.0
"""The response checks of database cases find errors, and the backend databases contain the data that the cases need."""
import contextlib
import http.server
import json
import os
import random
import subprocess
import tempfile
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

from contest import backends, data
from contest.contestant import Setup, load_all
from contest.ports import free_port

MESSAGES = ["<script>alert(\"This should not be displayed in a browser alert box.\");</script>", "フレームワークのベンチマーク",
            *(f"Feature {i}: a bug with seniority." for i in range(10)), data.ADDED]


def row(number=None):
    return {"id": random.randint(1, 10000), "randomNumber": number or random.randint(1, 10000)}


def clamped(text):
    return min(max(int(text), 1), 500) if text.isdecimal() else 1


def rows(text):
    return json.dumps([row() for _ in range(clamped(text))]).encode()


def table(messages, escape=data.html.escape):
    cells = "".join(f"<tr><td>{0 if each == data.ADDED else i + 1}</td><td>{escape(each)}</td></tr>" for i, each in enumerate(messages))
    return f"<!doctype html><table><tr><th>id</th><th>message</th></tr>{cells}</table>".encode()


SORTED = sorted(MESSAGES, key=str.encode)
JSON, HTML = "application/json", "text/html; charset=utf-8"
RIGHT = [
    ("/db", JSON, lambda _: json.dumps(row()).encode()),
    ("/queries?queries=20", JSON, rows),
    ("/cached-queries?count=20", JSON, rows),
    ("/fortunes", HTML, lambda _: table(SORTED)),
    ("/page", HTML, lambda _: f"<!DOCTYPE html><p>{data.html.escape(data.MESSAGE)}</p>\n".encode()),
]
WRONG = [
    ("/db", HTML, lambda _: json.dumps(row()).encode(), "Content-Type 'text/html; charset=utf-8'"),
    ("/db", JSON, lambda _: b'{"id":1,"randomNumber":2}', "every response has the same row"),
    ("/db", JSON, lambda _: json.dumps(row("17")).encode(), "is not a row"),
    ("/db", JSON, lambda _: json.dumps(row(10001)).encode(), "is not a row"),
    ("/db", JSON, lambda _: b"[", "Expecting value"),
    ("/queries?queries=20", JSON, lambda text: rows("x" if text == "501" else text), "1 rows instead of 500"),
    ("/queries?queries=20", JSON, lambda text: rows(text or "2"), "2 rows instead of 1"),
    ("/queries?queries=20", JSON, lambda text: json.dumps([row()] * clamped(text)).encode(), "not random"),
    ("/fortunes", HTML, lambda _: table(SORTED[::-1]), "not sorted"),
    ("/fortunes", HTML, lambda _: table(SORTED, str), "one is not escaped|not sorted"),
    ("/fortunes", HTML, lambda _: table(SORTED[:-1]), "12 fortunes instead of 13"),
    ("/page", HTML, lambda _: f"<!DOCTYPE html><p>{data.MESSAGE}</p>\n".encode(), "the page is"),
]


@contextlib.contextmanager
def serving(kind, answer):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            query = parse_qs(urlparse(self.path).query)
            body = answer((query.get("queries") or query.get("count") or [""])[0])
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("path, kind, answer", RIGHT, ids=[path for path, *_ in RIGHT])
def test_check_accepts_correct_responses(path, kind, answer):
    with serving(kind, answer) as port:
        assert data.check(port, path) is None


@pytest.mark.parametrize("path, kind, answer, message", WRONG, ids=[message for *_, message in WRONG])
def test_check_rejects_wrong_responses(path, kind, answer, message):
    with serving(kind, answer) as port:
        fault = data.check(port, path)
    assert fault.startswith(path + ": ") and any(each in fault for each in message.split("|")), fault


def test_check_requires_written_updates():
    with serving(JSON, rows) as port:
        assert data.check(port, "/updates?queries=20") is None
        assert "but is 10001" in data.check(port, "/updates?queries=20", lambda _: 10001)


@pytest.mark.parametrize("name", ["duda", "go", "node", "python"])
def test_contestants_serve_pages_from_databases(name):
    """Needs the programs in build/data, which tools/contest/data/install.sh installs."""
    each = load_all()[name]
    why = backends.lacks("data") or each.find().why or each.missing().get("data")
    if why:
        pytest.skip(f"{name}: {why}")
    # The databases run as a user who cannot read pytest's folders.
    with tempfile.TemporaryDirectory(prefix="contest-") as folder:
        os.chmod(folder, 0o755)
        visit(each, Path(folder))


def visit(each, folder):
    material = type("Material", (), {"root": folder / "root"})
    work_folder = folder / "place"
    work_folder.mkdir()
    with backends.start("data", material, sorted(os.sched_getaffinity(0)), folder / "behind") as databases:
        assert data.number_of(databases.folder, 1) in range(1, 10001)
        setup = Setup(work_folder, folder, free_port(), file="json", **databases.setup())
        with each.prepare(setup).start() as running:
            for path in ("/page", "/db", "/queries?queries=20", "/fortunes", "/updates?queries=20", "/cached-queries?count=20"):
                assert data.check(setup.port, path, lambda number: data.number_of(databases.folder, number)) is None
            assert not set(databases.pids()) & set(running.pids())


def test_lacks_names_a_missing_database(monkeypatch):
    monkeypatch.setattr(data, "_postgres", lambda: None)
    assert backends.lacks("data") == "PostgreSQL is not installed"
    monkeypatch.setattr(data, "_postgres", lambda: "/somewhere")
    monkeypatch.setattr(data.shutil, "which", lambda name: None)
    assert backends.lacks("data") == "Redis is not installed"


def test_databases_that_do_not_start_are_reported(tmp_path, monkeypatch):
    def fail(*_):
        raise subprocess.CalledProcessError(1, "initdb")

    monkeypatch.setattr(data, "prepare", fail)
    with pytest.raises(backends.Failed, match="cannot create the databases.*initdb"):
        backends.start("data", type("Material", (), {"root": tmp_path / "root"}), [0], tmp_path / "behind")
