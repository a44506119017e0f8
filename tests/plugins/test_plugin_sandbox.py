# SPDX-License-Identifier: Apache-2.0
"""Sandbox exceptions for plugins: reading and writing outside the served folders, name resolution, and the system's trusted
certificates. The plugin tests/plugins/api/sandbox_exceptions.c tries the operation that a request names.
"""
import errno
import os
import pwd
import re
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from monkey import PROGRAM
from proc import wait_until

PLUGIN = PROGRAM.parent / "tests" / "plugins" / "monkey-sandbox_exceptions.so"
ROUTES = "[ROUTES]\n    /* sandbox-exceptions\n"
DENIED = str(errno.EACCES)
ANCHORS = "/etc/ssl/certs"

pytestmark = [pytest.mark.skipif(not PLUGIN.exists(), reason="the plugins of the tests are built with the program in build/dev"),
              pytest.mark.processes("it has no sandbox")]


@pytest.fixture
def granted(monkey, tmp_path):
    if b"Landlock  yes" not in subprocess.check_output([PROGRAM, "-V"]):
        pytest.skip("this kernel has no Landlock")
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").write_text("outside")

    def start(keys="", server=""):
        top = "[SANDBOX_EXCEPTIONS]\n" + "".join(f"    {key}\n" for key in keys.splitlines())
        it = monkey(plugins=[PLUGIN], top=top, server=server, sections=ROUTES)
        return it, lambda word, text: it.get(f"/{word}?{text}").text

    return start


def test_sandbox_denies_everything_without_a_grant(granted, tmp_path):
    _, ask = granted()
    assert ask("create", tmp_path / "inside/file") == DENIED
    assert ask("mkdir", tmp_path / "inside/folder") == DENIED
    assert ask("read", tmp_path / "outside") == DENIED
    assert ask("read", ANCHORS) == DENIED
    assert ask("read", "/etc/hosts") == DENIED
    assert ask("resolve", "localhost") != "0"


def test_sandbox_grant_allows_writing_below_folder(granted, tmp_path):
    server, ask = granted("Write inside")
    inside = tmp_path / "inside"
    assert ask("create", inside / "file") == "0"
    assert ask("mkdir", inside / "folder") == "0"
    assert ask("create", inside / "folder/deep") == "0"
    assert ask("rename", inside / "file") == "0"
    assert sorted(p.name for p in inside.rglob("*")) == ["deep", "file.new", "folder"]
    assert ask("read", inside) == "0"
    for name in ("folder/deep", "folder", "file.new"):
        assert ask("remove", inside / name) == "0"
    assert list(inside.iterdir()) == []
    assert ask("create", tmp_path / "beside") == DENIED
    assert ask("create", tmp_path / "outside") == DENIED
    assert ask("read", tmp_path / "outside") == DENIED
    assert ask("rename", tmp_path / "outside") == DENIED
    assert ask("remove", tmp_path / "outside") == DENIED
    assert ask("create", tmp_path / "site/file") == DENIED
    assert "cannot" not in server.err.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user")
def test_sandbox_grant_does_not_override_permissions(granted, tmp_path):
    with tempfile.TemporaryDirectory() as folder:  # other users cannot enter tmp_path
        os.chmod(folder, 0o755)
        server, ask = granted(f"Write {folder}", "User nobody")
        assert ask("create", f"{folder}/file") == DENIED
        os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
        assert ask("create", f"{folder}/file") == "0"
        assert os.stat(f"{folder}/file").st_uid == pwd.getpwnam("nobody").pw_uid
        assert "cannot write" not in server.err.text


def test_sandbox_grant_for_missing_folder_is_a_warning(granted, tmp_path):
    server, ask = granted("Write none")
    line = server.config.read_text().splitlines().index("    Write none") + 1
    server.err.wait_for(r"workers cannot write below \S+/none: No such file or directory "
                        rf"\(for Write in \[SANDBOX_EXCEPTIONS\], {server.config}:{line}\)")
    assert ask("mkdir", tmp_path / "none") == DENIED


