# SPDX-License-Identifier: Apache-2.0
"""What a server costs: CPU time and memory of its processes, read from procfs while a client loads it.

Requests per second on one machine mostly measure the client. The CPU time that the server's own processes spend on a
request does not depend on who saturates first.
"""
import os
import re
import resource
import socket
import subprocess
import time

TICK = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """The client saw something other than the answers it should get."""


def family(pid):
    """A process and all of its descendants."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as stat:
                    parents[int(name)] = int(stat.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
    found, grown = {pid}, True
    while grown:
        more = {p for p, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return sorted(found)


def cpu_seconds(pids):
    """(user, system) of all of them together."""
    user = system = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        user, system = user + int(fields[11]), system + int(fields[12])
    return user / TICK, system / TICK


def pss_kb(pids):
    """Proportional set size: shared pages are divided among those who share them."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as rollup:
                total += sum(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
        except OSError:
            pass
    return total


def run_wrk(url, connections, seconds, core, close):
    """(requests answered, requests per second). Raises Failed on any answer that is not a 2xx."""
    command = ["taskset", "-c", str(core), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s"]
    command += ["-H", "Connection: close"] if close else []
    done = subprocess.run([*command, url], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{url}: {done.stdout.strip()} {done.stderr.strip()}")
    out = done.stdout
    wrong = [line.strip() for line in out.splitlines() if "Non-2xx" in line or ("Socket errors" in line and not close)]
    requests = int(re.search(r"(\d+) requests in", out)[1])
    if wrong or not requests:
        raise Failed(f"{url}: {' '.join(wrong) or 'no answer'}")
    return requests, float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])


def cost(pid, url, connections, seconds, core, close):
    """One round: microseconds of user and system time for a request, requests per second."""
    pids = family(pid)
    user, system = cpu_seconds(pids)
    requests, rate = run_wrk(url, connections, seconds, core, close)
    user_after, system_after = cpu_seconds(pids)
    return {"user_us": (user_after - user) / requests * 1e6, "system_us": (system_after - system) / requests * 1e6,
            "rate": rate}


def idle_bytes(pid, port, path, n):
    """Bytes that an idle keep-alive connection costs: growth of the proportional set size, divided by their number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    request = f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()
    held = []
    try:
        with socket.create_connection(("127.0.0.1", port)) as first:
            first.sendall(request)
            first.recv(65536)
        before = pss_kb(family(pid))
        for _ in range(n):
            sock = socket.create_connection(("127.0.0.1", port), timeout=5)
            held.append(sock)
            sock.sendall(request)
            sock.recv(65536)
        time.sleep(1)  # what a server puts off until it is idle
        return (pss_kb(family(pid)) - before) * 1024 / n
    finally:
        for sock in held:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
