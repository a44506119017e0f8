# SPDX-License-Identifier: Apache-2.0
"""The wheel of the Python binding, in a fresh virtual environment, where it uses no libmonkey but its own."""
import os
import re
import subprocess
import sys
import urllib.request
import zipfile

import pytest

from certificates import make_authority
from monkey import ROOT, SECONDS
from package import PIP, Program, call, is_built

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_built(), reason="needs the release build of libmonkey and a compiler")]
WITHOUT = {"LIBMONKEY": "", "LD_LIBRARY_PATH": ""}
SYNC = """
import libmonkey
server = libmonkey.Server()

@server.route("GET /")
def hello(request, response):
    return "hello from the wheel"

print(f"http://127.0.0.1:{server.listen('127.0.0.1:0')}/", flush=True)
server.run()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("auditwheel")
    output = tmp_path_factory.mktemp("wheels")
    call(ROOT / "tools/package/wheels.sh", "--output", output, "glibc", environment={"WHEEL_VENV": sys.prefix}, seconds=100)
    (made,) = output.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The interpreter of an environment with the wheel."""
    folder = tmp_path_factory.mktemp("fresh")
    call(sys.executable, "-m", "venv", "--without-pip", folder)
    call(*PIP, "--python", folder / "bin/python", "install", "--quiet", "--no-index", "--no-compile", wheel)
    return folder / "bin/python"


def test_wheel_is_manylinux_with_all_its_libraries(wheel):
    assert re.fullmatch(r"libmonkey-2\.0\.0-cp3\d+-(abi3|cp3\d+)-manylinux_2_\d+_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "libmonkey/libmonkey.so.1" in names and "libmonkey/monkey/monkey-tls.so" in names
    assert any(name.startswith("libmonkey.libs/libnghttp2") for name in names)


def test_wheel_serves_handlers(installed):
    with Program((installed, "-c", SYNC), WITHOUT) as server:
        assert server.get("/") == (200, "hello from the wheel")


def test_wheel_uses_its_own_libraries(installed):
    program = ("import libmonkey.asgi, re\nlines = open('/proc/self/maps').read()\n"
               "print(sorted(set(re.findall(r'/\\S*(?:libmonkey|libnghttp2|libpcre2)\\S*', lines))))")
    names = call(installed, "-c", program, environment=WITHOUT)
    assert "libnghttp2-" in names and "'/usr" not in names and "'/lib" not in names, names


def test_wheel_serves_asgi_with_tls(installed, tmp_path):
    authority = make_authority(tmp_path / "a folder")
    pair = authority.issue()
    (tmp_path / "app.py").write_text(
        "async def app(scope, receive, send):\n    assert scope['type'] == 'http'\n"
        "    await send({'type': 'http.response.start', 'status': 200})\n    await send({'type': 'http.response.body', 'body': b'secret'})\n")
    with Program((installed.parent / "monkey-asgi", "app:app", "-b", "127.0.0.1:0", "--certificate", pair.certificate, "--key", pair.key), WITHOUT,
                 folder=tmp_path) as server:
        with urllib.request.urlopen(server.url, timeout=SECONDS, context=authority.client_context()) as answer:
            assert answer.read() == b"secret"


def test_python_without_library_says_what_to_do(python):
    done = subprocess.run([python, "-c", "import libmonkey"], env=os.environ | WITHOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "LIBMONKEY=" in done.stderr and "make install" in done.stderr
    done = subprocess.run([python, "-c", "import libmonkey"], env=os.environ | {"LIBMONKEY": "/none"}, capture_output=True, text=True, check=False)
    assert "ImportError: libmonkey: cannot load the library of the Monkey HTTP server (/none)" in done.stderr
    done = subprocess.run([python, "-c", "import libmonkey"], env=os.environ | {"LIBMONKEY": "libc.so.6"}, capture_output=True, text=True, check=False)
    assert "libc.so.6 is not libmonkey, or too old: it has no mk_version()" in done.stderr
