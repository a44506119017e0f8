# SPDX-License-Identifier: Apache-2.0
"""`monkey reload`, `confirm`, `rollback`, `configurations`, and the configurations that the server keeps."""
import contextlib
import errno
import http.client
import json
import os
import re
import signal
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest

import proc
from certificates import make_authority
from monkey import ENVIRONMENT, PROGRAM, SECONDS
from proc import Process, wait_until
from service_manager import Manager
from shell_server import socket_folder  # noqa: F401: a fixture

pytestmark = [pytest.mark.over("h1", why="the protocol makes no difference to the configuration"),
              pytest.mark.processes("there is no master")]


class Site:
    """A server in a folder with an included file; the response header X-Version tells which configuration serves."""

    def __init__(self, monkey, folder, socket, workers=1, more="", **how):
        self.folder, self.socket, self.state = folder / "etc", socket, folder / "state"
        self.folder_argument = self.folder
        self.folder.mkdir()
        (self.folder / "sites").mkdir()
        (self.folder / "www").mkdir()
        (self.folder / "www" / "index.html").write_text("hello")
        self.main = self.folder / "monkey.conf"
        self.main.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n    Workers {workers}\n{more}[PLUGINS]\n    Load cheetah\n    Load headers\n"
                             f"    Load metrics\n[METRICS]\n    Status /status\n[CHEETAH]\n    Socket {socket}\n")
        self.write(1)
        self.environment = {"MONKEY_STATE": str(self.state)} | how.pop("environment", {})
        self.server = monkey(args=["-c", self.folder], environment=self.environment, **how)

    def write(self, version, more=""):
        (self.folder / "sites" / "a.conf").write_text(
            f"[HOST]\n    DocumentRoot ../www\n[ROUTES]\n    /metrics metrics\n    /* static\n[HEADERS]\n    Set X-Version {version}\n{more}")

    @property
    def version(self):
        return int(self.server.get("/", fields={"Connection": "close"}).get("X-Version"))

    def run(self, *words):
        """Runs a command of the program; returns (exit code, stdout, stderr)."""
        has_socket = words[0] in ("reload", "confirm", "rollback")
        done = subprocess.run([PROGRAM, *([] if has_socket else ["-c", self.folder_argument]), words[0], *(["-s", self.socket] if has_socket else []),
                               *words[1:]], capture_output=True, text=True, env=os.environ | ENVIRONMENT | self.environment,
                              timeout=SECONDS, check=False)
        assert "Sanitizer" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    def reload(self, version, *options, code=0):
        self.write(version)
        done = self.run("reload", *options)
        assert done[0] == code, done
        return done

    def wait_for_version(self, version):
        wait_until(lambda: self.version == version, f"version {version}")


@pytest.fixture
def start(monkey, tmp_path, socket_folder):
    return lambda **how: Site(monkey, tmp_path, socket_folder / "sock", **how)


# ---- monkey reload ----


@pytest.mark.parametrize("workers", [1, 4])
def test_reload_returns_when_new_workers_serve(start, workers):
    it = start(workers=workers)
    assert it.reload(2) == (0, "the new configuration serves\n", "")
    assert it.version == 2


def test_reload_of_invalid_configuration_fails_with_position(start):
    it = start()
    it.write(2, "    Nonsense 1\n")
    code, out, err = it.run("reload")
    assert code == 1 and out == "" and "sites/a.conf:8:5: error" in err and "keeping the old one" in err
    assert it.version == 1
    assert "monkey_config_last_reload_successful 0" in it.server.get("/metrics").text


def test_reload_without_server_fails(start, tmp_path):
    it = start()
    it.socket = tmp_path / "none"
    code, _, err = it.run("reload")
    assert code == 1 and "does not exist" in err and "`monkey reload -s SOCKET`" in err


@pytest.mark.parametrize("words", [["reload", "--confirm", "0"], ["reload", "--confirm", "2d"], ["reload", "--confirm"],
                                   ["reload", "--timeout", "x"], ["reload", "now"], ["confirm", "2"], ["rollback", "x"],
                                   ["rollback", "1", "2"], ["rollback", "--confirm", "5"]], ids=" ".join)
