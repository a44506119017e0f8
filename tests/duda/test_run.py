# SPDX-License-Identifier: Apache-2.0
"""`monkey run` serves every saved version, and shows compile errors and crashes until the source is fixed."""
import errno
import os
import re
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import services
from monkey import PROGRAM, ROOT, SECONDS
from proc import wait_until
from running import BROWSER, COMPILER, cache, compilers, runtime, src, start  # pylint: disable=unused-import

pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here")

RELEASE = Path(os.environ.get("MONKEY_RELEASE", ROOT / "build/release/monkey"))
HELLO = r"""#include <duda.h>
#include "word.h"

static int hello(struct duda_ctx *d)
{
    return duda_printf(d, "%s %s\n", WORD, duda_query_or(d, "name", "world"));
}

static int crash(struct duda_ctx *d)
{
    const char *none = NULL;
    return duda_printf(d, "<%c>\n", *none); /* here */
}

DUDA_SERVICE(hello, DUDA_GET("/", hello, "Greets."), DUDA_GET("/crash", crash, "Crashes."));
"""


def wait_until(is_so):
    for _ in range(SECONDS * 50):
        if (answer := is_so()):
            return answer
        time.sleep(0.02)
    raise AssertionError(f"{is_so} is not so in {SECONDS} seconds")


def open_for_reader(fifo):
    """Opens the write end of a FIFO, or returns None while the FIFO has no reader."""
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        assert error.errno == errno.ENXIO
        return None


def write_hello(src, word="hello"):
    (src / "word.h").write_text(f'#define WORD "{word}"\n')
    (src / "hello.c").write_text(HELLO)
    return src / "hello.c"


def leftovers(runtime):
    return [path.name for path in runtime.iterdir() if path.name.startswith("monkey-run")]


@compilers
def test_saved_version_is_served(start, src, tmp_path, compiler, runtime):
    server = start(write_hello(src), compiler=compiler)
    assert server.get("/").text == "hello world\n"
    for word in ("hullo", "hi"):
        (src / "word.h").write_text(f'#define WORD "{word}"\n')
        assert server.get("/?name=x").text == f"{word} x\n", "the request waits until the saved version is compiled"
    next_file = src / "next"
    next_file.write_text(HELLO.replace("%s %s", "%s, dear %s"))
    next_file.rename(src / "hello.c")
    assert server.get("/").text == "hi, dear world\n"
    assert "Duda-Run" not in server.get("/")
    server.stop()
    assert leftovers(runtime) == []


def test_recompilation_loses_no_request(start, src):
    server = start(write_hello(src))
    over, seen = threading.Event(), []

    def ask():
        while not over.is_set():
            seen.append(server.get("/", "POST" if len(seen) % 2 else "GET").status)

    (src / "hello.c").write_text(HELLO.replace("DUDA_GET", "DUDA_ANY"))
    assert server.get("/").status == 200
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for word in ("a", "b", "c"):
        (src / "word.h").write_text(f'#define WORD "{word}"\n')
        assert server.get("/").text == f"{word} world\n"
    over.set()
    for thread in threads:
        thread.join()
    assert seen and set(seen) == {200}


def test_save_during_a_compilation_is_served_next(start, src, tmp_path):
    """The compiler script saves another version before or after the compiler reads the source, at startup and later. That
    version is served next."""
    path, before, after, compiler = write_hello(src), src / "before", src / "after", tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\n[ ! -e {before} ] || mv {before} {path}\n{COMPILER} "$@"\ncode=$?\n'
                        f'[ ! -e {after} ] || mv {after} {path}\nexit $code\n')
    compiler.chmod(0o755)
    after.write_text(HELLO.replace("%s %s", "%s, dear %s"))
    server = start(path, compiler=str(compiler))
    assert server.get("/").text == "hello, dear world\n"
    after.write_text(HELLO.replace("%s %s", "%s, last %s"))
    path.write_text(HELLO.replace("%s %s", "%s, first %s"))
    wait_until(lambda: server.get("/").text == "hello, last world\n")
    before.write_text(HELLO.replace("%s %s", "%s, other %s"))
    path.write_text(HELLO.replace("%s %s", "%s, same %s"))
    wait_until(lambda: server.get("/").text == "hello, other world\n")
    path.write_text(HELLO.replace("%s %s", "%s, same %s"))
    wait_until(lambda: server.get("/").text == "hello, same world\n")


@pytest.mark.parametrize("name", ["hello.c", "word.h", "words/word.h"])
def test_save_during_a_compilation_is_not_missed(start, src, tmp_path, name):
    """A file changes while the compiler runs. If the file is the source itself, its old text is restored later. The
    change happens during the first compilation, whose headers are not watched yet, and during a later one. Neither the
    server nor the cache keeps the version that was compiled."""
    saved, before, after, compiler = src / name, src / "before", src / "after", tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\n[ ! -e {before} ] || mv {before} {saved}\n{COMPILER} "$@"\ncode=$?\n'
                        f'[ ! -e {after} ] || mv {after} {saved}\nexit $code\n')
    compiler.chmod(0o755)
    write_hello(src, "same")
    (src / "hello.c").write_text((src / "hello.c").read_text().replace("word.h", "word.h" if name == "hello.c" else name))
    saved.parent.mkdir(exist_ok=True)
    text = {word: (src / "hello.c").read_text().replace("%s %s", f"{word} %s %s") if name == "hello.c" else f'#define WORD "{word} same"\n'
            for word in ("first", "other", "last")}
    for round_ in ("first", "last"):
        before.write_text(text["other"])
        after.write_text(text[round_])
        saved.write_text(text[round_ if name == "hello.c" else "other"])
        if round_ == "first":
            server = start(src / "hello.c", compiler=str(compiler))
        wait_until(lambda word=round_: server.get("/").text == f"{word} same world\n")
    server.stop()
    server = start(src / "hello.c", compiler=str(compiler))
    assert server.get("/").text == "last same world\n"


@compilers
def test_compile_error_is_shown_until_fixed(start, src, compiler):
    server = start(write_hello(src), compiler=compiler)
    assert server.get("/").status == 200
    (src / "hello.c").write_text(HELLO.replace('WORD, duda', 'WORD + "<b>" duda'))
    page = server.get("/", fields=BROWSER)
    assert page.status == 500 and page["Content-Type"].startswith("text/html")
    assert "hello.c:6: error:" in page.text and "&lt;b&gt;" in page.text and "<b>" not in page.text
    assert "EventSource" in page.text and page["Cache-Control"] == "no-store"
    answer = server.get("/")
    assert answer.status == 500 and answer["Content-Type"].startswith("text/plain"), "other programs get the error as text"
    assert "hello.c:6: error:" in answer.text and "hello world" not in answer.text and "<h1>" not in answer.text
    server.err.wait_for("hello.c:6:.*error:")
    write_hello(src)
    answer = server.get("/", fields=BROWSER)
    assert answer.text == "hello world\n"


