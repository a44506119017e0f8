# SPDX-License-Identifier: Apache-2.0
"""The installed libmonkey, and programs built with it."""
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.parse

import pytest

from monkey import BUGS, ENVIRONMENT, ROOT, SECONDS

RELEASE = ROOT / "build" / "release"
BINDING = ROOT / "bindings" / "python"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
SANITIZERS = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def is_built():
    return all((RELEASE / name).exists() for name in ("libmonkey.so", "libmonkey.a", "libmonkey-test.a", "build.ninja")) and bool(shutil.which("cc"))


def guide_test(folder):
    """Writes an example of docs/guide/libmonkey.md, the test without sockets, to a file in the folder."""
    guide = (ROOT / "docs/guide/libmonkey.md").read_text()
    source = folder / "test.c"
    source.write_text(re.search(r"^```c\n(#include <monkey/test_client.h>.*?)^```$", guide, re.MULTILINE | re.DOTALL)[1])
    return source


def sanitizers_for_python():
    """Returns environment variables for a Python interpreter that loads libraries built with sanitizers, and the libmonkey of build/dev."""
    libraries = [call("cc", f"-print-file-name={name}").strip() for name in ("libasan.so", "libubsan.so")]
    if not all(library.startswith("/") for library in libraries):
        pytest.skip("needs the sanitizers of gcc as libraries")
    own = ROOT / "build" / "dev" / "libmonkey.so.1"
    return {"LD_PRELOAD": ":".join(libraries), "PYTHONMALLOC": "malloc",
            "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter leaks at exit
            **({"LIBMONKEY": str(own)} if own.exists() else {})}


def has_package(name):
    return bool(shutil.which("pkg-config")) and subprocess.run(["pkg-config", "--exists", name], check=False).returncode == 0


def call(*command, folder=None, environment=None, seconds=2 * SECONDS):
    done = subprocess.run([str(word) for word in command], cwd=folder, env=os.environ | (environment or {}),
                          capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


class Package:
    """The files that `make install` installs for embedding programs, moved to a folder other than their prefix."""

    def __init__(self, folder):
        if not is_built():
            pytest.skip("needs the release build of libmonkey and a compiler")
        if not shutil.which("pkg-config"):
            pytest.skip("needs pkg-config")
        call("cmake", "--install", RELEASE, "--component", "library", environment={"DESTDIR": str(folder)})
        (self.pkgconfig,) = {path.parent for path in folder.rglob("libmonkey.pc")}
        self.lib = self.pkgconfig.parent
        self.environment = {"PKG_CONFIG_PATH": str(self.pkgconfig), "LD_LIBRARY_PATH": str(self.lib),
                            "CMAKE_PREFIX_PATH": str(self.lib.parent)}

    def flags(self, *packages):
        return call("pkg-config", "--cflags", "--libs", *packages, environment=self.environment).split()

    def compile(self, source, made, *flags, packages=("libmonkey",), compiler="cc", sanitizers=SANITIZERS):
        call(compiler, "-Wall", "-Wextra", "-Werror", *sanitizers, source, *flags, *self.flags(*packages), "-o", made)
        return made

    def run(self, *command, **more):
        return Program(command, self.environment, **more)


class Program:
    """A program that prints the address of its server on its first line of output, and exits on SIGTERM."""

    def __init__(self, command, environment, folder=None):
        self._process = subprocess.Popen([str(word) for word in command], cwd=folder, text=True, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, env=os.environ | ENVIRONMENT | environment)
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            _, output = self._process.communicate(timeout=SECONDS)
            raise AssertionError(f"{command} did not start: {output}")
        self._address = urllib.parse.urlsplit(self.url).netloc

    def get(self, path=None, method="GET", body=None):
        """Returns (status, text) of a response."""
        url = urllib.parse.urlsplit(self.url)
        connection = http.client.HTTPConnection(self._address, timeout=SECONDS)
        connection.request(method, path or (f"{url.path}?{url.query}" if url.query else url.path), body)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data.decode()

    def connect(self):
        return http.client.HTTPConnection(self._address, timeout=SECONDS)

    def send_signal(self, number):
        self._process.send_signal(number)

    def end(self, number=signal.SIGTERM, code=0):
        """Stops the program, checks its exit code, and returns its output."""
        self._process.send_signal(number)
        out, output = self._process.communicate(timeout=SECONDS)
        assert self._process.returncode == code and not BUGS.search(output), (self._process.returncode, output)
        return out + output

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def exported(path, *flags):
    """Returns {name: version} for the functions that a library exports."""
    rows = call("nm", "-P", "--defined-only", "--extern-only", *flags, path).splitlines()
    names = (row.split()[0] for row in rows if re.match(r"\S+ [A-Z] ", row) and not row.endswith(":"))
    return {name.partition("@")[0]: name.rpartition("@")[2] if "@" in name else "" for name in names}
