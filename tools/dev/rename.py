#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rename.py TABLE...: renames identifiers, files and folders in the tree, all tables in one pass.

A line of a table is `KIND<TAB>OLD<TAB>NEW`:
  word    an identifier
  prefix  identifiers with this prefix; the longest prefix wins, and a word wins over prefixes
  struct  the tag of a struct, after the word `struct`
  file    a path or a folder to move; updates #include lines and other mentions
  local   FILES<TAB>OLD<TAB>NEW: an identifier in files whose old path matches the pattern FILES, outside comments
          and strings. Calls in comments, `old()`, are renamed too.
  function FILES<TAB>OLD<TAB>NEW: like local, but only calls and uses as a value; not members or variables
  key     SECTIONS<TAB>OLD<TAB>NEW: a key of these sections of the configuration, in tables of keys, and in
          configurations and docs after a mention of [SECTION]
If a new name already exists in the tree or the file, the script fails and changes nothing."""
import fnmatch
import os
import re
import subprocess
import sys
from pathlib import Path

SKIPPED = ("CHANGELOG.md", "tests/fuzz/corpus")
ROOTS = ("include/", "duda/include/", "src/", "duda/dev/", "duda/packages/", "duda/", "plugins/", "tests/", "tools/", "")  # of the CMake files
WORD = re.compile(r"\\[a-z]|[A-Za-z_][A-Za-z0-9_]*")  # the n of "\nKey" is not part of the word
STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
OTHER = {  # comments, strings and includes
    ".c": r"#\s*include[^\n]*|//[^\n]*|/\*.*?\*/|" + STRING,
    ".py": r'"{3}.*?"{3}|#[^\n]*|' + STRING,
}
OTHER[".h"] = OTHER[".c"]
INCLUDE = re.compile(r'(#\s*include\s*["<])([^">]+)([">])')


def git(*args):
    return subprocess.run(["git", *args], check=True, capture_output=True, text=True).stdout


def read(paths):
    rules = {"word": {}, "prefix": {}, "struct": {}, "file": {}, "local": {}, "function": {}, "key": {}}
    for path in paths:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                kind, *where, old, new = line.split("\t")
                if kind in ("local", "function"):
                    rules[kind].setdefault(where[0], {})[old] = new
                elif kind == "key":
                    for section in where[0].split(","):
                        rules[kind].setdefault(section, {})[old] = new
                elif rules[kind].setdefault(old, new) != new:
                    sys.exit(f"{path}: {old} has two new names, {rules[kind][old]} and {new}")
    return rules


def local_words(rules, name, kind="local"):
    return {old: new for pattern, words in rules[kind].items() if fnmatch.fnmatch(name, pattern) for old, new in words.items()}


def is_function(text, start, end):
    """Returns whether the identifier names a function (in a call, in a definition or as a value), not a member or a variable."""
    before, after, name = text[max(0, start - 40):start].rstrip(), text[end:end + 1], text[start:end]
    if before.endswith((".", "->")):
        return False
    if after == "(":
        return True
    around = text[text.rfind("\n}", 0, start) + 1:text.find("\n}", end)]
    is_variable = re.search(rf"(?:\b(?!return\b)\w+\s+|\*\s*){name}\s*[,;)=\[]", around)
    return not is_variable and before.endswith(("=", "(", ")", ",", "&", "?", ":", "{", "return"))


def renamed_locally(text, words, functions, suffix):
    """Returns `text` with the file's local names replaced, outside comments and strings."""

    def piece(match):
        if not match["other"]:
            if match[0] in functions and is_function(text, match.start(), match.end()):
                return functions[match[0]]
            return words.get(match[0], match[0])
        return re.sub(r"\b(\w+)(?=\(\))", lambda call: words.get(call[1], functions.get(call[1], call[1])), match[0])

    return re.sub(f"(?P<other>{OTHER[suffix]})|{WORD.pattern}", piece, text, flags=re.DOTALL)


SECTION_OR_WORD = re.compile(r"\[(?P<section>[A-Z][A-Z0-9_]+)\]|(?P<word>[A-Z][A-Za-z0-9]+)")
BEFORE_KEY = re.compile(r"""(?:^|\\n|["'`({]|\]\s)[ \t]*$""", re.MULTILINE)


def renamed_keys(name, text, sections):
    """Returns `text` with configuration keys replaced."""
    if name.endswith(".c"):
        for section in re.findall(r'\.section = "(\w+)"', text):
            for old, new in sections.get(section, {}).items():
                text = text.replace(f'.name = "{old}"', f'.name = "{new}"')
    words = {}

    def new(match):
        if match["section"]:
            words.clear()
            words.update(sections.get(match["section"], {}))
        elif match[0] in words and BEFORE_KEY.search(text[max(0, match.start() - 40):match.start()]):
            return words[match[0]]
        return match[0]

    return SECTION_OR_WORD.sub(new, text)