def test_new_version_is_announced_as_an_event(start, src):
    server = start(write_hello(src))
    with server.connect() as c:
        head = c.ask("/.duda/events").read_head()
        assert head["Content-Type"] == "text/event-stream"
        assert b"data: " in c.read_until(b"\n\n")
        write_hello(src, "other")
        assert b"data: " in c.read_until(b"\n\n")


def test_compile_error_of_the_first_version_is_shown(start, src):
    path = src / "bad.c"
    path.write_text("#include <missing.h>\nDUDA_SERVICE(bad)\n")
    server = start(path)
    answer = server.get("/")
    assert answer.status == 500 and "missing.h" in answer.text
    (src / "missing.h").write_text("#include <duda.h>\n")
    path.write_text('/* cflags: -I. */\n#include "missing.h"\nstatic int a(struct duda_ctx *d) { return duda_puts(d, "there"); }\n'
                    'DUDA_SERVICE(bad, DUDA_GET("/", a, "A."));\n')
    assert server.get("/").text == "there"


@compilers
@pytest.mark.parametrize("program", [PROGRAM, RELEASE], ids=["dev", "release"])
def test_crash_names_its_source_line(start, src, program, compiler):
    if not program.exists():
        pytest.skip("the release program is not built")
    server = start(write_hello(src), program=program, compiler=compiler)
    server.allow("Sanitizer", "worker", "runtime error")
    page = server.get("/crash?a=<i>", fields=BROWSER)
    assert page.status == 500 and page["Content-Type"].startswith("text/html")
    line = HELLO[:HELLO.index("/* here")].count("\n") + 1
    assert "SIGSEGV" in page.text and "GET /crash?a=&lt;i&gt;" in page.text
    if shutil.which("addr2line"):
        assert f"hello.c:{line}: in crash()" in page.text and "*none" in page.text
        server.err.wait_for(rf"hello\.c:{line}: in crash\(\)")
    assert "crashed" in server.get("/crash").text, "a new worker has replaced the crashed one"
    assert server.get("/").text == "hello world\n"
    (src / "hello.c").write_text(HELLO.replace(", *none", ", 'x'"))
    assert server.get("/crash").text == "<x>\n"


@compilers
@pytest.mark.parametrize("line, message", [
    ('return duda_printf(d, duda_query_or(d, "q", ""));', "format-security"),
    ("duda_log(d, MK_LOG_WARN, duda_method(d).p); return 0;", "format-security"),
    ("static duda_fn *const fn = (0, allows); return fn(d);", "incompatible-(function-)?pointer-types"),
    ("char buffer[100000]; memset(buffer, 1, sizeof buffer); return duda_write(d, mk_str_of(buffer, sizeof buffer));", "frame"),
    ('duda_session_regenerate(d); return 0;', "unused-result"),
    ('duda_printf(d, "%d", "text"); return 0;', "format")])
def test_compiler_reports_dangerous_code(run, tmp_path, cache, compiler, line, message):
    """Code whose format string is wrong or comes from a client, or that opens a protected route, is an error; other dangerous code is a
    warning."""
    (tmp_path / "bad.c").write_text("#include <duda.h>\nbool allows(struct duda_ctx *d);\nbool allows(struct duda_ctx *d)\n{\n    return d != NULL;\n}\n"
                                    f"static int bad(struct duda_ctx *d)\n{{\n    (void)d;\n    {line}\n}}\n"
                                    'DUDA_SERVICE(bad, DUDA_GET("/", bad, "Is bad."));\n')
    done = run("build", "bad.c", environment={"XDG_CACHE_HOME": str(cache), "CC": compiler})
    is_error = "format" in message or "pointer" in message
    assert re.search(message, done.err), done.err
    assert (done.code == 0) != is_error, done.err


@compilers
def test_handler_with_a_name_of_the_c_library_gets_a_hint(run, tmp_path, cache, compiler):
    (tmp_path / "named.c").write_text('#include <duda.h>\nstatic int index(struct duda_ctx *d) { return duda_puts(d, "a"); }\n'
                                      'DUDA_SERVICE(named, DUDA_GET("/", index));\n')
    done = run("build", "named.c", environment={"XDG_CACHE_HOME": str(cache), "CC": compiler})
    assert done.code == 1 and "hint: the C library has a function `index`: choose another name" in done.err, done.err


def test_undefined_function_is_reported(start, src, tmp_path, runtime):
    path = src / "lost.c"
    path.write_text('#include <duda.h>\nint missing(void);\nstatic int a(struct duda_ctx *d) { return missing() + duda_puts(d, "a"); }\n'
                    'DUDA_SERVICE(lost, DUDA_GET("/", a, "A."));\n')
    server = start(path)
    page = server.get("/", fields=BROWSER)
    assert page.status == 500 and "lost.c:3: error: `missing` is used, but not defined" in page.text
    server.stop()
    assert leftovers(runtime) == []


def test_route_conflict_is_shown_until_fixed(start, src):
    """The page shows both source lines until the conflict is fixed."""
    path = src / "twice.c"
    text = ('#include <duda.h>\nstatic int a(struct duda_ctx *d) { return duda_puts(d, "a"); }\nDUDA_SERVICE(twice,\n'
            '    DUDA_GET("/:x", a, "A."),\n    DUDA_GET("/:y", a, "Again."));\n')
    path.write_text(text)
    server = start(path)
    page = server.get("/1", fields=BROWSER)
    assert page.status == 500 and "does not start" in page.text and re.search(r"twice\.c:5: .*twice\.c:4", page.text), page.text
    path.write_text(text.replace("/:y", "/y/:y"))
    assert server.get("/1", fields=BROWSER).text == "a"


def test_unknown_host_is_rejected(start, src):
    """DNS rebinding: pages of other sites must not read the responses of the service under development."""
    server = start(write_hello(src), "-n", "a.test,b.test")
    with server.connect() as c:
        for host in ("evil.example", "localhost.evil.example"):
            answer = c.get("/", fields=BROWSER, host=host)
            assert answer.status == 403 and "-n NAME" in answer.text, host
            assert c.get("/.duda/events", host=host).status == 403
        for host in ("localhost", "x.localhost:99", "127.0.0.1:2001", "[::1]", "192.0.2.7", "b.test"):
            assert c.get("/", host=host).status == 200, host


