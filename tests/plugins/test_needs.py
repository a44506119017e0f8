# SPDX-License-Identifier: Apache-2.0
"""Plugins that depend on other plugins: the dependencies are loaded first, and both read the same configuration."""
import os
import re
import shutil
import signal

import pytest

from monkey import PROGRAM

BUILT = PROGRAM.parent / "tests" / "plugins"

pytestmark = pytest.mark.skipif(not BUILT.exists(), reason="the plugins of the tests are built with the program in build/dev")


def load(*names):
    return [BUILT / f"monkey-{name}.so" for name in names]


@pytest.fixture
def refused(monkey):
    """Returns the error output for a rejected configuration."""
    def start(**keys):
        server = monkey(expect_start=False, **keys)
        server.exit_code = 3
        server.wait()
        return server.err.text

    return start


HOSTS = """[CALLER]
    Name one
[ROUTES]
    /call  call some words
    /*     static
[HOST]
    ServerName two
    DocumentRoot site
[ROUTES]
    /call  call
"""
TOP = "[CALLEE]\n    Text set\n"


def expected(words="some words", name="one", calls=1, text="set"):
    return f"{text}, not by default: load\n{text}, not by default: {words}\n{name}\n{calls}\n"


@pytest.mark.parametrize("names", [["caller"], ["callee", "caller"], ["caller", "callee"], ["caller", "probe", "callee"]])
def test_plugin_dependency_is_loaded_first(monkey, run, names):
    server = monkey(plugins=load(*names), top=TOP, sections=HOSTS)
    assert server.get("/call").text == expected()
    assert server.get("/call").text == expected(calls=2)
    assert server.get("/call", fields=[("Host", "two")]).text == expected(words="", name="unnamed", calls=3)
    printed = run("-T", "-c", server.config).out
    loaded = re.findall(r"Load .*/monkey-(.*)\.so$", printed, re.MULTILINE)
    assert loaded == ["callee", "caller", *[name for name in names if name == "probe"]]


def test_plugin_loaded_by_two_paths_is_loaded_once(monkey, tmp_path):
    for name in ("caller", "callee"):
        replace(tmp_path, name)
    (tmp_path / "link").symlink_to(tmp_path)
    server = monkey(plugins=["./monkey-caller.so", "./link/monkey-callee.so"], top=TOP, sections=HOSTS)
    assert server.get("/call").text == expected()


def test_plugin_dependency_in_printed_config_loads_again(monkey, run, tmp_path):
    server = monkey(plugins=load("caller"), top=TOP, sections=HOSTS)
    printed = run("-T", "-c", server.config).out
    (tmp_path / "again.conf").write_text(printed)
    assert run("-T", "-c", tmp_path / "again.conf").out == printed


def test_plugin_dependency_missing_is_an_error(refused, tmp_path):
    shutil.copy(load("caller")[0], tmp_path / "monkey-caller.so")
    for plugin, said in (("./monkey-caller.so", "cannot load the plugin `./monkey-caller.so`: monkey-callee.so: cannot open"),
                         (load("missing_dependency")[0],
                          "cannot load the plugin `no-such-plugin`, which `missing-dependency` needs: it is not built in"),
                         (load("circular")[0], "cannot load the plugin `circular`, which `circular` needs: the plugins depend on each other")):
        text = refused(plugins=[plugin])
        assert re.search(r"monkey\d*\.conf:\d+:\d+: error: " + re.escape(said), text), text
        assert text.count("error: ") == 1, text


def test_plugin_bind_error_is_reported_at_its_load_line(refused):
    said = refused(plugins=load("caller"), sections="[ROUTES]\n    /call call wrong\n")
    assert re.search(r"error: the plugin caller is not to be called so\n +Load .*monkey-caller\.so", said), said


def replace(folder, name):
    """Replaces the file atomically, as an update does, so that the running server keeps the old code."""
    shutil.copy(load(name)[0], folder / "new.so")
    os.rename(folder / "new.so", folder / f"monkey-{name}.so")


def test_plugin_dependency_cannot_be_replaced_on_its_own(monkey, tmp_path):
    for name in ("caller", "callee"):
        replace(tmp_path, name)
    server = monkey(plugins=["./monkey-caller.so"], top=TOP, sections=HOSTS)
    replace(tmp_path, "caller")
    server.config.write_text(server.config.read_text().replace("Text set", "Text new"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert server.get("/call").text == expected(text="new")
    replace(tmp_path, "callee")
    server.tell(signal.SIGHUP)
    server.err.wait_for("error: the file of `callee` was replaced while `caller` uses it: restart the server")
    server.err.wait_for("keeping the old one")
    assert server.get("/call").text == expected(text="new", calls=2)
