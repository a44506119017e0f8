# SPDX-License-Identifier: Apache-2.0
"""The command line: every option in both forms, and every error with its exit code and a hint."""
import os
import pty
import re
import signal
import socket
import subprocess

import pytest

from monkey import ENVIRONMENT, PROGRAM, SECONDS
from proc import children, name, wait_until

pytestmark = pytest.mark.over("h1", why="what is read and said is the same whatever is spoken, and a command line has no certificate")

FINE, FAILED, USAGE, CONFIGURATION = 0, 1, 2, 3


def key(text, wanted):
    """Returns the value of a key in a printed configuration."""
    return re.search(rf"^    {wanted} +(.+)$", text, re.MULTILINE)[1]


@pytest.fixture
def conf(tmp_path, site):
    """A valid configuration file in a folder of its own."""
    folder = tmp_path / "conf"
    folder.mkdir()
    path = folder / "monkey.conf"
    path.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n[HOST]\n    DocumentRoot {site.path}\n")
    return path


# Serving a folder

def test_folder_is_served_on_loopback_port_2001_by_default(run, site):
    done = run("-T", site)
    assert (done.code, done.err) == (FINE, "")
    assert key(done.out, "Listen") == "127.0.0.1:2001"
    assert key(done.out, "DocumentRoot") == str(site.path)


def test_folder_argument_is_relative_to_working_directory(run, site, tmp_path):
    assert key(run("-T", "site").out, "DocumentRoot") == str(site.path)
    assert key(run("-T", ".", folder=site.path).out, "DocumentRoot") == str(site.path)


@pytest.mark.parametrize("option", [["-o"], ["--one-shot"], []])
def test_folder_may_be_argument_or_option(run, site, option):
    assert key(run("-T", *option, site).out, "DocumentRoot") == str(site.path)


def test_public_option_listens_on_all_addresses(run, site):
    assert key(run("-T", "--public", site).out, "Listen") == "0.0.0.0:2001"
    assert key(run("-T", "--public", "-p", "8080", site).out, "Listen") == "0.0.0.0:8080"


def test_port_option_alone_keeps_loopback(run, site):
    assert key(run("-T", "-p", "8080", site).out, "Listen") == "127.0.0.1:8080"
    assert key(run("-T", "--port=8080", site).out, "Listen") == "127.0.0.1:8080"


def test_port_option_accepts_several_ports_and_addresses(run, site):
    done = run("-T", site, "-p", "192.0.2.1:81", "-p", "[::1]:82", "-p", "unix:/tmp/x", "--port", "83")
    assert re.findall(r"^    Listen +(.+)$", done.out, re.MULTILINE) == [
        "192.0.2.1:81", "[::1]:82", "unix:/tmp/x", "127.0.0.1:83"]


def test_folder_name_may_contain_special_characters(monkey, tmp_path):
    folder = tmp_path / 'a "b" ${HOME} #c ü\\'
    folder.mkdir()
    (folder / "x").write_text("found")
    assert monkey(args=["-p", "0", folder]).get("/x").text == "found"


@pytest.mark.over("h1", why="what a folder is served as does not depend on what is spoken")
@pytest.mark.parametrize("https", [False, True], ids=["http", "https"])
def test_folder_404_page_becomes_error_page(monkey, run, site, tmp_path, monkeypatch, https):
    monkeypatch.setenv("MONKEY_STATE", str(tmp_path / "state"))
    site.add("404.html", "<h1>lost</h1>")
    site.add("a.txt", "a")
    options = ["--https"] if https else []
    done = run(*options, "-p", "0", "-T", site)
    assert done.code == 0 and re.search(r"\[ERROR_PAGES\]\n +404 +404\.html\n", done.out), done
    done = run(*options, "-o", site, "explain", "GET", "/none")
    assert re.search(r"^page +404\.html, of \[ERROR_PAGES\], if it answers 404$", done.out, re.MULTILINE), done
    if https:
        return
    server = monkey(args=["-p", "0", site])
    reply = server.get("/none")
    assert (reply.status, reply.text) == (404, "<h1>lost</h1>")
    assert server.get("/404.html").status == 200
    assert server.get("/").text.count('href="404.html"') == 1


def test_folder_404_page_that_is_a_symlink_is_ignored(run, site):
    os.symlink("/etc/passwd", site / "404.html")
    assert "ERROR_PAGES" not in run("-T", site).out


