# SPDX-License-Identifier: Apache-2.0
"""The Python binding as its users install it: with pip into a virtual environment."""
import re
import subprocess
import sys
import tarfile

import pytest

from monkey import ROOT
from package import PIP, call
from proc import wait_until

APP = ROOT / "tests" / "lib" / "python_app.py"


def test_python_binding_installs_from_source_archive(package, python, tmp_path):
    """As from a package index: pip builds a wheel from the source package."""
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
        assert "Traceback" not in re.sub(r"Traceback(?:.*\n)+?RuntimeError: (a mistake|coroutines and asynchronous).*\n", "", output), output


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


def test_python_invalid_setting_raises_with_hint(package, python):
    program = "import libmonkey\nwith libmonkey.Server() as s:\n    s.set('SERVER', 'KeepAliveTimout', '1s')\n"
    done = subprocess.run([python, "-c", program], env=package.environment, capture_output=True, text=True, check=False)
    assert "libmonkey.server.Error: unknown key `KeepAliveTimout`" in done.stderr and "`KeepAliveTimeout`" in done.stderr


HOSTILE = ROOT / "tests" / "lib" / "python_misuse.py"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("how", ["threads", "loop", "asyncio", "drop"])
def test_python_misuse_raises_and_never_crashes(package, python, how, seed):
    done = subprocess.run([python, "-X", "faulthandler", HOSTILE, how, str(seed)], env=package.environment, capture_output=True, text=True,
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
