# SPDX-License-Identifier: Apache-2.0
"""The stage runs contestants during measurements. Each contestant is pinned to the server cores, has its own cgroup if possible,
and is frozen while another one is measured.
"""
import atexit
import contextlib
import itertools
import os
import re
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from contest import backends, contestant, family, ports

MOUNTS = Path("/proc/self/mountinfo")
OWN = Path("/proc/self/cgroup")
WORDS = 800  # maximum number of characters quoted from the end of a server's output
FREEZE_SECONDS = 2
EXIT_SECONDS = 1


# ---- cgroups ----

def _unescape(text):
    return re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), text)


def own_cgroup():
    """Returns the folder of our own version 2 cgroup, wherever it is mounted; None if there is none."""
    try:
        own = re.search(r"^0::(.*)$", OWN.read_text(), re.MULTILINE)
        mounts = MOUNTS.read_text().splitlines()
    except OSError:
        return None
    for line in mounts:
        fields = line.split()
        if own and fields[fields.index("-") + 1] == "cgroup2":
            folder = Path(_unescape(fields[4]) + own[1])
            if folder.is_dir():
                return folder
    return None


_numbers = itertools.count()


class Cgroups:
    """Creates a cgroup for each contestant. If that is impossible, `why` is the reason, else None."""

    def __init__(self):
        self.folder, self.why = None, None
        parent = own_cgroup()
        if not parent:
            self.why = "no cgroup of version 2 is mounted"
            return
        _remove_old(parent)
        folder = parent / f"contest-{os.getpid()}-{next(_numbers)}"
        try:
            folder.mkdir()
            self.folder = folder
            atexit.register(self.end)
            if not (folder / "cpu.stat").exists():
                self.why = f"{folder} has no cpu.stat"
                self.end()
        except OSError as error:
            self.why = f"cannot create {folder}: {error.strerror}"

    def make(self, name):
        """Returns the folder of a new cgroup, or None."""
        if not self.folder:
            return None
        with contextlib.suppress(OSError):
            (self.folder / name).mkdir()
            return self.folder / name
        return None

    def end(self):
        atexit.unregister(self.end)
        if self.folder:
            for each in [*self.folder.glob("*/"), self.folder]:
                _remove(each)
            self.folder = None


def _remove_old(parent):
    """Removes the cgroups of killed runs, and kills the processes in them, which are contestants of those runs."""
    for folder in parent.glob("contest-*/"):
        pid = folder.name.split("-")[1]
        if pid.isdigit() and not Path("/proc", pid).exists():
            for each in [*folder.glob("*/"), folder]:
                kill = each / "cgroup.kill"
                with contextlib.suppress(OSError):
                    kill.exists() and kill.write_text("1")
                _remove(each)


def _remove(cgroup):
    for _ in range(100):
        try:
            return cgroup.rmdir()
        except FileNotFoundError:
            return None
        except OSError:
            time.sleep(0.01)  # the last process is not yet reaped
    return None


# ---- A contestant on the stage ----

@dataclass(frozen=True)
class Ports:
    http: int
    https: int
    h2c: int

    def of(self, scheme):
        return {"http": self.http, "https": self.https, "h2": self.https, "h2c": self.h2c}[scheme]


