# SPDX-License-Identifier: Apache-2.0
"""The Go example, built against the installed package."""
import shutil
import threading

import pytest

from monkey import ROOT
from package import call

EXAMPLE = ROOT / "examples" / "embed" / "go"
GO = shutil.which("go") or shutil.which("/usr/local/go/bin/go")


@pytest.mark.skipif(not GO, reason="needs Go")
@pytest.mark.timeout(180)  # some Go distributions first compile their standard library
def test_example_hello_in_go_serves(package, tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "go")
    call(GO, "build", "-o", tmp_path / "hello", ".", folder=tmp_path / "go", seconds=150, environment=package.environment | {
        "GOCACHE": str(ROOT / "build" / "go-cache"), "GOFLAGS": "-mod=mod", "GOPROXY": "off", "CGO_ENABLED": "1",
        "GOTOOLCHAIN": "local", "GOPATH": str(tmp_path / "path")})
    with package.run(tmp_path / "hello", "127.0.0.1:0") as program:
        assert program.get() == (200, "hello from Go, /hello/world\n")
        threads = [threading.Thread(target=program.get, args=(f"/hello/{n}",)) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        program.end()
