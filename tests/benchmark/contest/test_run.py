# SPDX-License-Identifier: Apache-2.0
"""The contest's command line, the description of the machine, and the cores and cgroup in which a contestant runs."""
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contest import cli, contestant, environment, stage
from contest.user_error import UserError
from fakes import add_contestant, case, make_material
from monkey import ROOT
from proc import wait_until

FOLDER = ROOT / "tools" / "contest"


@pytest.fixture
def run(capsys):
    """Runs `contest WORDS` and returns (exit code, output, errors)."""
    def call(*words):
        try:
            code = cli.main(list(words))
        except SystemExit as end:
            code = end.code
        told = capsys.readouterr()
        return code, told.out, told.err
    return call


# ---- The command line ----

@pytest.mark.parametrize("words, message", [
    (["run", "--only", "ngnix"], "there is no contestant 'ngnix'; did you mean nginx?"),
    (["run", "--case", "smal"], "there is no case 'smal'; did you mean small?"),
    (["run", "--case", "small,zzzzzz"], "there is no case 'zzzzzz'; known are: "),
    (["run", "--case", ","], "the list of cases is empty"),
    (["run", "--rounds", "0"], "--rounds: expected a whole number above 0, found '0'"),
    (["run", "--seconds", "-1"], "--seconds: expected a number above 0, found '-1'"),
    (["run", "--case", "small,h2,paced", "--seconds", "1.5"], "--seconds 1.5: h2load, wrk can only run for whole seconds"),
    (["run", "--wr", "true", "--output", "/dev/null/x"], "/dev/null/x: not writable (Not a directory)"),
    (["run", "--server-cores", "x", "--wr", "true"], "cores: expected a list such as 0,2-3, found 'x'"),
    (["run", "--server-cores", "9999", "--wr", "true"], "core 9999 is not available to this process"),
    (["run", "--wr", "/nowhere/wr"], "/nowhere/wr: no such program"),
    (["rum"], "there is no verb 'rum'; did you mean run?"),
    ([], "usage: contest VERB"),
])
def test_contest_wrong_usage_suggests_similar_names(run, words, message):
    code, out, err = run(*words)
    assert code == 2 and message in err and not out


def test_contest_prints_help_and_version(run):
    code, out, _ = run("--help")
    assert code == 0 and all(f"  {verb} " in out for verb in cli.VERBS)
    assert run("--version")[:2] == (0, "2.0.0\n")


def test_contest_list_shows_contestants_and_cases(run, monkeypatch):
    monkeypatch.setenv("CONTEST_NGINX", "/nowhere/nginx")
    monkeypatch.setenv("CONTEST_LIGHTTPD", "/nowhere/lighttpd")
    code, out, _ = run("list")
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("  nginx "))
    assert "absent" in line and "/nowhere/nginx" in line
    assert "different files of 4 KB" in out and "All of it takes about" in out


def test_contest_dry_run_only_prints_the_plan(run, tmp_path):
    code, out, err = run("run", "--dry-run", "--case", "small,idle", "--rounds", "2", "--seconds", "3", "--output",
                         str(tmp_path / "out"))
    assert code == 0 and not err and not (tmp_path / "out").exists()
    assert "2 x 3 s" in out and "estimated time" in out and out.startswith("small ") and "connections" in out


def test_contest_quick_run_is_shorter(run):
    code, quick, _ = run("run", "--dry-run", "--quick")
    assert code == 0 and len(quick.splitlines()) < len(run("run", "--dry-run")[1].splitlines())


def test_contest_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "contest", "nonsense"], cwd=FOLDER, capture_output=True, text=True, timeout=50,
                          check=False)
    assert done.returncode == 2 and done.stderr.startswith("contest: there is no verb") and not done.stdout


def test_contest_requirements_match_those_of_the_tests():
    def lines(path):
        return {line for line in path.read_text().splitlines() if "==" in line}
    ours = lines(FOLDER / "requirements.txt")
    assert {line.split("==")[0] for line in ours} >= {"psutil", "matplotlib"} and ours <= lines(ROOT / "tests/benchmark/requirements.txt")


# A fake python3 that records its arguments; its `-m venv` creates a folder with a copy of itself. The venv of these tests
# was created by tools/dev/venv.sh with the real python3.
FAKE_PYTHON = """#!/bin/sh
echo "$*" >>"$CALLS"
[ "$2" != venv ] || { rm -rf "$4"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; }
"""


