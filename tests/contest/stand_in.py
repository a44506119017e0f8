#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the referee needs of wr, for tests of the referee alone: runs wrk once and says what it cost in wr's words."""
import argparse
import json
import re
import subprocess
import sys
import time

import psutil

UNITS = {"us": 1, "ms": 1e3, "s": 1e6, "m": 6e7}
SIZES = {"B": 1, "KB": 1024, "MB": 1024 ** 2, "GB": 1024 ** 3}


def options():
    parser = argparse.ArgumentParser()
    for name in ("--json", "--quiet", "--unchecked"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--pid", type=int, action="append")
    parser.add_argument("--client-cores")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--shots")
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def cpu(pids):
    times = [psutil.Process(pid).cpu_times() for pid in pids if psutil.pid_exists(pid)]
    return sum(t.user for t in times), sum(t.system for t in times)


def latencies(text):
    found = {f"p{p}": float(v) * UNITS[u] for p, v, u in re.findall(r"^ +(\d+)%\s+([\d.]+)(us|ms|s|m)$", text, re.MULTILINE)}
    mean, mean_unit, most, unit = re.search(r"Latency +([\d.]+)(\w+) +\S+ +([\d.]+)(us|ms|s|m)", text).groups()
    return found | {"mean": float(mean) * UNITS[mean_unit], "max": float(most) * UNITS[unit], "p999": None}


def errors(text):
    found = dict.fromkeys(("connect", "read", "write", "timeout", "status"), 0)
    found |= {name: int(n) for name, n in re.findall(r"(connect|read|write|timeout) (\d+)", text)}
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    return found | ({"status": int(bad[1])} if bad else {})


def main():
    o = options()
    pids = [each.pid for pid in o.pid for each in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True))]
    command = [part.replace("{c}", str(o.steps)) for part in o.command]
    command[1:1] = ["--latency"]
    before, start = cpu(pids), time.monotonic()
    client = psutil.Popen(["taskset", "-c", o.client_cores, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    text, _ = client.communicate()
    after, used = cpu(pids), psutil.Process().cpu_times()
    elapsed = time.monotonic() - start
    if client.returncode:
        sys.exit(f"wr: the client ended with {client.returncode}: {text.strip()[-300:]}")
    requests = int(re.search(r"(\d+) requests in", text)[1])
    size, unit = re.search(r"requests in \S+, ([\d.]+)(\w+) read", text).groups()
    user, system = ((b - a) * 1e6 for a, b in zip(before, after))
    busy = min(1, (used.children_user + used.children_system) / elapsed)
    server = min(1, (user + system) / 1e6 / elapsed)
    shot = {"seconds": elapsed, "requests": requests, "rate": float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]),
            "bytes": int(float(size) * SIZES[unit]), "errors": errors(text), "latency_us": latencies(text),
            "user_us": user, "system_us": system, "us_per_request": (user + system) / requests if requests else None,
            "pss_kb": None, "peak_kb": None, "switches": {"voluntary": None, "involuntary": None}, "syscalls": None,
            "client": {"busy": busy}, "server_busy": server, "samples": [],
            "bottleneck": "client" if busy > .85 and busy > server else "server" if server > .85 else "neither"}
    print(json.dumps({"wr": "stand-in", "cpu_counted_by": "processes", "steps": [{"concurrency": o.steps, "shots": [shot]}]}))


if __name__ == "__main__":
    main()
