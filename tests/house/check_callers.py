#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every public function has a caller: in another file of the server, a plugin, Duda, a tool or an example. A released function
must be kept forever, and one called only by its own file and by tests serves no user. A mention in a guide is not a call.
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
    "mk_num_parse_double": "a plugin reads a number of a client, whatever the locale",
    "mk_cookie_next": "a program that lists the cookies of a browser",
    "mk_config_allow_trust_store": "a plugin with a TLS client needs the system's certificates in its sandbox",
    "mk_sse_stream_last_id": "it resumes after a reconnection",
    "mk_sse_stream_queued": "it skips clients that are too slow",
    "mk_sse_stream_end": "it closes a stream",
    "mk_mem_set_allocator": "an embedding program brings its own allocator",
    "mk_form_upload": "an embedding program receives files; Duda looks them up itself",
    "mk_request_form_error": "it logs why a form was refused",
    "mk_json_as_bool": "an embedding program reads JSON; Duda has values of its own",
    "mk_json_as_double": "numbers of such a document",
    "mk_json_as_int": "integers of such a document",
    "mk_json_as_string": "strings of such a document",
    "mk_json_at": "elements of such a document",
    "mk_json_find": "values of such a document by path",
    "mk_json_get": "members of such a document",
    "mk_json_is_null": "values that such a document may lack",
    "mk_json_status": "the status for a document that is refused",
    "mk_json_value_write": "it passes a part of a document on",
    "mk_json_reader_string": "a parser of its own that needs no NUL",
    "mk_request_json": "it receives a document",
    "mk_request_multipart": "it receives uploads of any size",
    "mk_request_query_form": "it reads names and values of the query",
    "mk_upload_read": "it reads the files of a form",
    "mk_request_trailer": "a handler of its own needs the checksum that follows an upload",
    "mk_response_was_sent": "a handler that fails late must know whether it may still set a status",
    "mk_server_add_plugin": "an embedding program brings a plugin",
    "mk_server_address": "an embedding program shows the addresses of its configuration file",
    "mk_server_listener_fd": "an embedding program hands its sockets over",
    "mk_server_replace_certificate": "an embedding program renews a certificate",
    "mk_server_pause_accepting": "an embedding program protects a backend that is overloaded",
    "mk_server_resume_accepting": "the end of such a pause",
    "mk_server_set_accept_filter": "an embedding program decides on clients",
    "mk_server_set_error_handler": "an embedding program responds to errors itself",
    "mk_server_unlisten": "an embedding program closes a listener",
    "mk_stat_alloc_failures": "a plugin that shows statistics can say that some are missing",
    "mk_test_client_received": "the bytes of a response, for tests of what nothing else shows",
    "mk_test_client_use_http2": "tests of embedding programs over HTTP/2",
    "mk_websocket_ping": "the wire has it; on_pong reports the answer",
    "mk_websocket_send_part": "a message that is not in memory as a whole",
    "mk_websocket_subprotocol": "a plugin that offers several must learn which one the client took",
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


def judge(found, kept):
    return [f"{name} has no caller: remove it, or say in check_callers.py why it stays" for name in found if name not in kept]


def needless(found, kept):
    return [name for name in kept if name not in found]


def check(args):
    found = uncalled(args.root)
    for name in needless(found, KEPT):
        house.note(f"{name} has callers, or is gone: its line in check_callers.py may go")
    return judge(found, KEPT)


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
    test.expect("a reason too many", needless(["mk_a"], ["mk_a", "mk_b"]), "^mk_b$")


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
