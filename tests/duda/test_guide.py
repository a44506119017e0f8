# SPDX-License-Identifier: Apache-2.0
"""The code in the Duda guide compiles without warnings and sends the responses that the guide shows."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from urllib.parse import urlsplit

import pytest

import services
from load import Load
from monkey import ROOT, SECONDS
from proc import RELEASE

pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here")

GUIDES = {name: (ROOT / "docs/guide" / name).read_text() for name in ("duda.md", "from-duda-io.md", "topics.md")}
OPTIONS = {"-d": "body", "-X": "method", "-H": "fields"}


def blocks(name):
    """Yields each C code block and the text between it and the next block."""
    pieces = re.split(r"^```c\n(.*?)^```$", GUIDES[name], flags=re.MULTILINE | re.DOTALL)
    return list(zip(pieces[1::2], pieces[2::2]))


def calls(text):
    """Yields the request of each `$ curl ...` line and the response lines below it."""
    for match in re.finditer(r"^    \$ (curl .*)\n((?:    (?!\$).*\n|\n(?=    \S))*)", text, re.MULTILINE):
        words, how = shlex.split(match[1])[1:], {"fields": [], "body": b"", "method": None}
        while words[0] in OPTIONS:
            option, value, *words = words
            if option == "-H":
                how["fields"].append(tuple(value.split(": ", 1)))
            else:
                how[OPTIONS[option]] = value.encode() if option == "-d" else value
        if how["body"] and not any(name.lower() == "content-type" for name, _ in how["fields"]):
            how["fields"].append(("Content-Type", "application/x-www-form-urlencoded"))  # as curl does
        how["method"] = how["method"] or ("POST" if how["body"] else "GET")
        (url,), wanted = words, re.sub("^    ", "", match[2], flags=re.MULTILINE)
        parts = urlsplit(url)
        yield parts.path + (f"?{parts.query}" if parts.query else ""), how, wanted


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


@pytest.fixture
def environment(tmp_path, tmp_path_factory):
    cache = tmp_path_factory.getbasetemp() / "cache"
    cache.mkdir(exist_ok=True)
    return {"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(tmp_path)}


@pytest.mark.parametrize("name, i", SERVED)
def test_code_of_the_guide_sends_the_shown_responses(monkey, tmp_path, environment, name, i):
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
    files = {FILE.match(code)[1]: code for code, _ in blocks("duda.md") if FILE.match(code)}
    assert sorted(files) == ["items.c", "items.h", "shop.c"]
    for name, code in files.items():
        (tmp_path / "shop" / name).write_text(code)
    for words in (["shop"], ["shop/shop.c", "shop/items.c"]):
        server = monkey(args=["run", "-p", "0", *words], environment=environment)
        assert server.get("/items/").text == "tea\n"
        assert "warning" not in server.err.text, server.err.text


def test_guide_has_ten_steps():
    assert [int(n) for n in re.findall(r"^## (\d+)\. ", GUIDES["duda.md"], re.MULTILINE)] == list(range(1, 11))
    assert sum(len(list(calls(text))) for _, text in blocks("duda.md")) >= 12


def step(n):
    """Returns the text of step `n`."""
    return re.search(rf"^## {n}\. .*?(?=^## )", GUIDES["duda.md"], re.MULTILINE | re.DOTALL)[0]


def configurations(text):
    """Returns the configurations in the text exactly as printed."""
    pieces = re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", text, re.MULTILINE)
    return [re.sub("^    ", "", piece, flags=re.MULTILINE) for piece in pieces if piece.startswith("    [")]


def test_step_1_shows_output_edits_and_compile_errors(monkey, tmp_path, environment):
    """Step 1: the terminal shows the printed output, a saved change is served, and a compile error is shown until it is fixed."""
    shown = blocks("duda.md")[0][0]
    path = tmp_path / "hello.c"
    path.write_text(shown)
    server = monkey(args=["run", "-p", "0", "hello.c"], environment=environment)
    output = re.search(r"^    \$ monkey run hello.c\n    (.*)\n      http://127.0.0.1:2001/\n", step(1), re.MULTILINE)[1]
    assert server.out.text.splitlines()[0] == output
    path.write_text(shown.replace("hello %s", "hullo %s"))
    assert server.get("/?name=you").text == "hullo you\n"
    path.write_text(shown.replace('"world"));', '"world"))'))
    assert "hello.c:5: error:" in server.get("/", fields=[("Accept", "text/html")]).text
    path.write_text(shown)
    assert server.get("/", fields=[("Accept", "text/html")]).text == "hello world\n"


def test_step_9_creates_a_project_whose_tests_pass(run, tmp_path, environment):
    """Step 9: `monkey new` creates a service, tests, a Makefile and a configuration, and the tests pass."""
    assert "`monkey new shop` makes a folder with a service, tests, a Makefile and a configuration" in step(9)
    assert run("new", "shop", environment=environment).code == 0
    assert {"shop.c", "shop_test.c", "Makefile", "shop.conf"} <= {path.name for path in (tmp_path / "shop").iterdir()}
    done = run("test", environment=environment, folder=tmp_path / "shop")
    assert done.code == 0 and re.search(r"^\d+ tests? passed$", done.out, re.MULTILINE), done


@pytest.fixture
def deployed(tmp_path, environment):
    """deployed(configuration, word) builds the service as step 10 describes, places it next to the configuration, and uses
    the test's own ports and folders."""
    (tmp_path / "www").mkdir()
    (tmp_path / "www/file.txt").write_text("a file")

    def build(text, word="hello"):
        (tmp_path / "hello.c").write_text(blocks("duda.md")[0][0].replace("hello %s", f"{word} %s"))
        words = re.search(r"^    \$ monkey (build .*)$", step(10), re.MULTILINE)[1].split()
        done = subprocess.run([RELEASE, *words], cwd=tmp_path, env=os.environ | environment, capture_output=True, text=True,
                              timeout=4 * SECONDS, check=False)
        assert done.returncode == 0 and (tmp_path / "monkey-hello.so").exists(), done
        path = tmp_path / "own.conf"
        path.write_text(re.sub(r"(Listen +)\S+", r"\g<1>127.0.0.1:0", text.replace("/srv/www", "www")))
        return path

    return build