HANGS = r"""#include <duda.h>
#include <fcntl.h>
#include <unistd.h>

static void wait_while_there(const char *path)
{
    close(open("HERE/begun", O_CREAT | O_WRONLY, 0600));
    while (access(path, F_OK) == 0)
        usleep(10000);
}

__attribute__((constructor)) static void load(void)
{
    wait_while_there("HERE/loading");
}

static int begin(struct mk_worker *worker)
{
    (void)worker;
    wait_while_there("HERE/starting");
    return 0;
}

static int hello(struct duda_ctx *d)
{
    return duda_puts(d, "hello\n");
}

DUDA_SERVICE(hangs, DUDA_START(begin), DUDA_GET("/", hello, "Greets."));
"""


def test_hanging_route_page_delays_no_other_request(start, src, tmp_path):
    """`monkey doc` loads the service, which may never return. Only the client that requested the page waits."""
    (src / "hangs.c").write_text(HANGS.replace("HERE", str(tmp_path)))
    server = start(src / "hangs.c")
    assert server.get("/").status == 200
    (tmp_path / "begun").unlink()
    (tmp_path / "loading").touch()
    with server.connect() as c:
        c.ask("/.duda/doc")
        wait_until((tmp_path / "begun").exists)
        assert server.get("/").status == 200
        (tmp_path / "loading").unlink()
        assert c.read().status == 200


def test_stop_does_not_wait_for_service_or_compiler(start, src, tmp_path, runtime):
    """`monkey run` stops without waiting for a service that is starting or a compiler that is running, and leaves no files."""
    (src / "hangs.c").write_text(HANGS.replace("HERE", str(tmp_path)))
    (tmp_path / "starting").touch()
    server = start(src / "hangs.c")
    wait_until((tmp_path / "begun").exists)
    server.stop()
    assert leftovers(runtime) == []
    os.mkfifo(src / "never.h")
    (src / "hangs.c").write_text('#include "never.h"\nDUDA_SERVICE(hangs)\n')
    server = start(src / "hangs.c")
    fifo = wait_until(lambda: open_for_reader(src / "never.h"))
    server.stop()
    os.close(fifo)
    assert leftovers(runtime) == []


def test_folder_of_handlers_is_served(start, src):
    (src / "one.c").write_text('#include <duda.h>\nstatic int handle(struct duda_ctx *d) { return duda_printf(d, "one %s\\n", '
                               'duda_path(d).p); }\n')
    for name in ("page.html", "keys.db", "shop.conf", ".secret"):
        (src / name).write_text("not for browsers")
    (src / "off_.c").write_text("not compiled")
    server = start(src)
    assert [server.get(path).status for path in ("/page.html", "/keys.db", "/shop.conf", "/.secret")] == [404, 404, 404, 403]
    (src / "html").mkdir()
    (src / "html/page.html").write_text("a page")
    assert server.get("/page.html").text == "a page", "the folder may be created later"
    assert server.get("/one").text == "one /\n" and server.get("/one/more").text == "one /more\n"
    assert [server.get(path).status for path in ("/one.c", "/off_", "/none", "/a/b")] == [404] * 4
    (src / "two.c").write_text('#include <duda.h>\nstatic int two(struct duda_ctx *d) { return duda_puts(d, "two\\n"); }\n'
                               'DUDA_SERVICE(two, DUDA_GET("/:x", two, "Two."));\n')
    assert server.get("/two/x").text == "two\n" and server.get("/one").text == "one /\n"
    (src / "index.c").write_text('#include <duda.h>\nstatic int handle(struct duda_ctx *d) { return duda_puts(d, "home\\n"); }\n')
    assert server.get("/").text == "home\n"
    (src / "two.c").unlink()
    assert server.get("/two/x").status in (200, 404), "index.c handles all remaining paths"
    assert "compiled in" in server.out.text


def test_folder_serves_the_rest_while_one_file_is_broken(start, src):
    template = '#include <duda.h>\nstatic int say(struct duda_ctx *d) { return duda_puts(d, "%s"); }\nDUDA_SERVICE(%s, DUDA_GET("/", say, "Says.")%s);\n'
    (src / "good.c").write_text(template % ("good", "good", ""))
    (src / "bad.c").write_text(template.replace('("', '(') % ("bad", "bad", ""))
    (src / "twice.c").write_text(template % ("twice", "twice", ', DUDA_GET("/", say, "Says, too.")'))
    server = start(src)
    page = {name: server.get(f"/{name}", fields=BROWSER) for name in ("good", "bad", "twice")}
    assert page["good"].text == "good"
    assert page["bad"].status == 500 and "does not compile" in page["bad"].text and "twice" not in page["bad"].text
    assert page["twice"].status == 500 and "match the same requests" in page["twice"].text and "bad.c" not in page["twice"].text
    # A version saved after a failed compilation is served, and a broken version does not come back.
    (src / "good.c").write_text(template % ("better", "good", ""))
    (src / "new.c").write_text(template % ("new", "new", ""))
    assert [server.get(f"/{name}", fields=BROWSER).text for name in ("good", "new")] == ["better", "new"]
    (src / "good.c").write_text(template.replace('("', '(') % ("worse", "good", ""))
    assert server.get("/good").status == 500 and server.get("/good", fields=BROWSER).status == 500
    assert server.get("/new", fields=BROWSER).text == "new"
    for name in ("good", "bad", "twice"):
        (src / f"{name}.c").write_text(template % (name, name, ""))
    assert [server.get(f"/{name}", fields=BROWSER).text for name in ("good", "bad", "twice")] == ["good", "bad", "twice"]
    assert "Says." in server.get("/twice/.duda/doc").text
    # Each error is reported once.
    assert server.err.text.count("match the same requests") == 1


def test_source_comment_sets_libraries_and_flags(start, src):
    path = src / "flags.c"
    path.write_text('/* pkg-config: zlib\n * cflags: -DWORD="it" */\n#include <duda.h>\n#include <zlib.h>\n#define TEXT_(x) #x\n'
                    '#define TEXT(x) TEXT_(x)\nstatic int a(struct duda_ctx *d) { return duda_printf(d, "%s %d", TEXT(WORD), '
                    'zlibVersion()[0] > 0); }\nDUDA_SERVICE(flags, DUDA_GET("/", a, "A."));\n')
    server = start(path)
    if shutil.which("pkg-config"):
        answer = server.get("/")
        assert answer.text == '"it" 1' or "zlib" in answer.text


def test_additional_configuration_is_loaded(start, src):
    (src / "more.conf").write_text("[HOST]\n    DocumentRoot .\n")
    server = start(write_hello(src), "-i", src / "more.conf")
    assert server.get("/").text == "hello world\n"


