#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every example in the comments of the public headers compiles without warnings. Most examples are fragments: tests/house/examples.h
declares the names that they use but do not define. Hooks and handlers of include/monkey return an enum mk_verdict, not a status.
"""
import re

import house

FOLDERS = ("include", "duda/include")
NAMES = "tests/house/examples.h"
# Of the warnings about compatibility with C++, only those of CONVERSION matter: C converts any integer to an enum.
CONVERSION = "enum conversion from"
FLAGS = ("-x", "c", "-std=gnu11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-fmax-errors=20",
         "-Wc++-compat", "-Wno-error=c++-compat",
         *(f"-Wno-{name}" for name in ("unused-variable", "unused-but-set-variable", "unused-function", "unused-parameter", "unused-value",
                                       "missing-field-initializers", "return-type", "empty-body", "dangling-else")))
# Matches examples that define objects with external linkage, which a function cannot contain.
FILE_SCOPE = re.compile(r"^(?:MK_PLUGIN|DUDA_ROUTES|DUDA_SERVICE|DUDA_TEST|DUDA_TOPIC|DUDA_TOPIC_FAMILY)\(|^int main\(", re.MULTILINE)
# Matches the body of a function that an example defines.
BODY = re.compile(r"^\{\n.*?^\}", re.MULTILINE | re.DOTALL)
# Matches a return from a hook or a handler of include/monkey, rather than from a function that returns an error or a bool.
VERDICT = re.compile(r"\breturn (?!-E[A-Z]+;|true;|false;)")
# Matches examples that are not C: configurations, routes, HTML, and tables of numbers.
NOT_C = re.compile(r"\[[A-Z_]+\]\n|GET /|.*\n\.\.\.\n<|\s*\d")
# Matches an example that is an element of a table of routes.
ELEMENT = re.compile(r"DUDA_(?:GET|POST)\(")


def blocks(text):
    """Yields (line, code) for each example in the comments of a header."""
    for comment in re.finditer(r"/\*.*?\*/", text, re.DOTALL):
        for block in re.finditer(r"(?:^ \*     .*\n(?: \*\n)*)+", comment[0], re.MULTILINE):
            line = text.count("\n", 0, comment.start() + block.start()) + 1
            yield line, re.sub(r"^ \*(?: {5})?", "", block[0], flags=re.MULTILINE)


def without_elisions(code):
    """Replaces each `...` that stands for omitted code; line numbers are preserved."""
    code = re.sub(r"^( *)\.\.\.(?: .*)?$", r"\1;", code, flags=re.MULTILINE)
    code = re.sub(r"(?<=\)) \.\.\.$", " ;", code, flags=re.MULTILINE)
    return re.sub(r", \.\.\.\}", "}", code)


def as_function(number, path, line, code, names):
    """Returns a function that contains the example. Functions of the example become nested functions (GNU C)."""
    code = re.sub(r"^static (?=[^=;{}]*\)(?: *//.*)?\n\{)", "", code, flags=re.MULTILINE)
    if ELEMENT.match(code):
        code = f"const struct duda_route routes[] = {{{code}}}"
    is_handler = path.parts[0] == "include" and VERDICT.search(BODY.sub("", code))
    kind = "enum mk_verdict" if is_handler else "long"
    return f'static {kind} example_{number}(void)\n{{\n{names}{{\n#line {line} "{path}"\n{code};\n}}\nreturn ({kind})1;\n}}\n'


def read_names(root):
    """Returns the declarations at file scope, and those for each header."""
    path = root / NAMES
    start, *parts = re.split(r"^/\* ---- (\S+) ---- \*/\n", house.read(path) if path.exists() else "", flags=re.MULTILINE)
    return start, dict(zip(parts[::2], parts[1::2]))


def undefined_in(code, names):
    """Omits the declarations of functions that the example itself defines."""
    defined = re.findall(r"^static [^=;{}]*?(\w+)\(", code, re.MULTILINE)
    return "".join(f"{line}\n" for line in names.splitlines() if not any(re.search(rf"\b{name}\b", line) for name in defined))


def compile_text(root, compiler, text):
    paths = [f"-I{root / folder}" for folder in FOLDERS]
    done = house.call(compiler, *FLAGS, *paths, "-", input=text)
    return [each for each in done.stderr.splitlines() if "error:" in each or CONVERSION in each]


def check(args):
    compiler = house.find_tool("gcc")  # clang has no nested functions
    if not compiler:
        return house.skip("there is no gcc")
    complaints, together = [], []
    start, names = read_names(args.root)
    for folder in FOLDERS:
        for path in house.files(args.root, (folder,), (".h",)):
            where, name = path.relative_to(args.root), path.relative_to(args.root / folder).as_posix()
            own = f"#include <{name}>\n"
            for line, code in blocks(house.read(path)):
                if NOT_C.match(code):
                    continue
                code = without_elisions(code)
                used = names.get(name, "")
                if FILE_SCOPE.search(code):
                    used = undefined_in(code, used)
                    complaints += compile_text(args.root, compiler, f'{start}{own}{used}#line {line} "{where}"\n{code};\n')
                else:
                    together.append((own, as_function(len(together), where, line, code, used)))
    text = start + "".join(dict.fromkeys(own for own, _ in together)) + "".join(function for _, function in together)
    return complaints + compile_text(args.root, compiler, text)


def self_test(test):
    if not house.find_tool("gcc"):
        return

    def judge(example, names="", path="include/monkey/x.h"):
        lines = "".join(f" *     {line}\n" if line else " *\n" for line in example.split("\n"))
        header = f"/**\n * An example:\n *\n{lines} */\nint mk_x(int n);\nenum mk_verdict {{ MK_DONE = 1, MK_ERROR = 4 }};\n"
        return check(type("Args", (), {"root": test.tree({path: header, NAMES: names})}))

    handler = "static enum mk_verdict handle(void)\n{\n    return %s;\n}"
    test.expect("statements", judge("int n = mk_x(1);\nif (n)\n    return -EINVAL;", "#include <errno.h>\n"))
    test.expect("verdicts", judge("if (mk_x(1))\n    return MK_ERROR;\nreturn mk_x(2) ? MK_ERROR : MK_DONE;"))
    test.expect("a handler", judge(handler % "mk_x(1) ? MK_ERROR : MK_DONE"))
    for value in ("404", "mk_x(1) ? 500 : 200", "mk_x(1) ? MK_ERROR : 200", "mk_x(1)", "0"):
        test.expect(f"the status {value} for a verdict", judge(f"if (mk_x(1))\n    return {value};"), r"include/monkey/x\.h:5:\d+: .*enum mk_verdict")
        test.expect(f"the status {value} of a handler", judge(handler % value), r"include/monkey/x\.h:6:\d+: .*enum mk_verdict")
        test.expect(f"the status {value} in Duda", judge(f"if (mk_x(1))\n    return {value};", path="duda/include/duda/x.h"))
    test.expect("a condition", judge("if (mk_x(1)) ..."))
    test.expect("omitted code", judge("int n = mk_x(1);\n...\nif (n)\n    ... incomplete"))
    test.expect("a function", judge("static int f(int n)\n{\n    return mk_x(n);\n}"))
    test.expect("an unknown function", judge("int n = mk_y(1);"), r"include/monkey/x\.h:4:9: .*mk_y")
    test.expect("a wrong argument", judge('mk_x("a");'), "mk_x")
    test.expect("an unknown name", judge("mk_x(n);"), "n. undeclared")
    test.expect("a declared name", judge("mk_x(n);", "/* ---- monkey/x.h ---- */\nint n = 0;\n"))
    test.expect("a name of another header", judge("mk_x(n);", "/* ---- monkey/y.h ---- */\nint n = 0;\n"), "n. undeclared")
    test.expect("a program", judge("int main(void)\n{\n    return mk_x(1);\n}"))
    test.expect("a program with a mistake", judge("int main(void)\n{\n    return mk_y(1);\n}"), "mk_y")
    test.expect("a configuration", judge("[SERVER]\n    Listen 80"))


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
