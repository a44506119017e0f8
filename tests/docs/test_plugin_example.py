# SPDX-License-Identifier: Apache-2.0
"""The code in the plugin guide compiles, loads and behaves as described; the example builds from
installed files alone."""
import os
import re
import shutil
import socket
import subprocess
import threading

import pytest

from monkey import PROGRAM, ROOT, SECONDS

GUIDE = (ROOT / "docs/guide/plugins.md").read_text()
EXAMPLE = ROOT / "examples/plugin-hello"
PROJECT = """cmake_minimum_required(VERSION 3.20)
project(monkey VERSION 2.0.0 LANGUAGES NONE)
include(GNUInstallDirs)
add_subdirectory(packaging)
install(DIRECTORY include/monkey DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
"""

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no compiler here")


def call(*command, folder=None, environment=None):
    done = subprocess.run([str(word) for word in command], cwd=folder, env=os.environ | (environment or {}),
                          capture_output=True, text=True, timeout=2 * SECONDS, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


# ---- The code in the guide ----

def blocks(text):
    """Returns the C code blocks, in order."""
    return re.findall(r"^```c\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def files():
    """Returns complete files: a block that includes the headers starts a new file, and later blocks continue it."""
    found = []
    for block in blocks(GUIDE):
        if "#include <monkey/plugin.h>" in block:
            found.append(block)
        else:
            found[-1] += "\n" + block
    return found


def name_of(code):
    return re.search(r"^MK_PLUGIN\((\w+)\)", code, re.MULTILINE)[1]


FILES = {name_of(code): code for code in files()}  # the guide has two files called hello; the later one is used


def chapter(title):
    return re.search(rf"^## {title}\n(.*?)^## ", GUIDE, re.MULTILINE | re.DOTALL)[1]


def compile_plugin(folder, name, code, *flags):
    source, made = folder / f"{name}.c", folder / f"monkey-{name}.so"
    source.write_text(code)
    call("cc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", *flags, "-fPIC", "-shared", "-I", ROOT / "include", "-o", made,
         source)
    return made


def test_guide_has_all_files():
    assert len(files()) >= 9 and {"hello", "nap", "ask", "date", "primes", "louder", "shout", "counted", "count", "hours",
            "tally"} <= set(FILES)


@pytest.mark.parametrize("i", range(len(files())), ids=[name_of(code) for code in files()])
def test_code_of_the_guide_compiles(tmp_path, i):
    code = files()[i]
    compile_plugin(tmp_path, name_of(code), code, "-Wconversion")


@pytest.fixture
def serve(monkey, site, tmp_path):
    """Runs a plugin from the guide: serve("nap", routes="/nap nap")."""
    def start(name, routes="/* static", code=None, **keys):
        made = compile_plugin(tmp_path, name, code or FILES[name])
        return monkey(plugins=[made], sections=f"[ROUTES]\n    {routes}\n", **keys)

    return start


def test_smallest_plugin_adds_a_header(serve, site):
    site.add("hello.c", "it")
    reply = serve("hello", code=files()[0]).get("/hello.c")
    assert (reply.text, reply["X-Greeting"]) == ("it", "Hello")


def test_timer_example_does_not_block_other_requests(serve, site):
    site.add("a", "a")
    server = serve("nap", "/nap nap\n    /* static")
    with server.connect() as c, server.connect() as gone:
        gone.ask("/nap")
        c.ask("/nap")
        assert server.get("/a").text == "a", "other requests do not wait"
        gone.close()
        assert c.read().text == "awake\n"


def test_descriptor_example_sends_the_data_of_a_socket(serve, tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "clock.sock"))
        listener.listen()

        def answer():
            peer, _ = listener.accept()
            for piece in (b"half past ", b"four\n"):
                peer.sendall(piece)
            peer.close()

        server = serve("ask", "/time ask clock.sock")
        thread = threading.Thread(target=answer)
        thread.start()
        assert server.get("/time").text == "half past four\n"
        thread.join()
    os.unlink(tmp_path / "clock.sock")
    assert server.get("/time").status == 502


def test_descriptor_example_rejects_wrong_route_arguments(run, tmp_path, site):
    made = compile_plugin(tmp_path, "ask", FILES["ask"])
    (tmp_path / "c").write_text(f"[PLUGINS]\n    Load {made}\n[HOST]\n    DocumentRoot site\n[ROUTES]\n    /x ask\n")
    output = run("-t", "-c", "c")
    assert output.code == 3 and "the handler `ask` expects SOCKET" in output.err


def test_subprocess_example_sends_the_output(serve):
    server = serve("date", "/date date")
    for _ in range(3):
        assert re.fullmatch(r"20\d\d\n", server.get("/date").text)


def test_thread_example_answers_and_survives_a_disconnect(serve):
    server = serve("primes", "/primes primes")
    assert server.get("/primes?100").text == "25\n"
    with server.connect() as gone:
        gone.ask("/primes?1000000")
    assert server.get("/primes?10").text == "4\n"


def test_deferred_call_example_sends_one_datagram_per_loop_iteration(serve, site):
    site.add("a.txt", "a")
    with socket.socket(type=socket.SOCK_DGRAM) as statsd:
        statsd.bind(("127.0.0.1", 0))
        statsd.settimeout(SECONDS)
        server = serve("tally", top=f"[TALLY]\n    Port {statsd.getsockname()[1]}\n")
        with server.connect() as c:
            c.send(b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n" * 5)
            for _ in range(5):
                assert c.read("GET").text == "a"
        assert statsd.recv(100) == b"requests:5|c", "one datagram per loop iteration"


def test_filter_example_transforms_text_only(serve, site):
    site.add("a.txt", "a Text of 3 lines\n")
    site.add("a.html", "a page\n")
    server = serve("louder")
    reply = server.get("/a.txt")
    assert (reply.text, reply["Content-Length"]) == ("A TEXT OF 3 LINES\n", "18") and "ETag" not in reply
    assert server.get("/a.html").text == "a page\n" and "ETag" in server.get("/a.html")
    assert server.get("/a.txt", method="HEAD")["Content-Length"] == "18"


def test_upgrade_example_speaks_another_protocol(serve, site):
    site.add("shout", "a file")
    server = serve("shout", "/shout shout\n    /* static")
    with server.connect() as c:
        head = c.ask("/shout", fields=[("Connection", "upgrade"), ("Upgrade", "shout")]).read_head()
        assert (head.status, head["Upgrade"]) == (101, "shout")
        assert c.send(b"hello?").read_exactly(6) == b"HELLO?"
        c.shut().expect_end()
    assert server.get("/shout").text == "a file"


def test_trailer_example_counts_bytes(serve, site):
    site.add("a", "12345")
    server = serve("counted")
    reply = server.get("/a", fields=[("TE", "trailers")])
    assert (reply.text, reply.trailers) == ("12345", [("X-Bytes", "5")])
    assert server.get("/a")["Content-Length"] == "5"


def test_shared_memory_example_counts_over_all_workers(serve, site):
    site.add("a", "a")
    server = serve("count", workers=2)
    seen = [tuple(map(int, server.get("/a")["X-Count"].split(" of "))) for _ in range(20)]
    assert [total for _, total in seen] == list(range(1, 21))
    assert sorted(mine for mine, _ in seen)[:1] == [1] and all(mine <= total for mine, total in seen)
    reply = server.get("/none")
    assert (reply.status, reply["X-Count"].split()[2]) == (404, "21")


def test_guide_shows_the_real_error(run, tmp_path):
    output = re.search(r"^    \$ monkey -t -c /etc/monkey/hours\.conf\n((?:    .*\n)+)", GUIDE, re.MULTILINE)[1]
    lines = output.replace("\n    ", "\n")[4:]
    compile_plugin(tmp_path, "hours", FILES["hours"])
    (tmp_path / "hours.conf").write_text("[PLUGINS]\n    Load ./monkey-hours.so\n\n[HOST]\n    DocumentRoot .\n\n"
                                         "# When the shop is open.\n[HOURS]\n    Path  shop/*\n    From  20\n    To    6\n")
    done = run("-t", "-c", "hours.conf")
    assert done.code == 3 and done.err.replace(str(tmp_path), "/etc/monkey") == lines


def test_explain_and_print_show_the_section_of_the_example(run, tmp_path, site):
    compile_plugin(tmp_path, "hours", FILES["hours"])
    (tmp_path / "c").write_text("[PLUGINS]\n    Load ./monkey-hours.so\n[HOST]\n    DocumentRoot site\n"
                                "[HOURS]\n    Path /shop/*\n    To 24\n")
    output = run("-c", "c", "explain", "GET", "http://a/shop/x").out
    assert re.search(r"^hours +0 to 24, it is \d+: open$", output, re.MULTILINE), output
    printed = run("-T", "-c", "c").out
    assert re.search(r"\[HOURS\]\n    Path +/shop/\*\n", printed)


# ---- The example ----

def test_guide_shows_the_whole_example():
    pieces = blocks(chapter("Add a configuration section")) + blocks(chapter("Add a handler"))
    source = (EXAMPLE / "hello.c").read_text()
    assert "#include" + source.partition("#include")[2] == "\n".join(pieces)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with only the files installed for plugin authors: headers and monkey.pc in usr/."""
    for tool in ("cmake", "pkg-config", "make"):
        if not shutil.which(tool):
            pytest.skip(f"no {tool} here")
    top = tmp_path_factory.mktemp("installed")
    for name in ("site", "docs", "conf", "packaging", "include"):
        shutil.copytree(ROOT / name, top / "source" / name)
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, top / "source" / name)
    (top / "source/CMakeLists.txt").write_text(PROJECT)
    call("cmake", "-Wno-dev", "-S", top / "source", "-B", top / "build", "-DCMAKE_INSTALL_PREFIX=/usr")
    call("cmake", "--install", top / "build", environment={"DESTDIR": str(top)})
    return top


def environment(installed):
    (pc,) = (installed / "usr").rglob("monkey.pc")
    return {"PKG_CONFIG_PATH": str(pc.parent), "PKG_CONFIG": f"pkg-config --define-variable=prefix={installed}/usr"}


@pytest.fixture
def example(installed, tmp_path):
    """Copies the example out of the tree, and builds the copy."""
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder)
    call("make", "CFLAGS=-O2 -Wall -Wextra -Werror", folder=folder, environment=environment(installed))
    return folder


def test_pkg_config_names_installed_folders(installed):
    flags = call("sh", "-c", "$PKG_CONFIG --cflags monkey", environment=environment(installed)).split()
    assert flags == [f"-I{installed}/usr/include"] and (installed / "usr/include/monkey/plugin.h").exists()
    folder = call("sh", "-c", "$PKG_CONFIG --variable=plugindir monkey", environment=environment(installed)).strip()
    assert folder.startswith(f"{installed}/usr/lib") and folder.endswith("/monkey")
    assert call("pkg-config", "--modversion", "monkey", environment=environment(installed)).strip() == "2.0.0"


def test_example_compiles_as_strict_c11(installed, tmp_path):
    call("cc", "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-I{installed}/usr/include",
         "-o", tmp_path / "x.so", EXAMPLE / "hello.c")


def test_installed_headers_compile_as_cxx(installed, tmp_path):
    if not shutil.which("c++"):
        pytest.skip("no C++ compiler here")
    (tmp_path / "x.cc").write_text("#include <monkey/plugin.h>\nmk_str s = MK_STR(\"a\");\nbool b = mk_str_eq(s, s);\n")
    call("c++", "-std=c++17", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{installed}/usr/include",
         tmp_path / "x.cc")


def test_example_needs_only_symbols_of_the_server(example):
    exported = call("nm", "-D", "--defined-only", example / "monkey-hello.so").split("\n")
    assert [line.split()[2] for line in exported if line] == ["mk_plugin"]
    needed = {line.split()[-1].partition("@")[0] for line in
              call("nm", "-D", "--undefined-only", example / "monkey-hello.so").splitlines()}
    offered = {line.split()[-1] for line in call("nm", "-D", "--defined-only", PROGRAM).splitlines()}
    assert {name for name in needed if name.startswith("mk_")} <= offered and "mk_response_add_header" in needed


@pytest.fixture
def greeter(monkey, example):
    conf = example / "hello.conf"
    conf.write_text(conf.read_text().replace("127.0.0.1:2001", "127.0.0.1:0"))
    server = monkey(args=["-c", conf, "-w", "1"])
    server.config = conf
    return server


def test_example_greets(greeter):
    reply = greeter.get("/hello/world")
    assert (reply.text, reply["Content-Type"]) == ("Good morning, world!\n", "text/plain; charset=utf-8")
    assert greeter.get("/hello/").text == greeter.get("/hello").text.replace("hello!", "stranger!")
    assert greeter.get("/hello/%3Cscript%3E").text == "Good morning, <script>!\n"
    assert greeter.get("/hello/" + "x" * 300).status == 414
    assert greeter.get("/hello/x", method="POST", fields=[("Content-Length", "0")])["Allow"] == "GET, HEAD, OPTIONS"
    assert greeter.get("/hello.c")["X-Greeting"] == greeter.get("/none")["X-Greeting"] == "Good morning"


def test_vhost_without_section_gets_no_greeting(monkey, example, site):
    site.add("a", "a")
    server = monkey(plugins=[example / "monkey-hello.so"], host="ServerName a.example",
                    sections="[HELLO]\n    Greeting Hi\n[HOST]\n    ServerName b.example\n    DocumentRoot site\n"
                             "[ROUTES]\n    /hello/* hello\n    /* static\n")
    assert server.get("/a", fields=[("Host", "a.example")])["X-Greeting"] == "Hi"
    assert "X-Greeting" not in server.get("/a", fields=[("Host", "b.example")])
    assert server.get("/hello/x", fields=[("Host", "b.example")]).status == 404


def test_example_rejects_a_misspelled_key(run, example):
    conf = example / "hello.conf"
    conf.write_text(conf.read_text().replace("Greeting", "Greting"))
    done = run("-t", "-c", conf)
    assert done.code == 3 and "unknown key `Greting` in [HELLO]" in done.err and "did you mean `Greeting`?" in done.err


def test_plugin_list_shows_the_example(run, example):
    listed = run("plugins", "-c", example / "hello.conf").out
    assert f"hello 1.0  Greets.\n    from      {example}/monkey-hello.so\n" in listed
    assert re.search(r"^on_response +hello$", listed.replace("    on_response", "on_response"), re.MULTILINE)


COMMANDS = [line.strip() for line in GUIDE.splitlines() if line.startswith("    cc -fPIC")]


def test_guide_has_commands_with_and_without_readers():
    assert ["monkey-readers" in command for command in COMMANDS] == [False, True]


@pytest.mark.parametrize("command", COMMANDS)
def test_one_line_command_builds_a_plugin(installed, tmp_path, command):
    """Runs the command of the guide literally."""
    (tmp_path / "hello.c").write_text(files()[0])
    call("sh", "-c", command.replace("pkg-config", "$PKG_CONFIG"), folder=tmp_path, environment=environment(installed))
    assert (tmp_path / "monkey-hello.so").exists()
