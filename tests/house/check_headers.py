#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each public header compiles by itself, twice in a row, as strict C11 and as C++17, and so do all of them together. With every
installed compiler, all of them together compile without warnings in each supported version of C and C++. The examples in
the headers of EXAMPLES also compile as C++ (check_examples.py compiles all examples as C).
"""
import re

import house

STRICT = ("-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only")
LANGUAGES = {"C11": ("-x", "c", "-std=c11"), "C++17": ("-x", "c++", "-std=c++17")}
FOLDERS = ("include", "duda/include")
EXAMPLES = ("monkey/timer.h",)
# Warnings that programs may enable for their own code, and the languages in which each compiler must not report any.
WARNINGS = ("-Wshadow", "-Wconversion")
CXX_WARNINGS = ("-Wold-style-cast", "-Wzero-as-null-pointer-constant")
COMPILERS = {"gcc": ("c11", "c17", "c2x"), "clang": ("c11", "c17", "c2x"), "g++": ("c++17", "c++20"), "clang++": ("c++17", "c++20")}


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


def constants(root):
    """Returns the names of the macros in the headers whose value is an expression in parentheses."""
    text = "".join(house.read(path) for path in house.files(root, FOLDERS, (".h",)))
    return re.findall(r"^#define ((?:MK|DUDA)_\w+) +\(", text, re.MULTILINE)


def check_warnings(root, headers):
    """Compiles all headers together with each installed compiler, because each compiler has different warnings."""
    everything = "".join(f"#include <{header}>\n" for header in headers) + "void use_all(void);\nvoid use_all(void)\n{\n"
    for name, languages in COMPILERS.items():
        compiler = house.find_tool(name)
        for language in languages if compiler else ():
            is_cxx = "++" in language
            use = "    static_cast<void>({});\n" if is_cxx else "    (void)({});\n"
            text = everything + "".join(use.format(each) for each in constants(root)) + "}\n"
            why = compile_text(root, compiler, ("-x", "c++" if is_cxx else "c", f"-std={language}", *WARNINGS, *(CXX_WARNINGS if is_cxx else ())), text)
            if why:
                yield f"{name} -std={language} warns about the headers: {why}"


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
    return complaints or [*check_examples(root), *check_warnings(root, headers)]


def check(args):
    if not any(public_headers(args.root)):
        return house.skip("there is no public header yet")
    return check_tree(args.root)


def compilers_of(kind):
    return sum(kind in name and bool(house.find_tool(name)) for name in COMPILERS)


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
    both_ways = 2 * compilers_of("++") + 3 * (compilers_of("") - compilers_of("++"))
    test.expect("a conversion", judge(guard % "static inline char mk_x(int c) { return c; }"), *("warns about the headers",) * both_ways)
    if cxx:
        test.expect("a word of C++", judge(guard % "int mk_x(int class);"), both[1])
        test.expect("C only", judge(guard % "int mk_x(int n, char p[static 4]);"), both[1])
        compilers = 2 * sum(bool(house.find_tool(name)) for name in ("g++", "clang++"))
        cast = "static inline char mk_x(int c) { return (char)(c + 1); }"
        test.expect("a cast in the style of C", judge(guard % cast), *(r"\+\+\d\d warns about the headers",) * compilers)
        test.expect("a cast in a macro", judge(guard % "#define MK_X ((char)1)\nint mk_x(void);"), *(r"\+\+\d\d warns",) * compilers)
    example = "#ifndef X_H\n#define X_H\n/**\n *     static int x(void)\n *     {\n *         return %s;\n *     }\n */\n#endif\n"
    test.expect("an example", check_tree(test.tree({"include/monkey/timer.h": example % "1"})))
    wrong = check_tree(test.tree({"include/monkey/timer.h": example % "y"}))
    test.expect("an example that does not compile", wrong, *("the example of monkey/timer.h",) * (1 + cxx))
    clash = {"include/monkey/x.h": guard % "int mk_x(void);", "include/monkey/y.h": "#ifndef Y_H\n#define Y_H\nlong mk_x(void);\n#endif\n"}
    test.expect("headers that clash", check_tree(test.tree(clash)), *("do not stand together",) * (1 + cxx))


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
