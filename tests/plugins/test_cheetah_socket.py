# SPDX-License-Identifier: Apache-2.0
"""The shell's socket: its mode and users, and how it survives reloads and upgrades."""
import grp
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from monkey import NOT_STARTED, PROGRAM, SECONDS
from proc import wait_until
from shell_server import BUILT, ShellServer, as_root, monkey_shell, socket_folder, start, terminal, watch, with_test_plugins


# ---- The socket ----


def rights(path):
    found = os.lstat(path)
    assert stat.S_ISSOCK(found.st_mode)
    return stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid


@pytest.mark.parametrize("umask", [0, 0o27, 0o777])
def test_shell_socket_mode_is_private_regardless_of_umask(start, socket_folder, umask):
    it = start(popen={"umask": umask})
    assert rights(it.path) == (0o600, os.geteuid(), os.getegid())
    assert it("version").code == 0
    it.server.stop()
    assert list(socket_folder.iterdir()) == []


@as_root
@pytest.mark.parametrize("keys, mode", [("Group daemon", 0o660), ("Group daemon\nMode 0600", 0o600),
                                        ("Group daemon\nMode 660", 0o660)])
def test_shell_socket_group_is_configurable(start, keys, mode):
    it = start(keys)
    assert rights(it.path) == (mode, 0, grp.getgrnam("daemon").gr_gid)
    if mode == 0o600:
        it.server.err.wait_for("excludes the group")


@as_root
def test_shell_socket_group_works_without_cap_chown(start):
    """The shipped unit drops this capability."""
    capsh = shutil.which("capsh")
    if not capsh:
        pytest.skip("no capsh here")
    it = start("Group daemon", wrapper=[capsh, "--drop=cap_chown", "--shell=/usr/bin/env", "--"])
    assert rights(it.path)[2] == grp.getgrnam("daemon").gr_gid


def become(user, group=None, groups=()):
    """Returns a preexec_fn that switches to another user."""
    account = pwd.getpwnam(user)
    gid = grp.getgrnam(group).gr_gid if group else account.pw_gid

    def change():
        os.setgroups([grp.getgrnam(each).gr_gid for each in groups])
        os.setgid(gid)
        os.setuid(account.pw_uid)

    return change


def reachable(path):
    """Can other users run the program at all?"""
    return all(os.stat(p).st_mode & 0o001 for p in [PROGRAM, *PROGRAM.parents])


needs_program = pytest.mark.skipif(not reachable(PROGRAM), reason="others cannot reach the program here")


@as_root
@needs_program
def test_shell_other_users_are_refused_with_a_message(start):
    it = start()
    done = it("status", preexec_fn=become("nobody"))
    assert done.code == 1 and done.err == f"monkey shell: nobody cannot access {it.path}: only root has access\n"


@as_root
@needs_program
@pytest.mark.parametrize("user, may", [({"group": "daemon"}, True), ({"groups": ["sys", "daemon"]}, True),
                                      ({"groups": ["sys"]}, False), ({}, False)])
def test_shell_members_of_the_group_are_admitted(start, user, may):
    it = start("Group daemon")
    done = it("version", preexec_fn=become("nobody", **user))
    if may:
        assert (done.code, done.out) == (0, "Monkey 2.0.0\n")
    else:
        assert done.code == 1 and f"nobody cannot access {it.path}: only root and the group daemon" in done.err


@as_root
@needs_program
@pytest.mark.parametrize("keys, user, may", [
    ("", {}, False), ("", {"group": "root"}, False), ("Group daemon", {}, False), ("Group daemon", {"group": "daemon"}, True),
    ("Group daemon", {"groups": ["daemon"]}, True), ("Group daemon\nMode 0600", {"group": "daemon"}, False)])
def test_shell_chmod_of_socket_grants_no_access(start, keys, user, may):
    it = start(keys)
    it.path.chmod(0o666)
    done = it("version", preexec_fn=become("nobody", **user))
    if may:
        assert done.code == 0
    else:
        assert done.code == 1 and done.err == "monkey shell: you have no permission to use this shell\n"
        it.server.err.wait_for(rf"\[warn\] \d+: shell: rejected process \d+ of user {pwd.getpwnam('nobody').pw_uid}, group \d+")


