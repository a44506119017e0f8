# SPDX-License-Identifier: Apache-2.0
"""`monkey explain --systemd` prints a drop-in for the unit: systemd accepts it, it names what the configuration needs, and a server
with the file system and the capabilities that it describes serves.
"""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.request

import pytest

from monkey import ENVIRONMENT, PROGRAM
from proc import wait_until
from sockets import free_port

USAGE = 2


class DropIn:
    """The lists of the settings by name. An empty value resets the list, as in systemd."""

    def __init__(self, text):
        self.text = text
        self.settings = {}
        assert "[Service]" in text
        for line in text.splitlines():
            name, has_value, value = line.partition("=")
            if line[:1] in "#[" or not has_value:
                continue
            values = self.settings.setdefault(name, [])
            if value:
                values.append(value)
            else:
                values.clear()

    def __getitem__(self, name):
        values = self.settings[name]
        assert len(values) == 1, (name, values)
        return values[0]

    @property
    def writable(self):
        return [re.fullmatch(r'"-(.*)"', value)[1] for value in self.settings["ReadWritePaths"]]

    @property
    def capabilities(self):
        return set(self["CapabilityBoundingSet"].split())


@pytest.fixture
def systemd(run, site, tmp_path):
    def start(server="", plugins="", top="", routes="", listen="127.0.0.1:8080", name="localhost", **how):
        config = tmp_path / "monkey.conf"
        config.write_text(f"[SERVER]\n    Listen {listen}\n{server}[PLUGINS]\n{plugins}{top}[HOST]\n    ServerName {name}\n    DocumentRoot {site}\n"
                          f"[ROUTES]\n{routes}    /* static\n")
        done = run("-c", config, "explain", "--systemd", **how)
        assert done.code == 0, done.err
        return DropIn(done.out)
    return start


def test_minimal_configuration_gets_the_strictest_unit(systemd):
    unit = systemd()
    assert unit.capabilities == {"CAP_DAC_READ_SEARCH", "CAP_CHOWN"}
    assert unit["ProtectSystem"] == "strict" and unit["MemoryDenyWriteExecute"] == "yes" and unit["NoNewPrivileges"] == "yes"
    assert unit.settings["SocketBindAllow"] == ["tcp:8080"] and unit["SocketBindDeny"] == "tcp"
    assert unit["RestrictAddressFamilies"] == "AF_UNIX AF_INET AF_INET6"
    assert "SystemCallFilter=~@keyring io_uring_setup io_uring_enter io_uring_register\n" in unit.text


def test_user_and_low_port_need_capabilities(systemd):
    assert systemd(listen="127.0.0.1:0").capabilities == {"CAP_DAC_READ_SEARCH", "CAP_CHOWN"}
    unit = systemd(server="    Listen 127.0.0.1:443\n    User nobody\n")
    assert unit.capabilities == {"CAP_DAC_READ_SEARCH", "CAP_CHOWN", "CAP_NET_BIND_SERVICE", "CAP_SETUID", "CAP_SETGID", "CAP_KILL"}


def test_written_files_make_their_folders_writable(systemd, tmp_path):
    for name in ("logs", "run", "spool", "state", "socket", "50%"):
        (tmp_path / name).mkdir()
    unit = systemd(server=f"    ErrorLog {tmp_path}/logs/error.log\n    PidFile {tmp_path}/run/pid\n    SpoolFolder {tmp_path}/spool\n"
                          f"    Listen unix:{tmp_path}/socket/http\n",
                   plugins="    Load proxy\n    Load logger\n    Load cheetah\n",
                   top=f"[UPSTREAM]\n    Name app\n    Server 127.0.0.1:1\n    StateFile {tmp_path}/state/app\n"
                       f"[CHEETAH]\n    Socket {tmp_path}/50%/shell\n",
                   routes="    /a/* proxy http://app\n")
    for name in ("logs", "run", "spool", "state", "socket", "50%%"):
        assert f"{tmp_path}/{name}" in unit.writable, (name, unit.text)
    assert "/run/monkey" in systemd(plugins="    Load cheetah\n").writable, "the socket of cheetah has a default"
    assert "/etc" not in unit.writable and str(tmp_path) not in unit.writable


@pytest.mark.parametrize("exists", [True, False])
def test_state_folder_of_acme_is_writable(systemd, tmp_path, exists):
    """Workers may only read a part of this folder; the program that obtains certificates writes to it."""
    folder = tmp_path / "etc" / "acme"
    (folder if exists else folder.parent).mkdir(parents=True)
    unit = systemd(server="    Listen 127.0.0.1:8443 tls\n", plugins="    Load acme\n", top="[ACME]\n    AgreeToTerms on\n    StateFolder etc/acme\n",
                   name="example.org")
    assert str(folder if exists else folder.parent) in unit.writable, unit.text
    assert "/var/lib/monkey/acme" not in unit.writable


