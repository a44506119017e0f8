# SPDX-License-Identifier: Apache-2.0
"""`monkey explain --sandbox` lists what each process may access, and the setting that each permission follows from."""
import os
import re
import subprocess

import pytest

from fault_injection import Fault
from proc import RELEASE

USAGE, CONFIGURATION = 2, 3


@pytest.fixture
def explain(run, site, tmp_path):
    """Returns the exit code and the output for a configuration, and the sections of the output by their titles."""
    def start(server="", plugins="", top="", host="", routes="", **how):
        config = tmp_path / "monkey.conf"
        config.write_text("[SERVER]\n    Listen 127.0.0.1:0\n" + server + "[PLUGINS]\n    Load proxy\n" + plugins + top
                          + f"[HOST]\n    DocumentRoot {site}\n{host}[ROUTES]\n{routes}    /* static\n")
        done = run("-c", config, "explain", "--sandbox", **how)
        assert done.code == 0, done.err
        first, *parts = done.out.split("\n\n")
        done.mode, done.parts = first, {part.split("\n")[0]: part.split("\n")[1:] for part in parts}
        done.workers = next(lines for title, lines in done.parts.items() if title.startswith("workers"))
        done.config = config
        return done
    return start


def row(done, text):
    """The reason of the permission `text`."""
    found = [line for line in done.workers if re.match(rf"  {re.escape(text)}  +\S", line)]
    assert len(found) == 1, (text, done.out)
    return found[0][len(text) + 2:].strip()


def line_of(done, text):
    return next(n for n, line in enumerate(done.config.read_text().splitlines(), 1) if text in line)


def test_rows_name_key_section_and_line(explain, site, tmp_path):
    (tmp_path / "other").mkdir()
    done = explain(top="[UPSTREAM]\n    Name app\n    Server 127.0.0.1:8081\n    HealthCheck connect\n    HealthPort 9000\n",
                   host=f"    Alias /other/ {tmp_path}/other\n", routes="    /a/* proxy http://127.0.0.1:8080\n    /b/* proxy http://app\n")

    def reason(key, section, text):
        return f"{key} in [{section}], {done.config}:{line_of(done, text)}"
    assert row(done, f"read {site}") == reason("DocumentRoot", "HOST", "DocumentRoot")
    assert row(done, f"read {tmp_path}/other") == reason("Alias", "HOST", "Alias")
    assert row(done, "read /dev/null") == "every configuration"
    assert row(done, "connect to port 8080") == reason("/a/*", "ROUTES", "/a/*")
    assert row(done, "connect to port 8081") == reason("Server", "UPSTREAM", "Server 127")
    assert row(done, "connect to port 9000") == reason("HealthPort", "UPSTREAM", "HealthPort")
    assert "  bind to no TCP port: the master opens the listening sockets" in done.workers
    assert "  connect to no TCP port" not in done.workers


@pytest.mark.parametrize("listing, route, writes", [("on", "", True), ("off", "/in/* dirlisting-upload", True),
                                                    ("off", "~ ^/in dirlisting-upload", True), ("off", "", False)])
def test_uploads_may_be_written_only_where_a_route_accepts_them(explain, site, listing, route, writes):
    done = explain(top=f"[PLUGINS]\n    Load dirlisting\n[DIRLISTING]\n    Upload anyone\n    Listing {listing}\n", routes=f"    {route}\n")
    assert any(line.startswith(f"  write below {site} ") for line in done.workers) == writes, done.out


CALLS = "system calls that fail in workers"


def test_system_calls_are_listed(explain):
    done = explain()
    calls = done.parts[CALLS]
    assert "  deny programs: execve, execveat" in calls and "  deny listen" in calls
    assert any("io_uring_setup" in line for line in calls)
    assert "  deny sendto, sendmsg and sendmmsg with MSG_FASTOPEN" in calls


def test_open_ports_allow_their_system_calls(explain):
    done = explain(top="[UPSTREAM]\n    Name app\n    Server 127.0.0.1:8081\n    MaxServers 3\n", routes="    /a/* proxy http://app\n")
    assert not any("MSG_FASTOPEN" in line for line in done.parts[CALLS]) and "  deny listen" in done.parts[CALLS]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities")
def test_capabilities_are_listed(explain):
    assert "  no capabilities" in explain(server="    User nobody\n").workers
    assert "  capabilities CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_DAC_READ_SEARCH CAP_FSETID: there is no User, so workers run as root" \
        in explain().workers


def test_symlinks_are_the_reason_for_reading_everything(explain):
    done = explain(host="    FollowSymlinks on\n")
    assert row(done, "read /") == f"FollowSymlinks in [HOST], {done.config}:{line_of(done, 'FollowSymlinks')}"
    assert "  connect to no TCP port" in done.workers


