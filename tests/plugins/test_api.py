# SPDX-License-Identifier: Apache-2.0
"""include/monkey as a third-party plugin sees it: the plugins in tests/plugins/api are built with only these headers."""
import os
import re
import shutil
import signal
import socket
import sys

import pytest

from monkey import PROGRAM, ROOT, SECONDS, needs_processes
from proc import descriptors, is_gone, name, wait_until
from sockets import free_port

BUILT = ROOT / "build" / "dev" / "tests" / "plugins"

pytestmark = pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1],
                                reason="the plugins of the tests are built with the program in build/dev")


def load(*names):
    return [BUILT / f"monkey-{name}.so" for name in names]


@pytest.fixture
def refused(monkey):
    """Returns a function that runs a server that fails to start, and returns its error output."""
    def start(code=3, **keys):
        server = monkey(expect_start=False, **keys)
        server.allow(r"worker \d+ exited unexpectedly")
        server.exit_code = code
        server.wait()
        return server.err.text

    return start


def open_files(server):
    """Returns the number of open descriptors of the server's only worker."""
    (worker,) = [pid for pid in server.workers if "worker" in name(pid)]
    return len(descriptors(worker))


starts_programs = pytest.mark.processes("handlers start programs")


# ---- Loading ----


@pytest.mark.processes("an object that crashes when it is loaded ends the program")
def test_plugin_load_rejects_invalid_files_with_location(refused, tmp_path):
    truncated, text = tmp_path / "monkey-truncated.so", tmp_path / "text.so"
    truncated.write_bytes(load("probe")[0].read_bytes()[:9000])
    text.write_text("not an object")
    bad = {
        load("other_abi")[0]: r"it was built for ABI \d+, but this server supports \d+ to \d+: rebuild it",
        load("newer")[0]: r"it was built for a newer server: its struct mk_plugin has \d+ bytes, this server's \d+",
        load("other_size")[0]: r"its struct mk_plugin has only \d+ bytes: begin it with MK_PLUGIN_HEAD",
        load("bad_name")[0]: "its name `.*` must consist of lower-case letters",
        load("no_symbol")[0]: "it has no symbol `mk_plugin`",
        load("no_function")[0]: r"this program has no mk_there_is_no_such_thing\(\) for plugins",
        load("crashes_on_load")[0]: "it is broken: loading it crashes with signal 11",
        load("ends_on_load")[0]: "it is broken: loading it exits the program",
        load("bad_key")[0]: r"the key `Name` of its section \[BAD_KEY\] is invalid",
        truncated: "cannot load the plugin",
        text: "cannot load the plugin `.*`: .*(invalid ELF header|file too short)",
        tmp_path: "it is not a file",
        "./none.so": "No such file or directory",
        "./monkey-none.so": "No such file or directory",
        "none": r"it is not built in, and monkey-none\.so is not in ",
    }
    said = refused(plugins=bad)
    for name, why in bad.items():
        assert re.search(rf"monkey\d*\.conf:\d+:\d+: error: cannot load the plugin `.*`: .*{why}"
                         if "cannot load" not in why else why, said), (name, said)
    assert said.count(": error: cannot load the plugin ") == len(bad)


def test_plugin_built_for_older_interface_works(monkey):
    with monkey(plugins=load("older")).connect() as c:
        for n in range(1, 4):
            assert c.get("/").get("Older") == f"{n} known"


def test_plugin_loaded_twice_is_loaded_once(monkey, refused, tmp_path):
    shutil.copy(load("probe")[0], tmp_path / "another.so")
    said = refused(plugins=[*load("probe"), "./another.so"])
    assert re.search(r"the plugin `probe` is already loaded from .*/monkey-probe\.so", said)
    server = monkey(plugins=load("probe", "probe"))
    server.stop()
    assert server.err.text.count("probe: start") == 1


