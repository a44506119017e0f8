#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documentation, comments and messages name their subjects and use the field's terms: this check lists words that hide the
subject or replace a standard term, and suggests other words for each. Code in a manual is not checked.
"""
import re

import house

PLACES = ("docs/guide", "docs/decisions", "docs/reference", "include", "conf", "site", "examples")
PAGES = ("CMakeLists.txt", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/README.md", "docs/internals.md",
         "docs/performance.md", "docs/contest/README.md", "docs/contest/remarks.md")
SUFFIXES = (".md", ".h", ".conf", ".html")
# In source files, only comments and messages are checked.
SOURCES = ("src", "duda", "bindings", "tools", "tests", "cmake", "packaging")
SOURCE_SUFFIXES = (".c", ".h", ".py", ".md", ".1", ".cmake", "CMakeLists.txt")
# Not checked: this word list, and inputs and outputs of other programs.
SOURCES_APART = ("tests/house/", "tests/unit/wr/outputs/", "tests/fuzz/corpus/")
PLUGIN_SUFFIXES = ("README.md", ".c", ".h", ".conf", ".html", ".js", ".css", "CMakeLists.txt")

WORDS = (
    (r"whoever|whomever", "name the subject"),
    (r"nobody|somebody|everybody|anybody", "name the subject, or use the passive voice"),
    (r"anew", "again, or re-: reload, reopen, recreate"),
    (r"stands(?! for\b)|stood", "is, comes, is written"),
    (r"(?:is|are|was|were|be) told", "learns, gets, is notified"),
    (r"(?:gives?|given|gave|giving) up(?! (?:the|its|their|his) (?:root|privilege))", "cancels, stops, aborts, times out"),
    (r"(?:goes|went|go|going) on(?! (?:to|the|with)\b)", "continues"),
    (r"mend(?:s|ed|ing)?", "fixes, repairs, reconnects"),
    (r"(?:is|are|was|were) said", "name the message and its sender"),
    (r"what waits|in vain", "name what waits, what failed"),
    (r"of (?:its|our|one's) own accord|and its kin", "name the members"),
)
BANNED = [(re.compile(rf"\b(?:{words})\b", re.IGNORECASE), instead) for words, instead in WORDS]
# A clause that begins with "who" has lost its subject, unless it is a question.
HIDDEN = re.compile(r"(?:\A|\n\n|[.;:,(]\s+|\| +|\n- +)(?:but +|and +)?[Ww]ho(?:m|se)? (?![^.;]*\?)")
# A "who" clause about a person or program that was just named is good English.
NAMED = re.compile(r",\s+who(?:m|se)? ")
CODE = re.compile(r"^```.*?^```$|^(?:    |\t).*?$|`[^`\n]+`|\"[^\"\n]*\"", re.MULTILINE | re.DOTALL)


# Matches a comment, a string, or any other character.
SOURCE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|(?:(?!/\*|//)[^\"])+|.", re.DOTALL)
# A string with words is a message; names and formats are not checked.
MESSAGE = re.compile(r"\"[^\"]*[a-z] [a-z][^\"]*\"", re.DOTALL)


def said(token):
    if token.startswith("//"):
        return token[2:]
    if token.startswith("/*"):
        return re.sub(r"^ *(?:/\*|\*/?) ?|`[^`\n]+`|\"[^\"\n]*\"", "", token, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`|\\.", "", token[1:-1]) if MESSAGE.fullmatch(token) else "\n" * token.count("\n")


# Matches a docstring or another string, a comment, or any other character.
SCRIPT = re.compile(r"\"\"\".*?\"\"\"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#[^\n]*|(?:(?!#)[^\"'])+|.", re.DOTALL)


def written(token):
    """Returns the text of a comment or docstring, and only the newlines of other tokens: strings are data."""
    if token.startswith('"""'):
        return re.sub(r"`[^`\n]+`|\"[^\"\n]*\"", "", token[3:-3])
    return token[1:].lstrip() if token.startswith("#") else "\n" * token.count("\n")


def blank(match):
    return "\n" * match.group().count("\n")


def prose(path, text):
    """Keeps the sentences that a reader sees; line numbers are preserved."""
    if path.suffix == ".md":
        return CODE.sub(blank, text)
    if path.suffix in (".c", ".js", ".css"):
        return "".join(said(m.group()) for m in SOURCE.finditer(text))
    if path.suffix == ".py":
        return "".join(written(m.group()) for m in SCRIPT.finditer(text))
    if path.suffix == ".h":
        kept = "".join(m.group() if m.group().startswith("/*") else blank(m)
                       for m in re.finditer(r"/\*.*?\*/|(?:(?!/\*).)+", text, re.DOTALL))
        return re.sub(r"^ *(?:/\*\*?|\*/?) ?|\"[^\"\n]*\"|`[^`\n]+`", "", kept, flags=re.MULTILINE)
    text = re.sub(r"^ *# [A-Z]\w+  .*", "", text, flags=re.MULTILINE)  # a key that is commented out
    return re.sub(r"^ *# ?", "", text, flags=re.MULTILINE)