def test_venv_is_created_only_once(tmp_path):
    python, calls, wanted = tmp_path / "python", tmp_path / "calls", tmp_path / "wanted.txt"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    made = ["-m venv", "-m pip install"]

    def run(content):
        """Returns the first words of the commands that one run executed."""
        wanted.write_text(content)
        calls.write_text("")
        subprocess.run([ROOT / "tools/dev/venv.sh", tmp_path / "venv", wanted], check=True, timeout=80,
                       env=os.environ | {"PYTHON": str(python), "CALLS": str(calls)})
        return [" ".join(line.split()[:len(first.split())]) for line, first in zip(calls.read_text().splitlines()[-2:], made)]

    assert run("# nothing\n") == made
    assert f"-r {wanted}" in calls.read_text()
    assert run("# nothing\n") == ["-c import"], "it was made again although nothing has changed"
    assert run("# nothing else\n") == made
    (tmp_path / "venv/bin/python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "venv/bin/python").chmod(0o755)
    assert run("# nothing else\n") == made, "its Python is gone"


# ---- The machine ----

def test_cores_are_split_between_server_and_client():
    mine = environment.cores()
    server, client = environment.share_cores()
    assert server[0] == mine[0] and client[-1] == mine[-1] and (len(mine) == 1 or not set(server) & set(client))
    assert environment.parse_cores("3,0-1") == [0, 1, 3]
    with pytest.raises(UserError):
        environment.parse_cores("1-")


def test_environment_is_serializable():
    told = environment.describe([0], [1], {"wr": None})
    assert json.loads(json.dumps(told)) == told
    assert told["memory_kb"] > 0 and told["kernel"] and told["limits"]["nofile"] > 0 and "wr" not in told["clients"]


WATCH = """
import sys, time
sys.path.insert(0, {folder!r})
from contest import environment
cores = environment.cores()
watch = environment.Strangers([int(pid) for pid in sys.argv[1:]], cores)
print("ready", flush=True)
sys.stdin.readline()
share = watch.share()
print(share.strangers * len(cores) * (environment.os.times().elapsed - watch.clock))
"""


def share_seen(*ours):
    """Returns the CPU seconds that a child process attributes to other programs, and the CPU seconds that this process used."""
    with subprocess.Popen([sys.executable, "-c", WATCH.format(folder=str(FOLDER)), *map(str, ours)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as watcher:
        watcher.stdout.readline()
        used = time.process_time()
        while time.process_time() - used < .5:
            pass
        return float(watcher.communicate("\n", timeout=50)[0]), .5


def test_foreign_cpu_time_is_detected():
    """The child process attributes the CPU time of this test to other programs."""
    share, mine = share_seen()
    assert share >= .8 * mine


def test_own_processes_are_not_foreign():
    watch = environment.Strangers([1], [0])
    assert watch.ours >= {1, os.getpid()} and len(watch.ours) > 2, "and their families"


# ---- The stage ----

@pytest.fixture
def standing(tmp_path):
    """A running fake contestant."""
    add_contestant(tmp_path / "contestants", "other")
    entry = contestant.load_all(tmp_path / "contestants")["other"]
    cgroups = stage.Cgroups()
    first = stage.Stage(entry, case(), make_material(tmp_path / "material", ()), [environment.cores()[0]], cgroups)
    try:
        first.start()
        yield first
    finally:
        first.stop()
        cgroups.end()


def test_stage_pins_a_contestant_in_its_own_cgroup(standing):
    pid = standing.running.pid
    assert os.sched_getaffinity(pid) == {environment.cores()[0]}
    assert standing.roots() == [pid] and standing.is_alive()
    if not standing.cgroup:
        pytest.skip(standing.cgroups.why)
    assert Path(standing.cgroup, "cgroup.procs").read_text().split() == [str(pid)]


@pytest.mark.parametrize("has_cgroup", [True, False])
def test_stage_frozen_server_responds_after_wake(standing, has_cgroup):
    if not has_cgroup:
        standing._freezer = lambda: None
    standing.sleep()
    with socket.create_connection(("127.0.0.1", standing.port), timeout=5) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        sock.settimeout(.2)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        standing.wake()
        sock.settimeout(10)
        assert sock.recv(4) == b"HTTP"


def test_stage_stop_removes_processes_folder_and_cgroup(standing):
    pid, folder, cgroup = standing.running.pid, standing.folder.name, standing.cgroup
    standing.sleep()
    standing.stop()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the server")
    assert not Path(folder).exists() and not (cgroup and cgroup.exists()) and not standing.is_alive()


def test_cgroups_of_killed_runs_are_removed(tmp_path, monkeypatch):
    with subprocess.Popen(["true"]) as ended:
        pass
    old, ours = tmp_path / f"contest-{ended.pid}-0", tmp_path / f"contest-{os.getppid()}-0"
    for folder in (old, ours):
        folder.mkdir()
    monkeypatch.setattr(stage, "own_cgroup", lambda: tmp_path)
    assert stage.Cgroups().why and not old.exists() and ours.exists(), "whose run goes on keeps its own"


def test_cgroups_of_two_runs_in_a_process_are_distinct(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "own_cgroup", lambda: tmp_path)
    monkeypatch.setattr(Path, "exists", lambda path: path.name == "cpu.stat" or os.path.lexists(path))
    first, second = stage.Cgroups(), stage.Cgroups()
    assert first.folder != second.folder and first.folder.parent == second.folder.parent == tmp_path
    first.end(), second.end()
    assert not list(tmp_path.glob("contest-*"))


def test_stage_freeze_timeout_is_an_error(standing, monkeypatch):
    monkeypatch.setattr(stage, "FREEZE_SECONDS", .05)
    if not standing.cgroup:
        pytest.skip(standing.cgroups.why)
    with pytest.raises(TimeoutError, match="could not be frozen"):
        standing._wait_frozen(True)


def test_second_signal_does_not_interrupt_the_cleanup():
    script = ("import os, signal, time\nfrom contest import run\n"
              "with run.interruptible():\n"
              "    try:\n        os.kill(os.getpid(), signal.SIGTERM); time.sleep(50)\n"
              "    except KeyboardInterrupt:\n"
              "        [os.kill(os.getpid(), each) for each in run.SIGNALS]\n        print('cleaned up')\n")
    done = subprocess.run([sys.executable, "-c", script], cwd=FOLDER, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stdout) == (0, "cleaned up\n"), done.stderr


def test_cgroups_unavailable_gives_a_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "own_cgroup", lambda: None)
    assert "no cgroup of version 2" in stage.Cgroups().why and stage.Cgroups().make("x") is None
    monkeypatch.setattr(stage, "own_cgroup", lambda: tmp_path / "gone")
    assert "cannot create" in stage.Cgroups().why
    monkeypatch.setattr(stage, "own_cgroup", lambda: tmp_path)
    assert "has no cpu.stat" in stage.Cgroups().why and not list(tmp_path.iterdir())