@as_root
@pytest.mark.processes("it serves as the user of the program")
def test_shell_refuses_user_of_the_workers(start):
    it = start(server="User daemon")
    it.path.chmod(0o666)
    assert (it("version").code, it.json("workers")[0]["memory"] > 0) == (0, True)
    if reachable(PROGRAM):
        assert "you have no permission to use this shell" in it("version", preexec_fn=become("daemon")).err


@as_root
@needs_program
@pytest.mark.processes("it serves as the user of the program")
def test_shell_works_for_server_of_ordinary_user(start, socket_folder, tmp_path):
    os.chown(socket_folder, pwd.getpwnam("daemon").pw_uid, -1)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and str(folder) != "/" and not folder.stat().st_mode & 1:
            folder.chmod(0o755)
    it = start("Group daemon", popen={"preexec_fn": become("daemon")})
    assert rights(it.path) == (0o660, pwd.getpwnam("daemon").pw_uid, grp.getgrnam("daemon").gr_gid)
    assert it("version").code == 0
    assert it("version", preexec_fn=become("daemon")).code == 0
    assert it("version", preexec_fn=become("nobody", group="daemon")).code == 0
    assert it("version", preexec_fn=become("nobody")).code == 1
    it.server.config.write_text(it.server.config.read_text().replace("Group daemon", "Group sys"))
    done = it("reload")
    assert done.code == 1 and "the socket" in done.err and "only root and members of a group" in done.err
    assert it("version").code == 0


def refused_start(monkey, top):
    server = monkey(plugins=["cheetah"], top=top, expect_start=False)
    server.exit_code = NOT_STARTED
    server.wait()
    return server.err.text


def test_shell_socket_of_running_server_is_an_error(start, monkey, socket_folder):
    it = start()
    output = refused_start(monkey, f"[CHEETAH]\n    Socket {it.path}\n")
    assert re.search(rf"monkey1\.conf:\d+:12: error: another server is listening at {it.path}: process {it.server.pid}\n", output)
    assert "each server needs its own Socket in [CHEETAH]" in output
    assert it.json("status")["process"] == it.server.pid
    other = ShellServer(monkey(plugins=["cheetah"], top=f"[CHEETAH]\n    Socket {socket_folder}/other\n"), socket_folder / "other")
    assert other.json("status")["process"] == other.server.pid
    other.server.stop()
    assert it("version").code == 0 and not other.path.exists()


@pytest.mark.processes("it does not reload")
def test_shell_reload_cannot_take_socket_of_another_server(start, monkey, socket_folder):
    it = start()
    other = ShellServer(monkey(plugins=["cheetah"], top=f"[CHEETAH]\n    Socket {socket_folder}/other\n"), socket_folder / "other")
    other.change("/other", "/sock")
    done = other("reload")
    assert done.code == 1 and "another server is listening" in done.err and "keeping the old one" in done.err
    assert other.json("status")["process"] == other.server.pid
    assert it.json("status")["process"] == it.server.pid


def test_shell_socket_of_dead_server_is_replaced(start, monkey, socket_folder):
    it = start()
    workers = it.server.workers
    it.server.exit_code = -signal.SIGKILL
    it.server.kill()
    assert it.path.exists()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), "its workers to end")
    assert "the server has exited" in it("status").err
    again = ShellServer(monkey(args=["-c", it.server.config]), it.path)
    assert again.json("status")["process"] == again.server.pid
    assert [each.name for each in socket_folder.iterdir()] == ["sock"]


def test_shell_path_that_is_no_socket_is_kept(monkey, socket_folder):
    (socket_folder / "sock").write_text("precious")
    output = refused_start(monkey, f"[CHEETAH]\n    Socket {socket_folder}/sock\n")
    assert f"{socket_folder}/sock exists and is not a socket" in output and "remove it" in output
    assert (socket_folder / "sock").read_text() == "precious"
    (socket_folder / "link").symlink_to("sock")
    assert "is not a socket" in refused_start(monkey, f"[CHEETAH]\n    Socket {socket_folder}/link\n")
    assert (socket_folder / "link").is_symlink()


