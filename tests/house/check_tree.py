#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules for every source file: a license line, bounded string functions, a single entry point to the heap, no paths of a
developer's machine, and the common format. An unusually large file, function or folder is a note, not an error: never split or
pad code only to meet a guideline.
"""
import re
from collections import Counter

import house

# Guidelines: a C file covers one noun in 100 to 500 lines, most functions have fewer than 30 lines, and a folder has few
# enough files to survey.
FILE_LONG, FILE_SHORT = 700, 30
FUNCTION_LONG = 80
FOLDER_LARGE = 80
LICENSE = "SPDX-License-Identifier: Apache-2.0"

C_FILES = (".c", ".h", ".inc")
SCRIPTS = (".py", ".sh", ".cmake", "CMakeLists.txt", "Makefile")
PLACES = house.CODE + ("cmake", "packaging", "conf", "site", "docs", ".ci")

BANNED = {
    "strcpy": "mk_buf", "stpcpy": "mk_buf", "strcat": "mk_buf", "sprintf": "snprintf or mk_buf",
    "vsprintf": "vsnprintf or mk_buf", "gets": "fgets", "atoi": "mk_num_parse", "atol": "mk_num_parse_int",
    "atoll": "mk_num_parse_int", "atof": "mk_num_parse_double", "strtok": "mk_str_cut", "strtok_r": "mk_str_cut",
    "alloca": "an arena",
}
HEAP = ("malloc", "calloc", "realloc", "free", "reallocarray", "aligned_alloc", "posix_memalign", "strdup", "strndup",
        "asprintf", "vasprintf")
HEAP_FOLDERS = ("src", "plugins", "duda")
PRODUCT = ("src/", "include/", "plugins/", "duda/")
HEAP_DOOR = "src/base/platform.c"
HEAPS = (HEAP_DOOR, "src/lib/platform.c")

# Matches a call of the function, or its address as an argument, but not a struct member of the same name.
USE = r"(?<![\w.>])(%s)\s*\(|[(,]\s*(%s)\s*[,)]"
BANNED_USE = re.compile(USE % (("|".join(BANNED),) * 2))
HEAP_USE = re.compile(USE % (("|".join(HEAP),) * 2))
# Match a developer's home or work folder. Manuals may mention /home/ana; programs and scripts have no reason to.
MACHINE = re.compile(r"(?<![\w.}*])/(?:root|wor[k]|Users/\w+|worksp[a]ce)/")
HOME = re.compile(r"(?<![\w.}*])/home/\w+/")

# These versions format the tree identically; differences found by later versions are notes.
CLANG_FORMATS = range(14, 22)


def lines_over(text, pattern):
    """Yields (line number, match) for each match."""
    for m in pattern.finditer(text):
        yield text.count("\n", 0, m.start()) + 1, m


def functions(code):
    """Yields (first line, number of lines) for each function body: in our format its braces are alone in column 0."""
    begin = None
    for number, line in enumerate(code.split("\n"), 1):
        if line == "{":
            begin = number
        elif line.startswith("}") and begin:
            yield begin, number - begin + 1
            begin = None


def check_c(name, text):
    code = house.without_text(text)
    complaints = []
    for line, m in lines_over(code, BANNED_USE):
        word = m.group(1) or m.group(2)
        complaints.append(f"{name}:{line}: {word} is banned; use {BANNED[word]}")
    if name.split("/")[0] in HEAP_FOLDERS and name not in HEAPS:
        for line, m in lines_over(code, HEAP_USE):
            complaints.append(f"{name}:{line}: {m.group(1) or m.group(2)} outside {HEAP_DOOR}, the only door to the heap")
    return complaints


def check_file(name, text):
    complaints = []
    if LICENSE not in "\n".join(text.split("\n", 3)[:3]):
        complaints.append(f"{name}:1: no line with {LICENSE}")
    complaints += [f"{name}:{line}: a path of somebody's machine: {m.group()}" for line, m in lines_over(text, HOME)]
    return complaints + (check_c(name, text) if name.endswith(C_FILES) else [])


def sources(root):
    for path in house.files(root, PLACES, C_FILES + SCRIPTS):
        yield path
    for leaf in ("CMakeLists.txt", "Makefile"):
        if (root / leaf).exists():
            yield root / leaf


def check_sources(root):
    complaints = []
    for path in sources(root):
        complaints += check_file(path.relative_to(root).as_posix(), house.read(path))
    texts = C_FILES + SCRIPTS + (".md", ".conf", ".html", ".css", ".svg", ".service", ".socket", ".txt", "run")
    pages = [p for p in root.glob("*.md")]
    for path in pages + list(house.files(root, PLACES, texts)):
        for line, m in lines_over(house.read(path), MACHINE):
            complaints.append(f"{path.relative_to(root)}:{line}: a path of somebody's machine: {m.group()}")
    return complaints


def signs(root):
    """Reports files, functions and folders of unusual size as questions to the next developer."""
    found, folders = [], Counter()
    for path in house.files(root, house.CODE, C_FILES):
        name, text = path.relative_to(root).as_posix(), house.read(path)
        size = text.count("\n")
        if size > FILE_LONG:
            found.append(f"{name}: {size} lines; are these two files?")
        found += [f"{name}:{begin}: a function of {length} lines; is it two?"
                  for begin, length in functions(house.without_text(text)) if length > FUNCTION_LONG]
        if name.startswith(PRODUCT):
            folders[path.parent] += 1
            if size <= FILE_SHORT and name.endswith(".c"):
                found.append(f"{name}: {size} lines; does it belong to a neighbor?")
    return found + [f"{folder.relative_to(root)}: {size} files; are these two folders?"
                    for folder, size in sorted(folders.items()) if size > FOLDER_LARGE]


def version_of(formatter):
    found = re.search(r"version (\d+)\.", house.call(formatter, "--version").stdout)
    return int(found[1]) if found else 0


def find_formatter():
    """Returns clang-format and its version: one of CLANG_FORMATS if installed, otherwise a later version."""
    names = ["clang-format", *(f"clang-format-{version}" for version in CLANG_FORMATS)]
    found = {version_of(path): path for name in names if (path := house.find_tool(name))}
    usable = [version for version in found if version >= CLANG_FORMATS[0]]
    return (found[min(usable)], min(usable)) if usable else (None, 0)


def check_format(root, find=find_formatter):
    formatter, version = find()
    if not formatter:
        house.note(f"no clang-format from {CLANG_FORMATS[0]} on here, so the format was not checked")
        return []
    paths = [str(p) for p in house.files(root, house.CODE, (".c", ".h"))]
    if not paths:
        return []
    done = house.call(formatter, "--dry-run", "-Werror", "--style=file", *paths)
    worst = {}
    for path, line in re.findall(r"^(.+?):(\d+):\d+: error:", done.stderr, re.MULTILINE):
        worst.setdefault(path, line)
    found = [f"{path.removeprefix(str(root) + '/')}:{line}: not formatted; run make tidy"
             for path, line in worst.items()]
    if version not in CLANG_FORMATS and found:
        house.note(f"clang-format {version} would format {len(found)} files differently; those that count are "
                   f"{CLANG_FORMATS[0]} to {CLANG_FORMATS[-1]}")
        return []
    return found or ([done.stderr.strip()] if done.returncode else [])


def check(args):
    for sign in signs(args.root):
        house.note(sign)
    return check_sources(args.root) + check_format(args.root)


def self_test(test):
    spdx = f"/* {LICENSE} */\n"

    def judge(text, name="src/web/a.c"):
        return check_sources(test.tree({name: text}))

    test.expect("a good file", judge(spdx + "int mk_a(void)\n{\n    return 1;\n}\n"))
    test.expect("no license", judge("int x;\n"), r"src/web/a\.c:1: no line with SPDX")
    test.expect("no license in a script", judge("#!/bin/sh\n", "tools/dev/x.sh"), "no line with SPDX")
    test.expect("license below a shebang", judge(f"#!/bin/sh\n# {LICENSE}\n", "tools/dev/x.sh"))

    def look(text, name="src/web/a.c"):
        return signs(test.tree({name: text}))

    test.expect("a long file is no fault", judge(spdx + "int x;\n" * FILE_LONG))
    test.expect("a long file", look(spdx + "int x;\n" * FILE_LONG), f"^src/web/a.c: {FILE_LONG + 1} lines; are these two")
    test.expect("a short file", look(spdx + "int x;\n" * (FILE_SHORT - 1)), f"^src/web/a.c: {FILE_SHORT} lines; does it belong")
    test.expect("a short header", look(spdx, "src/web/a.h"))
    test.expect("a short test", look(spdx, "tests/unit/web/a.c"))
    body = "    mk_x();\n"
    test.expect("a long function", look(spdx + "void a(void)\n{\n" + body * (FUNCTION_LONG - 1) + "}\n"),
                rf"a\.c:3: a function of {FUNCTION_LONG + 1} lines")
    test.expect("the longest function", look(spdx + "void a(void)\n{\n" + body * (FUNCTION_LONG - 2) + "}\n"))
    crowd = {f"src/web/a{i}.h": spdx for i in range(FOLDER_LARGE)}
    test.expect("a full folder", signs(test.tree(crowd)))
    test.expect("a folder too full", signs(test.tree(crowd | {"src/web/b.h": spdx})), rf"^src/web: {FOLDER_LARGE + 1} files")
    test.expect("a long table", look(spdx + "int a[] = {\n" + "    1,\n" * 200 + "};\n"))

    for word in BANNED:
        test.expect(word, judge(spdx + f"void a(void)\n{{\n    {word} (x);\n}}\n"), rf"a\.c:4: {word} is banned")
    test.expect("banned in a test", judge(spdx + "int a = atoi(b);\n", "tests/unit/base/test_a.c"), "atoi is banned")
    test.expect("only spoken of", judge(spdx + '/* strcpy(a, b) */\nconst char *a = "strcpy(a)"; // gets(b)\n'))
    test.expect("other names", judge(spdx + "int a = my_strcpy(b), c = ops.gets(d), e = ops->gets(f), g = atoi_like(h);\n"))
    test.expect("behind a quote", judge(spdx + "char q = '\"'; int a = atoi(b); char r = '\"';\n"), "atoi is banned")

    for word in HEAP:
        test.expect(word, judge(spdx + f"void *a = {word}(1);\n"), rf"a\.c:2: {word} outside src/base/platform\.c")
    test.expect("free as an argument", judge(spdx + "int a = on_end(b, free, c);\n"), "free outside")
    test.expect("the door", judge(spdx + "void *a = malloc(1);\n", "src/base/platform.c"))
    test.expect("a test may", judge(spdx + "void *a = malloc(1);\n", "tests/fuzz/replay.c"))
    test.expect("a member named free", judge(spdx + "void a(void) { ops->free(x); y.free = z; mk_mem_free(q); }\n"))

    home, root = "/home" + "/ana/", "/ro" + "ot/"
    test.expect("a home in code", judge(spdx + f'const char *a = "{home}x";\n'), "a path of somebody's machine")
    test.expect("a home in a manual", judge(f"Pages below {home}public_html.\n", "docs/guide/x.md"))
    test.expect("root's home", judge(f"cd {root}x\n", "docs/guide/x.md"), "somebody's machine")
    test.expect("a variable's folder", judge(f"# {LICENSE}\nset(a ${{CMAKE_SOURCE_DIR}}{root}x)\n", "cmake/x.cmake"))

    formatter, _ = find_formatter()
    if formatter:
        style = house.read(house.Path(__file__).resolve().parents[2] / ".clang-format")
        tidy, untidy = "int x;\n", "int   x ;\n"
        test.expect("formatted", check_format(test.tree({".clang-format": style, "src/web/a.c": tidy})))
        as_judge, as_adviser = lambda: (formatter, CLANG_FORMATS[-1]), lambda: (formatter, CLANG_FORMATS[-1] + 1)
        bad = test.tree({".clang-format": style, "src/web/a.c": untidy})
        test.expect("not formatted", check_format(bad, as_judge), r"^src/web/a\.c:1: not formatted")
        test.expect("a later version only advises", check_format(bad, as_adviser))


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