class Stage:
    """One contestant in one case: `start`, then `wake` and `sleep` for each of its turns, then `stop`."""

    def __init__(self, entry, case, material, server_cores, cgroups, backend_cores=()):
        self.entry, self.case, self.material = entry, case, material
        self.cores, self.cgroups, self.backend_cores = server_cores, cgroups, backend_cores
        self.running = self.prepared = self.folder = self.cgroup = self.ports = self.backend = None
        self.asleep, self._roots = False, []

    @property
    def name(self):
        return self.entry.name

    @property
    def port(self):
        return self.ports.of(self.case.scheme)

    def pids(self):
        return self.running.pids() if self.running else []

    def _find_roots(self):
        """Returns the contestant's processes whose parents are not part of it. Call this before load creates more processes."""
        pids = self.pids()
        return [pid for pid in pids if (fields := family.stat(pid)) and int(fields[1]) not in pids]

    def roots(self):
        """Returns the first processes of the contestant, which are the ancestors of all others."""
        return [pid for pid in self._roots if family.started(pid)]

    def is_alive(self, after_fault=False):
        """Returns whether the contestant runs. After a failed request, this allows time for its exit: the kernel closes the
        sockets of an exiting process before the parent can see the exit."""
        if not self.running:
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.running.process.wait(EXIT_SECONDS if after_fault else 0)
        return self.running.process.returncode is None

    def last_words(self):
        """Returns the end of the contestant's standard output and error."""
        try:
            return self.running.output.read_text(errors="replace").strip()[-WORDS:] or "no output"
        except (OSError, AttributeError):
            return "no output"

    def _setup(self):
        self.folder = tempfile.TemporaryDirectory(prefix=f"contest-{self.name}-")
        os.chmod(self.folder.name, 0o755)  # servers started as root switch to another user
        can = self.entry.can()
        self.ports = Ports(*(ports.free_port() for _ in range(3)))
        secure = "tls" in can or "h2" in can
        extra = {"file": self.case.path.lstrip("/")} if self.entry.yardstick and self.case.path else {}
        if self.case.backend == backends.DATA:
            extra = {"file": "json"}  # programs of database cases serve no files
        if self.case.backend:
            place = Path(self.folder.name, "origin")
            self.backend = backends.start(self.case.backend, self.material, self.backend_cores, place)
            extra |= self.backend.setup()
        return contestant.Setup(Path(self.folder.name), self.material.root, self.ports.http,
                                tls_port=self.ports.https if secure else None,
                                h2c_port=self.ports.h2c if "h2c" in can else None,
                                workers=len(self.cores), log="log" in self.case.features, cert=self.material.cert, key=self.material.key, **extra)

    def start(self):
        """Starts the contestant, on other ports if another program has taken one. Raises contestant.Failed with the output's
        end."""
        for attempt in range(3):
            try:
                return self._start()
            except contestant.PortTaken:
                self.stop()
                if attempt == 2:
                    raise
            except BaseException:
                self.stop()
                raise

    def _start(self):
        self.prepared = self.entry.prepare(self._setup())
        self.cgroup = self.cgroups.make(self.name)
        wrapper = ["taskset", "-c", ",".join(map(str, self.cores))]
        self.running = self.prepared.start(wrapper, self.cgroup)
        self._roots = self._find_roots()

    def _freezer(self):
        freezer = self.cgroup / "cgroup.freeze" if self.cgroup else None
        return freezer if freezer and freezer.exists() else None

    def _wait_frozen(self, frozen):
        end = time.monotonic() + FREEZE_SECONDS
        while f"frozen {int(frozen)}" not in (self.cgroup / "cgroup.events").read_text() and time.monotonic() < end:
            time.sleep(0.002)
        if f"frozen {int(frozen)}" not in (self.cgroup / "cgroup.events").read_text():
            raise TimeoutError(f"{self.name} could not be {'frozen' if frozen else 'woken'} within {FREEZE_SECONDS} s")

    def _turn(self, asleep):
        if not self.running or self.asleep == asleep:
            return
        freezer = self._freezer()
        if freezer:
            freezer.write_text(str(int(asleep)))
            self._wait_frozen(asleep)
        else:
            for pid in self.pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP if asleep else signal.SIGCONT)
        self.asleep = asleep

    def sleep(self):
        """Freezes the contestant, so that it takes no CPU time from others."""
        self._turn(True)

    def wake(self):
        self._turn(False)

    def stop(self):
        """Stops the contestant and everything that belongs to it."""
        try:
            with contextlib.suppress(OSError):
                self.wake()
            if self.running:
                self.running.stop()
            if self.backend:
                self.backend.stop()
        finally:
            self.running = self.backend = None
            if self.cgroup:
                with contextlib.suppress(OSError):
                    (self.cgroup / "cgroup.kill").write_text("1")
                _remove(self.cgroup)
                self.cgroup = None
            if self.folder:
                self.folder.cleanup()
                self.folder = None