def test_shell_unsafe_or_missing_folder_is_rejected(monkey, socket_folder):
    output = refused_start(monkey, f"[CHEETAH]\n    Socket {socket_folder}/none/sock\n")
    assert "cannot be created: No such file or directory" in output and "create its folder" in output
    (socket_folder / "open").mkdir()
    (socket_folder / "open").chmod(0o777)
    output = refused_start(monkey, f"[CHEETAH]\n    Socket {socket_folder}/open/sock\n")
    assert f"the folder {socket_folder}/open/ is world-writable" in output
    (socket_folder / "open").chmod(0o1777)
    server = monkey(plugins=["cheetah"], top=f"[CHEETAH]\n    Socket {socket_folder}/open/sock\n")
    assert monkey_shell(socket_folder / "open/sock", "version").code == 0
    server.stop()


def test_shell_removes_only_its_own_socket(start, socket_folder):
    it = start()
    it.path.unlink()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(it.path))
        it.server.stop()
        assert it.path.exists()


# ---- Reloads ----


def test_shell_reload_waits_for_completion(start, socket_folder):
    it = start(workers=2)
    before = it.server.workers
    done = it("reload")
    assert (done.code, done.out, done.err) == (0, "the new configuration serves\n", "")
    wait_until(lambda: not set(before) & set(it.server.workers), "the old workers to end")
    assert it.json("status")["reloads"] == 1 and [each.name for each in socket_folder.iterdir()] == ["sock"]


@pytest.mark.processes("it does not reload")
def test_shell_session_survives_reloads(start, terminal):
    it = start(workers=2)
    done = it(text="reload\nstatus\nreload\nversion\nreload\nstatus\n")
    assert done.code == 0 and done.err == "", done
    assert [line for line in done.lines if line.startswith("reloads")] == ["reloads         1", "reloads         3"]
    t = terminal("-s", it.path)
    t.until("monkey> ")
    for _ in range(3):
        assert "the new configuration serves\n" in t.ask("reload")
        assert "Monkey 2.0.0\n" in t.ask("version")
    it.server.tell(signal.SIGHUP)
    it.server.err.wait_for("the new configuration serves", 7)
    assert "Monkey 2.0.0\n" in t.ask("version")
    t.type("quit\n")
    assert t.end() == 0


@pytest.mark.processes("it does not reload")
def test_shell_session_reports_exit_of_its_worker(start):
    it = start()
    with it.server.connect() as waiting:  # this connection keeps the old worker alive
        waiting.get("/")
        with it.raw() as raw:
            assert raw.ask("reload") == ([], "+the new configuration serves")
            assert raw.ask("status") == ([], "!this process exits")
            workers = {w["process"]: w["draining"] for w in it.json("workers")}
            assert workers[raw.process] is True and sorted(workers.values()) == [False, True]
            done = it("connections")
            assert done.code == 0 and "1 more in draining processes, not shown\n" == done.err
            waiting.close()
            assert raw.line() == "!this process exits" and raw.line() == ""


def test_shell_socket_is_available_during_reloads(start):
    """At every moment of a reload, the path leads to a server, and every client gets a response."""
    it = start(workers=2)
    stop = it.path.parent / "stop"
    loop = subprocess.Popen(["sh", "-c", f"n=0; while [ ! -e {stop} ]; do [ -S {it.path} ] || exit 9; n=$((n+1)); done; echo $n"],
                            stdout=subprocess.PIPE, text=True)
    for i in range(8):
        it.server.tell(signal.SIGHUP)
        for _ in range(2):
            assert it("version").out == "Monkey 2.0.0\n"
        it.server.err.wait_for("the new configuration serves", i + 1)
    stop.write_text("")
    out, _ = loop.communicate(timeout=SECONDS)
    assert loop.returncode == 0 and int(out) > 100
    assert "rejected process" not in it.server.err.text


