#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every function, type and macro of include/monkey and duda/include has a comment; the pages of docs/reference are generated
from these comments.
"""
import sys
from pathlib import Path

import house

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "docgen"))
import api  # noqa: E402

HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
%s
#ifndef MONKEY_X_H
#define MONKEY_X_H

#ifdef __cplusplus
extern "C" {
#endif

%s

#ifdef __cplusplus
}
#endif

#endif
"""


def check(args):
    return [each for book in api.BOOKS for each in api.complaints(args.root, book)]


def self_test(test):
    def judge(text, intro="/* For tests. */", stale=False):
        root = test.tree({"include/monkey/x.h": HEADER % (intro, text), "docs/reference/api.md": "old"})
        if not stale:
            (root / api.MONKEY.page).write_text(api.write_page(root, api.MONKEY, api.read_all(root, api.MONKEY)))
        return api.complaints(root, api.MONKEY)

    test.expect("a function", judge("/** One. */\nMK_API int mk_one(void);\n"))
    test.expect("a bare function", judge("MK_API int mk_one(void);\n"), r"^include/monkey/x\.h:\d+: mk_one has no comment$")
    test.expect("one comment for several", judge("/** Both. */\nMK_API int mk_one(void);\nMK_API int mk_two(void);\n"))
    test.expect("an empty line ends it", judge("/** One. */\nMK_API int mk_one(void);\n\nMK_API int mk_two(void);\n"), "mk_two has")
    test.expect("a comment about all", judge("/** All of these. */\n\nMK_API int mk_one(void);\n"), "mk_one has no comment")
    test.expect("over lines", judge("MK_API int mk_one(int a,\n                  int b) MK_API_MUST_USE;\n"), "mk_one has no comment")
    test.expect("inline", judge("static inline int mk_one(void)\n{\n    return 1;\n}\n"), "mk_one has no comment")
    test.expect("struct", judge("struct mk_s {\n    int a; /**< a */\n};\n"), "struct mk_s has no comment")
    test.expect("enum", judge("enum mk_e { MK_A, MK_B };\n"), "enum mk_e has no comment")
    test.expect("constants", judge("enum { MK_A = 1 };\n"), "MK_A has no comment")
    test.expect("typedef", judge("typedef int mk_fn(void);\n"), "mk_fn has no comment")
    test.expect("macro", judge("#define MK_M(a) \\\n    (a)\n"), r"MK_M has no comment")
    test.expect("a type of nobody", judge("struct mk_s;\n"), "struct mk_s is not described")
    test.expect("a type of elsewhere", judge("struct mk_s;\n/** Of s. */\nMK_API void mk_f(struct mk_s *s);\n\n/** S. */\nstruct mk_s;\n"))
    test.expect("words to the formatter", judge("/* clang-format off */\n/** One. */\n#define MK_ONE {1}\n/* clang-format on */\n"
                                                "#define MK_TWO 2\n"))
    test.expect("no intro", judge("/** One. */\nMK_API int mk_one(void);\n", intro=""), "there is no comment about the header.s purpose")
    test.expect("stale", judge("/** One. */\nMK_API int mk_one(void);\n", stale=True), "is out of date")

    root = test.tree({"include/monkey/x.h": HEADER % ("/* For tests. */", "/** A * of `b`; see mk_two().\n *\n *     code();\n */\n"
                      "MK_API int mk_one(int a) MK_API_PRINTF(1, 2);\n/** Two, MK_A. */\nMK_API int mk_two(void);\n"
                      "/** E. */\nenum mk_e { MK_A };\n")})
    page = api.write_page(root, api.MONKEY, api.read_all(root, api.MONKEY))
    wanted = ("```c\nint mk_one(int a);\n```", r"A \* of `b`; see [`mk_two()`](#mk_two).", "\n\n    code();\n", "[`MK_A`](#enum-mk_e)")
    test.expect("how it looks", [each for each in wanted if each not in page])


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
