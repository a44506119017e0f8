#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""conf/monkey.mime is compiled into the server's C table completely, without duplicates and in byte order; an invalid line stops
the build, and the error names its line number.
"""
import re
import tempfile
from pathlib import Path

import house

SCRIPT = Path(__file__).resolve().parents[2] / "cmake" / "mime.cmake"
ROW = re.compile(r'^    "([^" ]+) ([^" ]+)\\n"$', re.MULTILINE)
# Types that current web pages require.
EXPECTED = {"html": "text/html", "css": "text/css", "js": "text/javascript", "mjs": "text/javascript",
            "json": "application/json", "svg": "image/svg+xml", "wasm": "application/wasm", "webp": "image/webp",
            "avif": "image/avif", "woff2": "font/woff2", "webmanifest": "application/manifest+json",
            "mp4": "video/mp4", "webm": "video/webm", "pdf": "application/pdf", "txt": "text/plain"}


def generate(types):
    """Returns (table, complaint). The table is None if the script fails; the complaint is None if the script prints nothing."""
    with tempfile.TemporaryDirectory(prefix="mk-mime-") as folder:
        out = Path(folder) / "mime_table.c"
        cmake = house.find_tool("cmake")
        done = house.call(cmake, f"-DIN={types}", f"-DOUT={out}", "-P", SCRIPT)
        if done.returncode:
            return None, " ".join(done.stderr.split())
        return dict(ROW.findall(house.read(out))), " ".join(done.stderr.split()) or None


def listed(types):
    return [line.split() for line in house.read(types).splitlines() if re.match(r" +\w", line)]


def check_types(types, expected):
    table, complaint = generate(types)
    if complaint:
        return [complaint]
    complaints = [f"{types.name}: {name} {kind} is lost in the table" for name, kind in listed(types)
                  if table.get(name) != kind]
    if list(table) != sorted(table, key=str.encode):
        complaints.append("the table is not in byte order")
    return complaints + [f"{types.name}: {name} should be {kind}" for name, kind in expected.items()
                         if table.get(name) != kind]


def check(args):
    if not house.find_tool("cmake"):
        return house.skip("no cmake here")
    return check_types(args.root / "conf" / "monkey.mime", EXPECTED)


def self_test(test):
    def judge(*lines, expected=()):
        root = test.tree({"x.mime": "\n".join(lines) + "\n"})
        return check_types(root / "x.mime", dict(expected))

    head = "[MIMETYPES]"
    test.expect("good", judge("# a ; [b] \\", "", head, "    # here too", "    7z  application/x-7z", "", "    a   a/b"))
    test.expect("no last line end", check_types(test.tree({"x.mime": head + "\n    a a/b"}) / "x.mime", {}))
    test.expect("twice", judge(head, "    a a/b", "    a a/c"), r"x\.mime:3: a is there twice")
    test.expect("not sorted", judge(head, "    b a/b", "    # between", "    a a/c"), r":4: a belongs before b")
    test.expect("numbers before letters", judge(head, "    a a/b", "    3gp a/c"), r":3: 3gp belongs before a")
    test.expect("upper case", judge(head, "    Html text/html"), r':2: "Html" is not an extension')
    test.expect("upper case type", judge(head, "    html text/HTML"), r':2: "text/HTML" is not a media type')
    test.expect("with a dot", judge(head, "    .html text/html"), "is not an extension")
    test.expect("half a type", judge(head, "    html text"), "is not a media type")
    test.expect("a quote", judge(head, '    html text/"x'), "is not a media type")
    test.expect("no type", judge(head, "    html"), r":2: expected four spaces")
    test.expect("three words", judge(head, "    html text/html x"), "expected four spaces")
    test.expect("indent", judge(head, "  html text/html"), "expected four spaces")
    test.expect("tab", judge(head, "\thtml text/html"), "expected four spaces")
    test.expect("no section", judge("    html text/html"), "the section .* comes first")
    test.expect("empty", judge(head), "there is no type in it")
    test.expect("a type that is missed", judge(head, "    a a/b", expected={"html": "text/html"}.items()), "html should be")


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
