# SPDX-License-Identifier: Apache-2.0
"""The stage: where contestants run while they are measured. Each is pinned to the server's cores, lives in a cgroup of
its own where we may make one, and sleeps (frozen) while another one is measured.
"""
import atexit
import contextlib
import itertools
import os
import re
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from contest import behind, contestant, family, ports

MOUNTS = Path("/proc/self/mountinfo")
OWN = Path("/proc/self/cgroup")
WORDS = 800  # of what a server said last
FREEZE_SECONDS = 2


# ---- cgroups ----

def _unescape(text):
    return re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), text)


def own_cgroup():
    """The folder of our own cgroup of version 2, wherever that is mounted; None when it is nowhere."""
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
    """Makes a cgroup for each contestant. `why` says why it cannot, else it is None."""

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
            self.why = f"{folder} cannot be made: {error.strerror}"

    def make(self, name):
        """The folder of a new cgroup, or None."""
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
    """What runs left that were killed: the processes in there are contestants of theirs."""
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
            time.sleep(0.01)  # the last process is not buried yet
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
    """One contestant for one case: `start`, then `sleep` and `wake` as often as it is its turn, then `stop`."""

    def __init__(self, entry, case, material, server_cores, cgroups, behind_cores=()):
        self.entry, self.case, self.material = entry, case, material
        self.cores, self.cgroups, self.behind_cores = server_cores, cgroups, behind_cores
        self.running = self.prepared = self.folder = self.cgroup = self.ports = self.behind = None
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
        """Those of its processes that are no children of others of them, while no load makes more of them."""
        pids = self.pids()
        return [pid for pid in pids if (fields := family.stat(pid)) and int(fields[1]) not in pids]

    def roots(self):
        """The processes that started the contestant: their families are all of it."""
        return [pid for pid in self._roots if family.started(pid)]

    def is_alive(self):
        return bool(self.running) and self.running.process.poll() is None

    def last_words(self):
        """The end of what it wrote on its standard output and error."""
        try:
            return self.running.output.read_text(errors="replace").strip()[-WORDS:] or "it said nothing"
        except (OSError, AttributeError):
            return "it said nothing"

    def _setup(self):
        self.folder = tempfile.TemporaryDirectory(prefix=f"contest-{self.name}-")
        os.chmod(self.folder.name, 0o755)  # servers started as root switch to another user
        can = self.entry.can()
        self.ports = Ports(*(ports.free_port() for _ in range(3)))
        secure = "tls" in can or "h2" in can
        extra = {"file": self.case.path.lstrip("/")} if self.entry.yardstick and self.case.path else {}
        if self.case.behind == behind.DATA:
            extra = {"file": "json"}  # programs that ask databases serve no files
        if self.case.behind:
            place = Path(self.folder.name, "origin")
            self.behind = behind.start(self.case.behind, self.material, self.behind_cores, place)
            extra |= self.behind.setup()
        return contestant.Setup(Path(self.folder.name), self.material.root, self.ports.http,
                                tls_port=self.ports.https if secure else None,
                                h2c_port=self.ports.h2c if "h2c" in can else None,
                                workers=len(self.cores), log="log" in self.case.features, cert=self.material.cert, key=self.material.key, **extra)

    def start(self):
        """Raises contestant.Failed, with its last words. A port may be lost to another program: then others are tried."""
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
        """From now on it takes no time from those that are measured."""
        self._turn(True)

    def wake(self):
        self._turn(False)

    def stop(self):
        """Ends it with all that belongs to it."""
        try:
            with contextlib.suppress(OSError):
                self.wake()
            if self.running:
                self.running.stop()
            if self.behind:
                self.behind.stop()
        finally:
            self.running = self.behind = None
            if self.cgroup:
                with contextlib.suppress(OSError):
                    (self.cgroup / "cgroup.kill").write_text("1")
                _remove(self.cgroup)
                self.cgroup = None
            if self.folder:
                self.folder.cleanup()
                self.folder = None
