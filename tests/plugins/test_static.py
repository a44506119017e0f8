# SPDX-License-Identifier: Apache-2.0
"""Every shipped plugin, loaded from its file and built into a program: it is found and listed, and works with its own .conf."""
import os
import re
import subprocess

import pytest

from monkey import ENVIRONMENT, PROGRAM, ROOT
from shell_server import with_own_run

STATIC = ROOT / "build" / "dev" / "static" / "monkey-static"
NAMES = sorted(path.parent.name for path in (ROOT / "plugins").glob("*/CMakeLists.txt"))
INNER = ["upstream", "proxy", "fastcgi", "recorder", "scgi", "uwsgi", "websocket"]  # these plugins are built into every program
COMMANDS = ["top"]  # plugins that only add commands, and need no configuration
OTHERS = re.compile("duda(-.*)?")  # packages of Duda are not in plugins/

pytestmark = pytest.mark.skipif(not STATIC.exists() or PROGRAM.parent != STATIC.parents[1],
                                reason="a program with all plugins is built with build/dev alone")


@pytest.fixture(params=["loaded", "built in"])
def program(request):
    return PROGRAM if request.param == "loaded" else STATIC


def ask(program, *args):

    return subprocess.run([program, *map(str, args)], capture_output=True, text=True, env=os.environ | ENVIRONMENT,
                          timeout=60, check=False)


def test_plugins_are_all_listed_with_origin(program):
    listed = re.findall(r"^(\S+) \S*  .*\n +from +(.*)$", ask(program, "plugins").stdout, re.MULTILINE)
    assert sorted(name for name, _ in listed if not OTHERS.fullmatch(name)) == NAMES
    for name, origin in listed:
        is_inside = program == STATIC or name in INNER
        assert origin == "this program" if is_inside else origin.endswith(f"/plugins/monkey-{name}.so"), name


def test_version_details_list_builtin_plugins():
    assert re.search(rf"^built in  {' '.join(INNER)}$", ask(PROGRAM, "-V").stdout, re.MULTILINE)
    (names,) = re.findall(r"^built in  (.*)$", ask(STATIC, "-V").stdout, re.MULTILINE)
    assert sorted(name for name in names.split() if not OTHERS.fullmatch(name)) == NAMES


@pytest.mark.parametrize("name", [name for name in NAMES if name not in COMMANDS])
def test_plugin_works_with_its_shipped_config(monkey, site, tmp_path, program, name):
    """Includes the plugin's .conf file above the host, as the first lines of that file recommend."""
    if name == "otlp" and program == STATIC:
        pytest.skip("a static program looks for monkey-otlp in the folder of the installation")
    site.add("index.html", "home")
    conf = tmp_path / "own.conf"
    conf.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n"
                    f"@INCLUDE {ROOT}/plugins/{name}/{name}.conf\n[HOST]\n    DocumentRoot site\n")
    server = monkey(args=["-c", conf], program=program, wrapper=with_own_run() if name == "cheetah" else ())
    assert server.get("/").text == "home"
    listed = ask(program, "plugins", "-c", conf)
    # The list may begin with the plugins that this one depends on.
    assert listed.returncode == 0 and re.search(rf"^{name} ", listed.stdout, re.MULTILINE)
    printed = tmp_path / "printed.conf"
    printed.write_text(ask(program, "-T", "-c", conf).stdout)
    assert ask(program, "-T", "-c", printed).stdout == printed.read_text()


# The sources of built-in plugins are in src/upstream, src/recorder and src/websocket.
@pytest.mark.parametrize("name", [name for name in NAMES if name not in INNER])
def test_plugin_folder_is_complete_and_uses_public_headers(name):
    folder = ROOT / "plugins" / name
    for each in (f"{name}.c", f"{name}.conf", "README.md", "CMakeLists.txt"):
        assert (folder / each).is_file(), each
    assert (ROOT / "tests" / "plugins" / f"test_{name.replace('-', '_')}.py").is_file()
    includes = {line.split()[1] for path in folder.glob("*.[ch]") for line in path.read_text().splitlines()
                if line.startswith("#include")}
    own = {f'"{path.name}"' for path in folder.glob("*.h")}
    assert not {i for i in includes if i.startswith('"')} - own, "plugins include only <monkey/...>"