TRIED = r"""#include <duda.h>
#include <stdio.h>
#include <stdlib.h>

static int begin(struct mk_worker *worker)
{
    (void)worker;
    printf("begins\n");
    return 0;
}

static int say(struct duda_ctx *d)
{
    printf("said %s\n", duda_query_or(d, "word", "nothing"));
    return duda_puts(d, "said\n");
}

static int many(struct duda_ctx *d)
{
    for (int i = 0; i < 5000; i++)
        printf("line %d of many, which are more than a pipe holds\n", i);
    return duda_puts(d, "many\n");
}

static int who(struct duda_ctx *d)
{
    mk_str peer = mk_request_client_text(duda_request(d)), scheme = mk_request_scheme(duda_request(d));
    return duda_printf(d, "%.*s %.*s\n", MK_STR_ARG(peer), MK_STR_ARG(scheme));
}

static int take(struct duda_ctx *d)
{
    mk_str all;
    int e = duda_read_all(d, 64 << 20, &all);
    return e ? e : duda_printf(d, "%zu\n", all.len);
}

static int give(struct duda_ctx *d)
{
    return atoi(duda_query_or(d, "result", "0"));
}

static int crash(struct duda_ctx *d)
{
    (void)d;
    abort();
}

DUDA_SERVICE(tried, DUDA_START(begin),
    DUDA_GET("/say", say, "Prints."), DUDA_GET("/many", many, "Prints many lines."), DUDA_GET("/who", who, "Shows its client."),
    DUDA_POST("/take", take, "Takes content."), DUDA_GET("/give", give, "Fails."), DUDA_GET("/crash", crash, "Crashes."),
    DUDA_GET("/items/:id<int>", give, "Has a parameter."));
"""


@pytest.fixture
def tried(src):
    (src / "tried.c").write_text(TRIED)
    return src / "tried.c"


def test_configuration_may_set_server_and_host_keys(start, src, tried):
    """A production configuration, including Listen, may be used: the file may have any section, but only one [SERVER]
    and one [HOST]."""
    (src / "other.conf").write_text("[SERVER]\n    Listen 1\n    MaxBodySize 2M\n    Workers 2\n")
    (src / "more.conf").write_text("@INCLUDE other.conf\n[PLUGINS]\n    Load auth\n[HOST]\n    ServerName example.org\n    MaxBodySize 3M\n"
                                   "[LOCATION]\n    Path /take\n    MaxBodySize 4M\n[ERROR_PAGES]\n    404 none.html\n")
    server = start(tried, "-i", src / "more.conf")
    server.allow("none.html")
    assert server.get("/take", method="POST", body=b"x" * (4 << 20)).text == f"{4 << 20}\n"
    assert server.get("/say", method="GET").status == 200
    assert "no request can reach" not in server.err.text and "error" not in server.err.text, server.err.text


def test_configuration_may_set_a_location(start, src, tried):
    (src / "more.conf").write_text("[LOCATION]\n    Path /take\n    MaxBodySize 10\n")
    server = start(tried, "-i", src / "more.conf")
    answer = server.get("/take", method="POST", body=b"x" * 11)
    assert answer.status == 413 and "`MaxBodySize 10 bytes`" in answer.text and "`.body_max`" in answer.text, answer.text
    server.err.wait_for("413: the body is larger than `MaxBodySize 10 bytes`")


def test_changed_configuration_is_reloaded(start, src, tried):
    """The files that the configuration includes are watched, too, and so are files that an editor replaces."""
    (src / "inner.conf").write_text("[LOCATION]\n    Path /take\n    MaxBodySize 10\n")
    (src / "more.conf").write_text("@INCLUDE inner.conf\n")
    server = start(tried, "-i", src / "more.conf")

    def take(n):
        return server.get("/take", method="POST", body=b"x" * n).status

    assert (take(10), take(11)) == (200, 413)
    (src / "next").write_text("[LOCATION]\n    Path /take\n    MaxBodySize 20\n")
    (src / "next").rename(src / "inner.conf")
    assert (take(20), take(21)) == (200, 413)
    (src / "more.conf").write_text("[LOCATION]\n    Path /take\n    MaxBodySize 30\n")
    assert (take(30), take(31)) == (200, 413)
    (src / "more.conf").write_text("[LOCATION]\n    Path /take\n    MaxBodySizes 30\n")
    page = server.get("/who")
    assert page.status == 500 and "more.conf:3" in page.text and "MaxBodySize" in page.text
    (src / "more.conf").write_text("")
    assert take(31) == 200


def test_changed_migration_is_run_or_refused(start, src):
    """A new migration runs without a restart of `monkey run`. An error in it, or an edit of one that has run, is reported at once."""
    (src / "tables.c").write_text('#define DUDA_USE "duda-sqlite", "duda-sql"\n#include <duda.h>\n#include <duda/sql.h>\n'
                                  'static int show(struct duda_ctx *d)\n{\n    struct duda_sql_result r;\n'
                                  '    int e = duda_sql_query(d, duda_sql_find(d, NULL), &r, "SELECT count(*) FROM sqlite_schema WHERE name IN (\'a\', \'b\')");\n'
                                  '    return e ? e : duda_printf(d, "%lld\\n", (long long)duda_sql_cell(&r, 0, 0)->number);\n}\n'
                                  'DUDA_SERVICE(tables, DUDA_GET("/", show, "Counts tables."));\n')
    (src / "tables.conf").write_text('[SQLITE]\n    File tables.db\n    Migrations  sql\n')
    sql = src / "sql"
    sql.mkdir()
    server = start(src / "tables.c", "-i", src / "tables.conf")
    assert server.get("/").text == "0\n"
    (sql / "1-a.sql").write_text("CREATE TABLE a (x INTEGER);\n")
    assert server.get("/").text == "1\n"
    (sql / "2-b.sql").write_text("CREATE TABLE b (x INTEGER);\n")
    assert server.get("/").text == "2\n"
    (sql / "1-a.sql").write_text("CREATE TABLE a (x TEXT);\n")
    page = server.get("/", fields=BROWSER)
    assert page.status == 500 and "1-a.sql was edited after it had been run" in page.text, page.text
    (sql / "1-a.sql").write_text("CREATE TABLE a (x INTEGER);\n")
    assert server.get("/").text == "2\n"
    (sql / "3-c.sql").write_text("CREAT TABLE c (x INTEGER);\n")
    page = server.get("/", fields=BROWSER)
    assert page.status == 500 and "3-c.sql" in page.text and "syntax error" in page.text, page.text
    (sql / "3-c.sql").unlink()
    assert server.get("/").text == "2\n"


