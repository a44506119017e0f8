# SPDX-License-Identifier: Apache-2.0
"""The preset tiny: what it leaves out is refused with a message that names the missing part, and the rest works."""
import os
import shutil
import subprocess

import pytest

from monkey import ROOT

BUILD_SECONDS = 900
pytestmark = [pytest.mark.slow, pytest.mark.timeout(BUILD_SECONDS),
              pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("ninja")), reason="needs cmake and ninja")]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    for command in (["cmake", "-S", ROOT, "--preset", "tiny", "-B", folder, "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-O0"],
                    ["cmake", "--build", folder, "--target", "monkey"]):
        done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "monkey"


@pytest.fixture
def run(tiny, tmp_path):
    def run(*words, config=None):
        (tmp_path / "site").mkdir(exist_ok=True)
        if config is not None:
            (tmp_path / "a.conf").write_text(config)
            words = ("-c", "a.conf", *words)
        return subprocess.run([tiny, *words], cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ | {"LC_ALL": "C"})
    return run


SITE = "[SERVER]\n    Listen 127.0.0.1:2001\n[HOST]\n    DocumentRoot site\n"


@pytest.mark.parametrize("config, message", [
    (SITE + "[HANDLERS]\n    Match /x.* static\n", "a.conf:6:5: error: `/x.*`: this server was built without expressions of Monkey 1.6"),
    (SITE + "[ROUTES]\n    ~ ^/x static\n", "`^/x`: this server has no regular expressions: Monkey was built without PCRE2"),
    (SITE.replace("2001", "2001 tls"), "this server does not support TLS: Monkey was built without OpenSSL"),
    (SITE + "[PLUGINS]\n    Load auth\n", "cannot load the plugin `auth`: it is not built in, and this server was built without loadable"),
    (SITE + "[PLUGINS]\n    Load ./monkey-auth.so\n", "this server was built without loadable plugins (MK_EXPORTS)"),
    (SITE + "[ROUTES]\n    /x proxy 127.0.0.1:80\n", "proxy"),
    (SITE + "[UPSTREAM a]\n    Server 127.0.0.1:80\n", "UPSTREAM"),
])
def test_tiny_refuses_keys_of_absent_parts(run, config, message):
    done = run("-t", config=config)
    assert done.returncode == 3 and message in done.stderr


@pytest.mark.parametrize("words, code, message", [
    (["explain", "GET", "/"], 2, "monkey: this server was built without the command `explain` (MK_EXPLAIN)\n"),
    (["--https", "site"], 1, "Monkey was built without OpenSSL"),
])
def test_tiny_refuses_absent_commands(run, words, code, message):
    done = run(*words, config=SITE if words[0] == "explain" else None)
    assert done.returncode == code and message in done.stderr


def test_tiny_has_its_parts(run):
    done = run("-t", config=SITE + "[PLUGINS]\n    Load cgi\n    Load dirlisting\n    Load logger\n[ROUTES]\n    *.cgi cgi\n")
    assert (done.returncode, done.stderr) == (0, "")
