# SPDX-License-Identifier: Apache-2.0
"""tools/dev/need.sh on simulated machines: PATH contains a few real tools and stubs for all others."""
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
NEED = PROJECT / "tools" / "dev" / "need.sh"
CONTEST = PROJECT / "tools" / "contest"
OURS = {"pace"}  # clients that this tree builds
REAL = ("bash", "sh", "env", "cat", "touch", "chmod", "rm")
BUILD = ("cmake", "ninja", "cc")
PROBES = ("command", "server", "file", "pkg-config")
CLIENTS = ("cc", "python3", "openssl", "taskset", "curl", "wrk", "h2load", "ab", "siege", "busybox", "node")

# Installs a package by creating its command; rejects unknown packages.
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
        """Installs another program's policy-rc.d, which exits with `answer`."""
        self.policy.write_text(f"#!{shutil.which('bash')}\nexit {answer}\n")
        self.policy.chmod(0o755)

    def asked(self):
        """The exit code of policy-rc.d at each call to apt-get."""
        log = self.root / "policy.log"
        return [line.split()[1] for line in log.read_text().splitlines()] if log.exists() else []

    def installs(self):
        log = self.root / "apt.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.split("install ")[1] for line in lines if "install" in line]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_need_with_everything_installed_prints_nothing(machine):
    for name in BUILD:
        machine.tool(name)
    machine.with_apt()
    done = machine.need("build")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (machine.root / "apt.log").exists()


def test_need_installs_only_missing_packages_and_names_them(machine):
    machine.tool("cmake")
    machine.tool("cc")
    machine.with_apt()
    done = machine.need("build")
    assert done.returncode == 0, done.stderr
    assert machine.installs() == ["-y --no-install-recommends ninja-build"]
    assert "need: installing ninja-build" in done.stderr


def test_need_without_apt_get_names_the_packages(machine):
    machine.tool("cc")
    done = machine.need("build")
    assert done.returncode == 1
    assert "no apt-get" in done.stderr and "cmake ninja-build" in done.stderr


def test_need_without_root_and_sudo_prints_the_command(machine):
    machine.with_apt().tool("id", "echo 1000")
    machine.tool("cc")
    done = machine.need("build")
    assert done.returncode == 1
    assert "as root, run: apt-get install --no-install-recommends cmake ninja-build" in done.stderr
    assert machine.installs() == []


def test_need_without_root_uses_sudo(machine):
    machine.with_apt().tool("id", "echo 1000")
    machine.tool("cc")
    machine.tool("sudo", f"touch {machine.root}/asked; exec \"$@\"")
    assert machine.need("build").returncode == 0
    assert (machine.root / "asked").exists()
    assert machine.installs() == ["-y --no-install-recommends cmake ninja-build"]


def test_need_continues_after_a_failed_update(machine):
    machine.with_apt()
    machine.tool("cc")
    (machine.root / "offline").touch()
    done = machine.need("build")
    assert done.returncode == 0, done.stderr
    assert "apt-get update failed" in done.stderr


def test_need_fails_after_a_failed_install(machine):
    machine.with_apt(broken="cmake")
    machine.tool("cc")
    done = machine.need("build")
    assert done.returncode == 1
    assert "could not install: cmake ninja-build" in done.stderr


def test_need_fails_if_the_install_changed_nothing(machine):
    machine.tool("cc")
    machine.tool("apt-get")
    done = machine.need("build")
    assert done.returncode == 1
    assert "still not found: cmake ninja-build" in done.stderr


def test_need_continues_without_optional_packages(machine):
    for name in BUILD + ("g++", "pkg-config", "python3", "curl", "wget", "ss", "ps", "ab", "wrk", "siege", "valgrind"):
        machine.tool(name)
    machine.with_apt()
    done = machine.need("build", "check")
    assert done.returncode == 0, done.stderr
    assert "continuing without clang-format" in done.stderr
    assert "continuing without chromium" in done.stderr


def test_installed_packages_start_no_service(machine):
    machine.with_apt()
    machine.tool("cc")
    assert machine.need("build").returncode == 0
    assert machine.asked() and set(machine.asked()) == {"101"}
    assert not machine.policy.exists()


def test_services_may_start_again_after_a_failed_install(machine):
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


def test_policy_of_another_program_is_kept(machine):
    machine.with_apt().tool("cc")
    machine.with_services(104)
    assert machine.need("build").returncode == 0
    assert set(machine.asked()) == {"104"}
    assert machine.policy.exists()


def test_need_installs_nothing_if_it_cannot_keep_services_stopped(machine):
    machine.with_apt().tool("cc")
    shutil.rmtree(machine.sbin)
    done = machine.need("build")
    assert done.returncode == 1
    assert "keeps services of these packages from being started" in done.stderr
    assert machine.installs() == []


