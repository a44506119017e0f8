#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""abi.py [--update]: compares the ABI of include/monkey with tests/house/abi.txt, the ABI that existing programs and plugins were
built with: one line per function, struct, union, enum and type, sorted. --update (also run by `make tidy`) writes the current
ABI. A removed or changed line breaks existing binaries: state the reason in the commit.

The script compiles an object with a pointer to each function and reads its debug information, so only the headers matter.
"""
import argparse
import difflib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BASELINE = "tests/house/abi.txt"
MACHINE = "x86_64"  # the baseline is for this architecture
HEAD = f"# SPDX-License-Identifier: Apache-2.0\n# The binary interface of include/monkey on {MACHINE}, written by tools/dev/abi.py --update.\n"
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
FUNCTION = re.compile(r"^MK_API\b[^;{(]*?\b(mk_\w+)\(", re.MULTILINE)
OURS = "mk_"
PROBE = "abi_"


def why_not():
    """Returns why the ABI cannot be compared on this machine; None if it can."""
    missing = [tool for tool in ("cc", "readelf") if not shutil.which(tool)]
    if missing:
        return f"{' and '.join(missing)} is not installed"
    return None if platform.machine() == MACHINE else f"the baseline is for {MACHINE}"


def probe(root):
    """Returns the source of a C program that declares a pointer to each public function."""
    headers = sorted((root / "include" / "monkey").glob("*.h"))
    lines = [f"#include <monkey/{header.name}>" for header in headers]
    names = {name for header in headers for name in FUNCTION.findall(COMMENT.sub("", header.read_text()))}
    return "\n".join(lines + [f"__typeof__({name}) *{PROBE}{name};" for name in sorted(names)]) + "\n"


def call(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


class Node:
    """An entry of the debug information (DIE)."""

    def __init__(self, tag):
        self.tag, self.attributes, self.children = tag, {}, []

    def text(self, name):
        """Returns a string attribute without readelf's prefix about its location."""
        found = self.attributes.get(name)
        return found and re.sub(r"^\((?:indirect |indexed )?[^()]*\)\s*(?:\(offset: \w+\):\s*)?:?\s*", "", found)

    def number(self, name, default=None):
        found = self.attributes.get(name)
        return default if found is None else int(re.sub(r"^\(\w+\)\s*", "", found).split()[0], 0)

    def reference(self):
        found = re.search(r"<0x([0-9a-f]+)>", self.attributes.get("type", ""))
        return int(found[1], 16) if found else None


class Interface:
    """Parses the output of readelf."""

    ENTRY = re.compile(r"^ *<(\d+)><([0-9a-f]+)>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)")
    ATTRIBUTE = re.compile(r"^ *<[0-9a-f]+> +DW_AT_(\w+) *: *(.*)$")
    WORDS = {"structure_type": "struct", "union_type": "union", "enumeration_type": "enum"}

    def __init__(self, dump):
        self.at, open_nodes = {}, []
        for line in dump.splitlines():
            if entry := self.ENTRY.match(line):
                node = Node(entry[3])
                del open_nodes[int(entry[1]):]
                if open_nodes:
                    open_nodes[-1].children.append(node)
                open_nodes.append(node)
                self.at[int(entry[2], 16)] = node
            elif open_nodes and (attribute := self.ATTRIBUTE.match(line)):
                open_nodes[-1].attributes[attribute[1]] = attribute[2].strip()

    def declare(self, reference, name=""):
        """Returns the C declaration of `name` with the type at `reference`."""
        node = self.at.get(reference)
        space = " " if name else ""
        if node is None:
            return f"void{space}{name}"
        inner, word = node.reference(), node.text("name")
        if node.tag == "pointer_type":
            target = self.at.get(inner)
            wrapped = f"(*{name})" if target and target.tag in ("subroutine_type", "array_type") else f"*{name}"
            return self.declare(inner, wrapped)
        if node.tag in ("const_type", "volatile_type", "restrict_type"):
            return self.qualify(node.tag[:-5], inner, name)
        if node.tag == "array_type":
            sizes = [child.number("count", child.number("upper_bound", -1) + 1) for child in node.children
                     if child.tag == "subrange_type"]
            return self.declare(inner, name + "".join(f"[{size or ''}]" for size in sizes))
        if node.tag == "subroutine_type":
            return self.declare(inner, f"{name}({self.parameters(node)})")
        if node.tag in self.WORDS:
            return f"{self.WORDS[node.tag]} {word or self.body(node)}{space}{name}"
        return f"{'bool' if word == '_Bool' else word}{space}{name}"

    def qualify(self, word, inner, name):
        target = self.at.get(inner)
        if target and target.tag == "pointer_type":
            return self.declare(inner, f"{word} {name}".rstrip())
        return f"{word} {self.declare(inner, name)}"

    def parameters(self, node):
        said = ["..." if child.tag == "unspecified_parameters" else self.declare(child.reference())
                for child in node.children if child.tag in ("formal_parameter", "unspecified_parameters")]
        return ", ".join(said) if said else "void"

    def body(self, node):
        """Returns the text between the braces of a struct, union or enum."""
        if node.tag == "enumeration_type":
            return "{" + ", ".join(f"{c.text('name')} = {c.number('const_value')}" for c in node.children) + "}"
        said = []
        for member in (child for child in node.children if child.tag == "member"):
            where = f" @{member.number('data_member_location', 0)}" if node.tag == "structure_type" else ""
            said.append(self.declare(member.reference(), member.text("name") or "") + where)
        return "{" + "; ".join(said) + "}"

    def lines(self):
        """Yields one line per item of the interface."""
        for node in self.at.values():
            name = node.text("name") or ""
            if node.tag == "variable" and name.startswith(PROBE):
                yield f"function {name.removeprefix(PROBE)}: {self.declare(self.at[node.reference()].reference())}"
            elif node.tag == "typedef" and name.startswith(OURS):
                yield f"type {name}: {self.declare(node.reference())}"
            elif node.tag in self.WORDS and "declaration" not in node.attributes and name.startswith(OURS):
                yield f"{self.WORDS[node.tag]} {name}: {node.number('byte_size', 0)} bytes {self.body(node)}"
            elif node.tag == "enumeration_type" and not name:
                yield from (f"constant {c.text('name')}: {c.number('const_value')}" for c in node.children
                            if (c.text("name") or "").lower().startswith(OURS))


def describe(root):
    """Returns the ABI as sorted lines."""
    with tempfile.TemporaryDirectory(prefix="mk-abi-") as name:
        source, made = Path(name) / "probe.c", Path(name) / "probe.so"
        source.write_text(probe(root))
        call("cc", "-std=gnu11", "-gdwarf-4", "-fno-eliminate-unused-debug-types", "-O0", "-fPIC", "-shared",
             f"-I{root / 'include'}", "-o", made, source)
        dump = call("readelf", "--debug-dump=info", "-W", made)
    return HEAD + "\n".join(sorted(set(Interface(dump).lines()))) + "\n"


def compare(before, after):
    """Returns removed lines with -, and added lines with +."""
    changes = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [line for line in changes if not line.startswith(("---", "+++", "@@"))]


def check(root):
    return compare((root / BASELINE).read_text(), describe(root))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the baseline")
    args = parser.parse_args()
    root = Path(__file__).resolve().parents[2]
    if missing := why_not():
        sys.exit(f"abi.py: {missing}")
    if args.update:
        (root / BASELINE).write_text(describe(root))
    elif changes := check(root):
        print("\n".join(changes))
        sys.exit(1)


if __name__ == "__main__":
    main()
