#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that other objects can see begin with mk_ and the noun of their file in our libraries, and with the plugin's name in a
plugin. The release program exports exactly the public interface.
"""
import functools
import os
import re

import house

# Matches symbols that compilers and sanitizers generate.
MADE = re.compile(r"^_*(odr_asan|asan|ubsan|lsan|tsan|gcov|llvm|sanitizer|sancov|start___|stop___|gnu_lto|profc|profd)")
LINKER = {"_init", "_fini", "_start", "_end", "_edata", "__bss_start", "__data_start", "data_start", "_IO_stdin_used",
          "__TMC_END__", "__dso_handle", "environ", "_environ", "__environ"}


def defined(path, *flags):
    """Yields (object, symbol) for all external definitions of the file."""
    return read_table(path, flags, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=None)
def read_table(path, flags, _):
    """Returns the definitions of one version of the file. The result is cached, because nm is slow on debug builds."""
    done = house.call("nm", "-A", "-P", "--defined-only", "--extern-only", *flags, path)
    return [m.groups() for row in done.stdout.splitlines() if (m := re.match(r"(.*): (\S+) \S", row))]

# Maps LAYER/FILE to an additional prefix of its names.
ALSO = {"server/features": "mkabout", "http/header": "mktrailer", "upstream/upstream": "mkplugin", "upstream/handler_cgi": "mkplugin",
        "upstream/handler_proxy": "mkplugin", "websocket/websocket": "mkplugin", "recorder/recorder": "mkplugin"}


def nouns(layer, stem):
    """Returns the prefixes that a file's names may have, without underscores: files that share their first word, such as
    worker_master.c, share that prefix; `vhosts` belongs to vhost.c."""
    noun = re.sub(r"s$", "", stem.split("_")[0])
    return f"mk{noun}", f"mk{layer}{noun}", ALSO.get(f"{layer}/{stem}", "mk" + noun)


def check_addresses(library, public):
    """A name mk_<file>_<verb> leads a reader to its file; names of the public interface are found in the headers."""
    layer = re.sub(r"^libmk_|\.a$", "", library.name)
    complaints = []
    for where, symbol in defined(library):
        stem = re.sub(r".*\[(.+)\.c\.o\]:?$", r"\1", where)
        known = symbol in public or symbol.replace("_", "").startswith(nouns(layer, stem))
        if symbol.startswith("mk_") and stem != where and not known:
            complaints.append(f"src/{layer}/{stem}.c defines {symbol}; a name of that file begins with mk_{stem}_")
    return complaints


def check_library(library):
    complaints = []
    for where, symbol in defined(library):
        if not symbol.startswith("mk_") and symbol != "main" and not MADE.match(symbol):
            obj = re.sub(r".*\[(.+)\]", r"\1", where)
            complaints.append(f"{library.name}: {obj} defines {symbol}, which does not begin with mk_")
    return complaints


def check_plugin(name, objects, public=()):
    """Symbols that other plugins call begin with mk_<name>_."""
    complaints = []
    for path in objects:
        for _, symbol in defined(path):
            if symbol in public and symbol.startswith(f"mk_{name}_"):
                continue
            if not symbol.startswith(f"{name}_") and symbol != f"mk_plugin_{name}" and not MADE.match(symbol):
                complaints.append(f"{name}/{path.name} defines {symbol}, which does not begin with {name}_")
    return complaints


def check_program(program, public):
    complaints = []
    for _, symbol in defined(program, "-D"):
        name, _, version = symbol.partition("@")
        # A symbol with a version is the copy relocation of a libc variable, such as stdout.
        if not version and name not in public and name not in LINKER:
            complaints.append(f"{program.name} exports {name}, which no public header declares")
    return complaints


TEST_CLIENT = re.compile(r"\bmk_(test|h2)_client_\w+")


def check_test_client(path):
    """The test client is only in libmonkey-test."""
    found = sorted({m[0] for m in TEST_CLIENT.finditer(house.call("nm", "-P", "--defined-only", path).stdout)})
    return [f"{path.name} has {name}, which is for libmonkey-test alone" for name in found]


def needed(path):
    rows = house.call("nm", "-D", "-P", "--undefined-only", path).stdout.splitlines()
    return {row.split()[0].partition("@")[0] for row in rows if row.strip()}


def check_object(path, offered):
    """A symbol that an object needs and the program does not export would be noticed only when the object is loaded."""
    names = {name for name in needed(path) if name.startswith("mk_")}
    return [f"{path} needs {name}, which the program does not export" for name in sorted(names - offered)]


def is_older(program, root):
    """Has any header of the program changed since the program was built?"""
    layers = [f"src/{layer}" for layer in house.LAYERS if layer != "tls"]
    built = program.stat().st_mtime
    return any(path.stat().st_mtime > built for path in house.files(root, ("include", *layers), (".h",)))


def check(args):
    complaints = []
    libraries = sorted(args.build.rglob("libmk_*.a")) if args.build else []
    public = house.public_names(args.root)
    for library in libraries:
        complaints += check_library(library) + check_addresses(library, public)
    for product in ("monkey", "libmonkey.so", "libmonkey.a"):
        if args.build and (args.build / product).exists():
            complaints += check_test_client(args.build / product)
    for name, objects in (house.plugin_objects(args.build) if args.build else {}).items():
        complaints += check_plugin(name, objects, public)
    program = args.program if args.program and args.program.exists() else None
    for name in ("tls", "readers"):
        path = args.build / f"plugins/monkey-{name}.so" if args.build else None
        if path and path.exists():
            complaints += check_object(path, {symbol for _, symbol in defined(args.build / "monkey", "-D")})
        else:
            house.note(f"monkey-{name}.so is not built, so what it needs was not checked")
    if program and is_older(program, args.root):
        house.note(f"{args.program} is older than the headers, so what it exports was not checked")
    elif program:
        complaints += check_program(program, public)
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

    def addressed(stem, text, public=()):
        root = test.tree({f"{stem}.c": text})
        done = house.call("cc", "-c", root / f"{stem}.c", "-o", root / f"{stem}.c.o")
        assert done.returncode == 0, done.stderr
        house.call("ar", "rcs", root / "libmk_web.a", root / f"{stem}.c.o")
        return check_addresses(root / "libmk_web.a", set(public))

    test.expect("addresses", addressed("vhosts", "int mk_vhosts_a, mk_vhost_b, mk_web_vhosts_c;\n"))
    test.expect("addresses of a family", addressed("vhost_more", "int mk_vhost_more_a, mk_vhost_b;\n"))
    test.expect("a public name", addressed("flow", "int mk_request_a;\n", ["mk_request_a"]))
    test.expect("a name of another file", addressed("flow", "int mk_request_a;\n"),
                r"^src/web/flow\.c defines mk_request_a; a name of that file begins with mk_flow_")

    library = compiled("int x_one;\nint mk_plugin_x;\nint mk_other;\nint two;\n")
    test.expect("a plugin", check_plugin("x", [library]), "x/libmk_a.a defines mk_other", "defines two, which does not begin with x_")
    test.expect("what other plugins call", check_plugin("x", [compiled("int mk_x_one;\n")], {"mk_x_one"}))
    test.expect("a public name of others", check_plugin("x", [compiled("int mk_y_one;\n")], {"mk_y_one"}), "defines mk_y_one")

    text = "#include <stdio.h>\nint mk_public(void) { return 1; }\nint mk_filter_next(void) { return puts(\"\"); }\n" \
           "int main(void) { fputs(\"\", stdout); return mk_filter_next() + mk_public(); }\n"
    test.expect("a program without the test client", check_test_client(compiled("int mk_test_x, mk_h2_y;\n")))
    test.expect("a hidden test client", check_test_client(compiled('__attribute__((visibility("hidden"))) int mk_test_client_x;\n')),
                "has mk_test_client_x, which is for libmonkey-test alone")
    test.expect("nothing exported", check_program(compiled(text, "-Wl,--gc-sections"), set()))
    everything = check_program(compiled(text, "-rdynamic"), {"mk_public", "main"})
    test.expect("an inner function exported", everything, "program exports mk_filter_next")
    needs = compiled("int mk_filter_next(void);\nint mk_x(void) { return mk_filter_next(); }\n", "-shared", "-fPIC")
    test.expect("an object that needs what the program offers", check_object(needs, {"mk_filter_next"}))
    test.expect("an object that needs more", check_object(needs, set()), "needs mk_filter_next, which the program")
    now = test.tree({"src/web/x.h": "", "src/tls/y.h": ""})
    os.utime(now / "src/web/x.h", (1, 1))
    test.expect("a program that is newer than its headers", [] if not is_older(needs, now) else ["it is not older"])
    os.utime(now / "src/web/x.h")
    os.utime(needs, (1, 1))
    test.expect("a program that is older than a header", [] if is_older(needs, now) else ["it is older"])
    names = house.public_names(test.tree({"include/monkey/x.h": "int mk_public(void); /* mk_hidden */\n"}))
    test.expect("names in comments are not public", sorted(names), "^mk_public$")


if __name__ == "__main__":
    house.run(__doc__, check, self_test, build_dir=True)
