# SPDX-License-Identifier: Apache-2.0
"""Duda services for tests: compiles C, and returns the object for a Load line.

    server = monkey(plugins=[services.build(tmp_path, "hello", '#include <duda.h> ...')])
"""
import contextlib
import functools
import hashlib
import os
import re
import shutil
import subprocess
import time

from monkey import PROGRAM, ROOT, SECONDS

OBJECTS = PROGRAM.parent / "plugins"
BUILT = OBJECTS / "monkey-duda.so"
COMPILER = os.environ.get("CC", "cc")
FLAGS = ["-std=gnu11", "-g", "-O1", "-fstack-clash-protection", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}",
         f"-I{ROOT / 'duda' / 'include'}"]

# Additional compiler flags for services of the default program: tools/dev/tsan.sh instruments them, too.
MORE = os.environ.get("MONKEY_SERVICE_FLAGS", "").split()


def has(package):
    return (OBJECTS / f"monkey-duda-{package}.so").exists()


def build(folder, name, source, *flags, packages=(), objects=OBJECTS, first=()):
    """Compiles the source (text or file) of a service, and returns the object for `Load`. `packages` are packages that it uses;
    `objects` is the folder of Duda if the program is not the default one. Flags in `first` precede the usual ones, so
    their include folders are searched first."""
    path = source
    if not hasattr(source, "read_text"):
        path = folder / f"{name}.c"
        path.write_text(source)
    out = folder / f"monkey-{name}.so"
    compile_ = [COMPILER, *first, *FLAGS, *(MORE if objects == OBJECTS else ()), *flags]
    link = [f"-L{objects}", "-l:monkey-duda.so", *(f"-l:monkey-duda-{package}.so" for package in packages), f"-Wl,-rpath,{objects}"]
    stored = stored_objects() / key_of([*compile_, *link], name, source) if is_alone(source, [*first, *flags]) else None
    if stored and is_copied(stored, out):
        return out
    done = subprocess.run([*compile_, "-o", out, path, *link], capture_output=True, text=True, timeout=4 * SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    if stored:
        copy(out, stored)
    return out


# Many tests compile the same service: build/dev/services has the objects by the hash of all that the compiler reads. Their debug
# information names the folder of the test that compiled the service first.
UNUSED_DAYS = 3


def is_alone(source, flags):
    """Is the source the only file of the test that the compiler and the service read? A service looks for its assets, templates
    and translations in the folder of its source, too."""
    return (isinstance(source, str) and '#include "' not in source and not any("/" in str(flag) for flag in flags)
            and not re.search("DUDA_ASSETS|duda_asset|duda_render|duda_template|duda_translate|duda_language", source))


def key_of(command, name, source):
    return hashlib.sha256("\0".join([headers(), *map(str, command), name, source]).encode()).hexdigest()


@functools.cache
def headers():
    files = sorted(path for folder in ("include", "duda/include") for path in (ROOT / folder).rglob("*.h"))
    version = subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=True).stdout
    return hashlib.sha256("\0".join([version, *(path.read_text() for path in files)]).encode()).hexdigest()


@functools.cache
def stored_objects():
    """Returns the folder of the stored objects. Removes objects that no test has used for days."""
    folder = OBJECTS.parent / "services"
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError): # another process removes it, too
            if path.stat().st_mtime < time.time() - UNUSED_DAYS * 86400:
                path.unlink()
    return folder


def copy(source, target):
    """Other processes see the old file or the whole new one, and servers may have loaded the old one."""
    part = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.copy(source, part)
    part.replace(target)


def is_copied(stored, out):
    try:
        copy(stored, out)
        os.utime(stored)
    except FileNotFoundError:
        return False
    return True


def with_small_stacks(source):
    """Returns the source with handlers that request a stack of 1 byte, which Duda rounds up to its smallest stack."""
    small, n = re.subn(r'(DUDA_[A-Z]+\("/[^"]*", \w+, "[^"]*")(?:, \.stack = [^,)]+)?', r"\1, .stack = 1", source)
    assert n > 0
    return small
