# SPDX-License-Identifier: Apache-2.0
"""tools/dev/need.sh on made-up machines: a PATH of a few real tools, and stand-ins for the rest."""
import shutil
import subprocess
from pathlib import Path

import pytest

NEED = Path(__file__).resolve().parents[2] / "tools" / "dev" / "need.sh"
REAL = ("bash", "env", "cat", "touch", "chmod")
BUILD = ("cmake", "ninja", "cc")
COMMAND_OF = {"ninja-build": "ninja", "gcc": "cc"}

# Installs by making the command appear, and refuses packages it has not heard of.
APT_GET = """\
echo "$*" >> {bin}/../apt.log
for word; do
    case $word in
        update) [ ! -e {bin}/../offline ] || exit 100 ;;
        clang-format-14|chromium|{broken}) exit 100 ;;
        ninja-build) command=ninja ;;
        gcc) command=cc ;;
        *) command=$word ;;
    esac
    case $word in -*|install|update|*::*) ;; *) touch {bin}/$command; chmod +x {bin}/$command ;; esac
done
"""


class Machine:
    def __init__(self, root):
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir()
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name))
        self.tool("id", "echo 0")

    def tool(self, name, body="exit 0"):
        path = self.bin / name
        path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
        path.chmod(0o755)

    def with_apt(self, broken="nothing-at-all"):
        self.tool("apt-get", APT_GET.format(bin=self.bin, broken=broken))
        return self

    def need(self, *purposes):
        return subprocess.run([shutil.which("bash"), NEED, *purposes], env={"PATH": str(self.bin)}, capture_output=True,
                              text=True, timeout=30, check=False)

    def installs(self):
        log = self.root / "apt.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.split("install ")[1] for line in lines if "install" in line]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_is_silent_when_all_is_there(machine):
    for name in BUILD:
        machine.tool(name)
    machine.with_apt()
    done = machine.need("build")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (machine.root / "apt.log").exists()


def test_installs_only_what_is_missing_and_says_so(machine):
    machine.tool("cmake")
    machine.tool("cc")
    machine.with_apt()
    done = machine.need("build")
    assert done.returncode == 0, done.stderr
    assert machine.installs() == ["-y --no-install-recommends ninja-build"]
    assert "need: installing ninja-build" in done.stderr


def test_names_packages_where_there_is_no_apt_get(machine):
    machine.tool("cc")
    done = machine.need("build")
    assert done.returncode == 1
    assert "no apt-get" in done.stderr and "cmake ninja-build" in done.stderr


def test_tells_what_to_run_without_root_and_sudo(machine):
    machine.with_apt().tool("id", "echo 1000")
    machine.tool("cc")
    done = machine.need("build")
    assert done.returncode == 1
    assert "as root, run: apt-get install --no-install-recommends cmake ninja-build" in done.stderr
    assert machine.installs() == []


def test_asks_sudo_when_not_root(machine):
    machine.with_apt().tool("id", "echo 1000")
    machine.tool("cc")
    machine.tool("sudo", f"touch {machine.root}/asked; exec \"$@\"")
    assert machine.need("build").returncode == 0
    assert (machine.root / "asked").exists()
    assert machine.installs() == ["-y --no-install-recommends cmake ninja-build"]


def test_a_failed_update_is_not_the_end(machine):
    machine.with_apt()
    machine.tool("cc")
    (machine.root / "offline").touch()
    done = machine.need("build")
    assert done.returncode == 0, done.stderr
    assert "apt-get update failed" in done.stderr


def test_a_failed_install_is(machine):
    machine.with_apt(broken="cmake")
    machine.tool("cc")
    done = machine.need("build")
    assert done.returncode == 1
    assert "could not install: cmake ninja-build" in done.stderr


def test_an_install_that_changes_nothing_is_seen(machine):
    machine.tool("cc")
    machine.tool("apt-get")
    done = machine.need("build")
    assert done.returncode == 1
    assert "still not found: cmake ninja-build" in done.stderr


def test_goes_on_without_what_one_can_do_without(machine):
    for name in BUILD + ("g++", "pkg-config", "python3", "curl", "wget", "ss", "ps", "ab", "wrk", "siege", "valgrind"):
        machine.tool(name)
    machine.with_apt()
    done = machine.need("build", "check")
    assert done.returncode == 0, done.stderr
    assert "going on without clang-format-14" in done.stderr
    assert "going on without chromium" in done.stderr


def test_refuses_an_unknown_purpose(machine):
    done = machine.need("biuld")
    assert done.returncode == 1
    assert "unknown purpose: biuld" in done.stderr


def test_every_line_of_the_table_has_three_parts():
    table = NEED.read_text().split("table='\n")[1].split("'\n")[0]
    rows = [line.split() for line in table.splitlines() if line.strip()]
    assert len(rows) > 10
    for row in rows:
        assert row[0] in ("build", "plugins", "check", "fuzz", "bench", "ktls"), row
        assert len(row) == (4 if row[2] in ("command", "pkg-config") else 3), row
        if row[2] not in ("command", "pkg-config"):
            assert f"\n{row[2]}() {{" in NEED.read_text(), row