def test_sandbox_grant_allows_name_resolution(granted):
    _, ask = granted("Names on")
    assert ask("resolve", "localhost") == "0"
    assert ask("read", "/etc/hosts") == "0"
    assert ask("read", "/etc/passwd") == DENIED
    assert ask("read", ANCHORS) == DENIED


@pytest.mark.skipif(not os.path.isdir(ANCHORS), reason="this system keeps them elsewhere")
def test_sandbox_grant_allows_trusted_certificates(granted):
    _, ask = granted("Trust on")
    assert ask("read", ANCHORS) == "0"
    for file in os.listdir(ANCHORS)[:20]:
        assert ask("read", f"{ANCHORS}/{file}") == "0"
    assert ask("read", "/etc/ssl/private") == DENIED
    assert ask("read", "/etc/hosts") == DENIED


# TCP ports

@pytest.fixture
def landlock_ports(granted):
    abi = re.search(rb"Landlock  yes, ABI (\d+)", subprocess.check_output([PROGRAM, "-V"]))
    if int(abi[1]) < 4:
        pytest.skip("this kernel cannot restrict TCP ports")


@pytest.fixture
def peers():
    """Two listening sockets: their ports."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        yield one.getsockname()[1], other.getsockname()[1]


def test_sandbox_denies_ports_without_a_grant(granted, landlock_ports, peers):
    _, ask = granted()
    assert [ask("connect", port) for port in peers] == [DENIED, DENIED]
    assert ask("bind", 0) == DENIED


def test_sandbox_grant_allows_ports(granted, landlock_ports, peers):
    _, ask = granted(f"Connect {peers[0]}\nBind 1024 0")
    assert [ask("connect", port) for port in peers] == ["0", DENIED]
    assert ask("bind", 0) == "0"
    _, ask = granted(f"Connect {peers[0]} 0")
    assert [ask("connect", port) for port in peers] == ["0", "0"]
    assert ask("bind", 0) == DENIED, "a grant to connect allowed binding"


def test_sandbox_grant_of_many_ports_stays_a_list(granted, landlock_ports, peers):
    """No limit turns a long list into a grant for all ports."""
    many = [port for port in range(10_000, 12_500) if port not in peers]
    _, ask = granted(f"Connect {' '.join(map(str, many))} {peers[0]}")
    assert [ask("connect", port) for port in peers] == ["0", DENIED]


def test_sandbox_grant_for_names_allows_dns_over_tcp(granted, landlock_ports):
    _, ask = granted("Names on")
    assert ask("connect", 53) in ("0", str(errno.ECONNREFUSED))
    assert ask("connect", 54) == DENIED


def test_sandbox_ports_change_with_a_reload(granted, landlock_ports, peers):
    server, ask = granted(f"Connect {peers[0]}")
    assert [ask("connect", port) for port in peers] == ["0", DENIED]
    text = server.config.read_text()
    assert f"Connect {peers[0]}" in text
    server.config.write_text(text.replace(f"Connect {peers[0]}", f"Connect {peers[1]}"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    wait_until(lambda: len(server.workers) == 1, "the old one to end")
    assert [ask("connect", port) for port in peers] == [DENIED, "0"]


def test_sandbox_off_restricts_no_ports(granted, peers):
    _, ask = granted(server="Sandbox off")
    assert [ask("connect", port) for port in peers] + [ask("bind", 0)] == ["0"] * 3


# System calls

EPERM, REFUSED_PROTOCOL, REFUSED_FAMILY, NO_FAST_OPEN = (str(e) for e in (
    errno.EPERM, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT, errno.EOPNOTSUPP))
DENIED_CALLS = {
    **dict.fromkeys(("process_vm_readv", "unshare", "mount", "open_tree", "bpf", "perf_event_open", "userfaultfd", "keyctl", "io_uring_setup",
                     "open_by_handle_at", "TIOCSTI", "exec_memory"), EPERM),
    "clone3": str(errno.ENOSYS), "mptcp": REFUSED_PROTOCOL, "packet": REFUSED_FAMILY, "vsock": REFUSED_FAMILY}
ALLOWED_CALLS = {"thread": "0", "fork": "0", "own_memory": "0", "netlink": "0", "FIONREAD": str(errno.EBADF)}


@pytest.fixture
def filtered(granted):
    """Like `granted`, for kernels that filter system calls."""
    if not re.search(r"^Seccomp:\s", Path("/proc/self/status").read_text(), re.MULTILINE):
        pytest.skip("this kernel cannot filter system calls")
    return granted


def seccomp_mode(pid):
    return re.search(r"^Seccomp:\s+(\d)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1]


def test_sandbox_denies_system_calls(filtered):
    server, ask = filtered()
    assert {name: ask("call", name) for name in DENIED_CALLS} == DENIED_CALLS
    assert {name: ask("call", name) for name in ALLOWED_CALLS} == ALLOWED_CALLS
    assert [seccomp_mode(pid) for pid in (server.pid, *server.workers)] == [seccomp_mode("self"), "2"]


def test_sandbox_off_filters_no_system_calls(filtered):
    """Without this check, the calls could fail for other reasons."""
    server, ask = filtered(server="Sandbox off")
    # The kernel denies new user namespaces in a chroot.
    unshare = ["unshare"] if subprocess.run(["unshare", "--user", "true"], stderr=subprocess.DEVNULL).returncode == 0 else []
    for name in ("process_vm_readv", *unshare, "keyctl", "TIOCSTI", "exec_memory", "clone3", "open_tree", "open_by_handle_at"):
        assert ask("call", name) != DENIED_CALLS[name], name
    assert {name: ask("call", name) for name in ALLOWED_CALLS} == ALLOWED_CALLS
    assert [seccomp_mode(pid) for pid in server.workers] == [seccomp_mode("self")]


def test_sandbox_ports_cannot_be_evaded(filtered, landlock_ports, peers):
    """Landlock itself does not see these ways to connect and to listen."""
    _, ask = filtered(f"Connect {peers[0]}")
    assert [ask("fastopen", port) for port in peers] == [NO_FAST_OPEN] * 2
    assert (ask("call", "listen"), ask("call", "mptcp")) == (EPERM, REFUSED_PROTOCOL)


def test_sandbox_grants_allow_system_calls(filtered, landlock_ports, peers):
    _, ask = filtered("Bind 1024")
    assert (ask("call", "listen"), ask("fastopen", peers[0])) == ("0", NO_FAST_OPEN)
    _, ask = filtered("Connect 0")
    assert (ask("call", "listen"), ask("fastopen", peers[0])) == (EPERM, "0")


def test_sandbox_filters_system_calls_after_a_reload(filtered):
    server, ask = filtered()
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    wait_until(lambda: len(server.workers) == 1, "the old one to end")
    assert ask("call", "unshare") == EPERM and seccomp_mode(server.workers[0]) == "2"


def test_sandbox_grants_appear_in_explain_and_log(granted, run, tmp_path):
    server, _ = granted("Read outside\nWrite inside\nConnect 80 0\nBind 81\nNames on\nTrust on")
    said = f"read {tmp_path}/outside, write below {tmp_path}/inside, connect to port 80, connect to all ports, " \
           "bind to port 81, resolve names, read trust anchors"
    printed = run("-T", "-c", server.config).out
    assert f"    Load {PLUGIN}\n    # for it, workers may {said}\n" in printed
    (tmp_path / "again.conf").write_text(printed)
    assert run("-T", "-c", tmp_path / "again.conf").out == printed
    explained = run("explain", "GET", "/", "-c", server.config).out
    assert re.search(rf"^sandbox   for sandbox-exceptions, workers may {said}$", explained, re.MULTILINE), explained


def test_sandbox_grants_are_not_shown_without_sandbox(granted, run):
    for keys, server in (("", ""), ("Names on", "Sandbox off")):
        it, ask = granted(keys, server)
        assert "workers may" not in run("-T", "-c", it.config).out
        assert not re.search("^sandbox ", run("explain", "GET", "/", "-c", it.config).out, re.MULTILINE)
        it.stop()