@pytest.mark.processes("it does not reload")
def test_shell_reload_reports_configuration_errors(start, socket_folder):
    it = start()
    it.change("Workers 1", "Wrokers 1")
    done = it("reload")
    assert done.code == 1 and done.out == "", done
    assert re.search(r"monkey\.conf:3:5: error: unknown key `Wrokers`", done.err)
    assert done.err.endswith("monkey shell: the new configuration is invalid: keeping the old one\n")
    assert it.json("status")["failed_reloads"] == 1
    it.change("Wrokers 1", "Workers 2")
    assert it("reload").code == 0
    status = it.json("status")
    assert (status["reloads"], status["failed_reloads"], status["workers"]) == (1, 1, 2)
    assert [each.name for each in socket_folder.iterdir()] == ["sock"]


@with_test_plugins
@pytest.mark.parametrize("failure, message", [("worker", "its workers cannot serve: see the error log"),
                                        ("master", "the plugin `fails-in-phase` cannot start: Invalid cross-device link"),
                                        ("load", "the plugin `fails-in-phase` cannot be loaded"),
                                        ("host", "the plugin `fails-in-phase` cannot serve this host")])
@pytest.mark.processes("it does not reload")
def test_shell_socket_survives_rejected_reload(start, socket_folder, failure, message):
    it = start(plugins=[BUILT / "monkey-fails_in_phase.so"], top="[FAIL]\n    What nothing\n")
    it.server.allow(r"worker \d+ exited unexpectedly")
    it.change("What nothing", f"What {failure}")
    for _ in range(2):
        done = it("reload")
        assert done.code == 1 and message in done.err and "keeping the old one" in done.err, done
        assert it.json("status")["process"] == it.server.pid
        assert [each.name for each in socket_folder.iterdir()] == ["sock"]
    it.change(f"What {failure}", "What nothing")
    assert it("reload").code == 0 and it("version").code == 0
    assert [each.name for each in socket_folder.iterdir()] == ["sock"]
    it.server.stop()
    assert list(socket_folder.iterdir()) == []


@pytest.mark.processes("it does not reload")
def test_shell_reload_moves_and_removes_socket(start, socket_folder):
    it = start()
    it.change("/sock", "/moved")
    assert it("reload").code == 0
    wait_until(lambda: [each.name for each in socket_folder.iterdir()] == ["moved"], "the old socket to go")
    it.path = socket_folder / "moved"
    it.change("Load cheetah", "# Load")
    it.change("[CHEETAH]\n", "#[CHEETAH]\n")
    it.change("    Socket", "#   Socket")
    assert it("reload").out == "the new configuration serves\n"
    wait_until(lambda: list(socket_folder.iterdir()) == [], "the socket to go")


@as_root
@pytest.mark.processes("it does not reload")
def test_shell_reload_changes_socket_mode(start):
    it = start()
    it.change("[CHEETAH]\n", "[CHEETAH]\n    Group daemon\n")
    assert it("reload").code == 0
    assert rights(it.path) == (0o660, 0, grp.getgrnam("daemon").gr_gid)
    it.change("    Group daemon\n", "")
    assert it("reload").code == 0
    assert rights(it.path) == (0o600, 0, 0)


def test_shell_upgrade_hands_over_socket(start, watch, socket_folder, tmp_path):
    it = start(server=f"PidFile {tmp_path}/pid", workers=2)
    it.server.tell(signal.SIGUSR2)
    new = int(it.server.err.wait_for(r"the new program is process (\d+)")[1])
    process = watch(new)
    it.server.err.wait_for(rf"{new}: monkey \S+ serves with")
    assert it.server.process.wait(SECONDS) == 0
    assert it.json("status")["process"] == new
    assert [each.name for each in socket_folder.iterdir()] == ["sock"]
    process.tell(signal.SIGTERM)
    process.wait()
    assert list(socket_folder.iterdir()) == []


def test_shell_failed_upgrade_keeps_socket(start, socket_folder):
    it = start()
    it.change("Workers 1", "Wrokers 1")
    it.server.tell(signal.SIGUSR2)
    it.server.err.wait_for("the new program exited before it was ready")
    assert it.json("status")["process"] == it.server.pid
    assert [each.name for each in socket_folder.iterdir()] == ["sock"]