def test_names_need_netlink(systemd):
    unit = systemd(plugins="    Load proxy\n", routes="    /a/* proxy http://localhost:8081\n")
    assert unit["RestrictAddressFamilies"].endswith(" AF_NETLINK")


def test_programs_lift_what_they_may_need(systemd):
    unit = systemd(plugins="    Load cgi\n", routes="    *.cgi cgi\n")
    assert unit["MemoryDenyWriteExecute"] == "no" and unit["ProtectHome"] == "read-only"
    assert "SystemCallFilter=~" not in unit.text
    assert unit.settings["SocketBindDeny"] == unit.settings["SocketBindAllow"] == []


def test_paths_below_home_and_tmp_stay_visible(run):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        def unit(root):
            with open(f"{folder}/monkey.conf", "w", encoding="ascii") as config:
                config.write(f"[SERVER]\n    Listen 127.0.0.1:8080\n[HOST]\n    DocumentRoot {root}\n")
            return DropIn(run("-c", f"{folder}/monkey.conf", "explain", "--systemd").out)
        inner = tempfile.mkdtemp(dir="/tmp")
        assert unit(inner)["PrivateTmp"] == "no"
        os.rmdir(inner)
        assert unit("/usr/share")["PrivateTmp"] == "no", "the configuration itself is below /var/tmp"
        assert unit("/usr/share")["ProtectHome"] == "yes"
        if os.path.isdir("/home"):
            assert unit("/home")["ProtectHome"] == "read-only"


def complete(unit, folder):
    """Returns the path of a unit that contains the settings."""
    path = folder / "monkey.service"
    path.write_text(f"[Unit]\nDescription=Test\n{unit.text}Type=notify\nExecStart=/bin/true\n")
    return path


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
@pytest.mark.parametrize("plugins", ["", "    Load cgi\n    Load proxy\n"])
def test_systemd_accepts_every_setting(systemd, tmp_path, plugins):
    path = complete(systemd(plugins=plugins, server=f"    PidFile {tmp_path}/pid\n"), tmp_path)
    done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, timeout=30)
    assert str(path) not in done.stderr and "monkey.service" not in done.stderr, done.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_calls_the_unit_protected(systemd, tmp_path):
    path = complete(systemd(), tmp_path)
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", path], capture_output=True, text=True,
                          timeout=30)
    found = re.search(r"Overall exposure level for monkey\.service: (\d+\.\d+)", done.stdout)
    if not found:
        pytest.skip(f"this systemd-analyze cannot judge a file: {done.stderr}")
    assert float(found[1]) < 4.0, done.stdout


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_server_runs_with_the_file_system_and_capabilities_of_the_unit(systemd, site, tmp_path):
    """Imitates ProtectSystem=strict, ReadWritePaths and CapabilityBoundingSet without systemd, and stops after a request."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    state = {"MONKEY_STATE": str(tmp_path / "state")}
    site.add("page", "page")
    port = free_port()
    unit = systemd(server=f"    User nobody\n    Workers 1\n    ErrorLog {tmp_path}/logs/error.log\n    AccessLog {tmp_path}/logs/access.log\n"
                          f"    PidFile {tmp_path}/run/pid\n", listen=f"127.0.0.1:{port}", environment=state)
    os.chmod(site, 0o755)
    binds = " && ".join(f"mount --bind '{path}' '{path}'" for path in unit.writable if os.path.isdir(path))
    kept = ",".join("+" + name[4:].lower() for name in sorted(unit.capabilities))
    script = (f"mount --make-rprivate / && {binds} && mount -o remount,bind,ro / && if touch {tmp_path}/other; then exit 77; fi; "
              f"exec setpriv --no-new-privs --bounding-set=-all,{kept} --inh-caps=-all {PROGRAM} -c {tmp_path}/monkey.conf -D")
    started = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=60,
                             env=os.environ | ENVIRONMENT | state)
    if started.returncode in (1, 32, 77) and not (tmp_path / "run/pid").exists():
        pytest.skip(f"this machine permits no such mounts: {started.stderr}")
    log = tmp_path / "logs/error.log"
    assert started.returncode == 0, (started.stderr, log.read_text() if log.exists() else "no log")
    master = int((tmp_path / "run/pid").read_text())
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/page", timeout=20) as reply:
            assert reply.read() == b"page"
        wait_until(lambda: "/page" in (tmp_path / "logs/access.log").read_text(), "the line in the access log")
        os.kill(master, signal.SIGHUP)
        wait_until(lambda: "the new configuration serves" in log.read_text(), "the reload")
        assert "Read-only file system" not in log.read_text()
    finally:
        os.kill(master, signal.SIGTERM)
        wait_until(lambda: not os.path.exists(f"/proc/{master}"), "the end of the server")
