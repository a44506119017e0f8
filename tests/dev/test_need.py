# SPDX-License-Identifier: Apache-2.0
"""tools/dev/need.sh on made-up machines: a PATH of a few real tools, and stand-ins for the rest."""
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
NEED = PROJECT / "tools" / "dev" / "need.sh"
CONTEST = PROJECT / "tools" / "contest"
OURS = {"pace"}  # clients that are built here
REAL = ("bash", "sh", "env", "cat", "touch", "chmod", "rm")
BUILD = ("cmake", "ninja", "cc")
PROBES = ("command", "server", "file", "pkg-config")
CLIENTS = ("cc", "python3", "openssl", "taskset", "curl", "wrk", "h2load", "ab", "siege", "busybox", "node")
COMMAND_OF = {"ninja-build": "ninja", "gcc": "cc"}

# Installs by making the command appear, and refuses packages it has not heard of.
APT_GET = """\
echo "$*" >> {bin}/../apt.log
policy={bin}/../usr/sbin/policy-rc.d
[ ! -x $policy ] || {{ $policy; echo "$1 $?" >> {bin}/../policy.log; }}
for word; do
    case $word in
        update) [ ! -e {bin}/../offline ] || exit 100 ;;
        clang-format|chromium|{broken}) exit 100 ;;
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
        self.sbin = root / "usr" / "sbin"
        self.sbin.mkdir(parents=True)
        self.policy = self.sbin / "policy-rc.d"
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
        return subprocess.run([shutil.which("bash"), NEED, *purposes], capture_output=True, text=True,
                              env={"PATH": str(self.bin), "NEED_ROOT": str(self.root)}, timeout=30, check=False)

    def with_services(self, answer):
        """Another program's policy, which answers that."""
        self.policy.write_text(f"#!{shutil.which('bash')}\nexit {answer}\n")
        self.policy.chmod(0o755)

    def asked(self):
        """What the policy answered to each call of apt-get."""
        log = self.root / "policy.log"
        return [line.split()[1] for line in log.read_text().splitlines()] if log.exists() else []

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
    assert "going on without clang-format" in done.stderr
    assert "going on without chromium" in done.stderr


def test_no_service_is_started_by_what_it_installs(machine):
    machine.with_apt()
    machine.tool("cc")
    assert machine.need("build").returncode == 0
    assert machine.asked() and set(machine.asked()) == {"101"}
    assert not machine.policy.exists()


def test_services_may_start_again_after_a_failure(machine):
    machine.with_apt(broken="cmake")
    machine.tool("cc")
    assert machine.need("build").returncode == 1
    assert "101" in machine.asked()
    assert not machine.policy.exists()


def test_services_may_start_again_after_an_interruption(machine):
    machine.with_apt()
    machine.tool("cc")
    machine.tool("apt-get", 'kill -TERM "$PPID"')
    assert machine.need("build").returncode != 0
    assert not machine.policy.exists()


def test_a_policy_of_another_program_stays(machine):
    machine.with_apt().tool("cc")
    machine.with_services(104)
    assert machine.need("build").returncode == 0
    assert set(machine.asked()) == {"104"}
    assert machine.policy.exists()


def test_nothing_is_installed_when_services_cannot_be_kept_quiet(machine):
    machine.with_apt().tool("cc")
    shutil.rmtree(machine.sbin)
    done = machine.need("build")
    assert done.returncode == 1
    assert "services of these packages would be started" in done.stderr
    assert machine.installs() == []


# Two services start with the machine; a package that is installed brings a third.
SYSTEMCTL = """\
case $1 in
    list-unit-files)
        echo cron.service enabled enabled
        [ ! -e {bin}/../apt.log ] || [ -e {bin}/../off ] || echo ninja.service enabled enabled
        echo ssh.service enabled enabled ;;
    *) echo "$*" >{bin}/../off; exit {code} ;;
esac
"""


def test_what_it_installs_does_not_start_with_the_machine(machine):
    machine.with_apt().tool("cc")
    machine.tool("systemctl", SYSTEMCTL.format(bin=machine.bin, code=0))
    done = machine.need("build")
    assert done.returncode == 0, done.stderr
    assert (machine.root / "off").read_text() == "--quiet disable ninja.service\n"
    assert "do not start with the machine: ninja.service" in done.stderr


