#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""abi.py [--update]: compares the binary interface of include/monkey with the one in tests/house/abi.xml.gz, which programs
and plugins were built with: signatures of functions and what public structs and enums look like in memory. With --update
it writes what the headers say now; do that with a change of MK_ABI, or before the first release.

New functions are no change. abidw and abidiff (libabigail) look at an object that has a pointer to each function, so
nothing but the headers decides.
"""
import argparse
import gzip
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BASELINE = "tests/house/abi.xml.gz"
MACHINE = "x86_64"  # the baseline is about this one
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
FUNCTION = re.compile(r"^MK_API\b[^;{(]*?\b(mk_\w+)\(", re.MULTILINE)
ERROR, CHANGED = 1 | 2, 4 | 8  # bits of abidiff's exit code


def why_not():
    """Why nothing can be compared here; None if it can."""
    missing = [tool for tool in ("cc", "abidw", "abidiff") if not shutil.which(tool)]
    if missing:
        return f"{' and '.join(missing)} is not installed"
    return None if platform.machine() == MACHINE else f"the baseline is about {MACHINE}"


def probe(root):
    """A program text that has a pointer to each function."""
    headers = sorted((root / "include" / "monkey").glob("*.h"))
    lines = [f"#include <monkey/{header.name}>" for header in headers]
    names = {name for header in headers for name in FUNCTION.findall(COMMENT.sub("", header.read_text()))}
    return "\n".join(lines + [f"__typeof__({name}) *abi_{name};" for name in sorted(names)]) + "\n"


def call(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


def describe(root, folder):
    """The interface as XML, in a file of that folder."""
    source, made, out = folder / "probe.c", folder / "probe.so", folder / "now.xml"
    source.write_text(probe(root))
    done = call("cc", "-std=gnu11", "-g", "-O0", "-fPIC", "-shared", f"-I{root / 'include'}", "-o", made, source)
    if done.returncode == 0:
        done = call("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-parameter-names", "--no-elf-needed",
                    "--no-write-default-sizes", "--out-file", out, made)
    if done.returncode != 0 or not out.exists():
        raise RuntimeError(done.stdout + done.stderr)
    return out


def compare(before, after):
    """What has changed, as abidiff says it; empty if nothing has."""
    done = call("abidiff", "--no-added-syms", before, after)
    if done.returncode < 0 or done.returncode & ERROR:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout if done.returncode & CHANGED else ""


def check(root):
    with tempfile.TemporaryDirectory(prefix="mk-abi-") as name:
        before = Path(name) / "before.xml"
        before.write_bytes(gzip.decompress((root / BASELINE).read_bytes()))
        return compare(before, describe(root, Path(name)))


def update(root):
    with tempfile.TemporaryDirectory(prefix="mk-abi-") as name:
        text = describe(root, Path(name)).read_bytes()
    (root / BASELINE).write_bytes(gzip.compress(text, mtime=0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the baseline")
    args = parser.parse_args()
    root = Path(__file__).resolve().parents[2]
    if missing := why_not():
        sys.exit(f"abi.py: {missing}")
    if args.update:
        update(root)
    elif changes := check(root):
        print(changes)
        sys.exit(1)


if __name__ == "__main__":
    main()
