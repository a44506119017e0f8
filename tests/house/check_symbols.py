#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that other objects see: in our libraries all begin with mk_, and the optimised program offers loadable
plugins the public interface and nothing else."""
import re

import house

# Put there by compilers and sanitizers.
MADE = re.compile(r"^_*(odr_asan|asan|ubsan|lsan|tsan|gcov|llvm|sanitizer|sancov|start___|stop___|gnu_lto|profc|profd)")
LINKER = {"_init", "_fini", "_start", "_end", "_edata", "__bss_start", "__data_start", "data_start", "_IO_stdin_used",
          "__TMC_END__", "__dso_handle", "environ", "_environ", "__environ"}


def defined(path, *flags):
    """(object, symbol) of everything that the file defines for others."""
    done = house.call("nm", "-A", "-P", "--defined-only", "--extern-only", *flags, path)
    for row in done.stdout.splitlines():
        m = re.match(r"(.*): (\S+) (\S)", row)
        if m:
            yield m.group(1), m.group(2)


def check_library(library):
    complaints = []
    for where, symbol in defined(library):
        if not symbol.startswith("mk_") and symbol != "main" and not MADE.match(symbol):
            obj = re.sub(r".*\[(.+)\]", r"\1", where)
            complaints.append(f"{library.name}: {obj} defines {symbol}, which does not begin with mk_")
    return complaints


def public_names(root):
    text = "".join(house.read(p) for p in house.files(root, ("include", "duda/include"), (".h",)))
    return set(re.findall(r"\b(?:mk|duda)_\w+", house.without_text(text)))


def check_program(program, public):
    complaints = []
    for _, symbol in defined(program, "-D"):
        name, _, version = symbol.partition("@")
        # A version means a copy of libc's own variable, such as stdout.
        if not version and name not in public and name not in LINKER:
            complaints.append(f"{program.name} exports {name}, which no public header declares")
    return complaints


def check(args):
    complaints = []
    libraries = sorted(args.build.rglob("libmk_*.a")) if args.build else []
    for library in libraries:
        complaints += check_library(library)
    program = args.program if args.program and args.program.exists() else None
    if program:
        complaints += check_program(program, public_names(args.root))
    else:
        house.note(f"{args.program} is not built, so what it exports was not checked")
    if not libraries and not program:
        return house.skip("nothing is built")
    return complaints


def self_test(test):
    def compiled(text, *command):
        root = test.tree({"a.c": text})
        out = root / "libmk_a.a"
        done = house.call("cc", "-c", root / "a.c", "-o", root / "a.o")
        assert done.returncode == 0, done.stderr
        if command:
            out = root / "program"
            done = house.call("cc", root / "a.o", "-o", out, *command)
            assert done.returncode == 0, done.stderr
        else:
            house.call("ar", "rcs", out, root / "a.o")
        return out

    test.expect("good names", check_library(compiled("static int here;\nint mk_a(void) { return here; }\n")))
    test.expect("a function", check_library(compiled("void helper(void) {}\n")), r"a\.o defines helper")
    test.expect("a variable", check_library(compiled("int counter;\n")), "defines counter")
    test.expect("a constant", check_library(compiled("const char names[] = {1};\n")), "defines names")
    test.expect("main may stay", check_library(compiled("int main(void) { return 0; }\n")))

    text = "#include <stdio.h>\nint mk_public(void) { return 1; }\nint mk_inner(void) { return puts(\"\"); }\n" \
           "int main(void) { fputs(\"\", stdout); return mk_inner() + mk_public(); }\n"
    test.expect("nothing exported", check_program(compiled(text, "-Wl,--gc-sections"), set()))
    everything = check_program(compiled(text, "-rdynamic"), {"mk_public", "main"})
    test.expect("an inner function exported", everything, "program exports mk_inner")
    names = public_names(test.tree({"include/monkey/x.h": "int mk_public(void); /* mk_hidden */\n"}))
    test.expect("names in comments are not public", sorted(names), "^mk_public$")


if __name__ == "__main__":
    house.run(__doc__, check, self_test, build_dir=True)