def test_printf_is_complete(start, tried):
    """Every line appears immediately and in order, including output from before the service starts and from just before
    it exits."""
    server = start(tried)
    server.out.wait_for("^begins\n")
    assert server.get("/say?word=this").text == "said\n"
    server.out.wait_for("^said this\n")
    assert server.get("/many").text == "many\n"
    server.get("/say?word=last")
    server.stop()
    lines = [line for line in server.out.text.splitlines() if line.startswith("line ")]
    assert lines == [f"line {i} of many, which are more than a pipe holds" for i in range(5000)]
    assert "said last" in server.out.text


def test_each_request_is_printed(start, src, tried):
    """A line appears when a request ends, whether the service, a file or `monkey run` responds; `-q` turns the lines off."""
    (src / "html").mkdir()
    (src / "html/page.html").write_text("page")
    server = start(tried)
    server.get("/say?word=a%0Ab")
    server.out.wait_for(r"^GET /say\?word=a%0Ab 200 in \d+(\.\d)? ms\n")
    assert server.get("/take", method="POST", body=b"x").status == 200
    server.out.wait_for(r"^POST /take 200 in ")
    assert server.get("/page.html").text == "page" and server.get("/none").status == 404
    server.out.wait_for(r"^GET /page.html 200 in [^\n]*\nGET /none 404 in ")
    assert server.get("/give?result=503").status == 503
    server.out.wait_for(r"^GET /give\?result=503 503 in ")
    assert server.get("/" + 2000 * "x").status == 404
    server.out.wait_for(r"^GET /x{499}\.\.\. 404 in ")
    tried.write_text(TRIED.replace("int say", "int say;"))
    assert server.get("/say").status == 500
    server.out.wait_for(r"^GET /say 500 in ")
    tried.write_text(TRIED)
    with server.connect() as client:
        client.ask("/.duda/events").read_head()
    quiet = start(tried, "-q")
    assert quiet.get("/say?word=this").text == "said\n"
    quiet.out.wait_for("^said this\n")
    server.stop()
    quiet.stop()
    assert "GET" not in quiet.out.text and "/.duda/events" not in server.out.text


COUNTER = r"""#include <duda.h>
static unsigned n;
static int count(struct duda_ctx *d)
{
    unsigned own = ++n;
    int e = duda_sleep(d, 200); /* meanwhile, other workers accept requests */
    return e ? e : duda_printf(d, "%u %u", mk_worker_index(duda_worker(d)), own);
}
DUDA_SERVICE(counter, DUDA_GET("/", count, "Counts."));
"""


def test_workers_have_their_own_static_variables(start, src):
    source = src / "counter.c"
    source.write_text(COUNTER)
    assert start(source).get("/").text == "0 1"
    server = start(source, "-w", "3")

    def count():
        with ThreadPoolExecutor(12) as pool:
            return [reply.text.split() for reply in pool.map(lambda _: server.get("/"), range(12))]

    seen = []

    def all_workers_have_counted():
        seen.extend(count())
        return {worker for worker, _ in seen} == {"0", "1", "2"}

    wait_until(all_workers_have_counted)
    for worker in "012":
        numbers = sorted(int(n) for index, n in seen if index == worker)
        assert numbers == list(range(1, len(numbers) + 1)), "each worker counts on its own"
    assert "serves with" not in server.err.text
    source.write_text(COUNTER.replace('"%u %u"', '"%u %u new"'))
    wait_until(lambda: {worker for worker, *_ in count()} == {"0", "1", "2"})
    assert server.get("/").text.endswith(" new"), "the number of workers survives a change"


def test_workers_take_turns(start, src):
    """A developer sees at once that a static variable differs between workers, even with one connection."""
    (src / "counter.c").write_text(COUNTER.replace("duda_sleep(d, 200)", "0"))
    server = start(src / "counter.c", "-w", "3")
    with server.connect() as c:
        assert {c.get("/").text.split()[0] for _ in range(30)} == {"0", "1", "2"}
    assert {server.get("/").text.split()[0] for _ in range(30)} == {"0", "1", "2"}


@pytest.mark.parametrize("number", ["0", "65", "x", "", "-1", "1x"])
def test_invalid_number_of_workers_is_rejected(run, number):
    done = run("run", "-w", number, "counter.c")
    assert done.code == 2 and "must be from 1 to 64" in done.err


def test_aborted_request_is_printed(start, src):
    (src / "live.c").write_text(LIVE.replace("VERSION", "one"))
    server = start(src / "live.c")
    with server.connect() as stream:
        stream.ask("/events").read_head()
        assert b"data: one" in stream.read_until(b"\n\n")
    server.out.wait_for(r"^GET /events 200 in [\d.]+ ms, the client disconnected\n")


ENVIRONMENT = r"""#define DUDA_SETTINGS table
#include <duda.h>
#include <stdlib.h>

struct settings {
    mk_str secret;
};
static const struct mk_conf_key keys[] = {{.name = "Secret", .type = MK_CONF_CUSTOM, MK_CONF_AT(struct settings, secret),
                                           .parse = duda_secret, .syntax = DUDA_SECRET_SYNTAX}};
static const struct mk_conf_table table = {.section = "SHOWN", .keys = keys, .n = 1, .size = sizeof(struct settings)};

static int show(struct duda_ctx *d)
{
    const char *value = getenv(duda_param(d, "name").p);
    return duda_printf(d, "%s.%s\n", value ? value : "absent", ((const struct settings *)duda_settings(d))->secret.p);
}

DUDA_SERVICE(shown, DUDA_GET("/:name", show, "Shows a variable."));
"""
ENV = r"""# for development
A=one
export B = two words   # a comment
C="quoted # \"text\"\n"
D='single \n'
E=
F=a#b
A=last
HOME=/none
SECRET=sesame
"""


@pytest.mark.parametrize("is_folder", [False, True])
def test_env_file_sets_variables(start, src, is_folder):
    """The configuration and the service see the variables of `.env`, which changes while the service runs. The variables of the
    shell take precedence."""
    (src / "shown.c").write_text(ENVIRONMENT)
    (src / "more.conf").write_text("[SHOWN]\n    Secret env:SECRET\n")
    (src / ".env").write_text(ENV)
    server = start(src if is_folder else src / "shown.c", "-i", src / "more.conf")
    expected = {"A": "last", "B": "two words", "C": 'quoted # "text"\n', "D": "single \\n", "E": "", "F": "a#b", "HOME": os.environ["HOME"]}
    assert {name: server.get(f"/{name}").text for name in expected} == {name: f"{value}.sesame\n" for name, value in expected.items()}
    (src / ".env").write_text("G=new\r\nSECRET=other\r\n")
    assert server.get("/G").text == "new.other\n" and server.get("/A").text == "absent.other\n"
    for text, problem in (("G", "expected NAME=VALUE"), ("1G=x", "expected NAME=VALUE"), ('G="x', "the closing quote is missing"),
                          ('G="x" y', "unexpected text after the closing quote"), ("G=a\0b", "the value contains a NUL byte")):
        (src / ".env").write_text(f"# first\n{text}\n")
        page = server.get("/G", fields=BROWSER)
        assert page.status == 500 and f".env:2" in page.text and problem in page.text, page.text
    (src / ".env").unlink()
    assert server.get("/G").status == 500, "the secret is missing"
    (src / "more.conf").write_text("")
    assert server.get("/G").text == "absent.(null)\n"


