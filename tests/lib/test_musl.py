# SPDX-License-Identifier: Apache-2.0
"""The server and the library built with musl instead of glibc: a static program with all plugins and the tester of Duda services, and
a static program with libmonkey. Debian's musl-gcc does not find the kernel headers, so the test adds those of this machine.
"""
import os
import shutil
import subprocess
import urllib.request

import pytest

from monkey import ROOT, SECONDS
from package import Program, call, guide_test

BUILD_SECONDS = 900
pytestmark = [pytest.mark.slow, pytest.mark.timeout(BUILD_SECONDS), pytest.mark.skipif(not shutil.which("musl-gcc") or not shutil.which("cmake"),
                                                   reason="needs musl-gcc and cmake")]


def find_kernel_headers(folder):
    multiarch = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=False).stdout.strip()
    for name in ("linux", "asm", "asm-generic"):
        found = [path for path in (f"/usr/include/{multiarch}/{name}", f"/usr/include/{name}") if os.path.isdir(path)]
        if not found:
            pytest.skip("needs the headers of the kernel")
        (folder / name).symlink_to(found[0])
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("musl")
    (folder / "kernel").mkdir()
    headers = find_kernel_headers(folder / "kernel")
    call("cmake", "-S", ROOT, "-B", folder / "build", "-G", "Ninja", "-DCMAKE_C_COMPILER=musl-gcc",
         f"-DCMAKE_C_FLAGS=-isystem {headers} -O0", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_EXE_LINKER_FLAGS=-static",
         "-DMK_LIBRARIES=OFF", "-DMK_EXPORTS=OFF", "-DMK_PLUGINS_STATIC=all", seconds=BUILD_SECONDS)
    call("cmake", "--build", folder / "build", "--target", "server", "libmonkey.a", "libmonkey-test.a", seconds=BUILD_SECONDS)
    return folder / "build"


def test_musl_server_is_one_static_program(built, tmp_path):
    assert b"/ld-musl-" not in (built / "monkey").read_bytes()
    (tmp_path / "index.html").write_text("from musl\n")
    process = subprocess.Popen([built / "monkey", "-p", "127.0.0.1:0", tmp_path], stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()  # "Monkey ... serves ..."
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            assert answer.read() == b"from musl\n"
    finally:
        process.terminate()
        assert process.wait(SECONDS) == 0
        process.stdout.close()


def test_musl_server_contains_all_plugins(built):
    output = call(built / "monkey", "-V")
    (inside,) = [line for line in output.splitlines() if line.startswith("built in")]
    for name in ("cgi", "fastcgi", "isolate", "limits", "proxy", "security", "upstream", "websocket"):
        assert name in inside.split()


def test_musl_static_program_with_libmonkey_serves(built, tmp_path):
    made = tmp_path / "hello"
    call("musl-gcc", "-static", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", ROOT / "examples/embed/hello.c",
         built / "libmonkey.a", "-o", made)
    with Program([made, "127.0.0.1:0"], {}) as program:
        assert program.get() == (200, "hello\n")


def test_musl_static_test_without_sockets_works(built, tmp_path):
    made = tmp_path / "test"
    call("musl-gcc", "-static", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", guide_test(tmp_path), built / "libmonkey-test.a",
         "-o", made)
    assert call(made) == "1: 0 200 hello\n"  # built without HTTP/2
