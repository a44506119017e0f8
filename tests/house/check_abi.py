#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What was built with the public headers runs with what is built from them now: no function went or changed its signature,
no public struct its form. Until a release says otherwise, `tools/dev/abi.py --update` makes a change the new truth."""
import sys
from pathlib import Path

import house

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools" / "dev"))
import abi  # noqa: E402

ADVICE = "The binary interface has changed. If that is wanted: python3 tools/dev/abi.py --update, and say why in the commit."


def check(args):
    if missing := abi.why_not():
        return house.skip(missing)
    changes = abi.check(args.root)
    return [ADVICE, *changes.splitlines()] if changes else []


def self_test(test):
    if abi.why_not():
        return

    def changed(after):
        """What is said when this header follows the first one."""
        described = [abi.describe(root, root) for root in (test.tree({"include/monkey/a.h": FIRST}),
                                                           test.tree({"include/monkey/a.h": after}))]
        return abi.compare(*described).splitlines()[:1]

    test.expect("nothing changed", changed(FIRST))
    test.expect("a comment", changed(FIRST.replace("/* it */", "/* MK_API int mk_no(int a); */")))
    test.expect("a new function", changed(FIRST + "MK_API int mk_b(void);\n"))
    test.expect("a function that went", changed(FIRST.replace("mk_a(", "mk_c(")), "Removed")
    test.expect("another type of a parameter", changed(FIRST.replace("int n", "long n")), "Changed")
    test.expect("a member in between", changed(FIRST.replace("int x;", "int w, x;")), "Changed")
    test.expect("a struct that is private", changed(FIRST.replace("struct t;", "struct t; struct u;")))


FIRST = """#define MK_API
/* it */
struct s { int x; char y; };
struct t;
MK_API struct t *mk_a(const struct s *s,
                      int n);
"""


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
