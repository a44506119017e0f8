# SPDX-License-Identifier: Apache-2.0
"""A shot: runs the client of a case under wr, and converts wr's output to the metrics of a record."""
import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

from contest.case import FOLDER as CASES

SLACK_SECONDS = 40  # time beyond the length of a shot, for clients that wait for the last responses
HEAD_BYTES = 2000  # maximum size of a response head
COUNTERS = ("voluntary", "involuntary")
MEMORY = ("pss_kb", "peak_kb")
SILENT = "no response"
LATENCIES = ("mean", "p50", "p75", "p90", "p99", "p999", "max")


class NoShot(Exception):
    """The shot has no result; the message is the reason."""


def plain(number):
    """Formats 2.0 as 2, for command lines."""
    return str(int(number)) if number == int(number) else str(number)


def expand(case, url, step, seconds, client=None):
    """Returns the client's command; wr sets the number of connections."""
    values = {"url": url, "seconds": plain(seconds), "cases": str(CASES),
              "rate": plain(step) if case.axis == "rate" else ""}
    command = []
    for part in case.command:
        for name, value in values.items():
            part = part.replace("{%s}" % name, value)
        command.append(part)
    return [client or command[0], *command[1:]]


def connections(case, step):
    return case.connections if case.axis == "rate" else int(step)


def wr_command(wr, pids, cores, case, step, command, syscalls=False, cgroup=None):
    options = ["--json", "--quiet", "--unchecked", "--steps", str(connections(case, step)), "--shots", "1",
               "--client-cores", ",".join(map(str, cores)), *(["--syscalls"] if syscalls else []),
               *(["--cgroup", str(cgroup)] if cgroup else [])]
    return [wr, *options, *(part for pid in pids for part in ("--pid", str(pid))), "--", *command]


def _end_group(process):
    """Terminates wr and its client."""
    for number, seconds in ((signal.SIGTERM, 2), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    process.communicate()


def run_wr(command, seconds, environment=None):
    """Returns the document that wr printed. wr and its client have exited by then, even if an exception is raised."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors="replace", env=os.environ | (environment or {}), start_new_session=True)
    try:
        out, err = process.communicate(timeout=seconds + SLACK_SECONDS)
    except subprocess.TimeoutExpired:
        raise NoShot(f"the client did not exit within {seconds + SLACK_SECONDS:.0f} s") from None
    finally:
        if process.returncode is None:
            _end_group(process)
    try:
        document = json.loads(out)
    except ValueError:
        document = None
    if process.returncode or not isinstance(document, dict):
        said = err.strip().splitlines() or out.strip().splitlines() or [f"it exited with {process.returncode}"]
        raise NoShot("wr: " + "; ".join(line.removeprefix("wr: ") for line in said[-3:])[-400:])
    return document


# ---- The output of wr ----

def shot_of(document):
    """Returns the only shot of the only step."""
    try:
        shot = document["steps"][0]["shots"][0]
        shot["requests"], shot["rate"]
    except (KeyError, IndexError, TypeError):
        raise NoShot("wr: its output contains no shot") from None
    return shot


def _per_request(shot, value):
    """Divides by the number of requests that the server handled, as wr reports it: some clients do not count all of them."""
    served = shot.get("served") or shot["requests"]
    return value / served if value is not None and served else None


def _errors(shot):
    return sum(count for count in (shot.get("errors") or {}).values() if count and count > 0)


def metrics_of(shot, alone=True):
    """Returns the known metrics for the record. Leaves out memory metrics if other contestants were running."""
    latency, client, switches = (shot.get(key) or {} for key in ("latency_us", "client", "switches"))
    seconds, total = shot.get("seconds"), shot.get("bytes")
    found = {
        "rate": shot["rate"], "requests": shot["requests"], "seconds": seconds, "cpu_us": shot.get("us_per_request"),
        "user_us": _per_request(shot, shot.get("user_us")), "system_us": _per_request(shot, shot.get("system_us")),
        "pss_kb": shot.get("pss_kb"), "peak_kb": shot.get("peak_kb"), "errors": _errors(shot),
        "syscalls": shot.get("syscalls"), "server_busy": shot.get("server_busy"), "client_busy": client.get("busy"),
        "bytes_per_second": total / seconds if total and seconds else None,
    }
    doubted = doubtful(shot)
    found |= {f"{name}_us": latency.get(name) for name in LATENCIES if f"{name}_us" not in doubted}
    found |= {name: _per_request(shot, switches.get(name)) for name in COUNTERS}
    return {name: value for name, value in found.items() if value is not None and (alone or name not in MEMORY)}


def doubtful(shot):
    """Returns the latency metrics to omit: according to the client, it may itself have caused a large part of these latencies."""
    if not shot.get("doubt"):
        return []
    named = [name for name in LATENCIES if name in (shot.get("doubtful") or LATENCIES)]
    return [f"{name}_us" for name in dict.fromkeys([*named, "max"]) if name in (shot.get("latency_us") or {})]


def bottleneck_of(shot):
    return shot.get("bottleneck")


def fault_of(shot, case, lengths, count, yardstick=False):
    """Returns what disqualifies the contestant, or None. `lengths` are the allowed lengths of responses.

    A yardstick does not send "Connection: close", so the client counts closed connections as errors.
    """
    wrong = {name: n for name, n in (shot.get("errors") or {}).items() if n and n > 0}
    if yardstick and case.close:
        wrong.pop("read", None)
    if wrong:
        total = shot["requests"] + sum(wrong.values())
        return f"client errors: {', '.join(f'{n} {name}' for name, n in wrong.items())} of {total} requests"
    if not shot["requests"]:
        return SILENT
    return _fault_of_bytes(shot, case, lengths, count)


def _fault_of_bytes(shot, case, lengths, count):
    total, n = shot.get("bytes"), shot["requests"]
    if total is None:
        return None
    least, most = n * min(lengths), n * (max(lengths) + HEAD_BYTES) + count * (max(lengths) + HEAD_BYTES)
    rounding = max(20_000, total // 100)  # clients print the total in megabytes with two decimals
    if total + rounding < least:
        return f"{total / n:.0f} bytes per request, but the shortest response has {min(lengths)}"
    if total - rounding > most:
        return f"{total / n:.0f} bytes per request, but the longest response has {max(lengths)}"
    return None


def samples_of(shot, alone=True):
    return [[*sample[:2], sample[2] if alone else None] for sample in shot.get("samples") or []]


def write_paths(folder, paths):
    """Writes the list of paths for paths.lua."""
    file = Path(folder, "paths")
    file.write_text("\n".join(paths) + "\n")
    return file
