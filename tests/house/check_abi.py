#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/house/abi.txt describes the binary interface of the public headers. Programs built against it keep running with the
current library unless a line is removed or changed. Before the first release, `make tidy` may also remove
or change lines.
"""
import sys
from pathlib import Path

import house

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools" / "dev"))
import abi  # noqa: E402

BROKEN = "The binary interface has changed; if that is wanted, run `make tidy` and say why in the commit:"
LONGER = "The binary interface has become larger; run `make tidy`:"


def check(args):
    if missing := abi.why_not():
        return house.skip(missing)
    return judge(abi.check(args.root))


def judge(changes):
    went = any(change.startswith("-") for change in changes)
    return [BROKEN if went else LONGER, *changes] if changes else []


def self_test(test):
    if abi.why_not():
        return

    def changed(after):
        """Returns the complaints about a change of the header from FIRST to `after`."""
        roots = test.tree({"include/monkey/a.h": FIRST}), test.tree({"include/monkey/a.h": after})
        return judge(abi.compare(*map(abi.describe, roots)))

    test.expect("nothing changed", changed(FIRST))
    test.expect("a comment", changed(FIRST.replace("/* it */", "/* MK_API int mk_no(int a); */")))
    test.expect("a new function", changed(FIRST + "MK_API int mk_b(void);\n"), LONGER, r"^\+function mk_b: int \(void\)$")
    test.expect("a function that went", changed(FIRST.replace("mk_a(", "mk_c(")), BROKEN,
                "^-function mk_a: struct mk_t", r"^\+function mk_c: struct mk_t")
    test.expect("another type of a parameter", changed(FIRST.replace("int n", "long n")), BROKEN,
                r"-function mk_a: struct mk_t \*\(const struct mk_s \*, int, int \(\*\)\(char \*const \*\)\)",
                r"\+function mk_a: struct mk_t \*\(const struct mk_s \*, long int, int \(\*\)\(char \*const \*\)\)")
    test.expect("a member in between", changed(FIRST.replace("int x;", "int w, x;")), BROKEN,
                r"^-struct mk_s: 20 bytes {int x @0; char y\[2\]\[3\] @4; union {int a; float b} u @12; enum mk_e e @16}$",
                r"^\+struct mk_s: 24 bytes {int w @0; int x @4; char y\[2\]\[3\] @8; union {int a; float b} u @16; enum mk_e e @20}$")
    test.expect("another constant", changed(FIRST.replace("MK_ONE", "MK_ONE = 4")), BROKEN,
                "-enum mk_e: 4 bytes {MK_ONE = 0}", "enum mk_e: 4 bytes {MK_ONE = 4}")
    test.expect("a struct that is private", changed(FIRST.replace("struct mk_t;", "struct mk_t; struct mk_u;")))


FIRST = """#define MK_API
/* it */
enum mk_e { MK_ONE };
struct mk_s { int x; char y[2][3]; union { int a; float b; } u; enum mk_e e; };
struct mk_t;
MK_API struct mk_t *mk_a(const struct mk_s *s,
                         int n, int (*compare)(char *const *));
"""


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