def test_servers_that_may_be_added_are_the_reason_for_all_ports(explain):
    done = explain(top="[UPSTREAM]\n    Name app\n    Server 127.0.0.1:8081\n    MaxServers 3\n", routes="    /a/* proxy http://app\n")
    reason = f"MaxServers in [UPSTREAM], {done.config}:{line_of(done, 'MaxServers')}"
    assert row(done, "connect to all ports") == row(done, "resolve names") == reason


def test_programs_have_a_section(explain, run):
    assert not any(title.startswith("programs") for title in explain().parts)
    done = explain(plugins="    Load cgi\n", routes="    *.cgi cgi\n")
    assert "  start no programs" in explain().workers and "  start no programs" not in done.workers
    programs = next(lines for title, lines in done.parts.items() if title.startswith("programs that workers start"))
    assert "  send signals only to programs of the same worker" in programs
    assert "SpoolFolder in [SERVER]" in row(done, "spool below /var/tmp")


def test_programs_are_listed_with_their_reason(explain, site):
    done = explain(plugins="    Load cgi\n    Load otlp\n", top="[OTLP]\n    Endpoint http://127.0.0.1:4318\n",
                   routes="    *.cgi cgi\n    *.x cgi /bin/sh\n")
    started = {re.match(r"  have started outside the sandbox: (.*?)  +(\S.*)", each)[1]: each for each in done.workers if "started outside" in each}
    assert len(started) == 3
    assert f"*.cgi in [ROUTES], {done.config}:{line_of(done, '*.cgi')}" in started[f"programs below {site}"]
    assert f"*.x in [ROUTES], {done.config}:{line_of(done, '*.x')}" in started["/bin/sh"]
    assert f"[OTLP], {done.config}:{line_of(done, '[OTLP]')}" in next(line for name, line in started.items() if name.endswith("/monkey-otlp"))
    assert "  start no other programs" in done.workers and "  start no programs" not in done.workers


def test_plugin_without_route_starts_no_program(explain):
    done = explain(plugins="    Load cgi\n")
    assert "  start no programs" in done.workers and "started outside" not in done.out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user")
def test_user_of_workers_is_named(explain):
    assert "workers, as nobody" in explain(server="    User nobody\n").parts
    assert "workers, as the user of the master" in explain().parts


def test_mode_is_named(explain, run):
    found = re.search(r"Landlock  yes, ABI (\d+)", run("-V").out)
    if found and int(found[1]) >= 6:
        assert explain().mode == f"Sandbox on: this kernel enforces all of it (Landlock ABI {found[1]})"
        assert explain(server="    Sandbox required\n").mode.startswith("Sandbox required: this kernel enforces all of it")
    assert explain(server="    Sandbox off\n").mode == "Sandbox off: nothing below is enforced"


@pytest.mark.parametrize(("abi", "gap"), [
    (0, "this kernel has no Landlock, so nothing below is enforced for files, ports and signals"),
    (3, "this kernel cannot restrict TCP ports and signals"),
    (5, "this kernel cannot restrict signals and abstract sockets"),
])
def test_gaps_of_the_kernel_are_named(run, site, tmp_path, abi, gap):
    if "Landlock  yes" not in run("-V").out:
        pytest.skip("this kernel has no Landlock")
    fault = Fault("oldkernel", tmp_path, {"MONKEY_LANDLOCK_ABI": str(abi)})
    done = subprocess.run([RELEASE, "-o", site, "explain", "--sandbox"], env=os.environ | fault.environment, capture_output=True,
                          text=True, timeout=20)
    assert done.returncode == 0 and done.stdout.startswith(f"Sandbox on: {gap}\n"), (done.stdout, done.stderr)


def test_lack_of_seccomp_is_named(run, site, tmp_path):
    if "Landlock  yes" not in run("-V").out:
        pytest.skip("this kernel has no Landlock")
    fault = Fault("oldkernel", tmp_path, {"MONKEY_NO_SECCOMP": "1"})
    done = subprocess.run([RELEASE, "-o", site, "explain", "--sandbox"], env=os.environ | fault.environment, capture_output=True,
                          text=True, timeout=20)
    assert done.stdout.startswith("Sandbox on: this kernel cannot filter system calls\n"), (done.stdout, done.stderr)


def test_wrong_usage(run, site):
    for words in (["explain", "--sandbox", "GET", "/"], ["explain", "--sandbox", "/"], ["explain", "--sandboxes"], ["--sandbox"]):
        assert run("-o", site, *words).code == USAGE, words
    assert "--sandbox" in run("--help").out


def test_errors_of_the_configuration_come_first(run, tmp_path):
    config = tmp_path / "wrong.conf"
    config.write_text("[SERVER]\n    Nonsense 1\n")
    done = run("-c", config, "explain", "--sandbox")
    assert done.code == CONFIGURATION and "Nonsense" in done.err and done.out == ""


def test_isolated_services_are_mentioned(explain):
    assert "isolated services" not in explain().parts
    assert "isolated services" in explain(plugins="    Load isolate\n").parts
