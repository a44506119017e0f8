#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each public header compiles by itself, twice in a row, as strict C11 and as C++17, and so do all of them together. Complete
example programs in header comments compile as well.
"""
import re

import house

STRICT = ("-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only")
LANGUAGES = {"C11": ("-x", "c", "-std=c11"), "C++17": ("-x", "c++", "-std=c++17")}
FOLDERS = ("include", "duda/include")
EXAMPLES = ("monkey/timer.h",)
# Warnings that embedding programs may enable for their own code.
CXX_WARNINGS = ("-Wshadow", "-Wold-style-cast", "-Wzero-as-null-pointer-constant", "-Wconversion")


def public_headers(root):
    for folder in FOLDERS:
        for path in house.files(root, (folder,), (".h",)):
            yield path.relative_to(root / folder).as_posix()


def compile_text(root, compiler, flags, text):
    """Returns the compiler's first message, or None."""
    paths = [f"-I{root / folder}" for folder in FOLDERS]
    done = house.call(compiler, *flags, *STRICT, *paths, "-", input=text)
    if done.returncode == 0:
        return None
    lines = done.stderr.splitlines()
    return next((line for line in lines if "error:" in line), lines[0] if lines else "the compiler failed")


def compiler_for(language):
    """Returns a compiler for the language, or None: many installations of gcc lack C++."""
    for compiler in ("cc", "c++", "g++", "clang++"):
        found = house.find_tool(compiler)
        if found and house.call(found, *LANGUAGES[language], "-fsyntax-only", "-", input="int x;\n").returncode == 0:
            return found
    return None


def example_of(path):
    """Returns the code in the header's comments."""
    return "".join(f"{line}\n" for line in re.findall(r"^ \*     (.*)$", path.read_text(), re.M))


def check_examples(root):
    for header in EXAMPLES:
        path = root / "include" / header
        for language, flags in LANGUAGES.items() if path.exists() else ():
            compiler = compiler_for(language)
            text = f"#include <{header}>\n{example_of(path)}"
            why = compile_text(root, compiler, (*flags, "-Wno-unused-function"), text) if compiler else None
            if why:
                yield f"the example of {header} does not compile as {language}: {why}"


def check_embedding_headers(root):
    """Compiles include/monkey as a whole with each installed C++ compiler, because their warnings differ."""
    everything = "".join(f"#include <{path.relative_to(root / 'include').as_posix()}>\n"
                         for path in house.files(root, ("include",), (".h",)))
    for name in ("g++", "clang++"):
        compiler = house.find_tool(name)
        if compiler:
            why = compile_text(root, compiler, (*LANGUAGES["C++17"], *CXX_WARNINGS), everything + "extern int one;\n")
            if why:
                yield f"{name} warns about the headers of include: {why}"


def check_tree(root):
    headers = list(public_headers(root))
    complaints = []
    for language, flags in LANGUAGES.items():
        alone = len(complaints)
        compiler = compiler_for(language)
        if not compiler:
            house.note(f"no {language} compiler here, so the headers were not tried as {language}")
            continue
        for header in headers:
            why = compile_text(root, compiler, flags, f"#include <{header}>\n#include <{header}>\nextern int one;\n")
            if why:
                complaints.append(f"{header} does not stand alone as {language}: {why}")
        if len(complaints) == alone:
            everything = "".join(f"#include <{header}>\n" for header in headers) + "extern int one;\n"
            why = compile_text(root, compiler, flags, everything)
            if why:
                complaints.append(f"the headers do not stand together as {language}: {why}")
    return complaints or [*check_examples(root), *check_embedding_headers(root)]


def check(args):
    if not any(public_headers(args.root)):
        return house.skip("there is no public header yet")
    return check_tree(args.root)


def self_test(test):
    def judge(text):
        return check_tree(test.tree({"include/monkey/x.h": text}))

    guard = "#ifndef X_H\n#define X_H\n%s\n#endif\n"
    both = (r"x\.h does not stand alone as C11", r"x\.h does not stand alone as C\+\+17")
    cxx = bool(compiler_for("C++17"))
    test.expect("a good header", judge(guard % "#include <stddef.h>\nstruct mk_x { size_t n; };"))
    test.expect("a type it does not include", judge(guard % "struct mk_x { size_t n; };"), *both[: 1 + cxx])
    test.expect("no guard", judge("struct mk_x { int n; };\n"), *both[: 1 + cxx])
    test.expect("an extension of GNU", judge(guard % "struct mk_x { int n; int x[0]; };"), *both[: 1 + cxx])
    if cxx:
        test.expect("a word of C++", judge(guard % "int mk_x(int class);"), both[1])
        test.expect("C only", judge(guard % "int mk_x(int n, char p[static 4]);"), both[1])
        compilers = sum(bool(house.find_tool(name)) for name in ("g++", "clang++"))
        cast = "static inline char mk_x(int c) { return (char)(c + 1); }"
        test.expect("a cast in the style of C", judge(guard % cast), *("warns about the headers",) * compilers)
    example = "#ifndef X_H\n#define X_H\n/**\n *     static int x(void)\n *     {\n *         return %s;\n *     }\n */\n#endif\n"
    test.expect("an example", check_tree(test.tree({"include/monkey/timer.h": example % "1"})))
    wrong = check_tree(test.tree({"include/monkey/timer.h": example % "y"}))
    test.expect("an example that does not compile", wrong, *("the example of monkey/timer.h",) * (1 + cxx))
    clash = {"include/monkey/x.h": guard % "int mk_x(void);", "include/monkey/y.h": "#ifndef Y_H\n#define Y_H\nlong mk_x(void);\n#endif\n"}
    test.expect("headers that clash", check_tree(test.tree(clash)), *("do not stand together",) * (1 + cxx))


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
