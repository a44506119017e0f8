# SPDX-License-Identifier: Apache-2.0
"""The commands of Duda with what is installed, and nothing else: a new service is tested, built and served."""
import os
import shutil
import subprocess

import pytest

import services
from monkey import PROGRAM, SECONDS

pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not all(map(shutil.which, ("cc", "cmake"))),
                                reason="no Duda, no compiler, or no cmake here")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The program below a prefix. It was built for another one, so that its objects are shown to it by a link."""
    top = tmp_path_factory.mktemp("installed")
    done = subprocess.run(["cmake", "--install", PROGRAM.parent, "--prefix", top / "usr"], capture_output=True, text=True,
                          timeout=4 * SECONDS, env=os.environ | {"DESTDIR": ""}, check=False)
    found = sorted((top / "usr").rglob("monkey-duda-dev.so"))
    if not found:
        pytest.skip(f"nothing was installed: {done.stderr}")
    (top / "usr/bin/plugins").symlink_to(found[0].parent)
    return top / "usr/bin/monkey"


def test_a_service_with_what_is_installed(installed, monkey, tmp_path):
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_RUNTIME_DIR": str(tmp_path)}
    (tmp_path / "cache").mkdir(mode=0o700)

    def call(*words, folder):
        return subprocess.run([installed, *words], cwd=folder, env=os.environ | environment, capture_output=True, text=True,
                              timeout=4 * SECONDS, check=False)

    assert call("new", "shop", folder=tmp_path).returncode == 0
    shop = tmp_path / "shop"
    done = call("test", folder=shop)
    assert done.returncode == 0 and "ok shop.computes" in done.stdout, done
    done = call("build", "shop.c", folder=shop)
    assert done.returncode == 0, done
    lists = "".join(path.read_text() for path in (tmp_path / "cache/monkey/duda").glob("*.list"))
    assert f"{installed.parents[1]}/include/duda.h" in lists and str(PROGRAM.parents[2] / "include") not in lists
    server = monkey(args=["run", "-p", "0", shop / "shop.c"], program=installed, environment=environment)
    assert server.get("/").text == "hello world\n"