def test_server_prints_folder_and_url(monkey, site):
    site.add("index.html", "hello")
    server = monkey(args=["-p", "0", "-w", "1", site])
    assert re.fullmatch(rf"Monkey \S+ serves {re.escape(str(site.path))} at\n  http://127\.0\.0\.1:\d+/\n", server.out.text)
    assert server.get("/").text == "hello"
    server.stop()
    assert server.err.text == "", "no warnings"


def test_server_prints_every_address(monkey, tmp_path, site):
    site.add("index.html", "hello")
    server = monkey(args=["-p", "0", "-p", "[::1]:0", "-p", f"unix:{tmp_path}/socket", site])
    assert len(server.addresses) == 3
    assert [server.get("/", listener=i).text for i in range(3)] == ["hello"] * 3


def test_public_server_prints_all_addresses_of_the_machine(monkey, site):
    server = monkey(args=["--public", "-p", "0", site])
    assert len(server.addresses) >= 1
    assert all(port == server.port and host != "0.0.0.0" for host, port in server.addresses)
    assert ("127.0.0.1", server.port) in server.addresses


@pytest.mark.parametrize("option", ["-w", "--workers"])
def test_workers_option_sets_number_of_workers(monkey, site, option):
    server = monkey(args=["-p", "0", option, "3", site])
    assert [name(pid) for pid in server.workers] == ["monkey: worker"] * 3


@pytest.mark.parametrize("option", ["-I", "--pid-file"])
def test_pid_file_option_writes_and_removes_file(monkey, tmp_path, site, option):
    server = monkey(args=["-p", "0", option, tmp_path / "pid", site])
    assert (tmp_path / "pid").read_text() == f"{server.pid}\n"
    server.stop()
    assert not (tmp_path / "pid").exists()


# A configuration

@pytest.mark.parametrize("option", ["-c", "--config"])
def test_config_option_accepts_file_or_folder(run, conf, option):
    for path in (conf, conf.parent):
        assert run(option, path, "-t").code == FINE


@pytest.mark.parametrize("option", ["-t", "--test"])
def test_option_prints_summary(run, conf, option):
    done = run(option, "-c", conf)
    assert (done.code, done.out, done.err) == (FINE, "The configuration is valid: 1 host, 1 address.\n", "")


@pytest.mark.parametrize("option", ["-T", "--print"])
def test_print_option_output_is_a_fixed_point(run, conf, tmp_path, option):
    first = run(option, "-c", conf)
    (tmp_path / "again.conf").write_text(first.out)
    again = run(option, "-c", tmp_path / "again.conf")
    assert (first.code, first.err, again.code, again.err) == (FINE, "", FINE, "")
    assert again.out == first.out and "DocumentRoot" in first.out


def test_options_override_configuration(run, conf, tmp_path):
    done = run("-T", "-c", conf, "-p", "8081", "-w", "7", "-I", tmp_path / "pid")
    assert key(done.out, "Listen") == "0.0.0.0:8081", "a configuration listens on all addresses"
    assert (key(done.out, "Workers"), key(done.out, "PidFile")) == ("7", str(tmp_path / "pid"))


def test_invalid_configuration_exits_with_its_code(run, conf):
    conf.write_text("[SERVER]\n    Wrokers 3\n")
    done = run("-c", conf)
    assert (done.code, done.out) == (CONFIGURATION, "")
    assert f"{conf}:2" in done.err and "did you mean `Workers`?" in done.err
    assert run("-t", "-c", conf).code == run("-T", "-c", conf).code == CONFIGURATION
    assert run("-c", conf, "explain", "GET", "/").code == CONFIGURATION


def test_missing_configuration_is_the_only_error(run, tmp_path):
    done = run("-c", tmp_path / "none.conf")
    assert done.code == CONFIGURATION and f"{tmp_path}/none.conf" in done.err and "No such file" in done.err
    assert done.err.count("error:") == 1 and "[HOST]" not in done.err


# Output

@pytest.mark.parametrize("option", ["-v", "--version"])
def test_version_option_prints_version(run, option):
    done = run(option)
    assert (done.code, done.err) == (FINE, "") and re.fullmatch(r"Monkey \d+\.\d+\.\d+\n", done.out)


