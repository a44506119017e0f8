# SPDX-License-Identifier: Apache-2.0
"""The guide to Duda builds the issue tracker of examples/duda/tracker step by step: the code that it shows is the code of the files, each
step runs without warnings and sends the responses that the guide shows, and the commands work."""
import email
import email.policy
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

import mail_server
import postgres_server
import services
from guides import calls, environment  # pylint: disable=unused-import
from load import Load
from monkey import ROOT, SECONDS
from proc import RELEASE, wait_until
from samples import CAN_RUN, UserAgent, needs

pytestmark = [CAN_RUN, needs("sql", "sqlite", "auth", "jobs", "kv", "smtp")]

GUIDE = (ROOT / "docs/guide/duda.md").read_text()
PRODUCTION = (ROOT / "docs/guide/duda-production.md").read_text()
TRACKER = ROOT / "examples/duda/tracker"
STEPS = sorted(path.name for path in TRACKER.iterdir() if path.is_dir())
TEXTS = dict(re.findall(r"^## (\d+)\. [^\n]*\n(.*?)(?=^## )", GUIDE, re.MULTILINE | re.DOTALL))
PASSWORD = "correct horse"
POSTGRES = pytest.mark.skipif(not (services.has("postgres") and postgres_server.is_usable()), reason="no PostgreSQL here")
NEEDS_RELEASE = pytest.mark.skipif(not RELEASE.exists(), reason=f"{RELEASE} is not built")


def text_of(step):
    return TEXTS[str(int(step[:2]))]


def copy(folder, last):
    """Copies all steps up to `last` to the folder, one over the other, as the guide says."""
    for step in STEPS[:STEPS.index(last) + 1]:
        shutil.copytree(TRACKER / step, folder, dirs_exist_ok=True)
    return folder


