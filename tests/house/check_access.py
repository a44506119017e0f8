#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every key of the configuration that names a file or a folder has the flag MK_CONF_READS or MK_CONF_WRITES, so that `monkey
explain --systemd` knows the folders that must be writable. Keys of logs need no flag, because the server has a list of its logs.
"""
import re

import house

FOLDERS = ("src", "plugins", "duda")
NAME = re.compile(r"(File|Folder|Socket|Paths|Dir|Root|Database|Authority|Certificate|Hook|TLSKey)$")
TYPE = re.compile(r"\.type = MK_CONF_(TEXT|WORDS|CUSTOM)\b")
KEY = re.compile(r'\{\s*\.name = "(\w+)"')


def keys(text):
    """Yields the line number, the name and the initializers of each key."""
    starts = list(KEY.finditer(text))
    for start, after in zip(starts, [*starts[1:], None]):
        end = after.start() if after else len(text)
        block = text[start.start():end]
        yield text.count("\n", 0, start.start()) + 1, start[1], block[:block.find("};")] if "};" in block else block


def check_file(path, text):
    for line, name, block in keys(text):
        if NAME.search(name) and TYPE.search(block) and not re.search(r"MK_CONF_(READS|WRITES|IGNORED)\b|\.alias_of", block):
            yield f"{path}:{line}: the key {name} names a file: its flags need MK_CONF_READS or MK_CONF_WRITES"


def check(args):
    complaints = []
    for path in house.files(args.root, FOLDERS, (".c", ".h")):
        complaints += check_file(path.relative_to(args.root), house.read(path))
    return complaints


def self_test(test):
    def judge(text):
        return list(check_file("x.c", text))
    head, tail = "static const struct mk_conf_key keys[] = {\n", "};\n"
    test.expect("flag", judge(head + '{.name = "KeyFile",\n .type = MK_CONF_TEXT,\n .flags = MK_CONF_READS},\n' + tail))
    test.expect("flags", judge(head + '{.name = "StateFolder", .type = MK_CONF_CUSTOM, .flags = MK_CONF_REPEATABLE | MK_CONF_WRITES},\n' + tail))
    test.expect("number", judge(head + '{.name = "Database", .type = MK_CONF_NUM},\n' + tail))
    test.expect("other name", judge(head + '{.name = "Title", .type = MK_CONF_TEXT},\n' + tail))
    test.expect("alias", judge(head + '{.name = "OldFile", .type = MK_CONF_TEXT, .alias_of = "NewFile"},\n' + tail))
    test.expect("no flag", judge(head + '{.name = "A", .type = MK_CONF_NUM},\n{.name = "KeyFile",\n .type = MK_CONF_TEXT},\n' + tail),
                r"x\.c:3: the key KeyFile names a file")
    test.expect("flag of the next key", judge(head + '{.name = "Socket", .type = MK_CONF_CUSTOM},\n{.name = "KeyFile", .type = MK_CONF_TEXT,'
                                              ' .flags = MK_CONF_READS},\n' + tail), r"x\.c:2: the key Socket")
    test.expect("other flag", judge(head + '{.name = "Hook", .type = MK_CONF_WORDS, .flags = MK_CONF_MAY_BE_EMPTY},\n' + tail), "the key Hook")


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
