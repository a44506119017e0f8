# SPDX-License-Identifier: Apache-2.0
"""wr measures the resource usage of a server, including its child processes, exited children and system calls."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fake_clients import PRINT_WRK

# The number of requests is fixed, so their total cost is known.
AB = ["ab", "-n", "40"]


def cpu_us(shot):
    return shot["user_us"] + shot["system_us"]


def test_cpu_time_includes_descendants(wr, serve):
    server = serve("family", 1)
    wr.script("wrk", f"""
import http.client, time
for _ in range(100):
    connection = http.client.HTTPConnection("127.0.0.1", {server.port})
    connection.request("GET", "/")
    connection.getresponse().read()
    connection.close()
def burnt(pid):
    with open(f"/proc/{{pid}}/schedstat") as file:
        return int(file.read().split()[0])
until = time.monotonic() + 30
while min(map(burnt, {list(map(int, server.more))})) < 100e6 and time.monotonic() < until:
    time.sleep(0.01)
""" + PRINT_WRK)
    document, shots, _ = wr.shots("--pid", server.pid, "--", "wrk", server.url)
    assert document["cpu_counted_by"] == "processes"
    assert len(document["server"]["pids"]) == 4
    assert {server.pid, *map(int, server.more)} <= set(document["server"]["pids"])
    assert cpu_us(shots[0]) >= 280_000  # each of three processes uses 100 ms


@pytest.fixture
def group():
    """Creates a version 2 cgroup and returns its folder."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    mount_points = [fields[1] for fields in mounts if fields[2] == "cgroup2"]
    folder = Path(mount_points[0] if mount_points else "/nowhere") / f"wr-test-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        folder.mkdir()
    except OSError as e:
        pytest.skip(f"cannot create a version 2 cgroup: {e}")
    yield folder
    # The cgroup contains only processes of this test: move them back to the parent.
    for pid in (folder / "cgroup.procs").read_text().split():
        try:
            (folder.parent / "cgroup.procs").write_text(pid)
        except OSError:
            pass
    folder.rmdir()


def within(group):
    return ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]


def test_cpu_time_of_a_cgroup_includes_exited_children(wr, serve, group):
    server = serve("forking", 5, before=within(group))
    document, shots, _ = wr.shots("--pid", server.pid, "-c", 2, "--", *AB, server.url)
    assert document["cpu_counted_by"] == "cgroup"
    # 40 children use 5 ms each, and no process reaps them.
    assert cpu_us(shots[0]) >= 200_000 and shots[0]["us_per_request"] >= 5_000


def test_cgroup_with_other_processes_is_not_used(wr, serve, group):
    server = serve("slow", 0, before=within(group))
    with subprocess.Popen(["sleep", "60"]) as stranger:
        (group / "cgroup.procs").write_text(str(stranger.pid))
        try:
            document, _, _ = wr.shots("--pid", server.pid, "-c", 2, "--", *AB, server.url)
        finally:
            stranger.kill()
    assert document["cpu_counted_by"] == "processes"


def test_cgroup_option_selects_the_cgroup(wr, serve, group):
    server = serve("forking", 5, before=within(group))
    document, shots, _ = wr.shots("--pid", server.pid, "--cgroup", group, "-c", 2, "--", *AB, server.url)
    assert document["cpu_counted_by"] == "cgroup" and cpu_us(shots[0]) >= 200_000
    done = wr.run("--pid", server.pid, "--cgroup", group / "none", "-c", 2, "--", *AB, server.url, code=1)
    assert "--cgroup expects the folder" in done.stderr


def test_cgroup_option_rejects_a_cgroup_of_other_processes(wr, serve, group):
    server = serve("slow", 0)
    done = wr.run("--pid", server.pid, "--cgroup", group, "-c", 2, "--", *AB, server.url, code=1)
    assert "that control group lacks some or all of the server's processes" in done.stderr
    done = wr.run("--pid", server.pid, "--cgroup", group.parent, "-c", 2, "--", *AB, server.url, code=1)
    assert "--cgroup expects" in done.stderr or "that control group also contains" in done.stderr
    (group / "cgroup.procs").write_text(str(server.pid))
    done = wr.run("--pid", server.pid, "--cgroup", group, "-c", 2, "--", *AB, server.url, before=within(group), code=1)
    assert "that control group also contains wr itself or process 1" in done.stderr


@pytest.mark.parametrize("name", ["a) b (c", "(()) S 1 1", "x y"])
def test_name_option_finds_processes_with_special_characters(wr, serve, name):
    name = f"{name}{os.urandom(2).hex()}"[:15]  # names are unique because tests run in parallel
    server = serve("named", name)
    document, shots, _ = wr.shots("--name", name, "-c", 2, "--", *AB, server.url)
    assert document["server"] == {"name": name, "pids": [server.pid], "found_by": "name"}
    assert cpu_us(shots[0]) > 0


# The connection stays open for a while; the client closes it before exiting.
HOLDING = """
import socket, time
connection = socket.create_connection(("127.0.0.1", {port}))
connection.sendall(b"GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
connection.recv(4096)
time.sleep(2)
connection.close()
"""


def test_memory_of_a_short_shot_is_measured_under_load(wr, serve):
    server = serve("swelling", 64)
    wr.script("wrk", HOLDING.format(port=server.port) + PRINT_WRK)
    _, (shot,), _ = wr.shots("--pid", server.pid, "--interval", 5000, "--unchecked", "--", "wrk", server.url)
    assert [kb >= 64 << 10 for _, _, kb in shot["samples"]] == [True]
    assert shot["pss_kb"] == shot["peak_kb"] >= 64 << 10


def test_memory_of_a_shot_without_samples_is_unknown(wr, serve):
    server = serve("slow", 0)
    document, (shot,), output = wr.shots("--pid", server.pid, "--interval", 60000, "-c", 2, "--", *AB, server.url)
    assert shot["samples"] == [] and shot["pss_kb"] is None and shot["peak_kb"] is None and shot["hwm_kb"] > 0
    assert document["steps"][0]["pss_kb"] is None
    assert "the client ended before the first sample, after 6000.0 ms" in output


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, to switch to another user")
def test_memory_is_unknown_if_one_process_is_unreadable(wr, serve):
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    ours, roots = serve("slow", 0, before=other), serve("slow", 0)
    if not os.access(wr.program, os.X_OK) or subprocess.run([*other, wr.program, "-v"], check=False, capture_output=True).returncode:
        pytest.skip("wr is where other users cannot run it")
    command = ["--", *AB, ours.url]
    _, (shot,), _ = wr.shots("--pid", ours.pid, "-c", 2, *command, before=other)
    assert shot["pss_kb"] > 0
    _, (shot,), output = wr.shots("--pid", ours.pid, "--pid", roots.pid, "-c", 2, *command, before=other)
    assert shot["pss_kb"] is None and shot["peak_kb"] is None and all(sample[2] is None for sample in shot["samples"])
    assert "the server's memory is unknown: run wr as root" in output


def test_syscalls_are_counted_or_the_reason_is_reported(wr, serve):
    server = serve("slow", 0)
    _, shots, output = wr.shots("--pid", server.pid, "-c", 2, "--syscalls", "--", *AB, server.url)
    if shots[0]["syscalls"] is None:
        assert "cannot count system calls: " in output
    else:
        assert shots[0]["syscalls"] >= 3  # at least accept, recv and send, because each request has its own connection
