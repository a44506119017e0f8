#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every struct of include/monkey and duda/include has a rule by which later releases may extend it without breaking programs that
are already built: see "Structs that may grow" in docs/internals.md. tests/house/structs.txt names the rule of each struct. The same
holds for the structs that callbacks take or return: the types of functions, and pointers to functions in structs and parameters. No
public enum has the number of its values as a member.
"""
import re
from pathlib import Path

import house

LIST = "tests/house/structs.txt"
HEADERS = ("include/monkey", "duda/include/duda")
RULES = ("sized", "reserved", "counted", "lent", "frozen", "rebuilt")
STRUCT = re.compile(r"^(?:typedef )?struct (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
ENUM = re.compile(r"^enum (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
ARGUMENTS = r"\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)"
POINTER = re.compile(r"((?:(?:const )?(?:struct|enum) )?\w+ \**)\(\*(\w+)\)" + ARGUMENTS)
TYPEDEF = re.compile(r"^typedef ([^;(){}]*?)\b(\w+)" + ARGUMENTS + ";", re.MULTILINE)
FUNCTION = re.compile(r"^MK_API ([^;(]*?)\b(\w+)\(((?:[^()]|\([^()]*\))*)\)", re.MULTILINE)


def comments_removed(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def read_rules(root):
    lines = [line.split() for line in house.read(Path(root) / LIST).splitlines() if line and not line.startswith("#")]
    return {words[1]: words[0] for words in lines}


def parameters(text):
    """Splits a parameter list at the commas outside of parentheses."""
    return [" ".join(each.split()) for each in re.split(r",(?![^()]*\))", text)]


def function_complaints(name, result, arguments, rules):
    complaints, given = [], parameters(arguments)
    returned = re.fullmatch(r"struct (\w+) ", result)
    if returned and rules.get(returned[1]) in ("sized", "lent"):
        complaints.append(f"{name}() returns struct {returned[1]} by value")
    for i, each in enumerate(given):
        found = re.match(r"(const )?struct (\w+) (\*?)\w*$", each)
        rule = found and rules.get(found[2])
        following = given[i + 1] if i + 1 < len(given) else ""
        if rule == "sized" and not (name.endswith("_sized") and re.fullmatch(r"size_t \w+_size", following)):
            complaints.append(f"{name}() takes struct {found[2]} without its size")
        if rule == "lent" and not (found[1] and found[3]):
            complaints.append(f"{name}() takes struct {found[2]}, which only Duda or the server creates")
    return complaints


def callbacks(text):
    """Returns the result, the name and the parameters of each callback, those of callbacks included."""
    pointers = POINTER.findall(text)
    return pointers + [inner for _, _, arguments in pointers for inner in POINTER.findall(arguments)] + TYPEDEF.findall(text)


def callback_complaints(name, result, arguments, rules):
    """The server passes its own structs to callbacks. A callback that is already built may know only their first members, so it must get
    them by pointer, and must not return them by value."""
    complaints = []
    returned = re.fullmatch(r"struct (\w+) ", result)
    if returned and rules.get(returned[1], "frozen") != "frozen":
        complaints.append(f"the callback {name}() returns struct {returned[1]} by value")
    for each in parameters(arguments):
        found = re.match(r"(const )?struct (\w+) (\**)\w*(\[\w*\])?$", each)
        rule = found and rules.get(found[2], "frozen")
        if found and not found[3] and not found[4] and rule != "frozen":
            complaints.append(f"the callback {name}() takes struct {found[2]} by value")
        if rule == "lent" and not found[1]:
            complaints.append(f"the callback {name}() takes struct {found[2]}, which only Duda or the server creates")
        if rule not in (None, "frozen") and found[4]:
            complaints.append(f"the callback {name}() takes an array of struct {found[2]}, which may grow")
    return complaints


def enum_complaints(name, body):
    """A count as the last enumerator changes with each new value, but plugins that are already built contain the old count."""
    last = [each.strip() for each in body.split(",") if each.strip()][-1]
    return [f"enum {name} ends with the count {last}"] if re.fullmatch(r"\w+(?:S|_COUNT)", last) else []


def check(args):
    rules, complaints, seen = read_rules(args.root), [], set()
    complaints += [f"{LIST}: {name}: there is no rule `{rule}`" for name, rule in rules.items() if rule not in RULES]
    for path in house.files(args.root, HEADERS, (".h",)):
        text = comments_removed(house.read(path))
        where = path.relative_to(args.root)
        for name, body in STRUCT.findall(text):
            seen.add(name)
            if name not in rules:
                complaints.append(f"{where}: struct {name} has no rule in {LIST}")
            last = re.findall(r"[^;]*;", body)[-1].split()
            if (rules.get(name) == "reserved") != (last[-1].startswith("reserved[")):
                complaints.append(f"{where}: struct {name}: `reserved` must be the last member of structs with this rule, and of no others")
        for name, body in ENUM.findall(text):
            complaints += [f"{where}: {each}" for each in enum_complaints(name, body)]
        for result, name, arguments in callbacks(text):
            complaints += [f"{where}: {each}" for each in callback_complaints(name, result, arguments, rules)]
        for result, name, arguments in FUNCTION.findall(text):
            complaints += [f"{where}: {each}" for each in function_complaints(name, result, arguments, rules)]
    return complaints + [f"{LIST}: there is no struct {name}" for name in sorted(set(rules) - seen)]


def self_test(test):
    def judge(text, rules="sized mk_s\n"):
        root = test.tree({"include/monkey/x.h": text, LIST: rules})
        return check(type("Args", (), {"root": root}))

    body = "struct mk_s {\n    int a;\n};\n"
    test.expect("a size", judge(body + "MK_API int mk_f_sized(const struct mk_s *s, size_t s_size);\n"))
    test.expect("no size", judge(body + "MK_API int mk_f(const struct mk_s *s);\n"), "mk_f.. takes struct mk_s without its size")
    test.expect("no size, the last of several", judge(body + "MK_API int mk_f(void (*f)(int, int),\n    struct mk_s *s);\n"), "without its size")
    test.expect("by value", judge(body + "MK_API struct mk_s mk_f(void);\n"), "mk_f.. returns struct mk_s by value")
    test.expect("no rule", judge(body, ""), "struct mk_s has no rule")
    test.expect("no struct", judge("", "frozen mk_s\n"), "there is no struct mk_s")
    test.expect("an unknown rule", judge(body, "rigid mk_s\n"), "there is no rule `rigid`")
    test.expect("reserved", judge("struct mk_s {\n    int a;\n    uint64_t reserved[2]; /**< zero */\n};\n", "reserved mk_s\n"))
    test.expect("not reserved", judge(body, "reserved mk_s\n"), "`reserved` must be the last member")
    test.expect("reserved without the rule", judge("struct mk_s {\n    uint64_t reserved[2];\n};\n", "frozen mk_s\n"), "and of no others")
    test.expect("lent", judge(body + "MK_API int mk_f(const struct mk_s *s);\n", "lent mk_s\n"))
    test.expect("an enum", judge("enum mk_e {\n    MK_E_A,\n    MK_E_B,\n};\n", ""))
    test.expect("an enum with a count", judge("enum mk_e {\n    MK_E_A,\n    MK_ES\n};\n", ""), "enum mk_e ends with the count MK_ES")
    pattern = body + "struct mk_ops {\n    %s;\n};\n", "%s mk_s\nfrozen mk_ops\n"
    for title, declaration, rule, complaint in (
            ("a callback", "int (*f)(void *ctx, struct mk_s *s)", "sized", ""),
            ("a callback with a value", "int (*f)(void *ctx, struct mk_s s)", "sized", "the callback f.. takes struct mk_s by value"),
            ("a callback with a frozen value", "int (*f)(void *ctx, struct mk_s s)", "frozen", ""),
            ("a callback with an array", "int (*f)(struct mk_s s[], size_t n)", "counted", "takes an array of struct mk_s"),
            ("a callback that returns a value", "struct mk_s (*f)(void)", "counted", "the callback f.. returns struct mk_s by value"),
            ("a callback with a lent struct", "void (*f)(const struct mk_s *s)", "lent", ""),
            ("a callback that fills in a lent struct", "void (*f)(struct mk_s *s)", "lent", "which only Duda or the server creates")):
        test.expect(title, judge(pattern[0] % declaration, pattern[1] % rule), *[complaint] * bool(complaint))
    test.expect("a callback as a parameter", judge(body + "MK_API int mk_f(void (*g)(struct mk_s s), void *ctx);\n"), "the callback g.. takes struct mk_s by value")
    test.expect("a callback of a callback", judge(body + "MK_API void mk_f(int (*f)(bool (*g)(struct mk_s s), void *ctx));\n"), "the callback g.. takes struct mk_s by value")
    test.expect("the type of a function", judge(body + "typedef int mk_fn(int n,\n    struct mk_s s);\n"), "the callback mk_fn.. takes struct mk_s by value")
    test.expect("the type of a function that returns a value", judge(body + "typedef struct mk_s mk_fn(void);\n"), "returns struct mk_s by value")
    test.expect("lent, but filled in", judge(body + "MK_API int mk_f(struct mk_s *s);\n", "lent mk_s\n"), "which only Duda or the server creates")


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
