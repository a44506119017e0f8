# SPDX-License-Identifier: Apache-2.0
"""Functions that Duda's handlers call have small stack frames: a handler may have a stack of only 32 KB, and several of these
functions are active on it at once. Larger buffers belong in the memory of the handler or on the heap.

The sources are compiled again without sanitizers, which enlarge frames.
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import house

FRAME_MAX = 2048
FOLDERS = ("duda/service", "duda/text", "duda/seal", "duda/packages")
PROBE = "duda_touch_of_a_source"  # its frame has a variable size on purpose, see duda/service.h
# Files whose functions run on other stacks: on those of the event loop, of startup, and of the crash report.
ELSEWHERE = {
    "duda/packages/common/package_stream.c": "the event loop",
    "duda/service/crash_report.c": "the crash report has its own stack",
    "duda/service/session_config.c": "startup",
    "duda/service/symbolizer.c": "the event loop",
}


def commands(root, build):
    """Yields the path below `root` and the compiler command of each source file to check."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = Path(entry["directory"], entry["file"]).resolve()
        name = path.relative_to(root.resolve()).as_posix() if path.is_relative_to(root.resolve()) else ""
        if not name.startswith(tuple(f"{folder}/" for folder in FOLDERS)) or name in ELSEWHERE:
            continue
        words = iter(shlex.split(entry["command"]))
        kept = [word for word in words if word not in ("-c", "-Werror") and not word.startswith(("-fsanitize", "-O", "-g")) and
                (word != "-o" or not next(words))]
        yield name, entry["directory"], kept


def large_frames(name, folder, command, into):
    """Returns the complaints about one source file."""
    made = Path(into) / name.replace("/", "-")
    done = subprocess.run([*command, "-c", "-w", "-O1", "-fstack-usage", "-o", f"{made}.o"], cwd=folder, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        return [f"{name}: does not compile: {done.stderr[:400]}"]
    complaints = []
    for line in Path(f"{made}.su").read_text().splitlines():
        where, size, kind = line.split("\t")
        _path, number, _column, function = where.split(":")
        if function != PROBE and (int(size) > FRAME_MAX or kind == "dynamic"):
            more = " or more" if kind == "dynamic" else ""
            complaints.append(f"{name}:{number}: {function} has a stack frame of {size} bytes{more}: at most {FRAME_MAX}, because "
                              "stacks of handlers are small")
    return complaints


def check_frames(root, build):
    sources = {name: (folder, command) for name, folder, command in commands(root, build)}
    with tempfile.TemporaryDirectory() as into, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(large_frames, name, *how, into) for name, how in sorted(sources.items())]
        return [complaint for job in jobs for complaint in job.result()]


def check(args):
    if not args.build or not (args.build / "compile_commands.json").exists():
        return house.SKIPPED
    return check_frames(args.root, args.build)


def self_test(test):
    def judge(body, name="duda/service/a.c"):
        root = test.tree({name: f"void use(char *);\n{body}\n"})
        words = ["cc", "-Wall", "-Werror", "-fsanitize=address", "-o", "a.o", "-c", str(root / name)]
        (root / "compile_commands.json").write_text(json.dumps([{"directory": str(root), "file": name, "command": shlex.join(words)}]))
        return check_frames(root, root)

    large, dynamic = "void f(void) { char a[4096]; use(a); }", "void f(int n) { char a[n]; use(a); }"
    test.expect("a small frame", judge("void f(void) { char a[1000]; use(a); }"))
    test.expect("a large frame", judge(large), r"^duda/service/a\.c:2: f has a stack frame of 4\d+ bytes: at most 2048")
    test.expect("an array of variable size", judge(dynamic), "bytes or more")
    test.expect("a package", judge(large, "duda/packages/sql/a.c"), "sql/a.c:2")
    test.expect("another program", judge(large, "duda/dev/a.c"))
    test.expect("another stack", judge(large, "duda/service/crash_report.c"))
    test.expect("an error", judge("void f("), "does not compile")


if __name__ == "__main__":
    house.run(__doc__, check, self_test, build_dir=True)
