# SPDX-License-Identifier: Apache-2.0
"""wr and small servers, each of which has one known behavior to measure."""
import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PROGRAM = os.environ.get("WR_PROGRAM", str(ROOT / "build" / "dev" / "wr"))


class Wr:
    """Runs wr with the folder `path` first in PATH."""

    def __init__(self, path):
        self.path, self.program = path, PROGRAM

    def environment(self):
        return dict(os.environ, PATH=f"{self.path}{os.pathsep}{os.environ['PATH']}", LC_ALL="C")

    def run(self, *words, code=0, before=()):
        done = subprocess.run([*before, PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=50,
                              env=self.environment(), check=False, start_new_session=True)
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done

    def shots(self, *words, before=()):
        """Returns (document, shots of the first step, standard error)."""
        done = self.run("--json", *words, before=before)
        document = json.loads(done.stdout)
        return document, document["steps"][0]["shots"], done.stderr

    def script(self, name, text):
        """Creates a fake client with the name of a client that wr supports."""
        file = self.path / name
        file.write_text(f"#!{sys.executable}\n{text}")
        file.chmod(0o755)


@pytest.fixture
def wr(tmp_path):
    if not os.path.exists(PROGRAM):
        pytest.fail(f"{PROGRAM} is not there: build it, or let WR_PROGRAM name it")
    folder = tmp_path / "clients"
    folder.mkdir()
    return Wr(folder)


class Server:
    def __init__(self, process, port, more):
        self.process, self.port, self.more = process, port, more
        self.pid = process.pid
        self.url = f"http://127.0.0.1:{port}/"


@pytest.fixture
def serve():
    """Starts the server of this kind in tests/benchmark/wr/servers.py."""
    started = []

    def start(kind, *words, before=()):
        process = subprocess.Popen([*before, sys.executable, str(HERE / "servers.py"), kind, *map(str, words)],
                                   stdout=subprocess.PIPE, text=True, start_new_session=True)
        started.append(process)
        assert select.select([process.stdout], [], [], 20)[0], "the server does not start"
        port, *more = process.stdout.readline().split()
        return Server(process, int(port), more)

    yield start
    for process in started:
        try:
            os.killpg(process.pid, 9)  # the process has its own session: this kills only the process and its descendants
        except ProcessLookupError:
            pass
        process.wait()
        process.stdout.close()
