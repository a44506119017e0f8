# SPDX-License-Identifier: Apache-2.0
"""`monkey run` for tests. A test module imports the fixtures that it uses:

    from running import cache, runtime, src, start

    def test_x(start, src):
        (src / "x.c").write_text(...)
        server = start(src / "x.c")
"""
import os
import shutil
import tempfile
from pathlib import Path

import pytest

COMPILER = os.environ.get("CC", "cc")
compilers = pytest.mark.parametrize("compiler", [
    pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"{name} is not installed")) for name in ("gcc", "clang")])
BROWSER = [("Accept", "text/html,*/*;q=0.8")]


@pytest.fixture
def cache(tmp_path_factory):
    return tmp_path_factory.getbasetemp() / "cache"


@pytest.fixture
def runtime():
    """A private folder with a short path, because the length of socket paths is limited."""
    folder = Path(tempfile.mkdtemp(prefix="mk", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def start(monkey, tmp_path, cache, runtime):
    """start(path) runs a service; the test's files are in `tmp_path / "src"`."""
    cache.mkdir(exist_ok=True)

    def run(path, *options, compiler=COMPILER, **keys):
        return monkey(args=["run", "-p", "0", *options, path], environment={"XDG_CACHE_HOME": str(cache), "CC": compiler,
                                                                            "XDG_RUNTIME_DIR": str(runtime)}, **keys)

    (tmp_path / "src").mkdir()
    return run


@pytest.fixture
def src(tmp_path):
    return tmp_path / "src"
