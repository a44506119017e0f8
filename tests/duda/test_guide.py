# SPDX-License-Identifier: Apache-2.0
"""The guide to Duda keeps its promises: what it shows compiles without a warning, and answers what it says."""
import re
import shlex
import shutil
from urllib.parse import urlsplit

import pytest

import services
from monkey import ROOT

pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here")

GUIDES = {name: (ROOT / "docs/guide" / name).read_text() for name in ("duda.md", "from-duda-io.md", "topics.md")}
OPTIONS = {"-d": "body", "-X": "method", "-H": "fields"}


def blocks(name):
    """Each piece of C, and the text behind it, up to the next one."""
    pieces = re.split(r"^```c\n(.*?)^```$", GUIDES[name], flags=re.MULTILINE | re.DOTALL)
    return list(zip(pieces[1::2], pieces[2::2]))


def calls(text):
    """What `$ curl ...` lines ask for, and the lines of the answer below them."""
    for match in re.finditer(r"^    \$ (curl .*)\n((?:    (?!\$).*\n|\n(?=    \S))*)", text, re.MULTILINE):
        words, how = shlex.split(match[1])[1:], {"fields": [], "body": b"", "method": None}
        while words[0] in OPTIONS:
            option, value, *words = words
            if option == "-H":
                how["fields"].append(tuple(value.split(": ", 1)))
            else:
                how[OPTIONS[option]] = value.encode() if option == "-d" else value
        how["method"] = how["method"] or ("POST" if how["body"] else "GET")
        (url,), wanted = words, re.sub("^    ", "", match[2], flags=re.MULTILINE)
        parts = urlsplit(url)
        yield parts.path + (f"?{parts.query}" if parts.query else ""), how, wanted


SERVED = [(name, i) for name in GUIDES for i, (code, _) in enumerate(blocks(name)) if "DUDA_TEST" not in code]


@pytest.fixture
def environment(tmp_path, tmp_path_factory):
    cache = tmp_path_factory.getbasetemp() / "cache"
    cache.mkdir(exist_ok=True)
    return {"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(tmp_path)}


@pytest.mark.parametrize("name, i", SERVED)
def test_what_is_shown_answers(monkey, tmp_path, environment, name, i):
    code, text = blocks(name)[i]
    path = tmp_path / "shown.c"
    path.write_text(code)
    server = monkey(args=["run", "-p", "0", path], environment=environment)
    for target, how, wanted in calls(text):
        answer = server.get(target, **how)
        assert answer.text.strip("\n") == wanted.strip("\n"), (target, answer.status)
    server.get("/")
    server.out.wait_for("compiled in|$")
    assert "warning" not in server.err.text and "error" not in server.err.text, server.err.text


def test_there_are_ten_steps():
    assert [int(n) for n in re.findall(r"^## (\d+)\. ", GUIDES["duda.md"], re.MULTILINE)] == list(range(1, 11))
    assert sum(len(list(calls(text))) for _, text in blocks("duda.md")) >= 12


def test_the_step_about_tests(run, tmp_path, environment):
    shown = blocks("duda.md")
    tests = next(code for code, _ in shown if "DUDA_TEST(greets)" in code)
    (tmp_path / "hello.c").write_text(shown[0][0])
    (tmp_path / "hello_test.c").write_text(tests)
    done = run("test", "hello_test.c", environment=environment)
    said = re.search(r"^    \$ monkey test hello_test.c\n((?:    .*\n)+)", GUIDES["duda.md"], re.MULTILINE)[1]
    assert done.code == 0 and done.out.splitlines()[1:] == [line.strip() for line in said.splitlines()][1:], done


def test_what_tests_say(run, tmp_path, environment):
    shown = blocks("duda.md")
    tests, behind = next(pair for pair in shown if "DUDA_TEST(refuses_too_much)" in pair[0])
    (tmp_path / "orders.c").write_text(next(code for code, _ in shown if "DUDA_SERVICE(orders" in code))
    (tmp_path / "orders_test.c").write_text(tests)
    done = run("test", environment=environment)
    assert done.code == 0 and done.out.endswith("ok orders.refuses_too_much\n1 test passed\n"), done
    (tmp_path / "orders_test.c").write_text(tests.replace("application/problem+json", "text/plain"))
    done = run("test", environment=environment)
    said = re.search(r"^      orders_test.c.*\n(?:    .*\n)+", behind, re.MULTILINE)[0]
    assert done.code == 1 and done.out.splitlines() == [line.removeprefix("    ") for line in said.splitlines()], done


def test_the_table_of_old_calls_names_what_is_there():
    declared = "".join(path.read_text() for folder in ("include", "duda/include") for path in (ROOT / folder).rglob("*.h"))
    named = set(re.findall(r"\b((?:duda|mk)_\w+|DUDA_\w+)\(", GUIDES["from-duda-io.md"] + GUIDES["duda.md"]))
    old = {"duda_main", "DUDA_REGISTER"}
    missing = [name for name in sorted(named - old) if not re.search(rf"\b{name}\b", declared)]
    assert missing == []
