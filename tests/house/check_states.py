#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Only mk_state_init() and mk_state_move() (include/monkey/state_machine.h) write the state of a state machine: other code
must not assign to the member `current`, take its address, initialize a `struct mk_state` or copy one. (The compiler already
rejects an enum assigned to a `struct mk_state`.)
"""
import re

import house

HEADER = "include/monkey/state_machine.h"
# Matches `struct mk_state state, input;` in a struct.
MEMBERS = re.compile(r"\bstruct\s+mk_state\s+(\w[\w\s,]*);")
PLACE = r"[\w.>()\[\]-]*(?:\.|->)"  # the expression before a member's name
WRITES = "writes a state; use mk_state_move()"
FORBIDDEN = (
    (re.compile(r"(?:\.|->)\s*current\s*(?:=(?!=)|[-+*/%&|^]=|<<=|>>=|\+\+|--)"), WRITES),
    (re.compile(rf"(?:\+\+|--)\s*{PLACE}current\b"), WRITES),
    (re.compile(r"\(\s*(?:const\s+)?struct\s+mk_state\s*\)\s*\{"), "makes a state; use mk_state_init()"),
    (re.compile(r"\bstruct\s+mk_state\s+\w+\s*="), "makes a state; use mk_state_init()"),
)


def forms(texts):
    """Builds the forbidden patterns from the names of the tree's state machines."""
    names = {name.strip() for text in texts for found in MEMBERS.findall(text) for name in found.split(",")}
    if not names:
        return FORBIDDEN
    name = "|".join(sorted(names))
    return (*FORBIDDEN,
            (re.compile(rf"\.(?:{name})\s*=\s*\{{"), "makes a state; use mk_state_init()"),
            (re.compile(rf"(?:\.|->)(?P<it>{name})\s*=\s*\*?{PLACE}(?P=it)\s*[;,)]"), "copies a state"),
            (re.compile(rf"(?:[(,=?:{{;]|\breturn)\s*&\s*{PLACE}(?:{name})\s*\.\s*current\b"), "takes the address of a state"),
            (re.compile(rf"\bmem\w+\s*\(\s*&\s*{PLACE}(?:{name})\s*,"), WRITES))


def check_tree(root):
    codes = {path.relative_to(root).as_posix(): house.without_text(house.read(path))
             for path in house.files(root, house.CODE, (".c", ".h"))}
    codes.pop(HEADER, None)
    complaints, forbidden = [], forms(codes.values())
    for name, code in codes.items():
        if name == "tests/unit/base/test_state_machine.c":  # this file tests the forbidden operations
            continue
        for form, what in forbidden:
            complaints += [f"{name}:{code.count(chr(10), 0, m.end()) + 1}: {what}" for m in form.finditer(code)]
    return complaints


def check(args):
    return check_tree(args.root)


def self_test(test):
    def judge(text, name="src/web/a.c"):
        header = "struct mk_door {\n    struct mk_state state, lock;\n    int is_open;\n};\n"
        return check_tree(test.tree({"src/web/door.h": header, name: text}))

    test.expect("a move", judge("mk_state_move(&d->state, &mk_door_machine, d, MK_OPEN);\n"))
    test.expect("a reader", judge("bool x = d->state.current == MK_OPEN && d->lock.current != MK_OPEN ? a(d->lock.current) : d->lock.current & 1;\n"))
    test.expect("the functions", judge("static void f(struct mk_state *s)\n{\n    s->current = 1;\n}\n", HEADER))
    test.expect("other members", judge("d->is_open = 1; d->this = 2; e->state = 3; e.lock |= 4; s->state = r->next; f(&h->current, &h->current.n);\n"))
    for write in ("d->state.current = MK_OPEN;", "d->lock.current=MK_OPEN;", "d->state . current = MK_OPEN;", "s->current |= 1;", "d->state.current++;",
                  "--d->state.current;", "++c->door[1].lock.current;", "*d = (struct mk_door){.state.current = MK_OPEN};",
                  "memset(&d->state, 1, 1);", "memcpy(&d->door.lock, p, 1);"):
        test.expect(write, judge(f"int a;\n{write}\n"), r"^src/web/a\.c:2: writes a state")
    for what in ("uint8_t *p = &d->state.current;", "f(&d->lock.current);", "f(1, &c->door.lock.current);", "return &d->state.current;"):
        test.expect(what, judge(f"int a;\n{what}\n"), r"a\.c:2: takes the address")
    for what in ("*d = (struct mk_door){.state = {MK_OPEN}};", "d->state = (struct mk_state){MK_OPEN};", "struct mk_state s = {1};"):
        test.expect(what, judge(f"int a;\n{what}\n"), r"a\.c:2: makes a state")
    test.expect("a copy", judge("int a;\nd->state = e->state;\n"), r"a\.c:2: copies a state")
    test.expect("a copy in a literal", judge("*d = (struct mk_door){.lock = e->old.lock, .x = 1};\n"), "copies a state")
    test.expect("a test", judge("d.state.current = MK_OPEN;\n", "tests/unit/web/test_a.c"), "writes a state")
    test.expect("only spoken of", judge('/* d->state.current = MK_OPEN */\nconst char *a = "d->state.current = 1";\n'))


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
