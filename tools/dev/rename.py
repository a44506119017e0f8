#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rename.py TABLE...: renames words and files over the tree, all of a table in one pass.

A line of a table is `KIND<TAB>OLD<TAB>NEW`. word: an identifier. prefix: identifiers that begin so. struct: the tag of a struct,
after the word `struct`. file: a path, which moves; so do its mentions. The longest prefix counts, and a word beats prefixes."""
import re
import subprocess
import sys
from pathlib import Path

SKIPPED = ("CHANGELOG.md", "tools/dev/renames/", "tests/fuzz/corpus")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def git(*args):
    return subprocess.run(["git", *args], check=True, capture_output=True, text=True).stdout


def read(paths):
    rules = {"word": {}, "prefix": {}, "struct": {}, "file": {}}
    for path in paths:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                kind, old, new = line.split("\t")
                rules[kind][old] = new
    return rules


def renamed(rules, text):
    prefixes = sorted(rules["prefix"], key=len, reverse=True)
    words = {}

    def word(match):
        old = match[0]
        if old not in words:
            prefix = next((p for p in prefixes if old.startswith(p)), None)
            words[old] = rules["word"].get(old) or (rules["prefix"][prefix] + old[len(prefix):] if prefix else old)
        return words[old]

    for old, new in rules["struct"].items():
        text = re.sub(rf"\bstruct {old}\b", f"struct {new}", text)
    # Names of files change by rules of their own.
    text = "".join(line if line.startswith("#include") else WORD.sub(word, line) for line in text.splitlines(keepends=True))
    for old, new in rules["file"].items():
        if old.endswith(".h"):
            guards = [re.sub(r"\W", "_", "/".join(f.split("/")[-2:])).upper().replace("MONKEY_", "MK_") for f in (old, new)]
            text = text.replace(*guards)
        for cut in ("include/", ""):
            a, b = old.rpartition(cut)[2] if cut else old, new.rpartition(cut)[2] if cut else new
            text = re.sub(rf"(?<![\w/.-]){re.escape(a)}(?!\w)", b, text) if cut else text.replace(a, b)
    return text


def main():
    rules = read(sys.argv[1:])
    for old, new in rules["file"].items():
        if Path(old).exists() and old != new:
            git("mv", old, new)
    for name in git("ls-files").splitlines():
        path = Path(name)
        if name.startswith(SKIPPED) or path.is_symlink():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, IsADirectoryError):
            continue
        new = renamed(rules, text)
        if new != text:
            path.write_text(new, encoding="utf-8")


main()
