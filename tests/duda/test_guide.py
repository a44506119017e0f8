# SPDX-License-Identifier: Apache-2.0
"""The code in the pages about Duda compiles without warnings and sends the responses that the pages show. test_guide_tracker.py
checks the guide itself."""
import re
import shutil
import time

import pytest

import services
from guides import calls, environment  # pylint: disable=unused-import
from monkey import ROOT, SECONDS

pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here")

GUIDES = {name: (ROOT / "docs/guide" / name).read_text() for name in ("duda-handlers.md", "duda-develop.md", "from-duda-io.md", "topics.md")}
CODE = re.compile(r"\b((?:duda|mk)_\w+|DUDA_\w+)\(")


def blocks(name):
    """Yields each C code block and the text between it and the next block."""
    pieces = re.split(r"^```c\n(.*?)^```$", GUIDES[name], flags=re.MULTILINE | re.DOTALL)
    return list(zip(pieces[1::2], pieces[2::2]))


def answer_of(server, code, target, how, wanted):
    """Returns the response to a request. Repeats a GET while a published message may still be in transit."""
    end = time.monotonic() + SECONDS
    while True:
        answer = server.get(target, **how)
        if answer.text.strip("\n") == wanted or how["method"] != "GET" or "duda_topic_publish" not in code or time.monotonic() > end:
            return answer
        time.sleep(0.05)


FILE = re.compile(r"/\* ([a-z]+\.[ch]) \*/\n")  # the first line of a block that is one file of a service
SERVED = [(name, i) for name in GUIDES for i, (code, _) in enumerate(blocks(name)) if "DUDA_TEST" not in code and not FILE.match(code)]


@pytest.mark.parametrize("name, i", SERVED)
def test_code_of_the_guide_sends_the_shown_responses(monkey, tmp_path, environment, name, i):  # pylint: disable=redefined-outer-name
    code, text = blocks(name)[i]
    path = tmp_path / "shown.c"
    path.write_text(code)
    server = monkey(args=["run", "-p", "0", path], environment=environment)
    for target, how, wanted in calls(text):
        answer = answer_of(server, code, target, how, wanted.strip("\n"))
        assert answer.text.strip("\n") == wanted.strip("\n"), (target, answer.status)
    server.get("/")
    server.out.wait_for("compiled in|$")
    assert "warning" not in server.err.text and "error" not in server.err.text, server.err.text


def test_service_of_several_files_works_as_shown(monkey, tmp_path, environment):
    (tmp_path / "shop").mkdir()
    files = {FILE.match(code)[1]: code for code, _ in blocks("duda-develop.md") if FILE.match(code)}
    assert sorted(files) == ["items.c", "items.h", "shop.c"]
    for name, code in files.items():
        (tmp_path / "shop" / name).write_text(code)
    for words in (["shop"], ["shop/shop.c", "shop/items.c"]):
        server = monkey(args=["run", "-p", "0", *words], environment=environment)
        assert server.get("/items/").text == "tea\n"
        assert "warning" not in server.err.text, server.err.text


def test_pages_show_many_responses():
    assert sum(len(list(calls(text))) for name in ("duda-handlers.md", "duda-develop.md") for _, text in blocks(name)) >= 20


def test_guide_shows_the_real_test_output(run, tmp_path, environment):
    shown = blocks("duda-develop.md")
    tests = next(code for code, _ in shown if "DUDA_TEST(greets)" in code)
    (tmp_path / "hello.c").write_text(next(code for code, _ in shown if "DUDA_SERVICE(hello" in code))
    (tmp_path / "hello_test.c").write_text(tests)
    done = run("test", "hello_test.c", environment=environment)
    output = re.search(r"^    \$ monkey test hello_test.c\n((?:    .*\n)+)", GUIDES["duda-develop.md"], re.MULTILINE)[1]
    assert done.code == 0 and done.out.splitlines()[1:] == [line.strip() for line in output.splitlines()][1:], done


def test_guide_shows_the_real_failure_of_a_test(run, tmp_path, environment):
    tests, behind = next(pair for pair in blocks("duda-develop.md") if "DUDA_TEST(refuses_too_much)" in pair[0])
    (tmp_path / "orders.c").write_text(next(code for code, _ in blocks("duda-handlers.md") if "DUDA_SERVICE(orders" in code))
    (tmp_path / "orders_test.c").write_text(tests)
    done = run("test", environment=environment)
    assert done.code == 0 and done.out.endswith("ok orders.refuses_too_much\n1 test passed\n"), done
    (tmp_path / "orders_test.c").write_text(tests.replace("application/problem+json", "text/plain"))
    done = run("test", environment=environment)
    output = re.search(r"^      orders_test.c.*\n(?:    .*\n)+", behind, re.MULTILINE)[0]
    assert done.code == 1 and done.out.splitlines() == [line.removeprefix("    ") for line in output.splitlines()], done


def test_pages_name_existing_functions():
    declared = "".join(path.read_text() for folder in ("include", "duda/include") for path in (ROOT / folder).rglob("*.h"))
    pages = [path.read_text() for path in (ROOT / "docs/guide").glob("*.md") if path.name in GUIDES or path.name.startswith("duda")]
    old = {"duda_main", "DUDA_REGISTER"}
    missing = [name for name in sorted({name for page in pages for name in CODE.findall(page)} - old) if not re.search(rf"\b{name}\b", declared)]
    assert missing == []


def test_every_name_for_users_of_other_frameworks_exists():
    """docs/guide/from-web-frameworks.md: the second column names functions, macros, structs, options of routes, commands and keys."""
    declared = "".join(path.read_text() for path in (ROOT / "duda/include").rglob("*.h"))
    keys = "".join((ROOT / "docs/reference" / name).read_text() for name in ("configuration.md", "duda.md", "plugins.md"))
    program = "".join(path.read_text() for path in (ROOT / "duda/dev").rglob("*.[ch]"))
    rows = re.findall(r"^\| (.*?) \| (.*?) \| .*\|$", (ROOT / "docs/guide/from-web-frameworks.md").read_text(), re.MULTILINE)
    names = [name for left, right in rows if not left.startswith(("-", "Express")) for name in re.findall("`([^`]+)`", right)]
    assert len(names) > 100
    unknown = []
    for name in names:
        if re.fullmatch(r"(duda_\w+|DUDA_\w+)(\(\))?|struct duda_\w+", name):
            found = re.search(rf"\b{name.removesuffix('()').removeprefix('struct ')}\b", declared)
        elif re.fullmatch(r"\.\w+", name):
            found = name == ".env" or re.search(rf"\b{name[1:]};", declared)
        elif name.startswith("monkey "):
            found = re.search(rf"\b{name.split()[1]}\b", program)
        elif re.fullmatch(r"[A-Z]\w+", name):
            found = f"`{name}`" in keys
        elif re.fullmatch(r"\[[A-Z_]+\]", name):
            found = re.search(rf"^## \\?{re.escape(name)[:-2]}", keys, re.MULTILINE) or name in keys
        elif value := re.fullmatch(r"\{\{#?@(\w+)\}\}", name):
            found = f"| `@{value[1]}` |" in declared
        elif tag := re.match(r"\{\{(\w+) ", name):
            found = f"`{{{{{tag[1]} " in declared
        else:
            found = name in ("html", "return 404;", '"/issues/:id<int>"', "/.duda/doc")
        if not found:
            unknown.append(name)
    assert unknown == []