def test_says_so_when_a_service_cannot_be_switched_off(machine):
    machine.with_apt().tool("cc")
    machine.tool("systemctl", SYSTEMCTL.format(bin=machine.bin, code=1))
    done = machine.need("build")
    assert done.returncode == 0, done.stderr
    assert "systemctl disable ninja.service" in done.stderr


def test_services_are_switched_off_after_a_failure_too(machine):
    machine.with_apt(broken="cmake").tool("cc")
    machine.tool("systemctl", SYSTEMCTL.format(bin=machine.bin, code=0))
    assert machine.need("build").returncode == 1
    assert "ninja.service" in (machine.root / "off").read_text()


def test_finds_servers_where_only_root_looks_for_programs(machine):
    for name in CLIENTS:
        machine.tool(name)
    machine.with_apt()
    (machine.sbin / "nginx").touch(mode=0o755)
    assert machine.need("contest").returncode == 0
    installed = " ".join(machine.installs())
    assert "nginx" not in installed
    assert "lighttpd" in installed and "apache2-bin" in installed


def test_a_purpose_that_is_only_wished_never_fails(machine):
    for name in BUILD + ("pkg-config",):
        machine.tool(name)
    machine.tool("pkg-config", "exit 1")
    machine.tool("apt-get", "exit 100")
    done = machine.need("build", "--if-possible", "full")
    assert done.returncode == 0, done.stderr
    assert "going on without libssl-dev" in done.stderr and "going on without libjansson-dev" in done.stderr


def test_a_wish_is_fulfilled_where_it_can_be(machine):
    for name in BUILD:
        machine.tool(name)
    machine.with_apt()
    assert machine.need("build", "--if-possible", "full").returncode == 0
    assert "libssl-dev" in machine.installs()[0] and "libnghttp2-dev" in machine.installs()[0]


def test_says_what_to_run_for_a_wish_without_root(machine):
    for name in BUILD:
        machine.tool(name)
    machine.with_apt().tool("id", "echo 1000")
    done = machine.need("build", "--if-possible", "full")
    assert done.returncode == 0
    assert "as root, run: apt-get install --no-install-recommends pkg-config libssl-dev" in done.stderr


def test_does_not_ask_for_packages_that_the_system_does_not_have(machine):
    for name in BUILD:
        machine.tool(name)
    machine.with_apt()
    machine.tool("apt-cache", '[[ $* == *libssl* ]] && echo libssl-dev; exit 0')
    done = machine.need("build", "--if-possible", "full")
    assert machine.installs() == ["-y --no-install-recommends libssl-dev"]
    assert "going on without zlib1g-dev, which this system does not have" in done.stderr


def test_refuses_an_unknown_purpose(machine):
    done = machine.need("biuld")
    assert done.returncode == 1
    assert "unknown purpose: biuld" in done.stderr


def rows_of_table():
    table = NEED.read_text().split("table='\n")[1].split("'\n")[0]
    return [line.split() for line in table.splitlines() if line.strip()]


def load_tomls(pattern):
    return [tomllib.loads(path.read_text()) for path in sorted(CONTEST.glob(pattern))]


def test_the_contest_has_every_program_that_it_executes():
    there = {row[-1] for row in rows_of_table() if row[0] == "contest" and row[2] in ("command", "server")}
    cases = load_tomls("cases/*.toml")
    clients = {case["command"][0] for case in cases if "command" in case} - OURS
    needs = {need for case in cases for need in case.get("needs", [])}
    assert clients and clients | needs - OURS | {"cc", "curl", "openssl", "python3", "taskset"} <= there


def test_the_contest_has_every_server_that_is_a_package():
    packages = {row[1].removesuffix("?") for row in rows_of_table() if row[0] == "contest"}
    named = {each["package"] for each in load_tomls("contestants/*/contestant.toml") if each.get("package")}
    assert named and named <= packages


def test_every_line_of_the_table_has_three_parts():
    rows = rows_of_table()
    assert len(rows) > 10
    for row in rows:
        assert row[0] in ("make", "build", "full", "check", "fuzz", "bench", "contest", "arm", "ktls", "apps"), row
        assert len(row) == (4 if row[2] in PROBES else 3), row
        if row[2] not in PROBES:
            assert f"\n{row[2]}() {{" in NEED.read_text(), row
