#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every public function has a caller: in another file of the server, a plugin, Duda, a tool or an example. A released function
must be kept forever, and one called only by its own file and by tests serves no user. A mention in a guide is not a call.

Services, which call Duda, are outside this tree: each public function of Duda has a test or an example.
"""
import re
import sys
from pathlib import Path

import house

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools" / "dev"))
import abi  # noqa: E402

FOLDERS = ("src", "plugins", "duda", "tools", "examples", "bindings")

# Public functions that have no caller in this tree, and their purpose for other programs.
KEPT = {
    "mk_config_allow_trust_store": "a plugin with a TLS client needs the system's certificates in its sandbox",
    "mk_sse_stream_last_id": "it resumes after a reconnection",
    "mk_sse_stream_queued": "it skips clients that are too slow",
    "mk_sse_stream_end": "it closes a stream",
    "mk_mem_set_allocator": "an embedding program brings its own allocator",
    "mk_form_upload": "an embedding program receives files; Duda looks them up itself",
    "mk_json_as_bool": "an embedding program reads JSON; Duda has values of its own",
    "mk_json_as_double": "numbers of such a document",
    "mk_json_at": "elements of such a document",
    "mk_json_find": "values of such a document by path",
    "mk_json_is_null": "values that such a document may lack",
    "mk_json_value_write": "it passes a part of a document on",
    "mk_request_multipart": "it receives uploads of any size",
    "mk_upload_read": "it reads the files of a form",
    "mk_request_trailer": "a handler of its own needs the checksum that follows an upload",
    "mk_response_was_sent": "a handler that fails late must know whether it may still set a status",
    "mk_server_set_error_handler": "an embedding program responds to errors itself",
    "mk_stat_alloc_failures": "a plugin that shows statistics can say that some are missing",
    "mk_test_client_use_http2": "tests of embedding programs over HTTP/2",
    "mk_worker_request_reload": "plugins whose own files change, such as those of another ACME client",
    "mk_websocket_send_part": "a message that is not in memory as a whole",
}


def public_functions(root):
    for path in house.files(root, ("include/monkey",), (".h",)):
        yield from abi.FUNCTION.findall(abi.COMMENT.sub("", house.read(path)))


def uncalled(root):
    """Returns the public functions that only their defining file mentions."""
    names = set(public_functions(root))
    word = re.compile(r"\bmk_\w+")
    homes, callers = {}, {}
    for path in house.files(root, FOLDERS, (".c", ".h", ".py", ".rs", ".go", ".cc", ".hpp")):
        text = house.without_text(house.read(path)) if path.suffix in (".c", ".h") else house.read(path)
        for name in set(word.findall(text)) & names:
            defines = re.search(rf"^\w[^;={{}}()]*\b{name}\([^;{{}}]*\)\n?\{{", text, re.MULTILINE)
            (homes if defines else callers).setdefault(name, set()).add(path)
            if defines and path.suffix == ".h":  # an inline function: the header is both definition and interface
                callers.setdefault(name, set())
    for path in house.files(root, ("include",), (".h",)):  # calls from inline functions
        for name in set(word.findall(re.sub(r"MK_API\b[^;{}]*;", "", house.without_text(house.read(path))))) & names:
            callers.setdefault(name, set()).add(path)
    return sorted(name for name in names if not callers.get(name))


DUDA_FUNCTION = re.compile(r"^MK_API\b[^;{(]*?\b(duda_\w+)\(", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def unused_of_duda(root):
    """Returns the public functions of Duda that only their defining file mentions: neither a test nor the code of a guide, an
    example, a package, or a macro or inline function calls them."""
    names, word = set(), re.compile(r"\bduda_\w+")
    for path in house.files(root, ("duda/include",), (".h",)):
        names |= set(DUDA_FUNCTION.findall(abi.COMMENT.sub("", house.read(path))))
    for path in house.files(root, ("duda", "tests", "examples", "tools", "docs/guide"), (".c", ".h", ".py", ".cc", ".md", ".sh", ".txt", ".in")):
        text = house.read(path)
        if path.suffix in (".c", ".h"):
            text = re.sub(r"MK_API\b[^;{}]*;", "", abi.COMMENT.sub("", text))
        elif path.suffix == ".md":
            text = "\n".join(FENCED.findall(text))
        names -= {name for name in set(word.findall(text)) & names
                  if path.suffix != ".c" or not re.search(rf"^\w[^;={{}}()]*\b{name}\([^;{{}}]*\)\n?\{{", text, re.MULTILINE)}
    return sorted(names)


def judge(found, kept):
    return [f"{name} has no caller: remove it, or say in check_callers.py why it stays" for name in found if name not in kept]


def needless(found, kept):
    return [name for name in kept if name not in found]


def check(args):
    found = uncalled(args.root)
    for name in needless(found, KEPT):
        house.note(f"{name} has callers, or is gone: its line in check_callers.py may go")
    return judge(found, KEPT) + [f"{name} has neither a test nor an example" for name in unused_of_duda(args.root)]


def self_test(test):
    header = {"include/monkey/a.h": "MK_API int mk_a(int x);\nMK_API int mk_b(void);\n"}
    own = {"src/web/a.c": "int mk_a(int x)\n{\n    return x + mk_b();\n}\n", "src/web/b.c": "int mk_b(void)\n{\n    return 1;\n}\n"}

    def found(kept=(), **more):
        return judge(uncalled(test.tree(header | own | more)), kept)

    test.expect("its own file alone", found(), "^mk_a has no caller")
    test.expect("a test", found(**{"tests/unit/web/test_a.c": "int x = mk_a(1);\n"}), "^mk_a has no caller")
    test.expect("a comment", found(**{"plugins/x/x.c": "/* mk_a(1) */\n"}), "^mk_a has no caller")
    test.expect("a plugin", found(**{"plugins/x/x.c": "int x = mk_a(1);\n"}))
    test.expect("a guide", found(**{"docs/guide/x.md": "Call `mk_a()`.\n"}), "^mk_a has no caller")
    test.expect("a reference", found(**{"docs/reference/api.md": "mk_a()\n"}), "^mk_a has no caller")
    test.expect("a reason", found(kept=["mk_a"]))
    test.expect("a reason for a prefix", found(kept=["mk_"]), "^mk_a has no caller")
    test.expect("an inline function", found(**{"include/monkey/b.h": "static inline int mk_c(void)\n{\n    return mk_a(1);\n}\n"}))
    test.expect("a declaration of another header", found(**{"include/monkey/b.h": "MK_API int mk_a(int x);\n"}), "^mk_a has no caller")
    duda = {"duda/include/duda/x.h": "MK_API int duda_x(void);\n#define DUDA_Y() duda_y()\nMK_API int duda_y(void);\n",
            "duda/service/x.c": "int duda_x(void)\n{\n    return 1;\n}\n"}

    def unused(**more):
        return [f"{name} unused" for name in unused_of_duda(test.tree(duda | more))]

    test.expect("a function of Duda without a test", unused(**{"docs/guide/x.md": "`duda_x()`\n"}), "^duda_x unused$")
    test.expect("a function of Duda with a test", unused(**{"tests/duda/test_x.py": "return duda_x();\n"}))
    test.expect("a function of Duda in a guide", unused(**{"docs/guide/x.md": "```c\nreturn duda_x();\n```\n"}))
    test.expect("a reason too many", needless(["mk_a"], ["mk_a", "mk_b"]), "^mk_b$")


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
