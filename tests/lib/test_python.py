# SPDX-License-Identifier: Apache-2.0
"""The Python binding as its users install it: with pip into a virtual environment."""
import http.client
import os
import re
import subprocess
import sys
import tarfile

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect as websocket

from monkey import ROOT, SECONDS
from package import BINDING, PIP, call, sanitizers_for_python
from proc import wait_until

APP = ROOT / "tests" / "lib" / "python_app.py"


def test_python_binding_installs_from_source_archive(package, python, tmp_path):
    """pip builds a wheel from the source package, as it does for a package from an index."""
    source = python.parents[2] / "source"
    name = call(sys.executable, "-c", f"import backend; print(backend.build_sdist({str(tmp_path)!r}))", folder=source,
                environment=package.environment).strip()
    with tarfile.open(tmp_path / name) as archive:
        assert f"{name.removesuffix('.tar.gz')}/PKG-INFO" in archive.getnames()
    call(*PIP, "install", "--quiet", "--no-index", "--no-compile", "--no-build-isolation", "--target", tmp_path / "there", tmp_path / name)
    program = ("import libmonkey\nwith libmonkey.Server() as s:\n    s.listen('127.0.0.1:0')\n"
               "print(libmonkey.__file__)\n")
    output = call(sys.executable, "-c", program, environment=package.environment | {"PYTHONPATH": str(tmp_path / "there")})
    assert output.startswith(str(tmp_path / "there"))


def test_python_binding_rejects_library_of_another_major_version(python, tmp_path):
    (tmp_path / "later.c").write_text('const char *mk_version(void) { return "3.1.0"; }')
    library = tmp_path / "libmonkey.so.1"
    call("cc", "-shared", "-fPIC", tmp_path / "later.c", "-o", library)
    program = "try:\n    import libmonkey\nexcept ImportError as error:\n    print(error)\n"
    assert call(python, "-c", program, environment={"LIBMONKEY": str(library)}) == f"{library} has version 3.1.0, but this package needs 2.x\n"


@pytest.fixture(scope="module", params=["threads", "loop", "asyncio"])
def app(package, python, request):
    """Runs the application in one of its three modes; its output is read at the end."""
    with package.run(python, APP, request.param) as program:
        program.how = request.param
        yield program
        output = program.end()
        assert "Traceback" not in re.sub(r"Traceback(?:.*\n)+?(RuntimeError: (a mistake|coroutines )|ZeroDivisionError|TypeError: only a handler).*\n", "", output), output


def test_python_handler_returns_text(app):
    connection = app.connect()
    connection.request("GET", "/hello?a=1")
    answer = connection.getresponse()
    assert (answer.status, answer.read(), answer.getheader("X-Path")) == (200, b"hello a=1 by GET\n", "/hello")
    connection.close()


def test_python_handler_gets_parameters(app):
    assert app.get("/users/-7/%C3%A9") == (200, "(-7, 'é', None, True)")
    assert app.get("/users/x/y")[0] == 404
    assert app.get("/users/1/y", method="POST")[0] == 405


def test_python_handler_may_be_a_generator(app):
    assert app.get("/numbers?50000") == (200, "".join(f"{n}\n" for n in range(50000)))


def test_python_generator_ends_on_disconnect(app):
    before = app.get("/ended")[1].count("numbers")
    connection = app.connect()
    connection.request("GET", "/numbers?1000000000")
    connection.getresponse().read(1000)
    connection.close()
    wait_until(lambda: app.get("/ended")[1].count("numbers") > before, "the generator's `finally` ran")


def test_python_handler_reads_complete_body(app):
    assert app.get("/length", "POST", b"x" * 500000) == (200, "500000\n")
    assert app.get("/length", "POST", b"") == (200, "0\n")


def test_python_handler_serves_file(app):
    assert app.get("/file") == (200, APP.read_text())


def test_python_handler_errors_become_statuses(app):
    assert app.get("/gone")[0] == 410
    assert app.get("/wrong")[0] == 500
    assert app.get("/hello")[0] == 200


