# SPDX-License-Identifier: Apache-2.0
"""Runs programs for other architectures with qemu-user: builds Monkey, downloads BusyBox, and counts executed instructions."""
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from contest.user_error import UserError
from contest.contestant import PROJECT

PLUGIN = PROJECT / "tools" / "contest" / "emulator" / "instructions.c"
FETCH = PROJECT / "tools" / "dev" / "foreign.sh"
FOREIGN = PROJECT / "build" / "foreign"
NEED = "`tools/dev/need.sh arm` installs it"
API_VERSIONS = range(8)  # versions of the plugin interface; each qemu version accepts only some
BUILD_SECONDS, RUN_SECONDS = 1800, 60


@dataclass(frozen=True)
class Machine:
    name: str  # Debian's architecture name
    triplet: str
    emulator: str

    @property
    def compiler(self):
        return f"{self.triplet}-gcc"

    @property
    def libraries(self):
        """The libc folder of the cross compiler's packages."""
        return Path("/usr", self.triplet)

    def command(self, plugin=None, counter=None):
        """Returns the command prefix that runs a program in the emulator."""
        count = ["-plugin", f"{plugin},counter={counter}"] if plugin else []
        return [shutil.which(self.emulator) or self.emulator, *count, "-L", str(self.libraries)]

    def check(self):
        """Raises UserError if programs for this machine cannot be built and run here."""
        for program in (self.emulator, self.compiler, "cmake", "ninja"):
            if not shutil.which(program):
                raise UserError(f"{self.name}: there is no {program}; {NEED}")
        if not (self.libraries / "lib" / "libc.so.6").exists():
            raise UserError(f"{self.name}: there is no libc in {self.libraries}; {NEED}")


MACHINES = {each.name: each for each in (
    Machine("armhf", "arm-linux-gnueabihf", "qemu-arm"),
    Machine("arm64", "aarch64-linux-gnu", "qemu-aarch64"),
)}


@contextlib.contextmanager
def scratch():
    """Creates a temporary folder readable by every user, because servers started as root switch to another user."""
    with tempfile.TemporaryDirectory(prefix="contest-arm-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def _run(command, seconds, what, **how):
    try:
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds, check=False, **how)
    except subprocess.TimeoutExpired:
        raise UserError(f"{what}: not finished within {seconds} s: {' '.join(map(str, command))}") from None
    except OSError as error:
        raise UserError(f"{what}: {command[0]}: {error.strerror}") from None
    return done


def _must(command, seconds, what, **how):
    done = _run(command, seconds, what, **how)
    if done.returncode:
        raise UserError(f"{what}: {done.stdout.strip()[-800:] or f'{command[0]} ended with {done.returncode}'}")
    return done.stdout


def build_monkey(machine):
    """Builds the release program with only libc, and the one plugin that its configuration loads."""
    what = f"cannot build Monkey for {machine.name}"
    folder = PROJECT / "build" / machine.name
    _must(["cmake", "--preset", machine.name], BUILD_SECONDS, what, cwd=PROJECT)
    _must(["cmake", "--build", folder, "--target", "monkey", "plugin_dirlisting"], BUILD_SECONDS, what)
    return folder / "monkey"


def fetch_busybox(machine, folder=None):
    """Returns (program, package version)."""
    folder = Path(folder or FOREIGN / machine.name)
    _must([FETCH, machine.name, folder, "busybox"], BUILD_SECONDS, f"cannot get BusyBox for {machine.name}")
    version = re.search(r"^busybox (\S+)$", (folder / "packages").read_text(), re.MULTILINE)
    found = [folder / "root" / path for path in ("usr/bin/busybox", "bin/busybox")]
    for program in found:
        if program.exists():
            return program, version[1] if version else ""
    raise UserError(f"{machine.name}: there is no busybox in {folder}/root; remove {folder} to download it again")


def said(machine, program, argument, pattern):
    """Returns the match of the pattern in the program's output; raises UserError if the program cannot run."""
    out = _run([*machine.command(), program, *([argument] if argument else [])], RUN_SECONDS, f"{program} cannot be run").stdout
    match = re.search(pattern, out)
    if not match:
        raise UserError(f"{program}: run by {machine.emulator} it says {out.strip()[:200]!r}, not its version")
    return match[1]


# ---- Instructions ----

def counted(counter):
    """Returns the number of instructions executed so far."""
    try:
        return int.from_bytes(Path(counter).read_bytes()[:8], "little")
    except OSError:
        return 0


def settled(counter, quiet=0.2, seconds=5):
    """Waits until the count hardly changes, which means that the last requests have finished; returns the count."""
    end, last = time.monotonic() + seconds, counted(counter)
    while time.monotonic() < end:
        time.sleep(quiet)
        now = counted(counter)
        if now - last < 20_000:  # allows for periodic timers
            return now
        last = now
    return last


def _try_plugin(machine, program, plugin, folder):
    """Returns whether the plugin counts the instructions of a program."""
    counter = folder / "trial.counter"
    counter.unlink(missing_ok=True)
    done = _run([*machine.command(plugin, counter), program, "true"], RUN_SECONDS, "cannot test the plugin")
    return (done.returncode == 0 and counted(counter) > 0), done.stdout.strip()


def counting_plugin(machine, program, folder):
    """Builds the counting plugin and tests it with `program`, a busybox. Returns (path, None), or (None, reason)."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        return None, "there is no C compiler"
    why = ""
    for version in API_VERSIONS:
        plugin = Path(folder, f"instructions-{machine.name}-{version}.so")
        done = _run([compiler, "-O2", "-shared", "-fPIC", f"-DMK_QEMU_API={version}", "-o", plugin, PLUGIN], RUN_SECONDS,
                    "cannot compile the plugin")
        if done.returncode:
            return None, f"{PLUGIN.name} does not compile: {done.stdout.strip()[-300:]}"
        works, why = _try_plugin(machine, program, plugin, Path(folder))
        if works:
            return plugin, None
    return None, f"{machine.emulator} cannot load the plugin: {why[-300:]}"
