# SPDX-License-Identifier: Apache-2.0
"""Clients on several machines: a master and its workers on this machine and in a separate network; the manifest and the record."""
import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contest import manifest, spread
from contest.user_error import UserError
from fake_http import CLOSE, RESET, SECONDS, FakeServer, answer

FOLDER = Path(spread.__file__).resolve().parents[1]
needs_locust = pytest.mark.skipif(not importlib.util.find_spec("locust"), reason="locust is not installed")
pytestmark = pytest.mark.timeout(180)


def write(path, url, load="users = 4\nrate = 40\nduration = '3s'\ntimeout = '2s'", workers="total = 2", target=""):
    path.write_text(f"title = 'a test'\n[target]\nurl = '{url}'\n{target}\n[load]\n{load}\n[workers]\n{workers}\n")
    return path


def start(tmp_path, path, *args):
    environment = os.environ | {"PYTHONPATH": str(FOLDER), "TMPDIR": str(tmp_path)}
    return subprocess.Popen([sys.executable, "-m", "contest", "spread", path, "-o", tmp_path / "out" / "spread.json", *args],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path)


def finish(process):
    out, err = process.communicate(timeout=150)
    return process.returncode, out, err


def hold(tmp_path, path):
    """Runs a valid manifest and returns (record, output)."""
    code, out, err = finish(start(tmp_path, path))
    assert code == 0, err
    return json.loads((tmp_path / "out" / "spread.json").read_text()), out