@pytest.mark.skipif(not RELEASE.exists(), reason=f"{RELEASE} is not built")
def test_step_10_builds_loads_routes_and_reloads(monkey, deployed):
    """Step 10: the service is built, loaded, routed and reloaded."""
    plain = configurations(step(10))[0]
    server = monkey(args=["-c", deployed(plain)], program=RELEASE)
    assert server.get("/?name=you").text == "hello you\n" and server.get("/file.txt").text == "a file"
    route = re.search(r"With `(.*?)` in\s+`\[ROUTES\]`", step(10))[1]
    with Load(server, "/file.txt", content=b"a file") as load:
        deployed(f"{plain}\n[ROUTES]\n    {route}\n    /* static\n", word="hullo")
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves")
        load.more(5)
        load.check()
    assert server.get("/hello/?name=you").text == "hullo you\n" and server.get("/").text != "hullo world\n"


@pytest.mark.skipif(not RELEASE.exists(), reason=f"{RELEASE} is not built")
@pytest.mark.processes("an embedded server starts no process group")
def test_step_10_isolates_the_service(monkey, deployed):
    """Step 10: the second configuration replaces the sections of the first."""
    plain, own = configurations(step(10))
    server = monkey(args=["-c", deployed(plain[:plain.index("[PLUGINS]")] + own)], program=RELEASE)
    assert server.get("/?name=you").text == "hello you\n" and server.get("/file.txt").text == "a file"
    assert len(server.workers) >= 2, "the server's worker and the group's worker"


def test_guide_shows_the_real_test_output(run, tmp_path, environment):
    shown = blocks("duda.md")
    tests = next(code for code, _ in shown if "DUDA_TEST(greets)" in code)
    (tmp_path / "hello.c").write_text(shown[0][0])
    (tmp_path / "hello_test.c").write_text(tests)
    done = run("test", "hello_test.c", environment=environment)
    output = re.search(r"^    \$ monkey test hello_test.c\n((?:    .*\n)+)", GUIDES["duda.md"], re.MULTILINE)[1]
    assert done.code == 0 and done.out.splitlines()[1:] == [line.strip() for line in output.splitlines()][1:], done


def test_guide_shows_the_real_failure_of_a_test(run, tmp_path, environment):
    shown = blocks("duda.md")
    tests, behind = next(pair for pair in shown if "DUDA_TEST(refuses_too_much)" in pair[0])
    (tmp_path / "orders.c").write_text(next(code for code, _ in shown if "DUDA_SERVICE(orders" in code))
    (tmp_path / "orders_test.c").write_text(tests)
    done = run("test", environment=environment)
    assert done.code == 0 and done.out.endswith("ok orders.refuses_too_much\n1 test passed\n"), done
    (tmp_path / "orders_test.c").write_text(tests.replace("application/problem+json", "text/plain"))
    done = run("test", environment=environment)
    output = re.search(r"^      orders_test.c.*\n(?:    .*\n)+", behind, re.MULTILINE)[0]
    assert done.code == 1 and done.out.splitlines() == [line.removeprefix("    ") for line in output.splitlines()], done


def test_migration_table_names_existing_functions():
    declared = "".join(path.read_text() for folder in ("include", "duda/include") for path in (ROOT / folder).rglob("*.h"))
    named = set(re.findall(r"\b((?:duda|mk)_\w+|DUDA_\w+)\(", GUIDES["from-duda-io.md"] + GUIDES["duda.md"]))
    old = {"duda_main", "DUDA_REGISTER"}
    missing = [name for name in sorted(named - old) if not re.search(rf"\b{name}\b", declared)]
    assert missing == []
