# SPDX-License-Identifier: Apache-2.0
"""Before its first request, a worker drops root, other privileges, and access to the rest of the file system."""
import errno
import grp
import os
import pwd
import re
import signal
import subprocess

import pytest

from fault_injection import Fault
from proc import RELEASE, descriptors, status, wait_until

pytestmark = pytest.mark.over("h1", "h2-tls", why="the two that need least and most of the system")

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to give up")


def identities(pid):
    found = status(pid)
    return found["Uid"].split(), found["Gid"].split(), found["Groups"].split()


# The user

@root_only
@pytest.mark.parametrize("user", ["nobody", "www-data"])
def test_worker_switches_to_user_with_its_groups(monkey, site, user):
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        pytest.skip(f"there is no {user} here")
    server = monkey(server=f"User {user}", workers=2)
    groups = {str(account.pw_gid)} | {str(g.gr_gid) for g in grp.getgrall() if user in g.gr_mem}
    for pid in server.workers:
        uids, gids, others = identities(pid)
        assert uids == [str(account.pw_uid)] * 4 and gids == [str(account.pw_gid)] * 4 and set(others) == groups
        found = status(pid)
        assert [int(found[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")] == [0] * 4
        assert found["NoNewPrivs"] == "1"
    assert identities(server.pid)[0] == [str(os.getuid())] * 4


@root_only
def test_worker_switches_to_first_existing_user(monkey, site):
    server = monkey(server="User no-such-user nobody root")
    assert identities(server.workers[0])[0] == [str(pwd.getpwnam("nobody").pw_uid)] * 4


@root_only
def test_worker_switches_to_group(monkey, site):
    server = monkey(server="User nobody\nGroup daemon")
    _, gids, _ = identities(server.workers[0])
    assert gids == [str(grp.getgrnam("daemon").gr_gid)] * 4


@root_only
def test_capabilities_of_workers(monkey, site):
    """Of a worker that keeps running as root, only access to files remains; of others, nothing, not even to be gained by a program."""
    file_access = sum(1 << number for number in (0, 1, 2, 3, 4))  # CAP_CHOWN to CAP_FSETID
    for server, most in (("User nobody", 0), ("", file_access), ("User root", file_access)):
        found = status(monkey(server=server).workers[0])
        for name in ("CapEff", "CapPrm", "CapBnd"):
            assert int(found[name], 16) & ~most == 0, (server, name, found[name])
        assert (int(found["CapInh"], 16), int(found["CapAmb"], 16)) == (0, 0)
        assert most == 0 or int(found["CapEff"], 16) != 0


@root_only
def test_sandbox_off_keeps_capabilities_of_root(monkey, site):
    server = monkey(server="Sandbox off")
    assert status(server.workers[0])["CapEff"] == status(server.pid)["CapEff"]


def test_worker_filters_system_calls(monkey, site):
    own = status("self").get("Seccomp")  # not 0 in a container with a filter of its own
    if own is None:
        pytest.skip("this kernel cannot filter system calls")
    server = monkey(workers=2)
    assert [status(pid)["Seccomp"] for pid in (server.pid, *server.workers)] == [own, "2", "2"]


def test_worker_has_no_new_privs(monkey, site):
    assert status(monkey().workers[0])["NoNewPrivs"] == "1"


@root_only
def test_worker_that_is_respawned_drops_the_same_privileges(monkey, site):
    server = monkey(server="User nobody")
    server.allow("was killed by signal")
    before = identities(server.workers[0])
    victim = server.workers[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: [identities(worker) for worker in server.workers if worker != victim] == [before], "a successor with the same user")
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    wait_until(lambda: len(server.workers) == 1, "the old one to end")
    assert identities(server.workers[0]) == before


@root_only
def test_worker_without_privileges_writes_logs_of_root(monkey, site, tmp_path):
    """The master opens the logs before the workers switch users, and reopens them later."""
    server = monkey(server="User nobody\nAccessLog access.log\nErrorLog error.log")
    server.get("/?one")
    (tmp_path / "access.log").rename(tmp_path / "old.log")
    server.tell(signal.SIGUSR1)
    wait_until((tmp_path / "access.log").exists, "a new log")
    wait_until(lambda: "reopened" in (tmp_path / "error.log").read_text(), "the message about it")
    wait_until(lambda: str(tmp_path / "access.log") in descriptors(server.workers[0]).values(), "the worker to open it")
    server.get("/?two")
    server.stop()
    assert "/?one" in (tmp_path / "old.log").read_text() and "/?two" in (tmp_path / "access.log").read_text()


@pytest.mark.skipif(os.geteuid() == 0, reason="root can change")
def test_user_key_without_root_is_a_warning(monkey, site):
    server = monkey(server="User root")
    assert "only root can switch to another user" in server.err.text


# Access rights

@pytest.fixture
def probe(monkey, site, tmp_path):
    """`probe(...)` starts a server and sends a request; returns the results of the worker's access attempts, and the server."""
    site.add("page", "page")
    outside = tmp_path / "outside"
    outside.write_text("outside")
    outside.chmod(0o666)

    def start(server="", host="", read=outside, write=outside, create=tmp_path / "created", run="/bin/true"):
        fault = Fault("probe", tmp_path, {f"MONKEY_PROBE_{name}": str(value) for name, value in
                                          {"READ": read, "WRITE": write, "CREATE": create, "RUN": run}.items()})
        os.chmod(tmp_path / "probe.fault", 0o666)
        it = monkey(server=server, host=host, **fault.how)
        assert it.get("/page").text == "page"
        wait_until(lambda: fault.done, "the probe")
        return fault, it

    return start


@pytest.fixture
def landlock(run):
    if "Landlock  yes" not in run("-V").out:
        pytest.skip("this kernel has no Landlock")


def test_sandbox_denies_everything_outside(probe, landlock, tmp_path):
    fault, _ = probe()
    assert [fault.read, fault.write, fault.create, fault.list] == [errno.EACCES] * 4 and fault.run == errno.EPERM
    assert not (tmp_path / "created").exists()


def test_sandbox_allows_only_reading_inside(probe, landlock, site):
    fault, _ = probe(read=site / "page", write=site / "page", create=site / "created", run=site / "page")
    assert fault.read == 0
    assert [fault.write, fault.create] == [errno.EACCES] * 2 and fault.run == errno.EPERM


def test_sandbox_denies_symlink_targets_outside(probe, landlock, site, tmp_path):
    """The link itself is readable, but its target is not."""
    os.symlink(tmp_path / "outside", site / "link")
    fault, it = probe(read=site / "link")
    assert fault.read == errno.EACCES and it.get("/link").status == 403


def test_sandbox_with_symlinks_allows_only_reading_outside(probe, landlock, site, tmp_path):
    os.symlink(tmp_path / "outside", site / "link")
    fault, it = probe(host="FollowSymlinks on")
    assert fault.read == 0 and it.get("/link").text == "outside"
    assert [fault.write, fault.create] == [errno.EACCES] * 2 and fault.run == errno.EPERM


def test_sandbox_allows_every_served_folder(monkey, landlock, site, tmp_path):
    (tmp_path / "second").mkdir()
    (tmp_path / "second/x").write_text("second")
    site.add("none.html", "nothing")
    server = monkey(host="ServerName one.example", sections="""
        [ERROR_PAGES]
            404 none.html
        [HOST]
            ServerName two.example
            DocumentRoot second
    """)
    assert server.get("/x", host="two.example").text == "second"
    assert server.get("/x", host="one.example").text == "nothing"


def test_sandbox_off_denies_nothing(probe, tmp_path):
    """Without this check, the tests above could pass for other reasons."""
    fault, _ = probe("Sandbox off")
    assert [fault.read, fault.write, fault.create, fault.list] == [0] * 4
    assert (tmp_path / "created").exists()


# Kernels that lack a part

@pytest.fixture
def old_kernel(monkey, site, tmp_path):
    """Starts a server as on a kernel with this Landlock ABI; 0: without Landlock."""
    def start(abi=9, server="", seccomp=True, **more):
        fault = Fault("oldkernel", tmp_path, {"MONKEY_LANDLOCK_ABI": str(abi)} | ({} if seccomp else {"MONKEY_NO_SECCOMP": "1"}))
        it = monkey(server=server, **fault.how, **more)
        assert fault.asked
        return it
    return start


@pytest.mark.parametrize("abi", [0, 1, 3, 5])
def test_sandbox_on_starts_on_old_kernels(old_kernel, landlock, site, abi):
    site.add("page", "page")
    assert old_kernel(abi, "LogLevel debug").get("/page").text == "page"


@pytest.mark.parametrize(("abi", "reason"), [
    (0, "there would be no sandbox: this kernel has no Landlock"),
    (3, r"the sandbox would be incomplete: this kernel has Landlock ABI 3, but 6 is needed \(Linux 6.12\)"),
    (5, r"the sandbox would be incomplete: this kernel has Landlock ABI 5, but 6 is needed \(Linux 6.12\)"),
])
def test_sandbox_required_fails_on_old_kernels(site, landlock, tmp_path, abi, reason):
    """Neither a check nor a start succeeds, and the error names the line."""
    config = tmp_path / "required.conf"
    config.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n    Sandbox required\n[HOST]\n    DocumentRoot {site}\n")
    fault = Fault("oldkernel", tmp_path, {"MONKEY_LANDLOCK_ABI": str(abi)})
    for words in (["-t", "-c", config], ["-c", config]):
        done = subprocess.run([RELEASE, *words], env=os.environ | fault.environment, capture_output=True, text=True, timeout=20)
        assert done.returncode != 0
        assert re.search(rf"{config}:3:\d+: error: {reason}", done.stderr), done.stderr


def test_sandbox_on_starts_without_seccomp(old_kernel, landlock, site):
    site.add("page", "page")
    server = old_kernel(server="LogLevel debug", seccomp=False)
    assert server.get("/page").text == "page"
    server.err.wait_for("the sandbox cannot restrict system calls: ")
    assert status(server.workers[0])["Seccomp"] == status("self")["Seccomp"]


def test_sandbox_required_fails_without_seccomp(site, landlock, tmp_path):
    config = tmp_path / "required.conf"
    config.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n    Sandbox required\n[HOST]\n    DocumentRoot {site}\n")
    fault = Fault("oldkernel", tmp_path, {"MONKEY_NO_SECCOMP": "1"})
    done = subprocess.run([RELEASE, "-t", "-c", config], env=os.environ | fault.environment, capture_output=True, text=True, timeout=20)
    assert done.returncode != 0
    assert re.search(rf"{config}:3:\d+: error: the sandbox would be incomplete: this kernel has no filters for system calls \(seccomp\)",
                     done.stderr), done.stderr


def test_sandbox_required_fails_in_a_reload(old_kernel, landlock, site):
    """The workers of the old configuration continue."""
    site.add("page", "page")
    server = old_kernel(3, "Sandbox on")
    server.allow("Sandbox|sandbox")
    server.config.write_text(server.config.read_text().replace("Sandbox on", "Sandbox required"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("this kernel has Landlock ABI 3, but 6 is needed")
    assert server.get("/page").text == "page"


def test_sandbox_required_serves_if_complete(monkey, run, site):
    abi = re.search(r"Landlock  yes, ABI (\d+)", run("-V").out)
    if not abi or int(abi[1]) < 6:
        pytest.skip("this kernel has no complete sandbox")
    site.add("page", "page")
    assert monkey(server="Sandbox required").get("/page").text == "page"


def test_sandbox_with_another_word_is_an_error(run, site, tmp_path):
    config = tmp_path / "wrong.conf"
    config.write_text(f"[SERVER]\n    Sandbox requird\n[HOST]\n    DocumentRoot {site}\n")
    result = run("-t", "-c", config)
    assert result.code != 0 and "required" in result.err, result.err


@root_only
def test_worker_cannot_return_to_root(probe):
    fault, _ = probe("User nobody\nSandbox off")
    assert fault.root == errno.EPERM
    fault, _ = probe("Sandbox off")
    assert fault.root == 0, "no privilege was dropped"