def test_env_file_sets_variables_of_tests(run, src, cache, runtime):
    cache.mkdir(exist_ok=True)
    src.mkdir()
    (src / "shown.c").write_text(ENVIRONMENT)
    (src / "shown_test.c").write_text('#include <duda/test.h>\nDUDA_TEST(sees_it)\n{\n'
                                      '    duda_expect_text(t, duda_test_get(t, "/A").body, "one.(null)\\n");\n}\n')
    (src / ".env").write_text("A=one\n")
    env = {"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(runtime)}
    done = run("test", src / "shown_test.c", environment=env)
    assert done.code == 0 and "ok shown.sees_it" in done.out, done
    (src / ".env").write_text("A\n")
    done = run("test", src / "shown_test.c", environment=env)
    assert done.code == 1 and ".env:1: error: expected NAME=VALUE" in done.err, done


def test_client_address_cannot_be_forged(start, tried):
    server = start(tried)
    assert server.get("/who").text == "127.0.0.1 http\n"
    assert server.get("/who", fields={"Monkey-Client": "192.0.2.1 7 https eve", "X-Forwarded-For": "192.0.2.1"}).text == "127.0.0.1 http\n"


def test_repeated_crashes_do_not_disable_the_route(start, tried):
    """CrashLimit is meant for production: under `monkey run`, the tenth crash is shown like the first."""
    server = start(tried)
    server.allow("Sanitizer", "worker", "SIGABRT", "signal 6")
    for _ in range(6):
        page = server.get("/crash", fields=BROWSER)
        assert page.status == 500 and "SIGABRT" in page.text, page.text
    assert server.get("/say").status == 200


@pytest.mark.parametrize("target, method, status, why", [
    ("/give?result=404", "GET", 404, r"give\(\) in \S*tried.c:\d+ returned 404"),
    ("/give?result=503", "GET", 503, r"give\(\) in \S*tried.c:\d+ returned 503"),
    ("/give?result=-5", "GET", 500, r"give\(\) in \S*tried.c:\d+ answered -EIO \(Input/output error\)"),
    ("/take", "GET", 405, "this path has no route for GET, only for POST"),
    ("/none", "GET", 404, "no handler responds to this path"),
    ("/give?result=-90", "GET", 413, r"give\(\) in \S*tried.c:\d+ answered -EMSGSIZE \(Message too long\)"),
    ("/give?result=-2", "GET", 404, r"give\(\) in \S*tried.c:\d+ answered -ENOENT \(No such file or directory\)"),
])
def test_error_page_contains_the_reason(start, tried, target, method, status, why):
    """Browsers get an error page, and other programs get text; both contain the reason."""
    server = start(tried)
    page, text = server.get(target, method=method, fields=BROWSER), server.get(target, method=method)
    assert (page.status, text.status) == (status, status)
    assert page["Content-Type"] == "text/html; charset=utf-8" and text["Content-Type"] == "text/plain; charset=utf-8"
    assert re.search(why, page.text) and re.search(why, text.text), text.text
    assert f"<h1>{status} " in page.text and "<h1>" not in text.text and "error log" not in page.text
    assert page["Cache-Control"] == text["Cache-Control"] == "no-store"


def test_limit_of_the_handler_is_named(start, src):
    (src / "taker.c").write_text('#include <duda.h>\nstatic int take(struct duda_ctx *d)\n{\n    mk_str all;\n    return duda_read_all(d, 1000, &all);\n}\n'
                                 'DUDA_SERVICE(taker, DUDA_POST("/", take, "Takes 1000 bytes."));\n')
    server = start(src / "taker.c")
    chunked = server.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n7d1\r\n"
                          + 2001 * b"x" + b"\r\n0\r\n\r\n", "POST")
    for page in (server.get("/", method="POST", body=2001 * b"x"), chunked):
        assert page.status == 413 and "longer than the 1000 bytes that the call of duda_read_all() accepts" in page.text, page.text


def test_path_without_route_lists_the_routes(start, src, tried):
    server = start(tried)
    for path in ("/", "/none"):
        page = server.get(path, fields=BROWSER)
        assert page.status == 404 and '<a href="/say">/say</a>' in page.text and "/items/:id&lt;int&gt;" in page.text, page.text
        assert "GET /who\n" in server.get(path).text and "POST /take\n" in server.get(path).text
    (src / "html").mkdir()
    (src / "html/index.html").write_text("a page")
    assert server.get("/").text == "a page"


def test_path_without_route_lists_the_routes_of_a_folder(start, src, tried):
    (src / "other.c").write_text('#include <duda.h>\nstatic int handle(struct duda_ctx *d) { return duda_puts(d, "other\\n"); }\n')
    server = start(src)
    assert server.get("/tried/say").status == 200
    assert "GET /tried/say\n" in server.get("/").text


@pytest.mark.parametrize("text,problem", [
    ("{{nosuch}}", "`nosuch` does not name a value here"), ("{{nosuch | upper}}", "`nosuch` does not name a value here"),
    ("{{>missing.html}}", "`missing.html` does not name a template"), ("{{<missing.html}}{{/missing.html}}", "`missing.html` does not name a template"),
    ("{{<layout.html}}{{$boddy}}x{{/boddy}}{{/layout.html}}", "`boddy` does not name a block of the parent"),
    ("{{#mroe}}x{{/mroe}}", "`mroe` does not name a value here"), ("{{^mroe}}x{{/mroe}}", "`mroe` does not name a value here"),
    ("{{name | number}}", "`name` is not a number")])
