# SPDX-License-Identifier: Apache-2.0
"""Duda services for tests: compiles C, and returns the object for a Load line.

    server = monkey(plugins=[services.build(tmp_path, "hello", '#include <duda.h> ...')])
"""
import os
import re
import subprocess

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
    if not hasattr(source, "read_text"):
        path = folder / f"{name}.c"
        path.write_text(source)
        source = path
    out = folder / f"monkey-{name}.so"
    needs = ["-l:monkey-duda.so", *(f"-l:monkey-duda-{package}.so" for package in packages)]
    done = subprocess.run([COMPILER, *first, *FLAGS, *(MORE if objects == OBJECTS else ()), *flags, "-o", out, source, f"-L{objects}", *needs, f"-Wl,-rpath,{objects}"],
                          capture_output=True, text=True, timeout=4 * SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return out


def with_small_stacks(source):
    """Returns the source with handlers that request a stack of 1 byte, which Duda rounds up to its smallest stack."""
    small, n = re.subn(r'(DUDA_[A-Z]+\("/[^"]*", \w+, "[^"]*")(?:, \.stack = [^,)]+)?', r"\1, .stack = 1", source)
    assert n > 0
    return small
