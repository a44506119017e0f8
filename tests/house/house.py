# SPDX-License-Identifier: Apache-2.0
"""Common code of the house checks: the layers, file enumeration, C parsing, and reporting.

A check is a function `check(...)` that returns a list of complaints, one line each. `run()` prints them and exits with 0 (no
complaints), 1, or SKIPPED. Each script also accepts --self-test, which runs it on samples with known errors and fails unless
every error is found.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77  # CTest's SKIP_RETURN_CODE

# From the lowest level upwards; layers of the same level do not use each other.
FLOORS = (("base",), ("os", "http", "conf"), ("event", "cgi", "readers", "http2frame"), ("files",), ("web", "tls", "websocket"), ("connection", "logs"),
          ("setup", "http2"), ("worker",), ("server", "lib"))
# Layers for plugins, on which no core layer depends, and the layers that each may use.
WING = {"upstream": {"upstream"}.union(*FLOORS[:3]), "http2client": {"http2client", "upstream"}.union(*FLOORS[:3]),
        "recorder": {"recorder"}.union(*FLOORS[:5])}
LAYERS = (*(layer for floor in FLOORS for layer in floor), *WING)
# Layers that a build may omit: no other layer may include their headers.
OPTIONAL = ("http2", "http2client", "tls")
# Layers that a build omits with others: only these may include their headers.
BENEATH_OPTIONAL = {"http2frame": ("http2", "http2client")}
# The folders of our own C code.
CODE = ("src", "include", "plugins", "duda", "tools", "tests", "examples", "bindings")
# Folders that are never checked.
FOREIGN = {"build", "__pycache__", "node_modules"}


def below(layer):
    """Returns the layers that `layer` may use: the layers listed in WING, or else itself and all lower layers."""
    if layer in WING:
        return WING[layer]
    height = next(i for i, floor in enumerate(FLOORS) if layer in floor)
    return {layer}.union(*FLOORS[:height])


def files(root, folders, suffixes):
    """Yields every file with one of the suffixes in those of the folders that exist, in a stable order."""
    for folder in folders:
        for path, names, leaves in os.walk(Path(root) / folder):
            names[:] = sorted(n for n in names if n not in FOREIGN and not n.startswith("."))
            for leaf in sorted(leaves):
                if leaf.endswith(suffixes):
                    yield Path(path) / leaf


def read(path):
    return Path(path).read_text(encoding="utf-8", errors="replace")


_TOKENS = re.compile(r'//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def without_text(source):
    """Returns C code without comments and string contents; line numbers are preserved."""

    def blank(match):
        kept = match.group()[0] * 2 if match.group()[0] in "\"'" else " "
        return kept + "\n" * match.group().count("\n")

    return _TOKENS.sub(blank, source)


def public_names(root):
    """Returns every name that occurs in the public headers outside comments."""
    text = "".join(read(p) for p in files(root, ("include", "duda/include"), (".h",)))
    return set(re.findall(r"\b(?:mk|duda)_\w+", without_text(text)))


def objects_in(build, *folders):
    """Returns the object files in these folders that the build makes, without those left over from removed sources and earlier
    configurations.
    """
    steps = Path(build) / "build.ninja"
    made = set(re.findall(r"^build (\S+\.o):", steps.read_text(), re.MULTILINE)) if steps.exists() else None
    return [path for folder in folders for path in sorted(folder.rglob("*.o"))
            if made is None or path.relative_to(build).as_posix() in made]


def plugin_objects(build):
    """Returns {plugin: its object files}, whether built into the program or for the tests."""
    found = {}
    for folder in sorted(Path(build).glob("plugins/*/CMakeFiles/plugin_*_static.dir")):
        parts = folder.with_name(folder.name.replace("_static", "_parts"))
        if objects := objects_in(build, folder, parts):
            found[re.sub(r"^plugin_|_static\.dir$", "", folder.name)] = objects
    return found


def find_tool(*names):
    return next((found for name in names if name and (found := shutil.which(name))), None)


def call(*command, **kwargs):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **kwargs)


def skip(why):
    print(f"skipped: {why}")
    return SKIPPED


def note(what):
    print(f"note: {what}")


def report(complaints):
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


class SelfTest:
    """Creates sample trees in a temporary folder, checks them, and expects certain complaints, or none."""

    def __init__(self):
        self.failed = 0
        self.cases = 0

    def tree(self, sample):
        """Returns a folder with the sample's files ({path: text}); it is removed when the process exits."""
        root = Path(tempfile.mkdtemp(dir=self.folder))
        for name, text in sample.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root

    def expect(self, what, complaints, *patterns):
        """Expects exactly one complaint for each pattern, which must match it."""
        self.cases += 1
        missing = [p for p in patterns if not any(re.search(p, c) for c in complaints)]
        if missing or len(complaints) != len(patterns):
            self.failed += 1
            print(f"self-test failed: {what}\n  expected {list(patterns)}\n  got      {complaints}")

    def run(self, body):
        with tempfile.TemporaryDirectory(prefix="mk-house-") as self.folder:
            body(self)
        print(f"{self.cases} samples, {self.failed} judged wrongly")
        return 1 if self.failed or not self.cases else 0


def run(description, check, self_test, *, build_dir=False):
    """The main() of every check: check(args) returns complaints or SKIPPED, self_test(SelfTest) runs the samples."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2], help="the source tree")
    if build_dir:
        parser.add_argument("--build", type=Path, help="the build folder")
        parser.add_argument("--program", type=Path, help="the optimized program")
    parser.add_argument("--self-test", action="store_true", help="prove that the check can fail")
    args = parser.parse_args()
    if args.self_test:
        sys.exit(SelfTest().run(self_test))
    found = check(args)
    sys.exit(found if isinstance(found, int) else report(found))