def test_python_handler_may_be_a_coroutine(app):
    if app.how != "asyncio":
        assert app.get("/upload", "POST", b"x")[0] == 500
        return
    assert app.get("/upload", "POST", b"x" * 500000) == (200, "500000\n")
    assert app.get("/ticks") == (200, "tick 0\ntick 1\ntick 2\n")


def test_python_coroutine_ends_on_disconnect(app):
    if app.how != "asyncio":
        pytest.skip("of asyncio")
    connection = app.connect()
    connection.request("GET", "/ever")
    connection.close()
    wait_until(lambda: "ever" in app.get("/ended")[1], "the coroutine was cancelled")


def test_python_deferred_responds_from_another_thread(app):
    for delay in ("0", "0.02"):
        connection = app.connect()
        connection.request("GET", f"/later?{delay}")
        answer = connection.getresponse()
        assert (answer.status, answer.read(), answer.getheader("X-Late")) == (201, f'{{"deferred": {float(delay)}}}'.encode(), "yes")
        connection.close()
    wait_until(lambda: app.get("/ended")[1].count("later-") == 2, "a second response was rejected")
    assert app.get("/fail-later")[0] == 500


def test_python_deferred_reports_disconnect(app):
    before = app.get("/ended")[1].count("later-Ended")
    connection = app.connect()
    connection.request("GET", "/later?0.3")
    connection.close()
    wait_until(lambda: app.get("/ended")[1].count("later-Ended") == before + 1, "the thread has noticed that the request has ended")


def test_python_deferred_of_another_request_is_rejected(app):
    connection = app.connect()
    connection.request("GET", "/foreign-deferred")  # gets no response, so its Deferred stays valid until the connection closes
    wait_until(lambda: app.get("/kept-deferreds")[1] == "1", "the application has the Deferred of the first request")
    assert app.get("/foreign-deferred")[0] == 500
    connection.close()


def test_python_events_are_encoded(app):
    connection = app.connect()
    connection.request("GET", "/events")
    answer = connection.getresponse()
    assert answer.getheader("Content-Type") == "text/event-stream"
    assert answer.read() == b'data: one\ndata: two\n\ndata: {"json": 1}\n\nevent: tick\nid: 7\nretry: 1000\ndata: named\n\n:\n\n'
    connection.close()


def connect(app, path, **options):
    return websocket(f"ws://{app._address}{path}", open_timeout=SECONDS, **options)


def test_python_websocket_echoes_and_closes(app):
    with connect(app, "/echo", subprotocols=["two"]) as client:
        assert (client.subprotocol, client.recv(SECONDS)) == ("two", "hello /echo")
        for message in ("text é", b"bytes", b"\0" * 300000):
            client.send(message)
            assert client.recv(SECONDS) == message
        client.send("close")
        with pytest.raises(ConnectionClosed) as caught:
            client.recv(SECONDS)
    assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (4001, "asked to")
    wait_until(lambda: "echo-4001" in app.get("/ended")[1], "on_close() was called")
    assert app.get("/echo")[0] == 426


def test_python_websocket_failure_closes_with_1011(app):
    with connect(app, "/fail") as client:
        client.send("x")
        with pytest.raises(ConnectionClosed) as caught:
            client.recv(SECONDS)
    assert caught.value.rcvd.code == 1011


def test_python_websocket_coroutine_waits_for_slow_client(app):
    if app.how != "asyncio":
        with connect(app, "/flood") as client, pytest.raises(ConnectionClosed):
            client.recv(SECONDS)
        return
    with connect(app, "/flood", max_queue=1) as client:
        assert [client.recv(SECONDS) for _ in range(200)] == [bytes(20000)] * 200
        client.send("back")
        assert client.recv(SECONDS) == "back"
    wait_until(lambda: "flood-1000" in app.get("/ended")[1], "the coroutine has seen the end")


@pytest.mark.parametrize("how", ["loop", "asyncio"])
def test_python_keyboard_interrupt_in_handler_ends_server(package, python, how):
    with package.run(python, APP, how) as program:
        try:
            program.get("/interrupt")
        except (OSError, http.client.HTTPException):
            pass
        assert program._process.wait(SECONDS) != 0
        assert "KeyboardInterrupt" in program._process.stderr.read()