def test_wrong_usage_is_an_error(start, words):
    it = start()
    code, out, err = it.run(*words)
    assert code == 2 and out == "" and f"usage: monkey {words[0]}" in err


def test_reload_waits_no_longer_than_its_timeout(start):
    it = start()
    worker, = wait_until(lambda: len(it.server.workers) == 1 and it.server.workers, "the end of short-lived processes")
    os.kill(worker, signal.SIGSTOP)
    try:
        before = time.monotonic()
        code, _, err = it.run("reload", "--timeout", "1s")
        assert code == 1 and "not responded in time" in err and time.monotonic() - before < 15
    finally:
        os.kill(worker, signal.SIGCONT)


def open_writer(pipe):
    """Returns None until another process reads the pipe."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        assert error.errno == errno.ENXIO
        return None


def test_reload_that_hangs_is_replaced_by_the_next(start):
    """The first reload reads a pipe without a writer."""
    it = start()
    pipe = it.folder / "pipe"
    os.mkfifo(pipe)
    it.main.write_text(it.main.read_text().replace("Load metrics", "Load metrics\n    Load proxy") +
                       f"[UPSTREAM]\n    Name app\n    Server 127.0.0.1:9\n    KeyFile {pipe}\n")
    it.write(2, "[ROUTES]\n    /app proxy http://app\n")
    results = []
    first = threading.Thread(target=lambda: results.append(it.run("reload")))
    first.start()
    writer = wait_until(lambda: open_writer(pipe), "the first reload")
    it.reload(3)
    first.join(SECONDS)
    os.close(writer)
    assert it.version == 3
    (code, out, err), = results
    assert code == 1 and out == "" and "the reload took too long, and was replaced by a later reload" in err
    assert "replaced by a later reload" in it.server.log


def test_service_manager_learns_why_reload_failed(start, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    it = start(environment=manager.environment)
    assert manager.read()["READY"] == "1"
    it.write(2, "    Nonsense 1\n")
    assert it.run("reload")[0] == 1
    assert manager.read()["RELOADING"] == "1"
    end = manager.read()
    assert end["READY"] == "1" and "sites/a.conf:8:5: error" in end["STATUS"]
    it.reload(3)
    assert manager.read()["RELOADING"] == "1" and manager.read() == {"READY": "1", "STATUS": "Serving"}
    manager.socket.close()


def test_service_manager_learns_that_configuration_is_confirmed(start, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    it = start(environment=manager.environment)
    manager.wait_for("READY")
    it.write(2)
    assert it.run("reload", "--confirm", "600s")[0] == 0
    assert manager.wait_for("READY") == {"READY": "1", "STATUS": "Serving a configuration that is not confirmed"}
    assert it.run("confirm")[0] == 0
    assert manager.read() == {"STATUS": "Serving"}
    assert it.run("confirm")[0] == 1
    assert manager.is_silent()
    manager.socket.close()


# ---- Confirming ----


def test_unconfirmed_configuration_is_replaced(start):
    it = start(workers=2)
    status = json.loads(it.server.get("/status").text)
    assert (status["generation"], status["confirm_at"]) == (1, 0)
    code, out, _ = it.reload(2, "--confirm", "2s")
    status = json.loads(it.server.get("/status").text)
    assert status["generation"] == 2 and 0 < status["confirm_at"] - status["now"] <= 3
    assert code == 0 and "the server returns to the previous one in 2 s" in out and it.version == 2
    assert "monkey_config_confirm_timestamp_seconds 0" not in it.server.get("/metrics").text
    it.wait_for_version(1)
    it.server.err.wait_for("the configuration was not confirmed in time")
    wait_until(lambda: "monkey_config_confirm_timestamp_seconds 0\n" in it.server.get("/metrics").text, "the metric of the old one")
    assert it.run("confirm")[0] == 1


def test_confirmed_configuration_stays(start):
    it = start()
    it.reload(2, "--confirm", "2s")
    assert it.run("confirm") == (0, "the configuration is confirmed\n", "")
    time.sleep(3)
    assert it.version == 2 and it.run("confirm")[0] == 1


def test_old_texts_return_although_all_files_have_changed(start):
    it = start()
    it.main.write_text(it.main.read_text() + "[MIMETYPES]\n    new text/x-new\n")
    it.reload(2, "--confirm", "1s")
    it.main.write_text("nonsense\n")
    (it.folder / "sites" / "a.conf").unlink()
    it.wait_for_version(1)
    assert it.run("reload")[0] == 1 and it.version == 1


def test_failed_reload_needs_no_confirmation(start):
    it = start()
    it.write(2, "    Nonsense 1\n")
    assert it.run("reload", "--confirm", "1s")[0] == 1
    assert it.run("confirm")[0] == 1 and it.version == 1
    time.sleep(1.5)
    assert "was not confirmed" not in it.server.err.text


def test_reload_in_between_is_not_a_confirmation(start):
    it = start()
    it.reload(2, "--confirm", "3s")
    it.reload(3)
    assert it.version == 3
    it.wait_for_version(1)


def test_second_confirm_reload_restarts_the_time_and_returns_to_the_confirmed_one(start):
    it = start()
    it.reload(2, "--confirm", "2s")
    it.reload(3, "--confirm", "4s")
    time.sleep(2.5)
    assert it.version == 3
    it.wait_for_version(1)


def test_time_that_ends_during_a_reload_is_obeyed_afterwards(start):
    """The master waits three seconds for the stopped worker, which does not stop accepting."""
    it = start()
    it.reload(2, "--confirm", "2s")
    worker = max(pid for pid in it.server.workers if Path(f"/proc/{pid}/comm").read_text() == "monkey: worker\n")
    it.write(3)
    os.kill(worker, signal.SIGSTOP)
    try:
        it.server.tell(signal.SIGHUP)
        it.server.err.wait_for("the configuration was not confirmed in time")
        it.server.tell(signal.SIGHUP)
        it.server.err.wait_for("cannot reload: the previous configuration is about to return: try again afterwards")
        it.server.err.wait_for(r"configuration 1 serves again \(rollback by the confirmation timeout\)")
    finally:
        os.kill(worker, signal.SIGCONT)
    assert it.version == 1 and it.run("confirm")[0] == 1


def test_automatic_reload_after_a_return_does_not_load_the_files(start, tmp_path):
    """A renewed certificate must not bring back files that were replaced for want of a confirmation."""
    pair = make_authority(tmp_path).issue(file="pair")
    it = start(more=f"    Listen 127.0.0.2:0 tls\n    Certificate {pair.certificate} {pair.key}\n")
    it.reload(2, "--confirm", "1s")
    it.wait_for_version(1)
    it.server.err.wait_for("configuration 1 serves again")
    for file in (pair.certificate, pair.key):
        os.utime(file)
    it.server.err.wait_for("watched files have changed")
    it.server.err.wait_for("the new configuration serves", 2)
    assert it.version == 1
    it.server.tell(signal.SIGHUP)  # a person asks for the files
    it.wait_for_version(2)


def test_automatic_reload_does_not_load_changed_files(start, tmp_path):
    """A certificate that is renewed while an administrator edits the files must not make half of the changes effective."""
    pair = make_authority(tmp_path).issue(file="pair")
    it = start(more=f"    Listen 127.0.0.2:0 tls\n    Certificate {pair.certificate} {pair.key}\n")
    for n, text in enumerate((2, "x\n    Nonsense 1"), 1):
        it.write(text)
        for file in (pair.certificate, pair.key):
            os.utime(file)
        it.server.err.wait_for("watched files have changed", n)
        it.server.err.wait_for("the new configuration serves", n)
        assert it.version == 1
    it.reload(3)
    assert it.version == 3


def test_configuration_without_control_socket_cannot_be_confirmed(start):
    it = start()
    it.write(2)
    main = it.main.read_text()
    it.main.write_text(re.sub(r"    Load cheetah\n|\[CHEETAH\]\n.*\n", "", main))
    code, out, _ = it.run("reload", "--confirm", "3s")
    assert (code, out) == (0, "the new configuration serves, but does not load cheetah, which `monkey confirm` needs; "
                              "the server returns to the previous one in 3 s unless you `confirm` it\n")
    it.server.err.wait_for("the new configuration does not load cheetah: `monkey confirm` cannot reach it")
    assert it.version == 2 and it.run("confirm")[0] == 1
    it.wait_for_version(1)
    it.main.write_text(main)
    assert "cheetah" not in it.reload(3, "--confirm", "60s")[1]
    assert it.run("confirm")[0] == 0


def test_failed_return_keeps_the_server_running(start):
    it = start()
    it.reload(2, "--confirm", "2s")
    (it.folder / "www").rename(it.folder / "moved")
    it.server.err.wait_for("cannot return to the previous configuration: trying again in 60 s")
    it.server.allowed.append("returning|cannot|does not exist|invalid|DocumentRoot|no such|No such")
    code, _, err = it.run("rollback")
    assert code == 1 and "DocumentRoot" in err
    (it.folder / "moved").rename(it.folder / "www")
    assert it.run("rollback")[0] == 0 and it.version == 1


def test_upgrade_waits_for_the_confirmation(start):
    it = start()
    it.reload(2, "--confirm", "60s")
    it.server.tell(signal.SIGUSR2)
    it.server.err.wait_for("cannot start a new program before the configuration is confirmed or replaced")
    assert it.run("confirm")[0] == 0


def test_upgrade_after_a_rollback_waits_for_equal_files(start):
    it = start()
    it.reload(2)
    assert it.run("rollback")[0] == 0
    it.server.tell(signal.SIGUSR2)
    it.server.err.wait_for("cannot start a new program after a rollback: it would load the files, which differ")
    (it.folder / "sites" / "b.conf").write_text("")
    it.write(1)
    it.server.tell(signal.SIGUSR2)
    it.server.err.wait_for("cannot start a new program after a rollback", 2)
    (it.folder / "sites" / "b.conf").unlink()
    it.server.tell(signal.SIGUSR2)
    new = Process(int(it.server.err.wait_for(r"the new program is process (\d+)")[1]))
    try:
        assert it.server.process.wait(SECONDS) == 0 and it.version == 1
        new.tell(signal.SIGTERM)
        new.wait()
    finally:
        new.kill()


def test_restart_with_files_that_were_rolled_back_warns(start, monkey):
    it = start()
    it.reload(2, "--confirm", "1s")
    it.wait_for_version(1)
    it.server.tell(signal.SIGTERM)
    it.server.wait()
    it.server = monkey(args=["-c", it.folder], environment=it.environment)
    it.server.err.wait_for("the files contain configuration 2, which was rolled back before the server was restarted")
    assert it.version == 2 and it.run("rollback")[0] == 0 and it.version == 1


def test_restart_with_files_that_served_since_does_not_warn(start, monkey):
    it = start()
    it.reload(2, "--confirm", "1s")
    it.wait_for_version(1)
    it.reload(2)
    it.server.tell(signal.SIGTERM)
    it.server.wait()
    it.server = monkey(args=["-c", it.folder], environment=it.environment)
    assert it.version == 2 and "rolled back" not in it.server.err.text


def test_restart_reads_the_files_and_warns(start, monkey):
    it = start()
    it.reload(2, "--confirm", "60s")
    it.server.tell(signal.SIGTERM)
    it.server.wait()
    it.server = monkey(args=["-c", it.folder], environment=it.environment)
    it.server.err.wait_for("configuration 2 was not confirmed before the server was restarted")
    assert it.version == 2
    assert it.run("rollback", "1")[0] == 0 and it.version == 1


def test_second_rollback_never_loads_the_rejected_files(start):
    it = start(workers=2)
    it.reload(2, "--confirm", "60s")
    results = run_together(it, ["rollback"], ["rollback"])
    done = [out for code, out, err in results if code == 0 and not err]
    assert done and all(out.startswith("configuration 1 serves again (rollback by process ") for out in done), results
    # A second one that comes after the first has ended looks for an even earlier configuration.
    assert all(code == 0 or err.startswith("no earlier configuration is kept\n") for code, _, err in results), results
    assert it.version == 1
    time.sleep(1)
    assert it.version == 1 and it.run("confirm")[0] == 1


def trial_state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


@contextlib.contextmanager
def stopped_trial(it, *words):
    """Runs the command, and stops the process in which the master tries the configuration."""
    def children():
        with open(f"/proc/{it.server.pid}/task/{it.server.pid}/children", encoding="ascii") as file:
            return {int(pid) for pid in file.read().split()}

    before = children()
    command = threading.Thread(target=it.run, args=words)
    command.start()
    while not (started := children() - before):
        pass
    trial = min(started)
    with contextlib.suppress(ProcessLookupError):
        os.kill(trial, signal.SIGSTOP)
    while trial_state(trial) not in ("T", "Z", None):  # a process that is exiting does not stop
        time.sleep(0.001)
    is_late = trial_state(trial) != "T" or proc.name(trial) != "monkey"  # or it is the worker that the trial let start
    if is_late:
        with contextlib.suppress(ProcessLookupError):
            os.kill(trial, signal.SIGCONT)
        command.join()
        pytest.skip("this machine is so busy that the trial ended before it was stopped")
    try:
        yield
    finally:
        os.kill(trial, signal.SIGCONT)
    command.join()


def run_together(it, *commands, pause=0.03):
    """Runs the commands, each shortly after the one before. Returns their results."""
    results = [None] * len(commands)

    def run(i):
        results[i] = it.run(*commands[i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(commands))]
    for thread in threads:
        thread.start()
        time.sleep(pause)
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("pause", [0, 0.03, 0.2])
def test_reloads_at_the_same_time_report_their_own_results(start, workers, pause):
    it = start(workers=workers)
    it.write(2)
    for code, out, err in run_together(it, ["reload"], ["reload"], ["reload"], pause=pause):
        assert (code, out, err) == (0, "the new configuration serves\n", "")
    assert it.version == 2


def test_order_that_a_later_one_replaces_fails(start):
    it = start()
    it.reload(2)
    it.write(3)
    with stopped_trial(it, "reload"):
        waiting = threading.Thread(target=lambda: results.append(it.run("rollback")))
        results = []
        waiting.start()
        it.server.err.wait_for("requests a rollback")
        it.server.tell(signal.SIGHUP)
        waiting.join()
    code, _, err = results[0]
    assert code == 1 and "a later order has replaced this one" in err
    it.wait_for_version(3)


def test_confirmation_of_another_administrator_makes_a_waiting_rollback_void(start):
    it = start()
    it.reload(2, "--confirm", "60s")
    results = []
    with stopped_trial(it, "reload"):
        waiting = threading.Thread(target=lambda: results.append(it.run("rollback")))
        waiting.start()
        it.server.err.wait_for("requests a rollback")
        assert it.run("confirm") == (0, "the configuration is confirmed\n", "")
    waiting.join()
    code, _, err = results[0]
    assert code == 1 and "the configuration was confirmed" in err and it.version == 2


def test_time_that_ends_during_a_manual_rollback_requests_no_second_one(start):
    it = start()
    it.reload(2, "--confirm", "2s")
    with stopped_trial(it, "rollback"):
        time.sleep(3)
    it.wait_for_version(1)
    time.sleep(1)
    assert it.version == 1 and it.server.err.text.count("serves again") == 1


def test_no_request_is_lost_when_the_old_configuration_returns(start):
    it = start(workers=2)
    stop, failures, n = threading.Event(), [], [0]

    def ask():
        while not stop.is_set():
            try:
                with contextlib.closing(http.client.HTTPConnection("127.0.0.1", it.server.port, timeout=SECONDS)) as connection:
                    connection.request("GET", "/", headers={"Connection": "close"})
                    if connection.getresponse().read() != b"hello":
                        failures.append("body")
                n[0] += 1
            except (OSError, http.client.HTTPException) as error:
                failures.append(repr(error))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    it.reload(2, "--confirm", "1s")
    it.wait_for_version(1)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures and n[0] > 50


# ---- Kept configurations ----


def test_last_ten_configurations_are_kept_privately(start):
    it = start()
    for version in range(2, 14):
        it.reload(version)
    files = list((it.state / "configurations").iterdir())
    assert len(files) == 10
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    code, out, _ = it.run("configurations")
    lines = out.splitlines()
    assert code == 0 and len(lines) == 11
    assert re.match(r" *13 .* process \d+ of user \d+ +serves$", lines[1]) and re.match(r" *4 ", lines[-1])
    assert it.run("rollback", "6")[0] == 0 and it.version == 6
    assert it.run("rollback", "1")[0] == 1
    assert it.run("rollback")[0] == 0 and it.version == 5


def test_equal_configuration_is_kept_once(start):
    it = start()
    for _ in range(3):
        assert it.run("reload")[0] == 0
    assert len(list((it.state / "configurations").iterdir())) == 1


def test_list_tells_the_outcome(start):
    it = start()
    it.reload(2, "--confirm", "1s")
    it.wait_for_version(1)
    it.reload(3, "--confirm", "60s")
    assert "waits for its confirmation" in it.run("configurations")[1].splitlines()[1]
    it.run("confirm")
    assert outcomes_of(it) == ["serves, confirmed", "served", "rolled back", "served"]


def outcomes_of(it):
    return [re.split(r"  +", line)[-1] for line in it.run("configurations")[1].splitlines()[1:]]


def test_rollback_after_a_return_skips_the_rejected_configuration(start):
    it = start()
    it.reload(2)
    it.reload(3, "--confirm", "1s")
    it.wait_for_version(2)
    it.server.err.wait_for(r"configuration 2 serves again")
    assert it.run("rollback")[0] == 0 and it.version == 1
    it.server.err.wait_for(r"configuration 1 serves again \(rollback by process \d+ of user \d+\)")
    code, _, err = it.run("rollback")
    assert code == 1 and "no earlier configuration is kept" in err and it.version == 1
    assert outcomes_of(it) == ["serves", "rolled back", "rolled back", "served", "served"]


def test_repeated_rollback_goes_further_back(start):
    it = start()
    for version in (2, 3, 4):
        it.reload(version)
    for version in (3, 2, 1):
        assert it.run("rollback")[0] == 0 and it.version == version
    assert it.run("rollback", "4")[0] == 0 and it.version == 4
    assert it.run("rollback")[0] == 0 and it.version == 3


def test_rollback_skips_equal_texts(start):
    it = start()
    it.reload(2)
    it.reload(1)
    assert it.run("rollback")[0] == 0 and it.version == 2
    it.reload(2)
    assert it.run("rollback")[0] == 0 and it.version == 1


@pytest.mark.parametrize("path", ["{}/", "{}/monkey.conf", "{}/./sites//../monkey.conf", "{}/../etc"])
def test_history_does_not_depend_on_the_spelling_of_the_path(start, path):
    it = start()
    it.folder_argument = path.format(it.folder)
    assert len(outcomes_of(it)) == 1 and it.run("diff")[0] == 0


def test_list_of_a_configuration_that_never_served_is_an_error(start, tmp_path):
    it = start()
    it.environment["MONKEY_STATE"] = str(tmp_path / "other")
    code, out, err = it.run("configurations")
    assert code == 2 and not out and "is kept: no server has served it" in err


@pytest.mark.parametrize("damage", ["", "monkey configuration 1\n", "monkey configuration 1\n5 9 0 x\n", "monkey configuration 1\n5 0 x\n",
                                    "monkey configuration 1\n5 0 0 x\n4 0\n/etc\n\n99999999999999999999 1\n/x\nx\n",
                                    "monkey configuration 1\n5 0 0 x\n4 0\n/etc\n\n5 3\n/x\nxx\n"], ids=range(6))
def test_damaged_file_is_an_error(start, damage):
    it = start()
    it.reload(2)
    first, = (it.state / "configurations").glob("*-00000001")
    first.write_text(damage)
    code, _, err = it.run("rollback", "1")
    assert code == 1 and "configuration 1 cannot be read: the file is damaged" in err and it.version == 2
    assert it.run("configurations")[0] == 0


def test_unusable_state_folder_prevents_no_reload(start):
    it = start()
    for file in (it.state / "configurations").iterdir():
        file.unlink()
    (it.state / "configurations").rmdir()
    (it.state / "configurations").write_text("")
    it.reload(2)
    it.server.err.wait_for("cannot keep the configuration in the state folder")
    assert it.version == 2 and it.run("rollback")[0] == 1
    it.reload(3, "--confirm", "1s")
    it.wait_for_version(2)


# ---- monkey diff ----


def test_diff_of_unchanged_configuration_is_empty(start):
    it = start()
    it.main.write_text("# a comment changes nothing\n" + it.main.read_text())
    assert it.run("diff") == (0, "", "")


def test_diff_shows_changed_keys_with_both_positions(start):
    it = start()
    it.write(2, "[MIMETYPES]\n    new text/x-new\n")
    code, out, err = it.run("diff")
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].startswith("--- configuration 1, since ") and lines[0].endswith(", by start") and lines[1] == f"+++ {it.folder}"
    assert re.search(r"^@@ -\d+,\d+ \+\d+,\d+ @@ \[HEADERS\]$", out, re.MULTILINE)
    assert re.search(r"^-    Set X-Version 1 +# sites/a.conf:7$", out, re.MULTILINE)
    assert re.search(r"^\+    Set X-Version 2 +# sites/a.conf:7$", out, re.MULTILINE)
    assert re.search(r"^\+    new text/x-new +# sites/a.conf:9$", out, re.MULTILINE)
    assert sum(line[:1] in "+-" for line in lines) == 6


def test_diff_compares_with_what_serves_although_files_changed(start):
    it = start()
    it.main.write_text(it.main.read_text().replace("Workers 1", "Workers 2\n    DefaultMimeType text/x-new"))
    assert re.search(r"^-    DefaultMimeType .* # default\n\+    DefaultMimeType +text/x-new +# monkey.conf:4$", it.run("diff")[1], re.MULTILINE)
    assert it.run("reload")[0] == 0 and it.run("diff")[0] == 0
    code, out, _ = it.run("diff", "1")
    assert code == 1 and re.search(r"^\+    Workers +2 +# monkey.conf:3$", out, re.MULTILINE)


def test_diff_names_the_line_of_each_load(start):
    """The plugin forward-auth needs others, which have no line of their own."""
    it = start()
    it.main.write_text(it.main.read_text().replace("Load cheetah\n", "Load cheetah\n    Load forward-auth\n    Load auth\n"))
    _, out, _ = it.run("diff")
    assert re.search(r"^\+    Load forward-auth +# monkey.conf:6$", out, re.MULTILINE)
    assert re.search(r"^\+    Load auth +# monkey.conf:7$", out, re.MULTILINE)
    for line in re.findall(r"^\+    Load (?!forward-auth|auth).*", out, re.MULTILINE):
        assert line.endswith("# implied by monkey.conf:6")


def test_diff_masks_secrets_but_shows_their_change(start):
    it = start()
    it.write(1, "    Set Authorization Bearer-abc\n    Set X-Api-Token old-token\n    Set Location https://me:hidden@example.org/\n")
    it.run("reload")
    it.write(1, "    Set Authorization /Bearer-xyz\n    Set X-Api-Token new-token\n    Set Location https://me:changed@example.org/\n")
    code, out, _ = it.run("diff")
    assert code == 1 and not re.search("abc|xyz|old-token|new-token|hidden|changed", out)
    assert out.count("Set Authorization ********") == out.count("Set X-Api-Token ********") == 2
    assert out.count("https://********@example.org/") == 2


NAMES = " ".join(f"shop{i}.customer.example" for i in range(9))
SECRETS = {"ORIGIN_AUTH": "s3cret-of-the-origin", "SECOND": "s3cret-of-the-second", "PIN": "4711", "NAMES": NAMES, "PART": "s3cret-part"}


def diff_of(it, before, after):
    """Returns the differences between two versions of the included file."""
    for text in (before, after):
        (it.folder / "sites" / "a.conf").write_text(text)
        if text is before:
            done = it.run("reload")
            assert done[0] == 0, done
    code, out, err = it.run("diff")
    assert (code, err) == (1 if out else 0, "")
    assert not re.search("s3cret|4711|customer", out), out
    return out


def headers(*lines, names=""):
    return f"[HOST]\n{names}    DocumentRoot ../www\n[ROUTES]\n    /metrics metrics\n    /* static\n[HEADERS]\n" + "".join(f"    Set {line}\n" for line in lines)


@pytest.fixture
def secretive(start):
    return start(environment=SECRETS)


def test_diff_shows_values_of_the_environment_as_references(secretive):
    out = diff_of(secretive, headers("X-Origin-Auth ${ORIGIN_AUTH}", "X-Pin ${PIN}", "X-Part a${PART}c", "X-Version 1"),
                  headers("X-Origin-Auth ${ORIGIN_AUTH}", "X-Pin ${PIN}", "X-Part a${PART}c", "X-Version 2"))
    assert "\n     Set X-Origin-Auth ${ORIGIN_AUTH}\n     Set X-Pin ${PIN}\n     Set X-Part a${PART}c\n" in out
    assert re.search(r"^-    Set X-Version 1 +# sites/a.conf:10$", out, re.MULTILINE)


def test_diff_shows_references_that_change(secretive):
    out = diff_of(secretive, headers("X-Origin-Auth ${ORIGIN_AUTH}"), headers("X-Origin-Auth ${SECOND}"))
    assert re.search(r"^-    Set X-Origin-Auth \$\{ORIGIN_AUTH\} +# sites/a.conf:7\n\+    Set X-Origin-Auth \$\{SECOND\} +# sites/a.conf:7$", out, re.MULTILINE)


@pytest.mark.parametrize("turned", [False, True])
def test_diff_hides_a_secret_that_one_side_refers_to(secretive, turned):
    """The values are equal, so the line is context."""
    sides = [headers(f"X-Origin-Auth {SECRETS['ORIGIN_AUTH']}", "X-Version 1"), headers("X-Origin-Auth ${ORIGIN_AUTH}", "X-Version 2")]
    out = diff_of(secretive, *(reversed(sides) if turned else sides))
    assert "\n     Set X-Origin-Auth ${ORIGIN_AUTH}\n" in out


def test_diff_shows_references_in_names_of_hosts(secretive):
    before, after = (headers(f"X-Version {i}", names="    ServerName ${NAMES}\n") for i in (1, 2))
    out = diff_of(secretive, before, after)
    assert "@@ [HEADERS] ${NAMES}\n" in out
    out = diff_of(secretive, after, headers("X-Version 2", names="    ServerName ${NAMES} new.example\n"))
    assert re.search(r"^\+ +ServerName +\$\{NAMES\} new.example", out, re.MULTILINE)


def test_diff_of_a_value_and_its_reference_is_empty(secretive):
    assert diff_of(secretive, headers("X-Origin-Auth ${ORIGIN_AUTH}"), headers(f"X-Origin-Auth {SECRETS['ORIGIN_AUTH']}")) == ""


def test_diff_of_invalid_files_is_trouble(start):
    it = start()
    it.write(2, "    Nonsense 1\n")
    code, out, err = it.run("diff")
    assert code == 2 and out == "" and "sites/a.conf:8:5: error" in err


@pytest.mark.parametrize("number, message", [("7", "configuration 7: it is not kept"), ("x", "not `x`"), ("0", "not `0`")])
def test_diff_with_unknown_number_is_trouble(start, number, message):
    code, out, err = start().run("diff", number)
    assert code == 2 and out == "" and message in err


def test_diff_without_kept_configuration_is_trouble(start, tmp_path):
    it = start()
    it.environment["MONKEY_STATE"] = str(tmp_path / "other")
    code, _, err = it.run("diff")
    assert code == 2 and "is kept: no server has served it" in err