def test_plugin_that_adds_existing_names_is_rejected(refused):
    said = refused(plugins=load("probe", "response_kinds", "duplicate_names"))
    for what in ("section [Probe]", "section [SERVER]", "handler `Text`"):
        assert f"error: the plugin `duplicate-names` adds a {what}, which already exists" in said, said


def test_plugin_path_is_relative_to_configuration(monkey, tmp_path):
    shutil.copy(load("response_kinds")[0], tmp_path / "mine.so")
    server = monkey(plugins=["./mine.so"], sections="[ROUTES]\n    /* text fine\n")
    assert server.get("/").text == "fine"


@pytest.mark.parametrize("what, code, said", [
    ("load", 3, r"monkey\.conf:\d+:\d+: error: the plugin `fails-in-phase` cannot be loaded: Invalid cross-device link"),
    ("host", 3, r"monkey\.conf:\d+:\d+: error: the plugin `fails-in-phase` cannot serve this host: Invalid cross-device link"),
    pytest.param("master", 1, r"monkey\.conf:\d+:\d+: error: the plugin `fails-in-phase` cannot start: Invalid cross-device link",
                 marks=pytest.mark.processes("to a program it is a mistake like others")),
    pytest.param("later", 1, r"monkey\.conf:\d+:\d+: error: the plugin `fails-in-phase` cannot start: Invalid cross-device link",
                 marks=pytest.mark.processes("to a program it is a mistake like others")),
    ("route", 3, r"monkey\.conf:\d+:\d+: error: the plugin `fails-in-phase` adds a route for `no/pattern`, which is not a pattern"),
    ("worker", 1, "the plugin fails-in-phase cannot start in a worker: Invalid cross-device link"),
])
def test_plugin_that_cannot_start_is_reported(refused, what, code, said):
    assert re.search(said, refused(code, plugins=load("fails_in_phase"), top=f"[FAIL]\n    What {what}\n"))


@pytest.mark.processes("to a program it is a mistake like others")
def test_plugin_that_is_not_ready_in_time_is_reported(refused):
    said = refused(1, plugins=load("fails_in_phase"), top="[FAIL]\n    What late\n")
    assert "the plugin `fails-in-phase` cannot start: Connection timed out" in said
    assert "call 2" in said and "call 5" not in said, said  # at the start and at the timeout, perhaps a clock tick too early


