# SPDX-License-Identifier: Apache-2.0
"""Bash completes options, their arguments, folders and commands."""
import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from monkey import PROGRAM, SECONDS

SCRIPT = PROGRAM.parent / "docs" / "monkey.bash"

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")


@pytest.fixture
def here(tmp_path):
    """A folder with files and folders that the shell can complete."""
    assert SCRIPT.exists(), f"{SCRIPT} is not built"
    for name in ("public", "pictures", "explored", "build"):
        (tmp_path / name).mkdir()
    (tmp_path / "monkey.conf").write_text("")
    (tmp_path / "page.html").write_text("")
    return tmp_path


def candidates(folder, *words):
    """Returns the completions of the last word."""
    code = ("compopt() { :; }\n"  # bash defines compopt only during a completion
            f"source '{SCRIPT}'\nCOMP_WORDS=(\"$@\")\nCOMP_CWORD=$(($# - 1))\n_monkey\n"
            "printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "-c", code, "bash", "monkey", *words], cwd=folder, capture_output=True, text=True,
                          timeout=SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split("\n")) - {""}


def test_completion_offers_all_options(here):
    help_text = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    options = set(re.findall(r"^  (-\w), --", help_text, re.MULTILINE))
    options |= set(re.findall(r"^  (?:-\w,|   ) (--[\w-]+)", help_text, re.MULTILINE))
    assert len(options) > 20 and candidates(here, "-") == options


@pytest.mark.parametrize("words, wanted", [
    (["--p"], {"--port", "--public", "--print", "--pid-file"}),
    (["-D", "--w"], {"--workers"}),
    (["--nope"], set()),
    ([""], {"build", "ca", "certificates", "configurations", "confirm", "diff", "doc", "explain", "help", "new", "openapi", "pack", "passwd", "plugins", "recorder",
            "reload", "rollback", "routes", "run", "shell", "test", "top", "public", "pictures", "explored"}),
    (["p"], {"pack", "passwd", "plugins", "public", "pictures"}),
    (["exp"], {"explain", "explored"}),
    (["-D", "pu"], {"public"}),
    (["-o", ""], {"public", "pictures", "explored", "build"}),
    (["--one-shot", "pi"], {"pictures"}),
    (["-c", ""], {"public", "pictures", "explored", "build", "monkey.conf", "page.html"}),
    (["run", "p"], {"public", "pictures", "page.html"}),
    (["build", "build"], {"build"}),
    (["help", "p"], {"pack", "passwd", "plugins"}),
    (["--config", "mon"], {"monkey.conf"}),
    (["-I", "p"], {"public", "pictures", "page.html"}),
    (["-p", ""], set()),
    (["-w", ""], set()),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_completion_offers_matching_words(here, words, wanted):
    assert candidates(here, *words) == wanted


class Shell:
    """An interactive bash."""

    def __init__(self, folder):
        self.master, slave = pty.openpty()
        environment = os.environ | {"PS1": "", "TERM": "dumb", "HISTFILE": "", "INPUTRC": "/dev/null", "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(["bash", "--norc", "--noprofile", "-i"], cwd=folder, stdin=slave, stdout=slave,
                                        stderr=slave, env=environment, start_new_session=True)
        os.close(slave)
        self.text = ""

    def type(self, text):
        os.write(self.master, text.encode())

    def read_until(self, pattern):
        end = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.text)):
            assert select.select([self.master], [], [], max(0, end - time.monotonic()))[0], self.text
            self.text += os.read(self.master, 4096).decode("utf-8", "replace")
        return found

    def complete(self, typed):
        """Types `typed` and a tab, and returns the words of the completed command line as the shell prints them."""
        self.type(typed + "\t")
        self.type("\x01printf '<%s>' DONE \n")
        words = re.findall("<(.*?)>", self.read_until(r"<DONE>(?:<[^>\n]*>)+")[0])[1:]
        self.text = ""
        return words

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def shell(here):
    shell = Shell(here)
    shell.type(f"source '{SCRIPT}' && printf '<%s>' READY\n")
    shell.read_until("<READY>")
    shell.text = ""
    yield shell
    shell.close()


@pytest.mark.parametrize("typed, wanted", [
    ("monkey --ver", ["monkey", "--version"]),
    ("monkey -D --wor", ["monkey", "-D", "--workers"]),
    ("monkey expla", ["monkey", "explain"]),
    ("monkey publ", ["monkey", "public/"]),
    ("monkey buil", ["monkey", "build"]),
    ("monkey run mon", ["monkey", "run", "monkey.conf"]),
    ("monkey -o pic", ["monkey", "-o", "pictures/"]),
    ("monkey -t -c monk", ["monkey", "-t", "-c", "monkey.conf"]),
])
def test_tab_completes_in_an_interactive_shell(shell, typed, wanted):
    assert shell.complete(typed) == wanted