def test_mistake_in_a_template_is_shown_on_the_page(start, src, text, problem):
    """The page and the terminal name the line. A section of a null is no mistake."""
    (src / "templates").mkdir()
    (src / "templates/layout.html").write_text("{{$body}}{{/body}}")
    (src / "templates/page.html").write_text(f"<p>{{{{name}}}}</p>{{{{#more}}}}x{{{{/more}}}}\n {text}\n")
    (src / "page.c").write_text('#include <duda.h>\nstatic int show(struct duda_ctx *d)\n{\n    const struct duda_entry page[] = {{"name", duda_value_cstr("Ana")}, {"more", duda_value_null()}};\n'
                                '    return duda_render(d, "page.html", duda_value_map(page, 2));\n}\n'
                                'DUDA_SERVICE(page, DUDA_GET("/", show, "Shows."));\n')
    server = start(src / "page.c")
    answer, where = server.get("/"), f"page.html, line 2, column {max(text.find('{{$'), 0) + 2}: {problem}"
    assert answer.status == 500 and where in answer.text, answer.text
    server.err.wait_for(re.escape(where))
    assert "`more`" not in server.err.text
    (src / "templates/page.html").write_text("<p>{{name}}</p>{{#more}}x{{/more}}\n{{nosuch | default 'none'}}\n")
    wait_until(lambda: server.get("/").text == "<p>Ana</p>\nnone\n")


def test_changed_template_or_asset_in_a_subfolder_is_served(start, src):
    for name, text in {"templates/admin/users.html": "{{>admin/parts/nav.html}} users", "templates/admin/parts/nav.html": "nav",
                       "assets/css/themes/app.css": "red"}.items():
        (src / name).parent.mkdir(parents=True, exist_ok=True)
        (src / name).write_text(text)
    (src / "admin.c").write_text('#include <duda.h>\nstatic int show(struct duda_ctx *d)\n{\n    return duda_render(d, "admin/users.html", duda_value_null());\n}\n'
                                 'static int list(struct duda_ctx *d)\n{\n    return duda_redirect(d, 303, duda_asset_url(d, MK_STR("css/themes/app.css")));\n}\n'
                                 'DUDA_SERVICE(admin, DUDA_GET("/", show, "Shows."), DUDA_GET("/css", list, "Redirects."), DUDA_ASSETS("/static"));\n')
    server = start(src / "admin.c")
    assert server.get("/").text == "nav users"
    (src / "templates/admin/parts/nav.html").write_text("menu")
    assert server.get("/").text == "menu users"
    first = server.get("/css")["Location"]
    (src / "assets/css/themes/app.css").write_text("blue")
    second = server.get("/css")["Location"]
    assert first != second and server.get(second).text == "blue"
    (src / "templates/admin/parts/nav.html").rename(src / "templates/admin/parts/other.html")
    page = server.get("/")
    assert page.status == 500 and "`admin/parts/nav.html` does not name a template" in page.text, page.text
    (src / "templates/admin/parts/nav.html").write_text("{{#open}}")
    page = server.get("/")
    assert page.status == 500 and "templates/admin/parts/nav.html" in page.text, page.text


def test_next_start_removes_the_leftovers_of_a_killed_instance(start, src, tmp_path, runtime):
    """A process cannot handle kill -9, but the next start removes its files, except those of instances that are still
    running."""
    server, other = start(write_hello(src)), start(src / "hello.c")
    assert server.get("/").status == other.get("/").status == 200 and len(leftovers(runtime)) == 2
    server.exit_code = -9
    server.kill()
    third = start(src / "hello.c")
    assert third.get("/").status == other.get("/").status == 200 and len(leftovers(runtime)) == 2
    third.stop()
    other.stop()
    assert leftovers(runtime) == []


LIVE = r"""#include <duda.h>

static int events(struct duda_ctx *d)
{
    int e = duda_sse_send(d, &(struct mk_sse_event){.data = MK_STR("VERSION")});
    while (!e)
        e = duda_sleep(d, 3600000);
    return e;
}

static int echo(struct duda_ctx *d)
{
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        e = duda_websocket_send(d, s, m.kind, MK_STR("VERSION"));
    return e;
}

DUDA_SERVICE(live, DUDA_GET("/events", events, "A stream."), DUDA_GET("/echo", echo, "A WebSocket."));
"""


def test_open_pages_switch_to_the_new_version_immediately(start, src):
    """When the new version is ready, event streams end and WebSockets close with 1001, so that browsers reconnect."""
    (src / "live.c").write_text(LIVE.replace("VERSION", "one"))
    server = start(src / "live.c")
    with server.connect() as stream, connect(f"ws://127.0.0.1:{server.port}/echo", proxy=None) as socket:
        stream.ask("/events").read_head()
        assert b"data: one" in stream.read_until(b"\n\n")
        socket.send("hello")
        assert socket.recv() == "one"
        (src / "live.c").write_text(LIVE.replace("VERSION", "two"))
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=SECONDS / 4)
        assert closed.value.rcvd.code == 1001
        assert stream.read_until(b"0\r\n\r\n") == b"\r\n000c\r\nretry: 100\n\n\r\n", "the stream ends properly"
    with server.connect() as stream, connect(f"ws://127.0.0.1:{server.port}/echo", proxy=None) as socket:
        stream.ask("/events").read_head()
        assert b"data: two" in stream.read_until(b"\n\n")
        socket.send("hello")
        assert socket.recv() == "two"
    assert "the response is incomplete" not in server.err.text


def test_reasons_are_escaped(start, tried):
    page = start(tried).get("/<script>alert(1)</script>", fields=BROWSER)
    assert page.status == 404 and "<script>alert" not in page.text and "&lt;script&gt;alert" in page.text


@pytest.mark.parametrize("words, message", [
    ([], "usage: monkey run"), (["a", "b"], "a: No such file"), (["none.c"], "none.c: No such file"),
    (["-p", "1 2", "src"], "it is not an address"), (["-i", "none", "src"], "none: No such file")])