@pytest.mark.parametrize("what", ["load", "host", "master", "later", "worker"])
def test_plugin_that_cannot_start_on_reload_keeps_old_configuration(monkey, site, what):
    site.add("a", "old")
    server = monkey(plugins=load("fails_in_phase"), top="[FAIL]\n    What nothing\n")
    server.allow(r"worker \d+ exited unexpectedly")
    server.config.write_text(server.config.read_text().replace("What nothing", f"What {what}"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("keeping the old one")
    assert server.get("/a").text == "old"


def is_refused(port):
    try:
        socket.create_connection(("127.0.0.1", port), SECONDS).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize("what", ["load", "host", "master", "later", "worker"])
@pytest.mark.over("h1", why="an address is added, whatever is spoken there")
def test_rejected_reload_closes_its_new_address(monkey, site, what):
    port = free_port()
    server = monkey(plugins=load("fails_in_phase"), top="[FAIL]\n    What nothing\n")
    server.allow(r"worker \d+ exited unexpectedly")
    text = server.config.read_text().replace("What nothing", f"What {what}")
    server.config.write_text(text.replace("    Workers", f"    Listen 127.0.0.1:{port}\n    Workers"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("keeping the old one")
    wait_until(lambda: is_refused(port), "the new address is closed")  # a killed worker may keep it open for a moment


@pytest.mark.parametrize("what, how", [("crash", "crashes with signal 11"), ("exit", "exits the program")])
def test_plugin_that_crashes_on_reload_keeps_old_configuration(monkey, site, what, how):
    site.add("a", "old")
    server = monkey(plugins=load("fails_in_phase"), top="[FAIL]\n    What nothing\n")
    server.config.write_text(server.config.read_text().replace("What nothing", f"What {what}"))
    server.tell(signal.SIGHUP)
    server.err.wait_for(rf"monkey\.conf: error: loading it {how}: one of its plugins is broken")
    server.err.wait_for("keeping the old one")
    assert server.get("/a").text == "old"
    server.config.write_text(server.config.read_text().replace(f"What {what}", "What nothing"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")


@pytest.mark.parametrize("what, how", [("crash", "crashes with signal 11"), ("exit", "exits the program")])
def test_reload_failure_names_replaced_program_as_cause(monkey, site, tmp_path, what, how):
    """An installation replaces the program and its plugins: the running program must not load the new plugins."""
    site.add("a", "old")
    own = tmp_path / "monkey"
    shutil.copy(PROGRAM, own)
    server = monkey(program=own, plugins=load("fails_in_phase"), top="[FAIL]\n    What nothing\n")
    shutil.copy(PROGRAM, tmp_path / "next")
    (tmp_path / "next").rename(own)
    server.config.write_text(server.config.read_text().replace("What nothing", f"What {what}"))
    server.tell(signal.SIGHUP)
    server.err.wait_for(rf"loading it {how}: the program on disk is not the build that runs: restart the server")
    assert server.get("/a").text == "old"


def test_reload_loads_code_of_replaced_plugin_file(monkey, tmp_path):
    file, new = tmp_path / "mine.so", tmp_path / "new.so"
    plugins = {"text fine": "response_kinds", "misbehave": "misuse"}
    shutil.copy(load("response_kinds")[0], file)
    server = monkey(plugins=["./mine.so"], sections="[ROUTES]\n    /* text fine\n")
    serving = 0
    for before, now, body in (("text fine", "misbehave", ""), ("misbehave", "text fine", "fine"), ("text fine", "misbehave", "")):
        shutil.copy(load(plugins[now])[0], new)
        os.rename(new, file)
        server.config.write_text(server.config.read_text().replace(before, now))
        for _ in range(2):  # the second time, the file is unchanged
            server.tell(signal.SIGHUP)
            serving += 1
            server.err.wait_for("the new configuration serves", serving)
            assert server.get("/").text == body


def test_plugin_section_and_handler_need_the_plugin(refused):
    said = refused(sections="[PROBE]\n    Name x\n[ROUTES]\n    /* text x\n")
    assert "unknown section [PROBE]" in said and "there is no handler `text`" in said


def test_plugin_section_is_checked_like_builtin_sections(refused):
    said = refused(plugins=load("probe"), sections="[PROBE]\n    Nmae x\n    Refuse maybe\n[PROBE]\n    Name y\n")
    assert re.search(r"monkey\.conf:\d+:5: error: unknown key `Nmae` in \[PROBE\]", said)
    assert "did you mean `Name`?" in said
    assert "this host already has a section [PROBE]" in said
    assert re.search(r":\d+:\d+: error: .*maybe", said), said


def test_plugin_errors_have_a_location(refused):
    said = refused(plugins=load("probe", "response_kinds"), host="ServerName a.example",
                   sections="[PROBE]\n    Refuse on\n[ROUTES]\n    /a text\n    /b text forbidden\n    /c sum words\n")
    assert re.search(r":\d+:12: error: the host a\.example is refused\n        Refuse on\n               \^", said)
    assert "the handler `text` expects TEXT" in said
    assert re.search(r":\d+:\d+: error: `forbidden` is not to be said\n", said)
    assert "the handler `sum` expects nothing after it" in said


def test_plugin_section_appears_in_printed_config(monkey, run, tmp_path):
    server = monkey(plugins=load("probe"), top="[PROBE]\n    Name above\n", host="ServerName a",
                    sections='[PROBE]\n    Name "of a"\n[HOST]\n    ServerName b\n    DocumentRoot site\n')
    printed = run("-T", "-c", server.config).out
    assert re.search(r"\[PLUGINS\]\n    Load .*monkey-probe\.so\n", printed)
    assert re.findall(r"^    Name +(.*)$", printed, re.MULTILINE) == ["above", "of a"]
    (tmp_path / "again.conf").write_text(printed)
    assert run("-T", "-c", tmp_path / "again.conf").out == printed


def test_plugins_command_lists_hosts_and_order(monkey, run):
    server = monkey(plugins=load("response_kinds", "probe"), host="ServerName a.example",
                    sections="[HOST]\n    ServerName b.example\n    DocumentRoot site\n[PROBE]\n    Name b\n")
    listed = run("plugins", "-c", server.config).out
    assert re.search(r"^probe 1  Says when it is called\.\n +from +.*monkey-probe\.so\n +sections +PROBE\n"
                     r" +handlers +probe-say probe-log\n +hosts +b\.example$", listed, re.MULTILINE), listed
    assert re.search(r"^response-kinds .*\n(.*\n)*? +hosts +a\.example b\.example$", listed, re.MULTILINE), listed
    assert re.search(r"on_request +response-kinds probe$", listed, re.MULTILINE)
    assert re.search(r"on_response +probe response-kinds$", listed, re.MULTILINE)
    assert re.search(r"on_log +probe$", listed, re.MULTILINE)


# ---- Hooks ----

TWO_HOSTS = """[PROBE]
    Name one
    Skip secret
[ROUTES]
    /say  probe-say
    /log  probe-log
    /wait verdict
    /* static
[HOST]
    ServerName two.example
    DocumentRoot site
"""


def said_of(server, pattern=r"probe[^\n]*"):
    return re.findall(rf"\] \d+: ({pattern})$", server.err.text, re.MULTILINE)


@pytest.fixture
def probed(monkey, site):
    site.add("a.txt", "hello")
    return monkey(plugins=load("probe", "response_kinds"), sections=TWO_HOSTS)


def test_hooks_are_called_in_order(probed):
    reply = probed.get("/a.txt")
    assert (reply.status, reply["X-Probe"], reply.text) == (200, "one", "hello")
    probed.err.wait_for("probe one: destructor")
    assert said_of(probed) == [
        "probe: start, 2 hosts", "probe: accept 127.0.0.1", "probe one: request /a.txt", "probe one: response /a.txt",
        "probe one: done /a.txt 200 ok 5 [text/plain; charset=utf-8]", "probe one: destructor"]
    probed.stop()
    assert said_of(probed)[-1] == "probe: stop"


def test_hooks_are_not_called_for_host_without_section(probed):
    reply = probed.get("/a.txt", fields=[("Host", "two.example")])
    assert reply.status == 200 and "X-Probe" not in reply
    probed.get("/a.txt")
    probed.err.wait_for("probe one: done")
    assert len([line for line in said_of(probed) if "request" in line]) == 1


def test_hooks_are_called_for_error_responses(probed):
    reply = probed.get("/none")
    assert (reply.status, reply["X-Probe"]) == (404, "one")
    probed.err.wait_for(r"probe one: done /none 404 ok")
    assert "X-Probe" not in probed.send(b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n")
    probed.err.wait_for(r"probe one: done .* 400 rejected")


def test_hooks_abort_and_done_follow_client_disconnect(probed):
    with probed.connect() as c:
        c.send(b"GET /wait?follow HTTP/1.1\r\nHost: a\r\n\r\n")
        probed.err.wait_for("probe one: request /wait")
    probed.err.wait_for("probe one: destructor")
    lines = said_of(probed)
    assert lines[-3:] == ["probe one: abort /wait", "probe one: done /wait 0 client_aborted 0 []", "probe one: destructor"]


def test_messages_reach_every_worker(monkey):
    server = monkey(plugins=load("probe", "response_kinds"), sections=TWO_HOSTS, workers=3)
    assert server.get("/say?hello").text == "said\n"
    for worker in range(3):
        server.err.wait_for(f"probe: worker {worker} heard hello")
    assert len(re.findall("heard hello", server.err.text)) == 3


def test_log_hook_can_take_messages_about_requests(probed):
    probed.get("/log?open")
    line = probed.err.wait_for(r"\[warn\] \d+: (.*open)$").group(1)
    assert "GET /log?open" in line and "127.0.0.1" in line
    probed.get("/log?secret%20thing")
    probed.err.wait_for(r"\[warn\] \d+: probe one: took <secret%20thing>$")
    assert len(re.findall("secret", probed.err.text)) == 1


# ---- Responses ----

ANSWERS = """[ROUTES]
    /text        text of any kind
    /verdict     verdict
    /file/*      file
    /count*      count
    /raw         raw
    /sum         sum
    /timer       timer
    /fd          descriptor
    /child       child
    /aside       aside
    /*           static
"""


@pytest.fixture
def handlers(monkey, site):
    site.add("a.txt", "hello")
    site.add("big.bin", bytes(range(256)) * 4000)
    return monkey(plugins=load("response_kinds"), server="HandlerTimeout 1\nMinRateInterval 5", sections=ANSWERS)


def test_handler_text_response_uses_route_argument(handlers):
    reply = handlers.get("/text")
    assert (reply.status, reply.text, reply["Content-Type"]) == (200, "of any kind", "text/plain")
    refused = handlers.get("/text", method="POST", fields=[("Content-Length", "0")])
    assert (refused.status, refused["Allow"]) == (405, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize("verdict, status", [(0, 500), (1, 404), (2, 200), (3, 504), (4, 418), (5, 500), (77, 500), (4294967295, 500)])
def test_handler_verdict_determines_status(handlers, verdict, status):
    assert handlers.get(f"/verdict?{verdict}").status == status
    if status == 500:
        handlers.err.wait_for("verdict returned -?[0-9]+, which is not a verdict: 500")
    assert handlers.get("/a.txt").text == "hello"


def test_handler_file_response_supports_ranges(handlers, site):
    reply = handlers.get("/file/a.txt")
    assert (reply.text, reply["Content-Length"], reply["X-File"]) == ("llo", "3", str(site.path / "a.txt"))
    assert reply["Content-Type"].startswith("text/plain")
    assert handlers.get("/file/a.txt?2").text == "ll"
    whole = (site.path / "big.bin").read_bytes()
    assert handlers.get("/file/big.bin").body == whole[2:]
    assert handlers.get("/file/big.bin?700000").body == whole[2:700002]
    assert handlers.get("/file/big.bin", method="HEAD")["Content-Length"] == str(len(whole) - 2)
    assert handlers.get("/file/none").status == 404
    (site.path / "link").symlink_to("/etc/passwd")
    assert handlers.get("/file/link").status == 403


def test_handler_file_response_closes_descriptors(handlers):
    before = open_files(handlers)
    for _ in range(20):
        handlers.get("/file/big.bin?10")
        handlers.get("/file/big.bin", method="HEAD")
    wait_until(lambda: open_files(handlers) <= before + 1, "all descriptors are closed again")


def test_handler_body_source_may_have_unknown_length(handlers):
    digits = "".join(str(n % 10) for n in range(100000, 0, -1))
    known, unknown = handlers.get("/count?100000"), handlers.get("/count-?100000")
    assert (known.text, known["Content-Length"]) == (digits, "100000")
    assert (unknown.text, unknown["Transfer-Encoding"]) == (digits, "chunked")
    assert handlers.get("/count?100000", method="HEAD").body == b""
    handlers.err.wait_for("response_kinds: source closed, 0 left", count=2)
    handlers.err.wait_for("response_kinds: source closed, 100000 left")


def test_handler_body_source_is_closed_on_disconnect(handlers):
    with handlers.connect() as c:
        c.send(b"GET /count?900000000 HTTP/1.1\r\nHost: a\r\n\r\n")
        c.sock.recv(1000)
    handlers.err.wait_for(r"response_kinds: source closed, [1-9]\d* left")


def test_handler_raw_response_is_sent_verbatim(handlers):
    with socket.create_connection(handlers.addresses[0][:2]) as s:
        s.sendall(b"GET /raw HTTP/1.1\r\nHost: a\r\n\r\n")
        data = b""
        while piece := s.recv(4096):
            data += piece
    assert data == b"HTTP/1.1 299 Mine\r\nX-Raw: yes\r\nContent-Length: 3\r\n\r\nraw"


def test_handler_reads_request_body_as_stream(handlers):
    body = bytes(range(256)) * 3000
    assert handlers.get("/sum", method="POST", body=body).text == f"{len(body)} {sum(body)}\n"
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (b"abc", b"d" * 5000)) + b"0\r\n\r\n"
    reply = handlers.send(b"POST /sum HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked, "POST")
    assert reply.text == f"5003 {sum(b'abc' + b'd' * 5000)}\n"


def test_handler_is_cancelled_on_half_close_only_on_request(handlers):
    with handlers.connect() as c:
        c.send(b"GET /timer?200 HTTP/1.1\r\nHost: a\r\n\r\n").shut()
        assert c.read().text == "0\n"
    with handlers.connect() as c:
        c.send(b"GET /verdict?follow HTTP/1.1\r\nHost: a\r\n\r\n").shut()
        c.expect_end()


@pytest.mark.parametrize("target, text", [
    ("/timer?50", "0\n"), ("/fd", "drop drop drop 0\n"),
    pytest.param("/child?0", "child of mine\n0\n", marks=starts_programs),
    pytest.param("/child?7", f"child of mine\n{7 << 8}\n", marks=starts_programs), ("/aside?1000000", "500000500000\n"),
])
def test_handler_waits_for_timer_descriptor_child_and_thread(handlers, target, text):
    for _ in range(3):
        assert handlers.get(target).text == text


@starts_programs
def test_handlers_that_wait_do_not_block_other_requests(handlers):
    clients = [handlers.connect() for _ in range(50)]
    for i, c in enumerate(clients):
        c.send(b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n" % [b"timer?300", b"fd", b"child?1", b"aside?100000"][i % 4])
    assert handlers.get("/a.txt").text == "hello"
    assert [c.read().status for c in clients] == [200] * 50
    for c in clients:
        c.close()


def test_handler_that_waits_survives_disconnect(handlers):
    before = open_files(handlers)
    for target in ("timer?100", "fd", "child?0", "aside?1000000") * 5:
        with handlers.connect() as c:
            c.send(f"GET /{target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    wait_until(lambda: open_files(handlers) <= before + 1, "all descriptors are closed again")
    assert handlers.get("/a.txt").text == "hello"


# ---- Filters ----


def test_filters_change_body_and_headers(handlers, site):
    def get(how, target="/a.txt", **keys):
        return handlers.get(target, fields=[("X-Filter", how)], **keys)

    assert (get("upper").text, get("upper")["Content-Length"]) == ("HELLO", "5")
    assert (get("double").text, get("double")["Transfer-Encoding"]) == ("hheelllloo", "chunked")
    assert get("both").text == "HHEELLLLOO"
    big = (site.path / "big.bin").read_bytes()
    assert get("double", "/big.bin").body == bytes(b for b in big for _ in range(2))
    assert get("upper", "/big.bin").body == big.upper()
    assert get("double", "/count-?1000").text == "".join(str(n % 10) * 2 for n in range(1000, 0, -1))
    assert get("upper", method="HEAD")["Content-Length"] == "5"
    assert get("both", "/none").status == 404


def test_filters_apply_per_request_on_one_connection(handlers):
    with handlers.connect() as c:
        for _ in range(3):
            assert c.get("/a.txt", fields=[("X-Filter", "both")]).text == "HHEELLLLOO"
            assert c.get("/a.txt").text == "hello"


# ---- Rewriting ----


def test_rewrite_restarts_request_with_new_path(handlers):
    def get(to, target="/x"):
        return handlers.get(target, fields=[("X-Rewrite", to)])

    assert get("/a.txt").text == "hello"
    assert get("/a.txt").all("X-Asked") == ["yes"], "headers added for the first path are discarded"
    assert get("/%61.txt", "/a.txt").status == 500, "endless rewrite: the path never equals the requested one"
    handlers.err.wait_for("was rewritten more than 10 times: 500")
    assert get("/../a").status == 400
    assert get("nothing").status == 400


# ---- Plugins that misbehave ----


@pytest.fixture
def bad(monkey, site):
    site.add("a.txt", "hello")
    return monkey(plugins=load("misuse"), server="HandlerTimeout 1", workers=1,
                  sections="[ROUTES]\n    /bad misbehave\n    /* static\n")


@pytest.mark.parametrize("how, status", [
    ("error", 500), ("too-much", 500), ("resume", 200), ("fields", 500), ("own", 200), ("split", 200), ("status", 200),
    ("wait", 504),
])
def test_handler_mistakes_become_500_or_close(bad, how, status):
    assert bad.get(f"/bad?{how}").status == status
    assert bad.get("/a.txt").text == "hello"


def test_source_that_never_produces_is_cut_off(bad):
    with bad.connect() as c:
        c.send(b"GET /bad?never HTTP/1.1\r\nHost: a\r\n\r\n")
        data = b""
        try:
            while piece := c.sock.recv(4096):
                data += piece
        except ConnectionResetError:
            pass
    assert b"\r\n\r\n" not in data or data.endswith(b"\r\n\r\n"), "its ten bytes never came"
    assert bad.get("/a.txt").text == "hello"


@pytest.mark.parametrize("how, died", [("crash", r"was killed by signal 11"), ("exit", r"exited unexpectedly")])
def test_worker_that_crashes_is_replaced(monkey, site, how, died):
    site.add("a.txt", "hello")
    server = monkey(plugins=load("misuse"), workers=2, sections="[ROUTES]\n    /bad misbehave\n    /* static\n",
                    environment={"ASAN_OPTIONS": "handle_segv=0:detect_leaks=0"})
    server.allow(r"worker \d+ was killed by signal", r"worker \d+ exited unexpectedly")
    for _ in range(3):
        before = set(server.workers)
        with server.connect() as c:
            c.send(f"GET /bad?{how} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            assert c.sock.recv(100) == b""
        wait_until(lambda: len(set(server.workers) - before) == 1 and len(server.workers) == 2, "another worker")
        for _ in range(4):
            assert server.get("/a.txt").text == "hello"
    assert re.search(died, server.err.text)


@pytest.mark.skipif(b"__asan_" not in PROGRAM.read_bytes(), reason="this program has no sanitizers")
def test_undefined_behavior_is_reported_with_its_place(monkey):
    needs_processes("undefined behavior ends the program")
    server = monkey(plugins=load("misuse"), sections="[ROUTES]\n    /bad misbehave\n")
    with server.connect() as c:
        c.send(b"GET /bad?overflow HTTP/1.1\r\nHost: a\r\n\r\n")
        assert c.sock.recv(100) == b""
    server.err.wait_for(r"worker \d+ was killed by signal")
    with pytest.raises(AssertionError, match=r"handle at .*/misuse\.c:\d+|runtime error: signed integer overflow"):
        server.check_log()
    server.allow("Sanitizer", "runtime error", r"worker \d+ ")


def test_worker_with_blocked_loop_is_killed_and_replaced(monkey, site):
    site.add("a.txt", "hello")
    server = monkey(plugins=load("misuse"), workers=2, server="WatchdogTimeout 3",
                    sections="[ROUTES]\n    /bad misbehave\n    /* static\n")
    server.allow(r"worker \d+ ")
    before = set(server.workers)
    with server.connect() as c:
        c.send(b"GET /bad?spin HTTP/1.1\r\nHost: a\r\n\r\n")
        server.err.wait_for(r'worker \d+ serves nothing: it has been blocked for \d+ ms; last request "GET /bad\?spin"')
        assert set(server.workers) == before, "it has until WatchdogTimeout"
        assert c.sock.recv(100) == b"", "it is killed"
    server.err.wait_for("WatchdogTimeout has expired")
    wait_until(lambda: len(set(server.workers) - before) == 1 and len(server.workers) == 2, "another worker")
    for _ in range(4):
        assert server.get("/a.txt").text == "hello"


@pytest.mark.processes("a handler that breaks down ends the program")
@pytest.mark.parametrize("where, what", [("stop", r"in worker_stop\(\) of misuse"), ("thread", "waiting for its threads")])
def test_worker_that_never_exits_is_killed(monkey, site, where, what):
    site.add("a.txt", "hello")
    server = monkey(plugins=load("misuse"), workers=1, server="WatchdogTimeout 3", sections=f"[MISUSE]\n    Hangs {where}\n")
    server.allow(r"worker \d+ ")
    (old,) = server.workers
    server.config.write_text(server.config.read_text().replace(where, "nowhere"))
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    server.err.wait_for(rf"worker {old} serves nothing: it has been blocked for \d+ ms; {what}\n")
    assert server.get("/a.txt").text == "hello"
    server.err.wait_for(rf"killed worker {old}: WatchdogTimeout has expired")
    wait_until(lambda: is_gone(old), "the worker is gone")
    assert server.get("/a.txt").text == "hello"


def test_worker_that_never_starts_is_killed(monkey, site):
    """The worker of the new configuration hangs at startup, so the old configuration stays in use."""
    site.add("a.txt", "hello")
    server = monkey(plugins=load("misuse"), workers=1, server="WatchdogTimeout 3", sections="[MISUSE]\n    Hangs nowhere\n")
    server.allow(r"worker \d+ ")
    before = server.workers
    server.config.write_text(server.config.read_text().replace("nowhere", "start"))
    server.tell(signal.SIGHUP)
    server.err.wait_for(r"worker \d+ serves nothing: it has been blocked for \d+ ms; in worker_start\(\) of misuse\n")
    assert server.get("/a.txt").text == "hello"
    server.err.wait_for(r"killed worker \d+: WatchdogTimeout has expired")
    server.err.wait_for("keeping the old one")
    wait_until(lambda: server.workers == before, "only the old worker remains")
    assert server.get("/a.txt").text == "hello"


def test_worker_with_slow_loop_is_left_alone(monkey, site):
    server = monkey(plugins=load("misuse"), workers=1, sections="[ROUTES]\n    /bad misbehave\n    /* static\n")
    server.allow(r"worker \d+ serves")
    before = server.workers
    assert server.get("/bad?sleep").status == 200
    server.err.wait_for(r"worker \d+ serves again")
    assert server.workers == before


@pytest.mark.processes("a handler that breaks down ends the program")
def test_worker_death_is_noticed_with_ignored_sigchld(monkey, site):
    site.add("a.txt", "hello")
    server = monkey(plugins=load("misuse"), sections="[ROUTES]\n    /bad misbehave\n    /* static\n",
                    wrapper=[sys.executable, "-c", "import os, signal, sys; "
                             "signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"])
    server.allow(r"worker \d+ exited unexpectedly")
    with server.connect() as c:
        c.send(b"GET /bad?exit HTTP/1.1\r\nHost: a\r\n\r\n")
        assert c.sock.recv(100) == b""
    assert server.get("/a.txt").text == "hello"
    server.err.wait_for("exited unexpectedly with code 3")
