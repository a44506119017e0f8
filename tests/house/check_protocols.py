#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Core tests run over all four protocols (tests/protocols.py): a mark that excludes TLS or HTTP/2 from a test must give a
reason.
"""
import ast
import re

import house

FOLDERS = tuple(f"tests/{name}" for name in ("http", "process", "server", "site"))
PROTOCOLS = {"h1", "h1-tls", "h2", "h2-tls"}
WHY_MIN = 10  # minimum length of a reason, in characters
# The features of HTTP/1 that justify the mark `http1`.
OF_HTTP1 = re.compile(r"""HTTP/1|HTTP/0|\.send\(|\.send_slowly\(|version=|Transfer-Encoding|Connection|\.closes|\.shut\(|chunked
                          |KeepAlive|sendall|\.sock\.|pipelin|SHUT_WR|http://|read_until""", re.VERBOSE)


def marks_of(node):
    """Yields (name, call or None, line) for each pytest.mark in decorators, parameters and pytestmark."""
    for each in ast.walk(node):
        call = each if isinstance(each, ast.Call) else None
        mark = call.func if call else each
        if isinstance(mark, ast.Attribute) and isinstance(mark.value, ast.Attribute) and mark.value.attr == "mark":
            yield mark.attr, call, each.lineno


def check_over(call):
    """Returns the error in the arguments of pytest.mark.over(...), or None."""
    if call is None:
        return "`over` names no protocols"
    names = [arg.value if isinstance(arg, ast.Constant) else None for arg in call.args if not isinstance(arg, ast.Starred)]
    if not call.args or not set(names) <= PROTOCOLS:
        return f"`over` knows {', '.join(sorted(PROTOCOLS))}"
    why = next((k.value for k in call.keywords if k.arg == "why"), None)
    if not isinstance(why, ast.Constant) or len(str(why.value)) < WHY_MIN:
        return "`over` does not say why"
    return None


def decorated(function, name):
    return any(found == name for decorator in function.decorator_list for found, _, _ in marks_of(decorator)
               if not (isinstance(decorator, ast.Call) and getattr(decorator.func, "attr", "") == "parametrize"))


def helpers(tree):
    """Returns {name: source} for all definitions of a module except its tests."""
    found = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("test_"):
            found[node.name] = ast.unparse(node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = ast.unparse(node)
    return found


def with_helpers(function, known):
    """Returns the source of a test and of the definitions that it uses directly."""
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} | {arg.arg for arg in function.args.args}
    return ast.unparse(function) + "\n".join(known[name] for name in sorted(names & set(known)))


def gives_up(node):
    """Is the node an `if` on the protocol whose only statement ends the test or one of its iterations?"""
    if not isinstance(node, ast.If) or not re.search(r"is_h2|protocol", ast.unparse(node.test)):
        return False
    last = node.body[-1]
    skips = isinstance(last, ast.Expr) and "pytest.skip" in ast.unparse(last)
    return len(node.body) == 1 and (isinstance(last, (ast.Return, ast.Continue)) and not getattr(last, "value", None) or skips)


def check_test(name, function, known, lines, everywhere):
    restricted = everywhere or any(decorated(function, mark) for mark in ("over", "http1", "http2"))
    text = with_helpers(function, known)
    where = f"{name}:{function.lineno}: {function.name}"
    if decorated(function, "http1") and not OF_HTTP1.search(text):
        yield f"{where}: is marked http1, and nothing in it is of HTTP/1"
    if not restricted and re.search(r"(?<![.\w])(Client\(|socket\.create_connection\()", ast.unparse(function)):
        yield f"{where}: speaks HTTP/1 whatever it is to speak: use server.connect(), or mark it"
    for node in ast.walk(function):
        if gives_up(node) and "#" not in "".join(lines[node.lineno - 1:node.body[0].end_lineno]) and \
                "pytest.skip" not in ast.unparse(node):
            yield f"{name}:{node.lineno}: {function.name}: leaves off over a protocol and does not say why"


def check_file(name, text):
    tree, lines = ast.parse(text), text.split("\n")
    complaints = []
    for mark, call, line in marks_of(tree):
        # A call contains its own function name, which must not be counted again.
        if mark == "over" and (call or not any(c and c.func.lineno == line for m, c, _ in marks_of(tree) if m == "over")):
            wrong = check_over(call)
            complaints += [f"{name}:{line}: {wrong}"] if wrong else []
    everywhere = any(isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node.targets[0]) and
                     re.search(r"mark\.(over|http1|http2)", ast.unparse(node.value)) for node in tree.body)
    known = helpers(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            complaints += check_test(name, node, known, lines, everywhere)
    return complaints


def check(args):
    complaints = []
    for path in house.files(args.root, FOLDERS, (".py",)):
        complaints += check_file(path.relative_to(args.root).as_posix(), house.read(path))
    return complaints


def self_test(test):
    def judge(text):
        return check_file("tests/http/test_a.py", "import pytest\n" + text)

    test.expect("a good test", judge("def test_a(server):\n    assert server.get('/').status == 200\n"))
    test.expect("over with a reason", judge("@pytest.mark.over('h1', why='it is slow over all')\ndef test_a(server):\n    pass\n"))
    test.expect("all of them", judge("@pytest.mark.over(*PROTOCOLS, why='nothing is lost')\ndef test_a(server):\n    pass\n"))
    test.expect("over without a reason", judge("@pytest.mark.over('h1')\ndef test_a(server):\n    pass\n"), "does not say why")
    test.expect("an empty reason", judge("@pytest.mark.over('h1', why='')\ndef test_a(server):\n    pass\n"), "does not say why")
    test.expect("over nothing", judge("pytestmark = pytest.mark.over\n"), "names no protocols")
    test.expect("an unknown protocol", judge("pytestmark = pytest.mark.over('h3', why='it is the newest')\n"), "`over` knows")
    test.expect("over in a parameter", judge("A = pytest.param('x', marks=pytest.mark.over('h1'))\n"), "does not say why")

    http1 = "@pytest.mark.http1\ndef test_a(server):\n    assert server.get('/').status == 200\n"
    test.expect("http1 for no reason", judge(http1), "nothing in it is of HTTP/1")
    test.expect("http1 bytes", judge(http1.replace("server.get('/')", "server.send(b'x')")))
    test.expect("http1 bytes in a helper", judge("RAW = b'GET / HTTP/1.1'\n" + http1.replace("'/'", "RAW")))
    test.expect("http1 in a parameter", judge(
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.http1)])\ndef test_a(server, x):\n    pass\n"))

    own = "def test_a(server):\n    with Client(server.addresses[0]) as c:\n        c.get('/')\n"
    test.expect("a client of its own", judge(own), "use server.connect")
    test.expect("a client of its own, marked", judge("@pytest.mark.http1\n" + own.replace("'/'", "'/', version='1.0'")))
    test.expect("a module of such", judge("pytestmark = pytest.mark.http1\n" + own))
    test.expect("another client", judge(own.replace("Client(", "Http2Client(")))

    leaves = "def test_a(server):\n    if server.is_h2:\n        return\n    server.get('/')\n"
    test.expect("leaves off", judge(leaves), "leaves off over a protocol")
    test.expect("leaves off and says why", judge(leaves.replace("return", "return  # it has no versions")))
    test.expect("skips and says why", judge(leaves.replace("return", "pytest.skip('it has no versions')")))
    test.expect("does something else", judge(leaves.replace("return", "server.get('/x')")))


if __name__ == "__main__":
    house.run(__doc__, check, self_test)
