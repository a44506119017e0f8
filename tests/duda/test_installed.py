# SPDX-License-Identifier: Apache-2.0
"""Duda's commands work with only the installed files: they create, test, build and serve a new service."""
import os
import re
import shutil
import signal
import subprocess

import pytest

import services
from monkey import PROGRAM, ROOT, SECONDS

pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"),
                                reason="no Duda, or no compiler here")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The program, its objects and the headers, in the layout of `make install`. The program was built for another prefix,
    so it finds its objects relative to its own path."""
    usr = tmp_path_factory.mktemp("installed") / "usr"
    cache = (PROGRAM.parent / "CMakeCache.txt").read_text()
    objects = usr / re.search(r"^CMAKE_INSTALL_LIBDIR:\w+=(.*)$", cache, re.MULTILINE)[1] / "monkey"
    for folder in (usr / "bin", objects):
        folder.mkdir(parents=True)
    shutil.copytree(ROOT / "include", usr / "include")
    shutil.copytree(ROOT / "duda/include", usr / "include", dirs_exist_ok=True)
    shutil.copy(PROGRAM, usr / "bin/monkey")
    for path in (*services.OBJECTS.glob("monkey-duda*.so"), *(services.OBJECTS / f"monkey-{name}.so" for name in ("headers", "readers"))):
        shutil.copy(path, objects)
    shutil.copy(services.OBJECTS / "monkey-duda-test", objects)
    return usr / "bin/monkey"


def test_service_is_tested_built_and_served_with_installed_files(installed, monkey, tmp_path):
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_RUNTIME_DIR": str(tmp_path)}
    (tmp_path / "cache").mkdir(mode=0o700)

    def call(*words, folder):
        return subprocess.run([installed, *words], cwd=folder, env=os.environ | environment, capture_output=True, text=True,
                              timeout=4 * SECONDS, check=False)

    assert call("new", "shop", folder=tmp_path).returncode == 0
    shop = tmp_path / "shop"
    done = call("test", folder=shop)
    assert done.returncode == 0 and "ok shop.computes" in done.stdout, done
    (shop / "more.conf").write_text("[PLUGINS]\n    Load headers\n")  # found next to the program that runs the tests
    done = call("test", "-i", "more.conf", folder=shop)
    assert done.returncode == 0 and "ok shop.computes" in done.stdout, done
    done = call("build", "shop.c", folder=shop)
    assert done.returncode == 0, done
    (shop / "own.conf").write_text("[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n[PLUGINS]\n    Load ./monkey-shop.so\n"
                                   "[DUDA]\n    CrashLimit 2\n[HOST]\n    DocumentRoot html\n[ROUTES]\n    /shop/* shop\n"
                                   "    /* static\n")
    server = monkey(args=["-c", shop / "own.conf"], program=installed)
    assert "<h1>3² = 9</h1>" in server.get("/shop/square/3").text and "<h1>shop" in server.get("/about.html").text
    (shop / "shop.c").write_text((shop / "shop.c").read_text().replace("hello %s", "hi %s"))
    assert call("build", "shop.c", folder=shop).returncode == 0
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert server.get("/shop/").text == "hi world\n"
    lists = "".join(path.read_text() for path in (tmp_path / "cache/monkey/duda").glob("*.list"))
    assert f"{installed.parents[1]}/include/duda.h" in lists and str(ROOT / "include") not in lists
    server = monkey(args=["run", "-p", "0", shop / "shop.c"], program=installed, environment=environment)
    assert server.get("/").text == "hi world\n"