@pytest.mark.parametrize("option", ["-V", "--build"])
def test_version_details_option_prints_build_and_kernel_features(run, option):
    done = run(option)
    assert (done.code, done.err) == (FINE, "")
    assert done.out.startswith(run("-v").out)
    assert re.search(r"^built +(optimized|for debugging) by (gcc|.*[Cc]lang) \d", done.out, re.MULTILINE)
    assert re.search(r"^config +/\S+/monkey$", done.out, re.MULTILINE)
    assert os.uname().release in done.out and re.search(r"^Landlock +(yes, ABI \d+|no: .+)$", done.out, re.MULTILINE)


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_option_lists_every_option(run, option):
    done = run(option)
    assert (done.code, done.err) == (FINE, "")
    for letter, word in zip("pwctTDIovVh", "port workers config test print daemon pid-file one-shot version build "
                                           "help".split()):
        assert re.search(rf"^  -{letter}, --{word}\b", done.out, re.MULTILINE), word
    assert "--public" in done.out and "explain METHOD URL" in done.out
    assert max(map(len, done.out.splitlines())) <= 120


@pytest.mark.parametrize("args, message", [
    (["--nope"], "--nope"),
    (["-x"], "-x"),
    (["-p"], "needs an argument: -p"),
    (["--port"], "needs an argument: --port"),
    (["-c"], "needs an argument: -c"),
    (["-w", "0", "."], "1 to 512, not 0"),
    (["-w", "513", "."], "1 to 512, not 513"),
    (["-w", "-1", "."], "1 to 512, not -1"),
    (["-w", "two", "."], "1 to 512, not two"),
    (["-w", "99999999999999999999", "."], "1 to 512"),
    (["one", "two"], "expected one folder only, not also two"),
    (["-o", "one", "two"], "expected one folder only, not also two"),
    (["-c", "x.conf", "folder"], "not both: folder"),
    (["no such folder"], "there is no folder and no command `no such folder`\nName an existing folder (`monkey .`)"),
    (["no/such/folder"], "cannot serve the folder `no/such/folder`: No such file or directory\nName an existing folder"),
    (["plugin"], "there is no folder and no command `plugin`\nDid you mean `monkey plugins`?"),
    (["paswd"], "there is no folder and no command `paswd`\nDid you mean `monkey passwd`?"),
    (["-t", "shel"], "there is no folder and no command `shel`\nDid you mean `monkey shell`?"),
    (["-c", "monkey.conf", "passwd", "users", "ana"], "`passwd` takes no options of the server, only its own, after its name:\nusage: monkey passwd"),
    (["-c", "monkey.conf", "top", "--once"], "[FILE]"),
    (["-c", "monkey.conf", "recorder"], "`recorder` takes no options of the server, only its own, after its name:\nusage: monkey recorder"),
    (["-t", "passwd", "-b", "bcrypt", "users", "ana"], "`passwd` takes no options of the server"),
    (["--config=monkey.conf", "-D", "--", "shell"], "-s, --socket"),
    (["-c", "passwd", "shel"], "serve a folder or a configuration, not both: shel"),
    (["explain", "GET"], "usage: monkey"),
    (["explain", "GET", "/", "/"], "usage: monkey"),
    ([*["-p", "1"] * 17, "."], "too many -p"),
    (["-t", "ca"], "-t, -T, -D and -I are not valid with the command ca"),
    (["-D", "-c", "x", "explain", "GET", "/"], "-t, -T, -D and -I are not valid with the command explain"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_wrong_usage_exits_with_message(run, args, message):
    done = run(*args)
    assert (done.code, done.out) == (USAGE, "")
    assert message in done.err


@pytest.mark.parametrize("word", ["run", "new", "test", "routes", "doc", "openapi", "build", "passwd", "shell", "explain", "plugins", "ca", "help"])
def test_command_wins_over_folder_of_the_same_name(run, tmp_path, word):
    """Most C projects have a folder build/ or test/. `./build` serves such a folder, because the bare word is a command."""
    for name in (word, "folder"):
        (tmp_path / name).mkdir()
    if f"  monkey {word}" not in run("--help").out:
        pytest.skip(f"there is no command {word} here")
    done = run(word, "no-such-a.c", "no-such-b.c", "no-such-c.c", folder=tmp_path)
    assert "expected one folder only" not in done.err and "cannot serve" not in done.err, done
    takes_words = word in ("run", "test", "routes", "doc", "openapi", "build", "shell")
    assert takes_words or (done.code == USAGE and f"write `monkey ./{word}`" in done.err), done
    behind = run("-p", "0", word, "folder", folder=tmp_path)
    assert behind.code == USAGE and "expected one folder" not in behind.err, behind
    assert run("-t", f"./{word}", folder=tmp_path).code == run("-t", f"{word}/", folder=tmp_path).code == FINE
    assert run("-t", "-o", word, folder=tmp_path).code == FINE


def test_help_command_prints_help_of_command(run):
    assert run("help").out == run("--help").out
    assert run("help", "passwd").out == run("passwd", "--help").out
    assert run("help", "explain").out.startswith("  monkey explain METHOD URL")
    assert "--from ADDRESS" in run("help", "explain").out
    assert "--days N" in run("help", "certificates").out and "--days" not in run("help", "plugins").out
    done = run("help", "nonesuch")
    assert done.code == USAGE and "there is no command `nonesuch`" in done.err
    assert run("help", "a", "b").code == USAGE


@pytest.mark.parametrize("command, codes", [("diff", "0 no differences, 1 differences, 2 failure"), ("configurations", "0 success, 2 failure")])
def test_help_of_config_commands_lists_option_and_exit_codes(run, command, codes):
    text = run("help", command).out
    assert text.startswith(f"  monkey {command}") and "-c, --config FILE|FOLDER" in text and f"Exit codes: {codes}" in text


@pytest.mark.parametrize("command", ["configurations", "diff", "certificates"])
def test_config_command_without_configuration_names_what_is_missing(run, command):
    done = run(command)
    if "/monkey/" in done.err:
        pytest.skip("a configuration is installed here")
    assert done.code == USAGE and done.err.startswith(f"monkey: `{command}` needs a configuration: write `monkey -c FILE {command}`\n")


def test_no_arguments_print_usage(run):
    done = run()
    if "/monkey/" in done.err:
        pytest.skip("a configuration is installed here")
    assert done.code == USAGE and "`monkey .`" in done.err and "--help" in done.err


@pytest.mark.parametrize("port", ["", "x", "65536", "-1", "1.2.3.4", "1.2.3.4:", "::1:80", "[::1]", "localhost:80", "unix:",
                                  "unix:" + "x" * 108])
def test_port_option_with_invalid_port_is_rejected(run, site, port):
    done = run("-t", "-p", port, site)
    assert done.code == CONFIGURATION
    assert f"`{port}` is not a port to listen on: expected PORT" in done.err


def test_file_instead_of_folder_is_rejected(run, site, tmp_path):
    file = site.add("file.conf", "x")
    done = run("-t", file)
    assert done.code == USAGE
    assert f"`{file}` is a file, but a folder is expected\n" in done.err
    assert f"(`monkey {site.path}`)" in done.err and f"(`monkey -c {file}`)" in done.err
    (tmp_path / "page.html").write_text("x")
    done = run("page.html", folder=tmp_path)
    assert done.code == USAGE and "(`monkey .`)" in done.err


def test_help_lists_commands_of_plugins(run):
    done = run("-h")
    for name in ("explain METHOD URL", "plugins", "ca", "passwd FILE USER", "shell "):
        assert re.search(rf"^  monkey {name}.*(\n {{36}})?\w", done.out, re.MULTILINE), (name, done.out)


def test_port_in_use_is_an_error(run, site):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("-p", port, site)
    assert (done.code, done.out) == (FAILED, "")
    assert f"cannot listen on {port}: Address already in use" in done.err
    assert "choose another port (-p PORT)" in done.err


def test_port_of_another_monkey_is_in_use(run, monkey, site):
    """With SO_REUSEPORT, both servers could share the port and would take each other's connections."""
    server = monkey(args=["-p", "0", site])
    done = run("-p", server.port, site)
    assert done.code == FAILED and "Address already in use" in done.err


def test_address_of_another_machine_is_an_error(run, site):
    done = run("-p", "192.0.2.1:0", site)
    assert done.code == FAILED and "cannot listen on 192.0.2.1:0: Cannot assign requested address" in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to a user that may not")
def test_privileged_port_error_explains_root(run, site):
    limit = int(open("/proc/sys/net/ipv4/ip_unprivileged_port_start").read())
    if limit < 2:
        pytest.skip("here every user may use every port")
    os.chmod(site.path.parent, 0o755)
    with open(PROGRAM, "rb") as program:  # opened here because other users cannot enter its folder
        done = run("-p", "1", "/", user=65534, group=65534, extra_groups=[], folder="/",
                   executable=f"/proc/self/fd/{program.fileno()}", pass_fds=[program.fileno()])
    assert done.code == FAILED and "Permission denied" in done.err and "below 1024 require root" in done.err


# Output streams

@pytest.mark.parametrize("args", [["-v"], ["-V"], ["-h"], ["-T", "."], ["explain", "GET", "/", "-o", "."]],
                         ids=lambda args: args[0])
def test_output_error_is_a_failure(run, args):
    with open("/dev/full", "w") as full:
        assert run(*args, capture_output=False, stdout=full, stderr=subprocess.PIPE).code == FAILED


def test_server_runs_without_standard_output(monkey, tmp_path, site):
    site.add("index.html", "hello")
    server = monkey(program="sh", args=["-c", f"exec '{PROGRAM}' -p unix:socket site >/dev/full"], expect_start=False)
    wait_until(lambda: "monkey: worker" in map(name, server.workers), "the worker")
    server.addresses = [str(tmp_path / "socket")]
    assert server.get("/").text == "hello"


def test_closed_standard_streams_are_not_reused_for_files(tmp_path, site):
    """If they stayed closed, the first files that the program opens would become its standard streams and receive its output."""
    (tmp_path / "c").write_text("[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n    AccessLog access.log\n"
                                "[HOST]\n    DocumentRoot site\n")
    process = subprocess.Popen(["sh", "-c", f'exec "{PROGRAM}" -c c <&- >&- 2>&-'], cwd=tmp_path,
                               env=os.environ | ENVIRONMENT)
    try:
        wait_until(lambda: "monkey: worker" in map(name, children(process.pid)), "the worker")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
    assert (tmp_path / "access.log").read_bytes() == b""


class Terminal:
    """Runs the program with a terminal as its standard output."""

    def __init__(self, *args, cwd):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen([PROGRAM, *map(str, args)], cwd=cwd, stdin=slave, stdout=slave,
                                        stderr=subprocess.DEVNULL, env=os.environ | ENVIRONMENT)
        os.close(slave)
        self.text = ""

    def read_until(self, pattern):
        while not (found := re.search(pattern, self.text)):
            self.text += os.read(self.master, 4096).decode()
        return found

    def close(self):
        self.process.terminate()
        self.process.wait(SECONDS)
        os.close(self.master)


def test_terminal_shows_each_request_at_once(tmp_path, site):
    site.add("a.txt", "hello")
    terminal = Terminal("-p", "0", site, cwd=tmp_path)
    try:
        port = int(terminal.read_until(r"http://127\.0\.0\.1:(\d+)/\r\n")[1])
        for target, status, size in (("/a.txt", 200, "5"), ("/none", 404, r"\d+"), ("/%1b]0;x%07\x1b[31m", r"4\d\d", r"\d+")):
            with socket.create_connection(("127.0.0.1", port)) as c:
                c.sendall(f"GET {target} HTTP/1.0\r\n\r\n".encode())
                while c.recv(4096):
                    pass
                # `at once`: a person sees the line before the next request, not only when a block is full
                shown = re.escape(target.replace("\x1b", "\\x1b"))
                terminal.read_until(rf"\d\d:\d\d:\d\d {status} (GET {shown}|- -)  {size} bytes to 127\.0\.0\.1\r\n")
        assert "\x1b" not in terminal.text
    finally:
        terminal.close()


def test_pipe_as_standard_output_shows_no_requests(monkey, site):
    server = monkey(args=["-p", "0", site])
    server.get("/")
    server.stop()
    assert "GET" not in server.out.text


def test_control_c_stops_the_server(tmp_path, site):
    """The terminal sends SIGINT to the whole process group, including the workers."""
    terminal = Terminal("-p", "0", site, cwd=tmp_path)
    try:
        terminal.read_until(r"http://127\.0\.0\.1:\d+/\r\n")
        for pid in (*children(terminal.process.pid), terminal.process.pid):
            os.kill(pid, signal.SIGINT)
        assert terminal.process.wait(SECONDS) == 0
    finally:
        terminal.close()


def test_output_is_never_colored(run, tmp_path):
    (tmp_path / "c").write_text("[SERVER]\n    Nonsense 1\n")
    done = run("-c", "c", environment={"TERM": "xterm-256color", "CLICOLOR_FORCE": "1", "NO_COLOR": "1"})
    assert "\x1b" not in done.out + done.err
