# SPDX-License-Identifier: Apache-2.0
"""The command line of the contest, the machine it describes, and the stage where contestants run."""
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contest import cli, contestant, environment, stage
from contest.complaint import Complaint
from fakes import add_contestant, case, make_material
from monkey import ROOT
from proc import wait_until

FOLDER = ROOT / "tools" / "contest"


@pytest.fixture
def run(capsys):
    """contest WORDS: (exit code, output, errors)."""
    def call(*words):
        try:
            code = cli.main(list(words))
        except SystemExit as end:
            code = end.code
        told = capsys.readouterr()
        return code, told.out, told.err
    return call


# ---- The command line ----

@pytest.mark.parametrize("words, says", [
    (["run", "--only", "ngnix"], "there is no contestant 'ngnix'; did you mean nginx?"),
    (["run", "--case", "smal"], "there is no case 'smal'; did you mean small?"),
    (["run", "--case", "small,zzzzzz"], "there is no case 'zzzzzz'; there are: "),
    (["run", "--case", ","], "the list of cases is empty"),
    (["run", "--rounds", "0"], "--rounds: expected a whole number above 0, found '0'"),
    (["run", "--seconds", "-1"], "--seconds: expected a number above 0, found '-1'"),
    (["run", "--case", "small,h2,paced", "--seconds", "1.5"], "--seconds 1.5: h2load, wrk only know whole seconds"),
    (["run", "--wr", "true", "--output", "/dev/null/x"], "/dev/null/x: nothing can be written there (Not a directory)"),
    (["run", "--server-cores", "x", "--wr", "true"], "cores: expected a list such as 0,2-3, found 'x'"),
    (["run", "--server-cores", "9999", "--wr", "true"], "core 9999 is none of ours"),
    (["run", "--wr", "/nowhere/wr"], "/nowhere/wr: no such program"),
    (["rum"], "there is no verb 'rum'; did you mean run?"),
    ([], "usage: contest VERB"),
])
def test_wrong_usage_is_said_with_what_is_near(run, words, says):
    code, out, err = run(*words)
    assert code == 2 and says in err and not out


def test_help_and_version(run):
    code, out, _ = run("--help")
    assert code == 0 and all(f"  {verb} " in out for verb in cli.VERBS)
    assert run("--version")[:2] == (0, "2.0.0\n")


def test_list_shows_contestants_and_cases(run, monkeypatch):
    monkeypatch.setenv("CONTEST_NGINX", "/nowhere/nginx")
    monkeypatch.setenv("CONTEST_LIGHTTPD", "/nowhere/lighttpd")
    code, out, _ = run("list")
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("  nginx "))
    assert "absent" in line and "/nowhere/nginx" in line
    assert "different files of 4 KB" in out and "All of it takes about" in out


def test_a_dry_run_says_the_plan_and_does_nothing(run, tmp_path):
    code, out, err = run("run", "--dry-run", "--case", "small,idle", "--rounds", "2", "--seconds", "3", "--output",
                         str(tmp_path / "out"))
    assert code == 0 and not err and not (tmp_path / "out").exists()
    assert "2 x 3 s" in out and "estimated time" in out and out.startswith("small ") and "connections" in out


def test_the_quick_run_is_shorter(run):
    code, quick, _ = run("run", "--dry-run", "--quick")
    assert code == 0 and len(quick.splitlines()) < len(run("run", "--dry-run")[1].splitlines())


def test_it_is_a_program():
    done = subprocess.run([sys.executable, "-m", "contest", "nonsense"], cwd=FOLDER, capture_output=True, text=True, timeout=50,
                          check=False)
    assert done.returncode == 2 and done.stderr.startswith("contest: there is no verb") and not done.stdout


def test_requirements_are_pinned_and_those_of_the_tests():
    def lines(path):
        return {line for line in path.read_text().splitlines() if "==" in line}
    ours = lines(FOLDER / "requirements.txt")
    assert {line.split("==")[0] for line in ours} >= {"psutil", "matplotlib"} and ours <= lines(ROOT / "tests/benchmark/requirements.txt")


# Plays python3: it writes down how it was called, and its `-m venv` makes a folder with a python like itself.
# tools/dev/venv.sh with the real one has made what these tests run in.
FAKE_PYTHON = """#!/bin/sh
echo "$*" >>"$CALLS"
[ "$2" != venv ] || { rm -rf "$4"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; }
"""