def collisions(rules, texts):
    """Yields new names that already exist."""
    gone, prefixes = set(rules["word"]), tuple(rules["prefix"])
    used = {}
    for name, text in texts.items():
        if name.endswith((".c", ".h")):
            for word in set(WORD.findall(re.sub(OTHER[".c"], "", text, flags=re.DOTALL))):
                used.setdefault(word, name)
    for old, new in rules["word"].items():
        if new in used and old in used and new not in gone and not (prefixes and new.startswith(prefixes)):
            yield f"{used[new]}: {new}, the new name of {old}, exists"
    for name, text in texts.items():
        functions = {old: new for old, new in local_words(rules, name, "function").items()
                     if re.search(rf"^static\b.*\b{old}\(", text, re.MULTILINE)}
        words = {**local_words(rules, name), **functions}
        if not words:
            continue
        here = set(WORD.findall(re.sub(OTHER[Path(name).suffix], "", text, flags=re.DOTALL)))
        for old, new in words.items():
            if old in here and new in here and new not in words:
                yield f"{name}: {new}, the new name of {old}, exists"


class Words:
    def __init__(self, rules):
        self.words = dict(rules["word"])
        self.prefixes = sorted(rules["prefix"].items(), key=lambda rule: -len(rule[0]))
        self.structs = rules["struct"]

    def new(self, match):
        old = match[0]
        if old not in self.words:
            self.words[old] = next((new + old[len(prefix):] for prefix, new in self.prefixes if old.startswith(prefix)), old)
        return self.words[old]

    def renamed(self, text):
        for old, new in self.structs.items():
            text = re.sub(rf"\bstruct {old}\b", f"struct {new}", text)
        return WORD.sub(self.new, text)


class Files:
    """The new path of each moved file, and the forms in which other files mention it."""

    def __init__(self, rules, names):
        self.names = set(names)
        self.moves = {}
        folders = {old: new for old, new in rules.items() if old not in self.names}
        for name in names:
            new = rules.get(name)
            folder = next((old for old in folders if name.startswith(old + "/")), None)
            if not new and folder:
                new = folders[folder] + name[len(folder):]
            if new and new != name:
                self.moves[name] = new
        # Mentions: the full path, and the path relative to each root; longest first.
        self.mentions = {}
        for old, new in [*self.moves.items(), *folders.items()]:
            for root in ROOTS:
                if old.startswith(root) and new.startswith(root) and "/" in old[len(root):]:
                    self.mentions[old[len(root):]] = new[len(root):]
        joined = "|".join(re.escape(old) for old in sorted(self.mentions, key=len, reverse=True))
        self.mention = re.compile(rf"(?<![\w.-])({joined})(?![\w-])") if joined else None

    def included(self, name, spelled):
        """Returns how the file with the old path `name` includes `spelled` after the files have moved."""
        here = os.path.dirname(name) + "/"
        for root in (here, *ROOTS):
            old = os.path.normpath(root + spelled)
            if old in self.names:
                new = self.moves.get(old, old)
                root = os.path.dirname(self.moves.get(name, name)) + "/" if root == here else root
                if new.startswith(root):
                    return new[len(root):]
                return next(new[len(r):] for r in ROOTS if new.startswith(r))
        return spelled

    def renamed(self, name, text, words):
        lines = []
        for line in text.splitlines(keepends=True):
            include = INCLUDE.match(line)
            if include:
                line = include[1] + self.included(name, include[2]) + include[3] + line[include.end():]
            else:
                # Placeholders keep the words within a mentioned path from being renamed.
                marks = []

                def mark(match):
                    marks.append(self.mentions[match[1]])
                    return f"\x01{len(marks) - 1}\x02"

                line = words.renamed(self.mention.sub(mark, line) if self.mention else line)
                line = re.sub("\x01(\\d+)\x02", lambda match: marks[int(match[1])], line)
            lines.append(line)
        text = "".join(lines)
        new = self.moves.get(name)
        if new and name.endswith(".h"):
            text = re.sub(r"(#ifndef|#define|#endif /\*) ([A-Z0-9_]+_H)\b", lambda m: f"{m[1]} {guard(m[2], name, new)}", text)
        return text


def guard(old, name, new):
    """Returns the include guard of a moved file: the part derived from its path changes."""
    was, now = (re.sub(r"\W", "_", os.path.basename(path)).upper() for path in (name, new))
    folder, to = (re.sub(r"\W", "_", os.path.basename(os.path.dirname(path))).upper() for path in (name, new))
    if not old.endswith(was):
        return old
    rest = old[: -len(was)]
    if rest.endswith(folder + "_"):
        rest = rest[: -len(folder) - 1] + to + "_"
    return rest + now


def main():
    rules = read(sys.argv[1:])
    names = git("ls-files").splitlines()
    texts = {}
    for name in names:
        path = Path(name)
        if not name.startswith(SKIPPED) and not path.is_symlink():
            try:
                texts[name] = path.read_text(encoding="utf-8")
            except (UnicodeDecodeError, IsADirectoryError):
                continue
    errors = list(collisions(rules, texts))
    if errors:
        sys.exit("\n".join(errors))
    words, files = Words(rules), Files(rules["file"], names)
    for name, text in texts.items():
        own, functions = local_words(rules, name), local_words(rules, name, "function")
        new = renamed_locally(text, own, functions, Path(name).suffix) if own or functions else text
        new = files.renamed(name, new, words)
        new = renamed_keys(name, new, rules["key"]) if rules["key"] else new
        if new != text:
            Path(name).write_text(new, encoding="utf-8")
    for old, new in files.moves.items():
        Path(new).parent.mkdir(parents=True, exist_ok=True)
        git("mv", old, new)


main()