def finds(text):
    for pattern, instead in BANNED:
        for m in pattern.finditer(text):
            yield m, instead
    for m in HIDDEN.finditer(text):
        if not NAMED.match(m.group()):
            yield m, "name the subject of the clause"


def check_text(name, path, text):
    text = prose(path, text)
    found = [(text.count("\n", 0, m.end()) + 1, " ".join(m.group().split()).strip("|-.;:,( "), instead)
             for m, instead in finds(text)]
    return [f"{name}:{line}: `{word}`: {instead}" for line, word, instead in sorted(found)]


def pages(root):
    yield from (root / page for page in PAGES if (root / page).exists())
    yield from house.files(root, PLACES, SUFFIXES)
    yield from house.files(root, ("plugins",), PLUGIN_SUFFIXES)
    yield from (page for page in house.files(root, SOURCES, SOURCE_SUFFIXES)
                if not str(page.relative_to(root)).startswith(SOURCES_APART))


def check(args):
    complaints = []
    for path in pages(args.root):
        complaints += check_text(path.relative_to(args.root), path, house.read(path))
    return complaints


def self_test(test):
    def judge(text, name="docs/guide/a.md"):
        root = test.tree({name: text})
        return [line for path in pages(root) for line in check_text(path.relative_to(root), path, house.read(path))]

    test.expect("plain", judge("The worker serves the file.\n"))
    for word in ("Nobody", "somebody", "whoever", "anew", "is told", "stands"):
        test.expect(word, judge(f"One line.\nThen {word} reads it.\n"), rf"^docs/guide/a\.md:2: `{word}`")
    test.expect("a hidden subject", judge("Who connects is served.\n"), "a.md:1: `Who`: name the subject of the clause")
    test.expect("within a sentence", judge("It is busy; who connects waits.\n"), "a.md:1: `who`")
    test.expect("in a cell", judge("| a | who may connect |\n"), "a.md:1: `who`")
    test.expect("a question", judge("Who may connect?\n"))
    test.expect("a person", judge("People who build plugins read this; ana, who wrote it, does not.\n"))
    test.expect("code", judge("Run `kill --kill-who=nobody`.\n\n    who anew\n\n```\nnobody\n```\n"))
    test.expect("a message that is quoted", judge('It says "nobody is there".\n'))
    test.expect("a header", judge("/** Read by nobody. */\nint anew;\n", "include/monkey/a.h"), r"a\.h:1: `nobody`")
    test.expect("a header's code", judge("int anew, nobody;\n", "include/monkey/a.h"))
    test.expect("a configuration", judge("# Who the workers are.\nUser x\n", "conf/a.conf"), r"a\.conf:1: `Who`")
    test.expect("a plugin", judge("Loaded anew.\n", "plugins/x/README.md"), r"README\.md:1: `anew`")
    test.expect("a plugin's comment", judge("int anew;\n/* Nobody\n * reads it anew. */\n", "plugins/x/x.c"),
                r"x\.c:2: `Nobody`", r"x\.c:3: `anew`")
    test.expect("a plugin's message", judge('say("nobody is there", "nobody", "%s");\n', "plugins/x/x.c"), r"x\.c:1: `nobody`")
    test.expect("a plugin's code", judge('char anew = \'"\', *x = "a" "/* "; int nobody;\n', "plugins/x/x.c"))
    test.expect("a plugin's script", judge('const a = "http://x";\n// Read anew.\n', "plugins/x/x.js"), r"x\.js:2: `anew`")
    test.expect("a source", judge('/* Read\n * anew. */\nint anew;\n', "src/web/a.c"), r"a\.c:2: `anew`")
    test.expect("a test", judge('"""Read by\nnobody."""\nx = "nobody"  # anew\n', "tests/http/test_a.py"),
                r"test_a\.py:2: `nobody`", r"test_a\.py:3: `anew`")
    test.expect("a test's code", judge("anew = 'who \"# nobody', \"anew is told\"\n", "tests/http/test_a.py"))
    test.expect("a CMake file", judge("# Read anew.\nset(A b)\n", "cmake/a.cmake"), r"a\.cmake:1: `anew`")
    test.expect("a CMakeLists.txt", judge("# Read anew.\n", "src/CMakeLists.txt"), r"CMakeLists\.txt:1: `anew`")
    test.expect("outputs of others", judge("Loaded anew.\n", "tests/unit/wr/outputs/README.md"))
    test.expect("elsewhere", judge("Loaded anew.\n", "docs/contest/summary.md"))


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