def test_wrong_arguments_are_rejected(run, tmp_path, cache, words, message, runtime):
    (tmp_path / "src").mkdir()
    done = run("run", *words, environment={"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(runtime)})
    assert done.code in (1, 2) and message in done.err, done
    assert leftovers(runtime) == []


def test_help_shows_the_usage(run):
    done = run("run", "--help")
    assert done.code == 0 and re.match(r"usage: monkey run .*\n\nCompiles", done.out)


def test_build_creates_an_object_or_reports_errors(run, monkey, tmp_path, cache):
    cache.mkdir(exist_ok=True)
    (tmp_path / "s").mkdir()
    done = run("build", write_hello(tmp_path / "s"), environment={"XDG_CACHE_HOME": str(cache)})
    assert done.code == 0 and "\n[PLUGINS]\n    Load  ./monkey-hello.so\n" in done.out and "\n[ROUTES]\n    /hello/*  hello\n" in done.out, done
    assert monkey(plugins=["./monkey-hello.so"]).get("/").text == "hello world\n"
    (tmp_path / "s/hello.c").write_text(HELLO.replace("WORD, duda", "nowhere(WORD), duda").replace("static", "const char *nowhere(const char *);\nstatic", 1))
    done = run("build", "-o", tmp_path / "other.so", tmp_path / "s/hello.c", environment={"XDG_CACHE_HOME": str(cache)})
    assert done.code == 1 and "error: `nowhere` is used, but not defined" in done.err and not (tmp_path / "other.so").exists()
    (tmp_path / "s/hello.c").write_text("int x = ;\nDUDA_SERVICE(hello)\n")
    done = run("build", "-o", tmp_path / "other.so", tmp_path / "s/hello.c", environment={"XDG_CACHE_HOME": str(cache)})
    assert done.code == 1 and "hello.c:1:9: error:" in done.err and not (tmp_path / "other.so").exists()
    done = run("build", "-o", tmp_path / "none/other.so", tmp_path / "s/hello.c", environment={"XDG_CACHE_HOME": str(cache)})
    assert done.code == 1 and done.err == f"monkey build: {tmp_path}/none/other.so: No such file or directory\n"
    done = run("build", tmp_path / "s/hello.c", environment={"XDG_CACHE_HOME": str(cache), "CC": "no-such-cc"})
    assert done.code == 1 and done.err.endswith("No C compiler was found: install gcc or clang, or set CC.\n")


KEEPS = r"""#include <duda.h>

static mk_str query, form; /* a mistake: these strings end with the request */

static int keep(struct duda_ctx *d)
{
    query = duda_query(d, "q");
    form = duda_form(d, "f");
    return duda_printf(d, "%s %s", query.p, form.p);
}

/* Copies byte by byte: AddressSanitizer would report a read by a library function. */
static int show(struct duda_ctx *d)
{
    char copy[40] = "";
    for (size_t i = 0; i < query.len && i < 15; i++)
        copy[i] = query.p[i];
    size_t n = query.len < 15 ? query.len : 15;
    copy[n++] = '|';
    for (size_t i = 0; i < form.len && i < 15; i++)
        copy[n + i] = form.p[i];
    return duda_write(d, mk_str_from_c(copy));
}

DUDA_SERVICE(keeps, DUDA_POST("/keep", keep, "Keeps strings."), DUDA_GET("/show", show, "Shows them."));
"""


FORGETS = r"""#include <duda.h>

static int show(struct duda_ctx *d)
{
    return duda_puts(d, "x");
}

struct person {
    mk_str name;
};

static const struct duda_schema_field fields[] = {DUDA_STRING(struct person, name)};
static const struct duda_schema schema = DUDA_SCHEMA(struct person, fields);

static int enter(struct duda_ctx *d)
{
    const struct person person = {MK_STR("x")};
    int e = SET;
    return e ? e : show(d);
}

DUDA_ROUTES(inner, DUDA_POST("/enter", enter));
DUDA_SERVICE(forgets, CHECK DUDA_GET("/", show), DUDA_GROUP("/a", inner));
"""


SETS = {"text": 'duda_session_set(d, "user", person.name)', "struct": 'duda_session_set_struct(d, "user", &schema, &person)'}


@pytest.mark.parametrize("value", SETS)
@pytest.mark.parametrize("check", ["", "DUDA_BEFORE(duda_csrf_check),"])
def test_forgotten_csrf_check_is_reported(start, src, check, value):
    (src / "forgets.c").write_text(FORGETS.replace("CHECK", check).replace("SET;", SETS[value] + ";"))
    server = start(src / "forgets.c")
    assert server.get("/").text == "x"
    report = r"the service `forgets` has sessions, and routes such as POST /enter \(\S*forgets.c:22\) that another site may call"
    assert bool(re.search(report, server.log)) == (not check), server.log


OFFLOADS = r"""#include <duda.h>

struct job {
    int n;
    mk_str text; /* a mistake, unless the text is a constant */
};

static int work(void *job)
{
    ((struct job *)job)->n++;
    return 0;
}

static int offload(struct duda_ctx *d)
{
    char buf[8] = "stack";
    bool by_stack = duda_query(d, "stack").p;
    struct job job = {1, duda_query(d, "heap").p ? duda_query(d, "heap") : by_stack ? mk_str_from_c(buf) : MK_STR("x")};
    int e = duda_offload(d, NULL, work, &job, sizeof job);
    return e ? e : duda_printf(d, "%d\n", job.n);
}

DUDA_SERVICE(offloads, DUDA_GET("/", offload));
"""


def test_pointer_in_an_offloaded_job_is_reported(start, src):
    (src / "offloads.c").write_text(OFFLOADS)
    server = start(src / "offloads.c")
    assert server.get("/").text == "2\n"
    assert "of the job is a pointer" not in server.log
    for query in ("heap=1", "stack=1"):
        before = server.log.count("byte 8 of the job is a pointer to the stack or memory of the handler")
        assert server.get(f"/?{query}").text == "2\n"
        wait_until(lambda: server.log.count("byte 8 of the job is a pointer") > before)


AFTER = r"""#include <duda.h>
#include <duda/task.h>

struct mail {
    int n;
    mk_str address;
    char text[40];
};

static int send(struct duda_ctx *d)
{
    const struct mail *mail = duda_task_context(d);
    return mail->n == 1 ? 0 : -5;
}

static int respond(struct duda_ctx *d)
{
    struct mail mail = {1, duda_query(d, "heap").p ? duda_query(d, "heap") : duda_query(d, "stack").p ? mk_str_of(mail.text, 4) : MK_STR("x"), "text"};
    int e = duda_after_response(d, send, &mail, sizeof mail);
    return e ? e : duda_puts(d, "done\n");
}

DUDA_SERVICE(after, DUDA_GET("/", respond));
"""


def test_pointer_in_the_data_of_a_background_task_is_reported(start, src):
    (src / "after.c").write_text(AFTER)
    server = start(src / "after.c")
    assert server.get("/").text == "done\n"
    assert "of the data for" not in server.log
    for query in ("heap=1", "stack=1"):
        line = AFTER[:AFTER.index("int e = duda_after")].count("\n") + 1
        report = f"after.c:{line}: duda_after_response(): byte 8 of the data for send() is a pointer to the stack or memory of the handler"
        before = server.log.count(report)
        assert server.get(f"/?{query}").text == "done\n"
        wait_until(lambda: server.log.count(report) > before)  # pylint: disable=cell-var-from-loop


def test_string_kept_beyond_its_request_shows(start, src):
    (src / "keeps.c").write_text(KEEPS)
    server = start(src / "keeps.c")
    form = [("Content-Type", "application/x-www-form-urlencoded")]
    assert server.get("/keep?q=0123456789abcd", method="POST", body=b"f=ABCDEFGHIJKLMN", fields=form).text == "0123456789abcd ABCDEFGHIJKLMN"
    shown = server.get("/show").text
    assert "0123456789" not in shown and "ABCDEFGHIJ" not in shown
    assert "freed memory" in shown.split("|")[0]
