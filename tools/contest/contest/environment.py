# SPDX-License-Identifier: Apache-2.0
"""The machine: its description, the assignment of cores, and the activity of other programs during a shot."""
import os
import platform
import re
import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from contest import family
from contest.user_error import UserError

TICKS = os.sysconf("SC_CLK_TCK")
CLIENTS = {"wrk": (["wrk", "-v"], r"wrk (?:\S*/)?([\d.]+)"), "h2load": (["h2load", "--version"], r"nghttp2/(\S+)"),
           "weighttp": (["weighttp", "-V"], r"([\d.]+)"), "ab": (["ab", "-V"], r"Version (\S+)"),
           "siege": (["siege", "--version"], r"SIEGE (\S+)"), "curl": (["curl", "--version"], r"curl (\S+)"),
           "perf": (["perf", "--version"], r"version (\S+)")}


def cores():
    """Returns the cores available to this process."""
    return sorted(os.sched_getaffinity(0))


def share_cores(server=None, client=None):
    """Returns (server cores, client cores): the first and the last half, or those requested."""
    mine = cores()
    server = parse_cores(server) if server else mine[:max(1, len(mine) // 2)] if len(mine) > 2 else mine[:1]
    client = parse_cores(client) if client else [core for core in mine if core not in server] or mine[-1:]
    for core in [*server, *client]:
        if core not in mine:
            raise UserError(f"core {core} is not available to this process; available are {', '.join(map(str, mine))}", code=2)
    return server, client


def parse_cores(text):
    """Parses '0,2-3' to [0, 2, 3]."""
    found = set()
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if not match:
            raise UserError(f"cores: expected a list such as 0,2-3, found {text!r}", code=2)
        found |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return sorted(found)


def raise_limits():
    """Raises the descriptor limit of this process and its children to the maximum, and returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _line(path):
    try:
        return Path(path).read_text().strip() or None
    except OSError:
        return None


def _matching(path, pattern):
    match = re.search(pattern, _line(path) or "", re.MULTILINE)
    return match[1].strip() if match else None


def _mitigations():
    folder = Path("/sys/devices/system/cpu/vulnerabilities")
    found = {path.name: _line(path) for path in sorted(folder.glob("*"))} if folder.is_dir() else {}
    return {name: text for name, text in found.items() if text and text != "Not affected"}


def _virtual():
    """Returns the type of virtual machine; None on bare metal."""
    if shutil.which("systemd-detect-virt"):
        done = subprocess.run(["systemd-detect-virt"], capture_output=True, text=True, check=False)
        if done.stdout.strip() not in ("", "none"):
            return done.stdout.strip()
    return "a virtual machine" if re.search(r"^flags.*\bhypervisor\b", _line("/proc/cpuinfo") or "", re.MULTILINE) else None


def client_version(name, command=None):
    """Returns the version of a client; None if it is absent."""
    command, pattern = ([command, "--version"], r"(\d[\w.]*)") if command else CLIENTS[name]
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    match = re.search(pattern, done.stdout)
    return match[1] if match else "unknown"


def describe(server_cores, client_cores, tools):
    """Returns the environment of a record; `tools` are our own programs: {"wr": path, "pace": path}."""
    versions = {name: client_version(name) for name in CLIENTS}
    versions |= {name: client_version(name, path) for name, path in tools.items() if path}
    uname = platform.uname()
    return {
        "cpu": _matching("/proc/cpuinfo", r"^model name\s*:(.*)$") or uname.machine, "machine": uname.machine,
        "cores": len(cores()), "memory_kb": psutil.virtual_memory().total // 1024, "kernel": uname.release,
        "os": _matching("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'), "virtual": _virtual(),
        "governor": _line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"), "mitigations": _mitigations(),
        "python": platform.python_version(), "load_before": list(os.getloadavg()), "load_after": None,
        "clients": {name: version for name, version in versions.items() if version},
        "server_cores": server_cores, "client_cores": client_cores, "cpu_counted_by": None,
        "limits": {"nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
                   "somaxconn": _line("/proc/sys/net/core/somaxconn"),
                   "port_range": (_line("/proc/sys/net/ipv4/ip_local_port_range") or "").split(),
                   "tcp_tw_reuse": _line("/proc/sys/net/ipv4/tcp_tw_reuse")},
    }


def ports_ran_out():
    """Returns whether connections in TIME_WAIT occupy nearly all client ports and cannot be reused."""
    if _line("/proc/sys/net/ipv4/tcp_tw_reuse") in ("1", "2"):
        return False
    first, last = map(int, (_line("/proc/sys/net/ipv4/ip_local_port_range") or "32768 60999").split())
    waiting = re.search(r"^TCP:.* tw (\d+)", _line("/proc/net/sockstat") or "", re.MULTILINE)
    return bool(waiting) and int(waiting[1]) > .9 * (last - first)


# ---- Other programs ----

KTHREADD = 2  # the parent of kernel threads, which also work for our own processes


@dataclass(frozen=True)
class Times:
    parent: int
    started: str
    own: int  # CPU ticks of the process
    waited: int  # CPU ticks of its reaped children
    core: int  # the core it last ran on


@dataclass(frozen=True)
class Share:
    """The share of the used cores taken by other programs."""
    strangers: float
    stolen: float = 0  # share taken by the hypervisor
    kernel: float = 0  # share taken by kernel threads

    @property
    def noise(self):
        return self.strangers + self.stolen


def table():
    """Returns {pid: Times} of all processes."""
    found = {}
    for name in os.listdir("/proc"):
        fields = family.stat(int(name)) if name.isdigit() else []
        if fields:
            found[int(name)] = Times(int(fields[1]), fields[19], int(fields[11]) + int(fields[12]),
                                     int(fields[13]) + int(fields[14]), int(fields[36]))
    return found


def descendants(table, roots):
    """Returns the roots and all their descendants."""
    found, grown = set(roots), True
    while grown:
        more = {pid for pid, times in table.items() if times.parent in found} - found
        found |= more
        grown = bool(more)
    return found


def _stolen(cores):
    lines = [line.split() for line in (_line("/proc/stat") or "").splitlines()]
    return sum(int(fields[8]) for fields in lines if len(fields) > 8 and fields[0] in {f"cpu{core}" for core in cores})


class Strangers:
    """Measures the CPU time that other processes, the hypervisor and kernel threads use during a measurement, as a share of the
    used cores. `ours` are processes that do not count, including their descendants.

    When a process exits, its CPU time moves to `waited` of its parent, so both `own` and `waited` are counted.
    """

    def __init__(self, ours, cores):
        self.cores, self.stolen, self.clock, self.table = set(cores), _stolen(cores), os.times().elapsed, table()
        self.ours = descendants(self.table, {os.getpid(), *ours})

    def share(self):
        """Returns the Share since the start."""
        after, total, kernel = table(), 0, 0
        ours = descendants(after, self.ours)
        for pid, times in after.items():
            before = self.table.get(pid)
            if pid in ours or times.core not in self.cores:
                continue
            if before and before.started == times.started:
                used = times.own - before.own + times.waited - before.waited
            else:
                used = times.own + times.waited
            if KTHREADD in (pid, times.parent):
                kernel += used
            else:
                total += used
        for pid, times in self.table.items():
            # The parent has inherited the total of an exited process, so the time before the measurement is subtracted.
            if pid not in after and pid not in self.ours and times.core in self.cores:
                total -= times.own + times.waited
        ticks = max(0.02, os.times().elapsed - self.clock) * TICKS * len(self.cores)
        return Share(max(0, total) / ticks, max(0, _stolen(self.cores) - self.stolen) / ticks, kernel / ticks)