# Two services are enabled at boot; the package enables a third one.
SYSTEMCTL = """\
case $1 in
    list-unit-files)
        echo cron.service enabled enabled
        [ ! -e {bin}/../apt.log ] || [ -e {bin}/../off ] || echo ninja.service enabled enabled
        echo ssh.service enabled enabled ;;
    *) echo "$*" >{bin}/../off; exit {code} ;;
esac
"""


def test_installed_services_are_disabled_at_boot(machine):
    machine.with_apt().tool("cc")
    machine.tool("systemctl", SYSTEMCTL.format(bin=machine.bin, code=0))
    done = machine.need("build")
    assert done.returncode == 0, done.stderr
    assert (machine.root / "off").read_text() == "--quiet disable ninja.service\n"
    assert "are not enabled at boot: ninja.service" in done.stderr


def test_need_reports_a_service_it_cannot_disable(machine):
    machine.with_apt().tool("cc")
    machine.tool("systemctl", SYSTEMCTL.format(bin=machine.bin, code=1))
    done = machine.need("build")
    assert done.returncode == 0, done.stderr
    assert "systemctl disable ninja.service" in done.stderr


def test_services_are_disabled_after_a_failed_install_too(machine):
    machine.with_apt(broken="cmake").tool("cc")
    machine.tool("systemctl", SYSTEMCTL.format(bin=machine.bin, code=0))
    assert machine.need("build").returncode == 1
    assert "ninja.service" in (machine.root / "off").read_text()


def test_need_finds_servers_in_sbin(machine):
    for name in CLIENTS:
        machine.tool(name)
    machine.with_apt()
    (machine.sbin / "nginx").touch(mode=0o755)
    assert machine.need("contest").returncode == 0
    installed = " ".join(machine.installs())
    assert "nginx" not in installed
    assert "lighttpd" in installed and "apache2-bin" in installed


def test_optional_purpose_never_fails(machine):
    for name in BUILD + ("pkg-config",):
        machine.tool(name)
    machine.tool("pkg-config", "exit 1")
    machine.tool("apt-get", "exit 100")
    done = machine.need("build", "--if-possible", "full")
    assert done.returncode == 0, done.stderr
    assert "continuing without libssl-dev" in done.stderr and "continuing without libjansson-dev" in done.stderr


def test_optional_purpose_is_installed_where_possible(machine):
    for name in BUILD:
        machine.tool(name)
    machine.with_apt()
    assert machine.need("build", "--if-possible", "full").returncode == 0
    assert "libssl-dev" in machine.installs()[0] and "libnghttp2-dev" in machine.installs()[0]


def test_optional_purpose_without_root_prints_the_command(machine):
    for name in BUILD:
        machine.tool(name)
    machine.with_apt().tool("id", "echo 1000")
    done = machine.need("build", "--if-possible", "full")
    assert done.returncode == 0
    assert "as root, run: apt-get install --no-install-recommends pkg-config libssl-dev" in done.stderr


def test_need_skips_packages_unknown_to_the_system(machine):
    for name in BUILD:
        machine.tool(name)
    machine.with_apt()
    machine.tool("apt-cache", '[[ $* == *libssl* ]] && echo libssl-dev; exit 0')
    done = machine.need("build", "--if-possible", "full")
    assert machine.installs() == ["-y --no-install-recommends libssl-dev"]
    assert "continuing without zlib1g-dev, which this system does not have" in done.stderr


def test_need_rejects_an_unknown_purpose(machine):
    done = machine.need("biuld")
    assert done.returncode == 1
    assert "unknown purpose: biuld" in done.stderr


def rows_of_table():
    table = NEED.read_text().split("table='\n")[1].split("'\n")[0]
    return [line.split() for line in table.splitlines() if line.strip()]


def load_tomls(pattern):
    return [tomllib.loads(path.read_text()) for path in sorted(CONTEST.glob(pattern))]


def test_table_has_every_program_that_the_contest_runs():
    there = {row[-1] for row in rows_of_table() if row[0] == "contest" and row[2] in ("command", "server")}
    cases = load_tomls("cases/*.toml")
    clients = {case["command"][0] for case in cases if "command" in case} - OURS
    needs = {need for case in cases for need in case.get("needs", [])}
    assert clients and clients | needs - OURS | {"cc", "curl", "openssl", "python3", "taskset"} <= there


def test_table_has_every_packaged_server_of_the_contest():
    packages = {row[1].removesuffix("?") for row in rows_of_table() if row[0] == "contest"}
    named = {each["package"] for each in load_tomls("contestants/*/contestant.toml") if each.get("package")}
    assert named and named <= packages


def test_table_rows_are_well_formed():
    rows = rows_of_table()
    assert len(rows) > 10
    for row in rows:
        assert row[0] in ("make", "build", "full", "check", "fuzz", "bench", "contest", "arm", "ktls", "apps"), row
        assert len(row) == (4 if row[2] in PROBES else 3), row
        if row[2] not in PROBES:
            assert f"\n{row[2]}() {{" in NEED.read_text(), row