def blocks(text, marks="```"):
    """Returns the code blocks of the text; with "    ", the indented blocks without those of the terminal."""
    if marks == "```":
        return re.findall(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    pieces = re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return [re.sub("^    ", "", piece, flags=re.MULTILINE) for piece in pieces if not piece.startswith("    $")]


@pytest.fixture
def start(monkey, tmp_path, environment):  # pylint: disable=redefined-outer-name
    def run(step, conf=(), more=()):
        copy(tmp_path / "tracker", step)
        path = tmp_path / "tracker/tracker.conf"
        for before, after in dict(conf).items():
            assert before in path.read_text()
            path.write_text(path.read_text().replace(before, after))
        words = ["-i", "tracker/tracker.conf"] if path.exists() else []
        server = monkey(args=["run", "-p", "0", *words, "tracker"], environment=environment | dict(more))
        assert "warning" not in server.err.text, server.err.text
        return server

    return run


# ---- The text ----

def test_guide_has_the_steps_of_the_example():
    assert [int(name[:2]) for name in STEPS] == [int(n) for n in TEXTS] == list(range(1, 12))
    for step in STEPS[1:]:
        assert f"`{step}`" in text_of(step), step
    assert re.findall(r"`(\d\d-[\w-]+)`", (TRACKER / "README.md").read_text()) == STEPS


@pytest.mark.parametrize("step", STEPS)
def test_code_of_the_guide_is_the_code_of_the_step(step, tmp_path):
    copy(tmp_path / "all", step)
    own = [path.read_text() for path in sorted((TRACKER / step).rglob("*.*")) if path.is_file()]
    shown = blocks(text_of(step)) + [block for block in blocks(text_of(step), "    ") if block.startswith(("[", "# "))]
    assert shown
    for block in shown:
        assert any(block.strip() in text for text in own), block


@pytest.mark.parametrize("step", [step for step in STEPS if step < "10"])
def test_step_sends_the_responses_of_the_guide(start, step):
    server = start(step)
    for target, how, wanted in calls(text_of(step)):
        if ("Authorization", "Bearer TOKEN") in how["fields"]:
            continue  # check_api() sends this request
        assert server.get(target, **how).text.strip("\n") == wanted.strip("\n"), target
    assert server.get("/").status == 200
    if step > "02":
        assert "The coffee machine drips" in server.get("/").text and "The seal is worn." in server.get("/issues/1").text
    server.out.wait_for("compiled in|$")
    server.allow("127.0.0.1:2525|mail")
    assert "warning" not in server.err.text and "error" not in server.err.text, server.err.text


def test_running_server_follows_the_steps(start, tmp_path):
    """The server of step 2 keeps running while the files of the next steps are copied over."""
    server = start("02-database")
    for step, path in (("03-search", "/?q=tea"), ("04-log-in", "/log-in"), ("05-forms", "/new"), ("06-attachments", "/issues/1"),
                       ("07-api", "/api/issues"), ("08-live", "/"), ("09-mail", "/")):
        shutil.copytree(TRACKER / step, tmp_path / "tracker", dirs_exist_ok=True)
        wait_until(lambda target=path: server.get(target).status in (200, 401), step)
    sign_up(server, "fay")
    assert "warning" not in server.err.text, server.err.text


def test_step_1_shows_edits_and_compile_errors(start, tmp_path):
    server = start("01-hello")
    assert server.out.text.splitlines()[0] == re.search(r"^    \$ monkey run tracker\n    (.*)\n", text_of("01"), re.MULTILINE)[1]
    path, html = tmp_path / "tracker/tracker.c", [("Accept", "text/html")]
    shown = path.read_text()
    path.write_text(shown.replace("hello %s", "hullo %s"))
    assert server.get("/?name=ana").text == "hullo ana\n"
    path.write_text(shown.replace('"world"));', '"world"))'))
    assert "tracker.c:6: error:" in server.get("/", fields=html).text
    path.write_text(shown)
    assert server.get("/", fields=html).text == "hello world\n"


# ---- The application ----

def sign_up(server, name):
    user = UserAgent(server)
    user.get("/sign-up")
    answer = user.post("/sign-up", name=name, email=f"{name}@example.org", password=PASSWORD)
    assert (answer.status, answer["Location"]) == (303, "/"), answer.text
    user.get("/")
    return user


def cookies_of(user):
    return "Cookie", "; ".join(f"{name}={value}" for name, value in user.cookies.items())


def attach(user, issue, name, content):
    """Uploads a file as a browser does."""
    body = b"".join([b'--x\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n', user.token.encode(),
                     b'\r\n--x\r\nContent-Disposition: form-data; name="file"; filename="', name.encode(), b'"\r\n\r\n', content, b"\r\n--x--\r\n"])
    return user.server.get(f"/issues/{issue}/files", "POST", [("Content-Type", "multipart/form-data; boundary=x"), cookies_of(user)], body)


def check_log_in(server):
    visitor = UserAgent(server)
    visitor.get("/sign-up")
    answer = visitor.post("/sign-up", name="Cy", email="cy", password="short")
    assert answer.status == 422 and answer.text.count("role=alert") == 3
    assert 'value="Cy"' in answer.text and 'value="cy"' in answer.text and "short" not in answer.text
    sign_up(server, "cy")
    answer = visitor.post("/sign-up", name="cy", email="cyrus@example.org", password=PASSWORD)
    assert answer["Location"] == "/sign-up" and "This name is taken." in visitor.get("/sign-up").text
    answer = visitor.post("/sign-up", name="cyrus", email="cy@example.org", password=PASSWORD)
    assert answer["Location"] == "/sign-up" and "This address has an account." in visitor.get("/sign-up").text
    assert visitor.get("/new").status == 401
    assert server.get("/new", fields=[("Accept", "text/html")])["Location"] == "/log-in?next=/new"
    for name, password in (("cy", "wrong horse"), ("none", PASSWORD), ("' OR '1'='1", PASSWORD)):
        visitor.post("/log-in", name=name, password=password)
        assert "Name or password is wrong." in visitor.get("/").text
    assert visitor.post("/log-in", name="cy", password=PASSWORD, next="//evil.example").status == 400
    assert visitor.post("/log-in", name="cy", password=PASSWORD, next="/new")["Location"] == "/new"
    assert "Log out cy" in visitor.get("/").text
    visitor.post("/log-out")
    assert "Log in" in visitor.get("/").text


def check_issues(server):
    dora, eve = sign_up(server, "dora"), sign_up(server, "eve")
    answer = dora.post("/new", title="", text="kept <text>")
    assert answer.status == 422 and "kept &lt;text&gt;" in answer.text and "`title`" in answer.text
    path = dora.post("/new", title="Kettle <boils>", text="Hot.", author="eve")["Location"]
    page = dora.get(path).text
    assert "Kettle &lt;boils&gt;" in page and "by dora" in page and "The issue is saved." in page
    assert "The issue is saved." not in dora.get(path).text
    assert dora.post(f"{path}/edit", title="Kettle", text="Cold.", state="closed")["Location"] == path
    assert "closed" in dora.get(path).text
    assert eve.post(f"{path}/edit", title="x", text="x").status == 403 and "Kettle" in eve.get(path).text
    assert eve.post(f"{path}/comments", text="Good.")["Location"] == path and "Good." in dora.get(path).text
    assert eve.post("/issues/99/comments", text="x").status == 404
    assert "Kettle" in server.get("/?q=KETT").text and "Kettle" not in server.get("/?q=none").text
    assert "Kettle" not in server.get("/?q=k%25t").text and "Kettle" not in server.get("/?q=k_ttle").text
    assert server.get("/?page=0").status == 400 and server.get(f"/?q={'x' * 101}").status == 400
    return dora, path


def check_attachments(user, path):
    content = os.urandom(3 << 20)
    assert attach(user, path.split("/")[-1], "töpfe.bin", content)["Location"] == path
    file = re.search('/files/[0-9a-f-]+', user.get(path).text)[0]
    assert user.server.get(file).status == 401
    answer = user.server.get(file, fields=[cookies_of(user)])
    assert answer.body == content and "attachment" in answer["Content-Disposition"]
    part = user.server.get(file, fields=[("Range", "bytes=5-9"), cookies_of(user)])
    assert (part.status, part.body) == (206, content[5:10])
    assert user.server.get(file, fields=[("If-None-Match", answer["ETag"]), cookies_of(user)]).status == 304
    assert attach(user, path.split("/")[-1], "big", b"x" * (5 << 20)).status == 413


def check_api(user):
    server = user.server
    user.post("/tokens")
    token = re.search(r"Your token: (tracker_[\w-]+)", user.get("/").text)[1]
    fields = [("Content-Type", "application/json")]
    bearer = [*fields, ("Authorization", f"Bearer {token}")]
    body = json.dumps({"title": "From a script", "text": "", "state": "open"}).encode()
    assert server.get("/api/issues", "POST", fields, body).status == 401
    shown = next(how for _, how, _ in calls(text_of("07")) if ("Authorization", "Bearer TOKEN") in how["fields"])
    assert server.get("/api/issues", "POST", bearer, shown["body"]).status == 201
    made = server.get("/api/issues", "POST", bearer, body)
    issue = json.loads(made.text)
    assert made.status == 201 and issue["author"] == "dora" and issue["created"] > 1767610000
    assert json.loads(server.get(f"/api/issues/{issue['id']}").text) == issue
    assert json.loads(server.get("/api/issues?q=script").text) == [issue]
    wrong = server.get("/api/issues", "POST", bearer, b'{"title": "", "author": "eve"}')
    assert wrong.status == 422 and {each["pointer"] for each in json.loads(wrong.text)["errors"]} >= {"/title", "/author"}
    for i in range(25):
        assert server.get("/api/issues", "POST", bearer, json.dumps({"title": f"n{i}", "text": ""}).encode()).status == 201
    first, second = (json.loads(server.get(f"/api/issues?page={n}").text) for n in (1, 2))
    assert len(first) == 20 and first[-1]["id"] == second[0]["id"] + 1
    assert "page=2" in server.get("/").text and "page=3" not in server.get("/?page=2").text


def check_live(user):
    with user.server.connect() as client:
        assert client.ask("/live").read_head()["Content-Type"].startswith("text/event-stream")
        user.post("/new", title="Live", text="")
        client.read_until(b"data: /new\n\n")


def check_all(server, mail):
    check_log_in(server)
    dora, path = check_issues(server)
    check_attachments(dora, path)
    check_live(dora)
    check_api(dora)
    wait_until(lambda: mail.got, "the mail has arrived")
    sender, to, content = mail.got[0]
    message = email.message_from_bytes(content, policy=email.policy.default)
    assert (sender, to, message["Subject"]) == ("tracker@example.org", ["dora@example.org"], "Re: Kettle")
    assert f"https://tracker.example.org{path}" in message.get_content()


def test_tracker_with_sqlite(start):
    with mail_server.boxes() as box:
        mail = box()
        server = start("09-mail", conf={"127.0.0.1:2525": mail.address})
        check_all(server, mail)


@POSTGRES
def test_tracker_with_postgres_after_the_commands_of_the_guide(start, tmp_path):
    copy(tmp_path / "tracker", "11-deploy")
    commands = re.findall(r"^    \$ ((?:mkdir|sed).*postgres.*)$", text_of("11"), re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    cluster = postgres_server.Postgres()
    try:
        with mail_server.boxes() as box:
            mail = box()
            conf = (TRACKER / "09-mail/tracker.conf").read_text()
            own = conf[:conf.index("# The mail server")]
            server = start("11-deploy", conf={own: (TRACKER / "11-deploy/postgres.conf").read_text() + "\n", "127.0.0.1:2525": mail.address},
                           more={"TRACKER_DATABASE": cluster.database()})
            check_all(server, mail)
    finally:
        cluster.stop()


# ---- Tests and deployment ----

def test_tests_print_what_the_guide_shows(run, tmp_path, environment):  # pylint: disable=redefined-outer-name
    copy(tmp_path / "tracker", "10-tests")
    shown = re.search(r"^    \$ monkey (test .*)\n((?:    .*\n)+)", text_of("10"), re.MULTILINE)
    done = run(*shown[1].split(), environment=environment)
    assert done.code == 0 and done.out.splitlines()[1:] == [line.strip() for line in shown[2].splitlines()][1:], done


@pytest.fixture
def deployed(tmp_path, environment):  # pylint: disable=redefined-outer-name
    """Builds the tracker with the command of the guide; deployed(conf) writes a configuration for a free port next to it."""
    copy(tmp_path / "tracker", "11-deploy")
    (tmp_path / "tracker/html").mkdir()
    (tmp_path / "tracker/html/file.txt").write_text("a file")
    words = re.search(r"^    \$ monkey (build .*)$", text_of("11"), re.MULTILINE)[1].split()

    def build(conf=None, change=("", "")):
        source = tmp_path / "tracker/templates/layout.html"
        source.write_text(source.read_text().replace(*change))
        done = subprocess.run([RELEASE, *words], cwd=tmp_path, env=os.environ | environment, capture_output=True, text=True,
                              timeout=4 * SECONDS, check=False)
        assert done.returncode == 0, done
        path = tmp_path / "tracker/production.conf"
        path.write_text(re.sub(r"(Listen +)\S+", r"\g<1>127.0.0.1:0", conf or (TRACKER / "11-deploy/production.conf").read_text()))
        return path

    return build


@NEEDS_RELEASE
def test_deployed_tracker_serves_and_reloads(monkey, deployed):
    server = monkey(args=["-c", deployed()], program=RELEASE)
    assert "The coffee machine drips" in server.get("/").text and server.get("/file.txt").text == "a file"
    with Load(server, "/file.txt", content=b"a file") as load:
        deployed(change=(">Issues<", ">Tickets<"))
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves")
        load.more(5)
        load.check()
    assert ">Tickets<" in server.get("/").text


@NEEDS_RELEASE
def test_deployed_tracker_works_under_a_prefix(monkey, deployed):
    """All links, forms and redirects of the pages lead to the service, which [ROUTES] mounts at /tracker."""
    conf = (TRACKER / "11-deploy/production.conf").read_text()
    server = monkey(args=["-c", deployed(conf + "\n[ROUTES]\n    /tracker/* tracker\n")], program=RELEASE)
    user = UserAgent(server)
    assert server.get("/tracker/new", fields=[("Accept", "text/html")])["Location"] == "/tracker/log-in?next=/tracker/new"
    assert server.get("/new").status == 404
    user.get("/tracker/sign-up")
    answer = user.post("/tracker/sign-up", name="ana", email="ana@example.org", password=PASSWORD)
    assert (answer.status, answer["Location"]) == (303, "/tracker/")
    user.get("/tracker/")
    answer = user.post("/tracker/new", title="Prefix", text="")
    paths, links = [answer["Location"]], set()
    assert re.fullmatch(r"/tracker/issues/\d+", paths[0])
    for path in ("/tracker/", "/tracker/sign-up", "/tracker/log-in", paths[0]):
        links |= set(re.findall(r'(?:href|action|EventSource\()="?([^" >]+)', user.get(path).text))
    assert len(links) >= 9 and all(link.startswith("/tracker/") for link in links), links
    for link in links - {"/tracker/live"}:
        assert user.get(link).status in (200, 405), link
    assert user.post("/tracker/log-out")["Location"] == "/tracker/"


def production(tmp_path, text):
    """Replaces the folders of the page about production by those of the test."""
    for before, after in (("/srv/tracker/html", tmp_path / "tracker/html"), ("/srv/tracker", tmp_path / "tracker"),
                          ("/var/lib/monkey/tracker", tmp_path / "tracker"), ("/etc/monkey", tmp_path / "tracker")):
        text = text.replace(before, str(after))
    return re.sub(r"^ +User .*\n", "", text, flags=re.MULTILINE)


@NEEDS_RELEASE
@pytest.mark.processes("an embedded server starts no process group")
def test_configurations_for_production_serve(monkey, deployed, tmp_path):
    assert "\n    install -d /srv/tracker/html\n" in PRODUCTION, "the DocumentRoot of the configuration"
    plain, isolated = (block for block in blocks(PRODUCTION, "    ") if block.startswith("[") and "[HOST]" in block)
    key = re.search(r"`(head -c 32 [^>]*> )/etc/monkey/session.keys", PRODUCTION.replace("\n", " "))[1]
    subprocess.run(f"{key}{tmp_path}/tracker/session.keys", shell=True, check=True)
    server = monkey(args=["-c", deployed(production(tmp_path, plain))], program=RELEASE)
    assert "The coffee machine drips" in server.get("/").text and server.get("/file.txt").text == "a file"
    server.stop()
    parts = dict(re.findall(r"^\[(\w+)\]\n(.*?)(?=^\[|\Z)", plain, re.MULTILINE | re.DOTALL))
    own = "".join(f"[{name}]\n{parts[name]}\n" for name in ("SQLITE", "KV", "SMTP", "SESSIONS"))
    (tmp_path / "tracker/tracker.conf").write_text(production(tmp_path, f"[PLUGINS]\n    Load duda-sqlite\n{own}"))
    server = monkey(args=["-c", deployed(production(tmp_path, "[SERVER]\n    Listen 80\n" + isolated))], program=RELEASE)
    assert "The coffee machine drips" in server.get("/").text and server.get("/file.txt").text == "a file"
    assert len(server.workers) >= 2, "the server's worker and the group's worker"


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no sqlite3 here")
def test_backup_of_sqlite_contains_recent_changes(start, tmp_path):
    server = start("02-database")
    assert server.get("/").status == 200
    command = re.search(r"`(sqlite3 [^`]+)`", PRODUCTION)[1]
    command = command.replace("/var/lib/monkey/tracker", str(tmp_path / "tracker")).replace("/backup/", f"{tmp_path}/backup-")
    subprocess.run(command, shell=True, check=True)
    rows = subprocess.run(["sqlite3", tmp_path / "backup-tracker.db", "SELECT count(*) FROM issues"], capture_output=True, text=True, check=True)
    assert rows.stdout == "2\n"


# ---- Debugging ----

LEAK = """#include <duda.h>
#include <errno.h>
#include <stdlib.h>

static int leak(struct duda_ctx *d)
{
    char *copy = malloc(100);
    return copy ? duda_printf(d, "%p", (void *)copy) : -ENOMEM;
}

DUDA_SERVICE(leak, DUDA_GET("/", leak));
"""


@NEEDS_RELEASE
@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind here")
@pytest.mark.processes("this is not the optimized program")
def test_valgrind_names_the_line_of_a_leak(monkey, tmp_path, environment):  # pylint: disable=redefined-outer-name
    (tmp_path / "leak.c").write_text(LEAK)
    subprocess.run([RELEASE, "build", "leak.c"], cwd=tmp_path, env=os.environ | environment, timeout=4 * SECONDS, check=True)
    command = re.search(r"^    (valgrind .*) monkey -c", (ROOT / "docs/guide/duda-debugging.md").read_text(), re.MULTILINE)[1]
    server = monkey(program=RELEASE, wrapper=command.split(), plugins=[tmp_path / "monkey-leak.so"])
    server.allow("")
    assert server.get("/").status == 200
    server.stop(signal.SIGQUIT)
    assert re.search(r"100 bytes in 1 blocks are definitely lost(?:.*\n)+?.*leak \(leak.c:7\)", server.err.text), server.err.text