def test_python_annotations_pass_mypy(tmp_path):
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, BINDING / "libmonkey"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout
    (tmp_path / "wrong.py").write_text("import libmonkey\nlibmonkey.Server().listen(5)\n")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, tmp_path / "wrong.py"], capture_output=True, text=True,
                          env=os.environ | {"MYPYPATH": str(BINDING)}, check=False)
    assert done.returncode == 1 and 'incompatible type "int"; expected "str"' in done.stdout


def test_python_invalid_setting_raises_with_hint(package, python):
    program = "import libmonkey\nwith libmonkey.Server() as s:\n    s.set('SERVER', 'KeepAliveTimout', '1s')\n"
    done = subprocess.run([python, "-c", program], env=package.environment, capture_output=True, text=True, check=False)
    assert "libmonkey.server.Error: unknown key `KeepAliveTimout`" in done.stderr and "`KeepAliveTimeout`" in done.stderr


HOSTILE = ROOT / "tests" / "lib" / "python_misuse.py"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("how", ["threads", "loop", "asyncio", "drop"])
def test_python_misuse_raises_and_never_crashes(package, python, how, seed):
    environment = package.environment | (sanitizers_for_python() if seed else {})
    done = subprocess.run([python, "-X", "faulthandler", HOSTILE, how, str(seed)], env=os.environ | environment, capture_output=True, text=True,
                          timeout=55, check=False)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr[-3000:]


RESULTS = """
import libmonkey
server = libmonkey.Server()
kept = []

@server.route("GET /dict")
def of_dict(request, response): return {"a": [1, "é"]}
@server.route("GET /list")
def of_list(request, response): return ["a", None]
@server.route("GET /tuple")
def of_tuple(request, response): return "made", 201
@server.route("GET /fields")
def of_fields(request, response): return b"made", 202, {"X-A": "b", "Content-Type": "image/png"}
@server.route("GET /created")
def of_number(request, response): return 204
@server.route("GET /missing")
def of_error(request, response): return 404
@server.route("GET /bytes")
def of_bytes(request, response): return b"\\0\\1"
@server.route("GET /text")
def of_text(request, response): return "<script>"
@server.route("GET /bool")
def of_bool(request, response): return True
@server.route("GET /float")
def of_float(request, response): return 1.5
@server.route("GET /pair")
def of_pair(request, response): return "a", "b"
@server.route("GET /keep")
def keep(request, response):
    kept.append((request, response))
    return "kept"
@server.route("GET /kept")
def of_kept(request, response):
    request, response = kept[0]
    told = []
    for use in (lambda: request.path, lambda: request.header("X-Secret"), request.headers, lambda: response.set_status(500)):
        try:
            told.append(use())
        except libmonkey.Ended as problem:
            told.append(str(problem))
    return told

print(f"http://127.0.0.1:{server.listen()}/", flush=True)
server.run()
"""


@pytest.fixture(scope="module")
def results(package, python):
    with package.run(python, "-c", RESULTS.replace("\\\\", "\\")) as program:
        yield program


@pytest.mark.parametrize("path, status, content, media_type", [
    ("/dict", 200, b'{"a": [1, "\\u00e9"]}', "application/json"),
    ("/list", 200, b'["a", null]', "application/json"),
    ("/tuple", 201, b"made", "text/plain; charset=utf-8"),
    ("/fields", 202, b"made", "image/png"),
    ("/created", 204, b"", None),
    ("/bytes", 200, b"\0\1", "application/octet-stream"),
    ("/text", 200, b"<script>", "text/plain; charset=utf-8"),
])
def test_python_result_types_map_to_media_types(results, path, status, content, media_type):
    connection = results.connect()
    connection.request("GET", path)
    answer = connection.getresponse()
    assert (answer.status, answer.read(), answer.getheader("Content-Type")) == (status, content, media_type)
    connection.close()


@pytest.mark.parametrize("path", ["/bool", "/float", "/pair"])
def test_python_result_of_unknown_type_gets_500(results, path):
    assert results.get(path)[0] == 500
    assert results.get("/missing")[0] == 404


def test_python_ended_request_raises_exception(results):
    assert results.get("/keep") == (200, "kept")
    assert results.get("/kept") == (200, '["the request has ended", "the request has ended", "the request has ended", "the request has ended"]')