def test_an_environment_is_made_once(tmp_path):
    python, calls, wanted = tmp_path / "python", tmp_path / "calls", tmp_path / "wanted.txt"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    made = ["-m venv", "-m pip install"]

    def run(content):
        """The beginnings of the commands of one run."""
        wanted.write_text(content)
        calls.write_text("")
        subprocess.run([ROOT / "tools/dev/venv.sh", tmp_path / "venv", wanted], check=True, timeout=80,
                       env=os.environ | {"PYTHON": str(python), "CALLS": str(calls)})
        return [" ".join(line.split()[:len(one.split())]) for line, one in zip(calls.read_text().splitlines()[-2:], made)]

    assert run("# nothing\n") == made
    assert f"-r {wanted}" in calls.read_text()
    assert run("# nothing\n") == ["-c import"], "it was made again although nothing has changed"
    assert run("# nothing else\n") == made
    (tmp_path / "venv/bin/python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "venv/bin/python").chmod(0o755)
    assert run("# nothing else\n") == made, "its Python is gone"


# ---- The machine ----

def test_cores_are_shared():
    mine = environment.cores()
    server, client = environment.share_cores()
    assert server[0] == mine[0] and client[-1] == mine[-1] and (len(mine) == 1 or not set(server) & set(client))
    assert environment.parse_cores("3,0-1") == [0, 1, 3]
    with pytest.raises(Complaint):
        environment.parse_cores("1-")


def test_the_environment_can_be_written_down():
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
    """The seconds of computing that the process we start takes for strangers', and ours meanwhile."""
    with subprocess.Popen([sys.executable, "-c", WATCH.format(folder=str(FOLDER)), *map(str, ours)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as watcher:
        watcher.stdout.readline()
        used = time.process_time()
        while time.process_time() - used < .5:
            pass
        return float(watcher.communicate("\n", timeout=50)[0]), .5


def test_what_strangers_compute_is_seen():
    """This test is a stranger of the process that it starts."""
    share, mine = share_seen()
    assert share >= .8 * mine


def test_what_ours_compute_is_not_theirs():
    watch = environment.Strangers([1], [0])
    assert watch.ours >= {1, os.getpid()} and len(watch.ours) > 2, "and their families"


# ---- The stage ----

@pytest.fixture
def standing(tmp_path):
    """A fake contestant on the stage, started."""
    add_contestant(tmp_path / "contestants", "other")
    entry = contestant.load_all(tmp_path / "contestants")["other"]
    cgroups = stage.Cgroups()
    one = stage.Stage(entry, case(), make_material(tmp_path / "material", ()), [environment.cores()[0]], cgroups)
    try:
        one.start()
        yield one
    finally:
        one.stop()
        cgroups.end()


def test_it_is_pinned_and_alone_in_its_cgroup(standing):
    pid = standing.running.pid
    assert os.sched_getaffinity(pid) == {environment.cores()[0]}
    assert standing.roots() == [pid] and standing.is_alive()
    if not standing.cgroup:
        pytest.skip(standing.cgroups.why)
    assert Path(standing.cgroup, "cgroup.procs").read_text().split() == [str(pid)]


@pytest.mark.parametrize("has_cgroup", [True, False])
def test_a_frozen_server_does_not_answer_until_it_is_woken(standing, has_cgroup):
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


def test_after_the_end_nothing_is_left(standing):
    pid, folder, cgroup = standing.running.pid, standing.folder.name, standing.cgroup
    standing.sleep()
    standing.stop()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the server")
    assert not Path(folder).exists() and not (cgroup and cgroup.exists()) and not standing.is_alive()


def test_what_a_killed_run_left_is_removed(tmp_path, monkeypatch):
    with subprocess.Popen(["true"]) as ended:
        pass
    old, ours = tmp_path / f"contest-{ended.pid}-0", tmp_path / f"contest-{os.getppid()}-0"
    for folder in (old, ours):
        folder.mkdir()
    monkeypatch.setattr(stage, "own_cgroup", lambda: tmp_path)
    assert stage.Cgroups().why and not old.exists() and ours.exists(), "whose run goes on keeps its own"


def test_two_runs_of_a_process_have_cgroups_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "own_cgroup", lambda: tmp_path)
    monkeypatch.setattr(Path, "exists", lambda path: path.name == "cpu.stat" or os.path.lexists(path))
    one, two = stage.Cgroups(), stage.Cgroups()
    assert one.folder != two.folder and one.folder.parent == two.folder.parent == tmp_path
    one.end(), two.end()
    assert not list(tmp_path.glob("contest-*"))


def test_what_does_not_freeze_is_an_error(standing, monkeypatch):
    monkeypatch.setattr(stage, "FREEZE_SECONDS", .05)
    if not standing.cgroup:
        pytest.skip(standing.cgroups.why)
    with pytest.raises(TimeoutError, match="could not be frozen"):
        standing._wait_frozen(True)


def test_the_second_signal_does_not_interrupt_the_cleaning_up():
    script = ("import os, signal, time\nfrom contest import run\n"
              "with run.interruptible():\n"
              "    try:\n        os.kill(os.getpid(), signal.SIGTERM); time.sleep(50)\n"
              "    except KeyboardInterrupt:\n"
              "        [os.kill(os.getpid(), each) for each in run.SIGNALS]\n        print('cleaned up')\n")
    done = subprocess.run([sys.executable, "-c", script], cwd=FOLDER, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stdout) == (0, "cleaned up\n"), done.stderr


def test_without_cgroups_it_is_said_why(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "own_cgroup", lambda: None)
    assert "no cgroup of version 2" in stage.Cgroups().why and stage.Cgroups().make("x") is None
    monkeypatch.setattr(stage, "own_cgroup", lambda: tmp_path / "gone")
    assert "cannot be made" in stage.Cgroups().why
    monkeypatch.setattr(stage, "own_cgroup", lambda: tmp_path)
    assert "has no cpu.stat" in stage.Cgroups().why and not list(tmp_path.iterdir())