def children(pid):
    """Returns the child processes of this process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# ---- Runs ----

@needs_locust
def test_spread_adds_up_the_results_of_two_workers(tmp_path):
    with FakeServer() as server:
        made, printed = hold(tmp_path, write(tmp_path / "spread.toml", server.url))
        shot = made["shot"]
        assert shot["requests"] == server.count - 1 > 0  # one request precedes the run
        assert sum(shot["errors"].values()) == 0 and shot["bytes"] == 5 * shot["requests"]
    assert len(made["workers"]) == 2 and all(worker["requests"] > 0 for worker in made["workers"])
    assert sum(worker["requests"] for worker in made["workers"]) == shot["requests"]
    assert {worker["machine"]["cores"] for worker in made["workers"]} == {os.cpu_count()}
    assert made["environment"]["kernel"] and made["kind"] == "spread" and made["asked_rate"] == 40
    assert made["manifest"]["sha256"] == hashlib.sha256(b"hello").hexdigest()
    # The run sends hardly more requests than were due during it; a closed loop would send thousands.
    assert shot["requests"] <= 40 * (shot["seconds"] + 2) + 4
    assert shot["latency_us"]["p50"] <= shot["latency_us"]["p90"] <= shot["latency_us"]["max"]
    assert f"{shot['requests']} correct responses" in printed
    assert not list(tmp_path.glob("contest-spread-*"))


@needs_locust
def test_spread_counts_wrong_responses_by_class(tmp_path):
    replies = {7: answer(b"hallo"), 11: answer(b"hell"), 13: answer(b"hello", "503 Busy"),
               17: answer(b"", "302 Found", "Location: /y"), 19: [answer()[:-1], CLOSE], 23: RESET, 29: b""}
    with FakeServer(lambda n: replies.get(n, answer())) as server:
        made, printed = hold(tmp_path, write(tmp_path / "spread.toml", server.url, workers="total = 1"))
        # If a persistent connection is reset before the response starts, the client retries and counts no error.
        assert server.count - 1 == made["shot"]["requests"] + 7
        assert all(head.startswith("GET /x ") for head in server.requests)
    errors, first = made["shot"]["errors"], made["shot"]["first_errors"]
    assert errors["content"] == 2 and errors["status"] == 2 and errors["read"] == 1 and errors["timeout"] == 1, made
    assert re.match(r"status (503|302), not 200", first["status"])
    assert "SHA-256" in first["content"] or "4 bytes" in first["content"]
    assert "errors: 2 content" in printed


@needs_locust
def test_spread_stall_delays_due_requests(tmp_path):
    def stalling(n):
        if n == 4:
            time.sleep(1.5)
        return answer()

    # With a single user, no requests of other users hide the waits.
    load = "users = 1\nrate = 40\nduration = '3s'"
    with FakeServer(stalling) as server:
        made, _ = hold(tmp_path, write(tmp_path / "spread.toml", server.url, load, "total = 1"))
    # A closed loop would have one slow response among more than a hundred; here half of the requests waited.
    assert made["shot"]["latency_us"]["p90"] >= 500_000
    assert made["shot"]["late_us"]["p90"] >= 500_000


@needs_locust
def test_spread_results_of_a_late_worker_are_kept(tmp_path):
    with FakeServer() as server:
        process = start(tmp_path, write(tmp_path / "spread.toml", server.url, "users = 1\nrate = 40\nduration = '1s'", "total = 1"))
        server.wait_for_count(2)  # the workers do not send the first request
        (worker,) = (pid for pid in children(process.pid) if b"--worker" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"))
        os.kill(worker, signal.SIGSTOP)
        time.sleep(2)  # longer than the whole run should take
        os.kill(worker, signal.SIGCONT)
        code, _, err = finish(process)
        assert code == 0, err
        made = json.loads((tmp_path / "out" / "spread.json").read_text())
        assert made["shot"]["requests"] == server.count - 1 and "lost" not in str(made["notes"])


@needs_locust
def test_spread_closed_loop_has_no_rate(tmp_path):
    with FakeServer() as server:
        made, _ = hold(tmp_path, write(tmp_path / "spread.toml", server.url, "users = 2\nduration = '1s'", "total = 1"))
        assert made["asked_rate"] is None and made["shot"]["requests"] == server.count - 1 > 2


@needs_locust
def test_spread_target_with_a_wrong_response_is_not_measured(tmp_path):
    for target, message in (("status = 404", "status 200, not 404"), ("length = 6", "5 bytes of content, not 6"),
                         (f"sha256 = '{'0' * 64}'", "SHA-256 of the content 2cf24dba")):
        with FakeServer() as server:
            code, out, err = finish(start(tmp_path, write(tmp_path / "spread.toml", server.url, target=target)))
            assert code == 1 and message in err and not out and server.count == 1
    code, _, err = finish(start(tmp_path, write(tmp_path / "spread.toml", server.url)))
    assert code == 1 and "no response" in err


@needs_locust
def test_spread_wait_for_workers_is_limited(tmp_path):
    with FakeServer() as server:
        path = write(tmp_path / "spread.toml", server.url, workers="total = 2\nlocal = 1\nport = 0\nwait = '2s'")
        process = start(tmp_path, path)
        code, _, err = finish(process)
        assert code == 1 and "without a measurement" in err and server.count == 1
        assert re.search(r"start 1 worker elsewhere.*\n.*locust==.*\n +locust -f - --worker --master-host 127\.0\.0\.1 "
                         r"--master-port \d+", err)


@needs_locust
def test_spread_interrupted_run_leaves_no_process(tmp_path):
    with FakeServer() as server:
        process = start(tmp_path, write(tmp_path / "spread.toml", server.url, "users = 4\nrate = 40\nduration = '10m'", "total = 1"))
        server.wait_for_count(10)
        began = children(process.pid)
        assert len(began) == 2
        process.send_signal(signal.SIGINT)
        code, _, err = finish(process)
        assert code != 0 and "Traceback" not in err
        assert not any(is_running(pid) for pid in began)
        assert not (tmp_path / "out").exists() and not list(tmp_path.glob("contest-spread-*"))


@contextlib.contextmanager
def network(name):
    """A separate network, connected by a pair of interfaces. Returns (command prefix that runs a program in it, our address)."""
    low = os.getpid() % 16000  # 198.18.0.0/15 is reserved for benchmarks
    net = f"198.{18 + low // 8192 % 2}.{low // 64 % 128}"
    ours, its = f"{net}.{low % 64 * 4 + 1}", f"{net}.{low % 64 * 4 + 2}"
    commands = [f"ip netns add {name}", f"ip link add {name}a type veth peer name {name}b netns {name}",
                f"ip addr add {ours}/30 dev {name}a", f"ip link set {name}a up",
                f"ip -n {name} addr add {its}/30 dev {name}b", f"ip -n {name} link set {name}b up",
                f"ip -n {name} link set lo up"]
    try:
        for command in commands:
            done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"no network namespace can be made here: {done.stderr.strip()}")
        yield ["ip", "netns", "exec", name], ours
    finally:
        subprocess.run(["ip", "link", "del", f"{name}a"], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@needs_locust
@pytest.mark.skipif(not shutil.which("ip"), reason="there is no ip of iproute2")
def test_spread_printed_command_starts_a_remote_worker(tmp_path):
    with network(f"mk{os.getpid()}") as (inside, ours), FakeServer(host=ours) as server:
        path = write(tmp_path / "spread.toml", server.url,
                     workers=f"total = 2\nlocal = 1\nbind = '{ours}'\nport = 0\naddress = '{ours}'\nwait = '60s'")
        process = start(tmp_path, path)
        lines = []
        while not lines or "--worker" not in lines[-1]:
            lines.append(process.stderr.readline())
            assert lines[-1], "".join(lines)
        command = [*inside, sys.executable, "-m", *shlex.split(lines[-1])]
        elsewhere = tmp_path / "elsewhere"  # a folder without project files
        elsewhere.mkdir()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=elsewhere) as worker:
            try:
                code, _, err = finish(process)
                assert code == 0, err
                assert worker.wait(SECONDS) == 0
            finally:
                worker.kill()
        made = json.loads((tmp_path / "out" / "spread.json").read_text())
        assert len(made["workers"]) == 2 and all(part["requests"] > 0 for part in made["workers"])
        assert made["shot"]["requests"] == server.count - 1


# ---- The manifest ----

def test_spread_example_manifest_is_valid():
    read = manifest.load(FOLDER / "spread" / "spread.toml")
    assert read.workers == read.local == 2 and read.asked_rate == pytest.approx(200) and read.path == "/"


@pytest.mark.parametrize("text, message", [
    ("[target]\nurl = 'ftp://a/'\n[load]\nusers = 1", r"\[target\] url: expected http://"),
    ("[target]\nurl = 'http://a b/'\n[load]\nusers = 1", r"\[target\] url"),
    ("[target]\nurl = 'http://a:99999/'\n[load]\nusers = 1", r"\[target\] url"),
    ("[load]\nusers = 1", r"\[target\] url: .*key is missing"),
    ("[target]\nurl = 'http://a/'", r"\[load\] users: .*key is missing"),
    ("[target]\nurl = 'http://a/'\nlenght = 5\n[load]\nusers = 1", "lenght: unknown key; did you mean length?"),
    ("[target]\nurl = 'http://a/'\n[load]\nusers = 'many'", r"\[load\] users: expected a whole number"),
    ("[target]\nurl = 'http://a/'\n[load]\nusers = 1\nduration = '5'", r"\[load\] duration: expected a time"),
    ("[target]\nurl = 'http://a/'\n[load]\nusers = 1\nrate = 5\nrate_per_user = 5", "not both"),
    ("[target]\nurl = 'http://a/'\n[load]\nusers = 1\nrate = 0", r"\[load\] rate"),
    ("[target]\nurl = 'http://a/'\nsha256 = 'abc'\n[load]\nusers = 1", "64 hexadecimal digits"),
    ("[target]\nurl = 'http://a/'\n[load]\nusers = 1\n[workers]\ntotal = 2", "at least one user for each of the 2 workers"),
    ("[target]\nurl = 'http://a/'\n[load]\nusers = 4\n[workers]\ntotal = 2\nlocal = 3", r"\[workers\] local"),
    ("[target", "Expected"),
])
def test_spread_manifest_errors_are_explained(tmp_path, text, message):
    path = tmp_path / "spread.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        manifest.load(path)
    assert str(path) in str(caught.value)


def test_spread_prints_the_worker_command_without_locust(tmp_path):
    path = write(tmp_path / "spread.toml", "http://a.example/", workers="total = 2\nlocal = 0\naddress = '192.0.2.1'\nport = 6000")
    code, out, _ = finish(start(tmp_path, path, "--commands"))
    assert code == 0 and out == "locust -f - --worker --master-host 192.0.2.1 --master-port 6000 --loglevel WARNING\n"


# ---- The record ----

def worker(right=10, busy=0.5, **more):
    return {"machine": {"host": "a"}, "seconds": 10, "cpu_seconds": 10 * busy, "right": right, "bytes": right, "first": {},
            "errors": {"status": 0}, "latency": {"1000": right}, "late": {"0": right}} | more


def record_of(tmp_path, workers, lost=()):
    read = manifest.load(write(tmp_path / "spread.toml", "http://a/", "users = 4\nrate = 2"))
    return spread.make_record(read, {"workers": workers, "lost": list(lost), "master": {}}, "then")


def test_spread_quantiles_cover_all_workers():
    found = spread.times({str(value): 1 for value in range(1, 101)})
    assert (found["p50"], found["p90"], found["p99"], found["max"], found["mean"]) == (50, 90, 99, 100, 50.5)
    assert found["p999"] is None  # 100 samples are too few for a 99.9th percentile
    assert spread.times({}) == dict.fromkeys(found)


def test_spread_tallies_are_added_up(tmp_path):
    made = record_of(tmp_path, {"a": worker(), "b": worker(15, errors={"status": 1}, first={"status": "no"}, latency={"1000": 5, "2000": 10})})
    shot = made["shot"]
    assert shot["requests"] == 25 and shot["rate"] == 2.5 and shot["errors"] == {"status": 1}
    assert shot["latency_us"]["p50"] == 1000 and shot["latency_us"]["max"] == 2000
    assert shot["first_errors"] == {"status": "no"} and made["bottleneck"] is None and not made["notes"]


def test_spread_notes_problems_of_a_run(tmp_path):
    made = record_of(tmp_path, {"a": worker(busy=0.97)}, lost=["b"])
    assert made["bottleneck"] == "client"
    notes = "\n".join(made["notes"])
    assert "worker a was busy for 97%" in notes and "worker b was lost" in notes and "1 of 2 workers" in notes
    assert "1.0 of 2 requests a second" in notes


# ---- Kubernetes ----

def test_spread_kubernetes_manifest_matches_the_locustfile():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    documents = list(yaml.safe_load_all((FOLDER / "spread" / "kubernetes.yaml").read_text()))
    assert [part["kind"] for part in documents] == ["Service", "Job", "Job"]
    service, master, workers = documents
    (leader,), (follower,) = (part["spec"]["template"]["spec"]["containers"] for part in (master, workers))
    assert service["spec"]["selector"] == master["spec"]["template"]["metadata"]["labels"]
    arguments = dict(argument.partition("=")[::2] for argument in leader["args"])
    assert int(arguments["--expect-workers"]) == workers["spec"]["parallelism"] == workers["spec"]["completions"]
    assert f"--master-host={service['metadata']['name']}" in follower["args"]
    assert f"--master-port={service['spec']['ports'][0]['port']}" in follower["args"]
    known = set(re.findall(r'\("(\w+)", \w+, ', (FOLDER / "spread" / "locustfile.py").read_text()))
    assert {name[9:] for name in arguments if name.startswith("--spread-")} <= known
    pinned = (FOLDER / "requirements-spread.txt").read_text().split("locust==")[1].strip()
    assert leader["image"] == follower["image"] == f"locustio/locust:{pinned}"
    for container, job in ((leader, master), (follower, workers)):
        mounts = {mount["name"] for mount in container["volumeMounts"]}
        assert mounts == {volume["name"] for volume in job["spec"]["template"]["spec"]["volumes"]}
    if importlib.util.find_spec("locust"):
        words = [word.replace("/spread/", f"{FOLDER}/spread/") for part in (leader, follower) for word in part["args"]]
        done = subprocess.run([sys.executable, "-m", "locust", *words, "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_spread_requirement_matches_the_tests():
    pinned = (FOLDER / "requirements-spread.txt").read_text().split()[-1]
    assert pinned in (FOLDER.parents[1] / "tests/benchmark/requirements.txt").read_text().split()
