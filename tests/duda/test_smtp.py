# SPDX-License-Identifier: Apache-2.0
"""The smtp package: messages that a mail server accepts, and the errors that a handler gets if delivery fails."""
import email
import email.policy
import os
import re
import socket
import ssl
import threading

import pytest
from aiosmtpd.smtp import AuthResult

import services
from backend import Backend
from certificates import make_authority
from mail_server import boxes

pytestmark = pytest.mark.skipif(not services.has("smtp"), reason="this build has no Duda")

SOURCE = r"""
#define DUDA_USE "duda-smtp"
#include <duda.h>
#include <duda/smtp.h>
#include <errno.h>

static int tell(struct duda_ctx *d, int e, const struct duda_smtp_result *r)
{
    if (e == -ECANCELED)
        return e;
    duda_printf(d, "%d|%.*s|%.*s", -e, MK_STR_ARG(r->reply), MK_STR_ARG(r->error));
    for (size_t i = 0; i < r->n_rejected; i++)
        duda_printf(d, "|%.*s %u %.*s", MK_STR_ARG(r->rejected[i].address), r->rejected[i].code,
                    MK_STR_ARG(r->rejected[i].text));
    return 0;
}

/* /mail or /text?from=...&subject=...&to=ONE,TWO, with the message as request body */
static size_t read_to(struct duda_ctx *d, mk_str *to)
{
    mk_str rest = duda_query(d, "to");
    size_t n = 0;
    while (rest.p && n < 8)
        to[n++] = mk_str_cut(&rest, ',');
    return n;
}

static int mail(struct duda_ctx *d)
{
    struct duda_smtp_result r;
    mk_str to[8], content;
    int e = duda_read_all(d, 1 << 20, &content);
    if (e)
        return e;
    const struct duda_mail m = {.from = duda_query(d, "from"), .to = to, .n_to = read_to(d, to),
                                .subject = duda_query(d, "subject"), .body = content};
    return tell(d, duda_smtp_send(d, duda_smtp_find(d, NULL), &m, &r), &r);
}

static int text(struct duda_ctx *d)
{
    struct duda_smtp_result r;
    mk_str to[8], content;
    int e = duda_read_all(d, 1 << 20, &content);
    if (e)
        return e;
    const struct duda_smtp_message m = {.from = duda_query(d, "from"), .to = to, .n_to = read_to(d, to), .text = content};
    return tell(d, duda_smtp_send_raw(d, duda_smtp_find(d, NULL), &m, &r), &r);
}

DUDA_SERVICE(mails, DUDA_POST("/mail", mail, "Sends a message."), DUDA_POST("/text", text, "Sends one as it is."));
"""


@pytest.fixture(scope="module")
def mails(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("mails"), "mails", SOURCE, packages=["smtp"])


def start(monkey, mails, address, keys="", top=""):
    return monkey(plugins=[mails], top=f"{top}[SMTP]\n    Server {address}\n    Timeout 5s\n{keys}", server="MaxBodySize 4M")


def send(server, content="hello\n", path="/mail", **query):
    query = {"from": "shop@example.org", "to": "ana@example.org", "subject": "Hello", **query}
    target = f"{path}?" + "&".join(f"{name}={value}" for name, value in query.items())
    answer = server.get(target, "POST", body=content if isinstance(content, bytes) else content.encode())
    assert answer.status == 200, answer.text
    code, text, problem, *refused = answer.text.split("|")
    return int(code), text, problem, refused


@pytest.fixture
def box():
    with boxes() as start_one:
        yield start_one


def test_smtp_mail_is_composed_from_its_parts(monkey, mails, box):
    mail = box()
    server = start(monkey, mails, mail.address, "    EhloName shop.example.org\n")
    assert send(server, "dear Ana,\n.\n..\nbye ä", subject="Gr%C3%BC%C3%9Fe")[:2] == (0, "2.0.0 kept as 17")
    sender, to, content = mail.got[0]
    read = email.message_from_bytes(content, policy=email.policy.default)
    assert (sender, to) == ("shop@example.org", ["ana@example.org"])
    assert (read["Subject"], read["From"], read["To"]) == ("Grüße", "shop@example.org", "ana@example.org")
    assert read.get_content().splitlines() == ["dear Ana,", ".", "..", "bye ä"]
    several = "ana@example.org,bob@example.org,eve@example.org"
    assert send(server, to=several)[0] == 0
    assert mail.got[1][1] == several.split(",")


def test_smtp_text_is_sent_unchanged(monkey, mails, box):
    mail = box()
    server = start(monkey, mails, mail.address)
    text = "Subject: x\n\n.\r\n..dots\r.\rQUIT\n.\n" + "x" * 998 + "\n"
    assert send(server, text, "/text", **{"from": ""})[0] == 0
    sender, _, content = mail.got[0]
    assert content == b"Subject: x\r\n\r\n.\r\n..dots\r\n.\r\nQUIT\r\n.\r\n" + b"x" * 998 + b"\r\n"
    assert sender in ("", "<>") and not [option for option in mail.options[0] if option.startswith("BODY")]
    assert send(server, "Subject: ä\n\nö\n", "/text")[0] == 0
    assert mail.got[1][2] == "Subject: ä\r\n\r\nö\r\n".encode() and "BODY=8BITMIME" in mail.options[1]
    large = "Subject: large\n\n" + "y" * 70 + "\n"
    large += ("." * 70 + "\n") * 12000
    assert send(server, large, "/text")[0] == 0
    assert mail.got[2][2].replace(b"\r\n", b"\n").decode() == large


def test_smtp_rejects_injection_and_oversized_messages(monkey, mails, box):
    mail = box()
    server = start(monkey, mails, mail.address, "    MaxMessageSize 10K\n")
    for query in ({"to": "ana@example.org%0d%0aRCPT%20TO:%3Ceve@example.org%3E"}, {"to": ""}, {"to": "ana"}, {"from": "x%3E%0d%0aDATA"},
                  {"to": "ana@example.org,%3Ceve@example.org%3E"}, {"subject": "a%0d%0aBcc:%20eve@example.org"}, {"from": ""}):
        code, _, problem, _ = send(server, **query)
        assert code == 22 and re.match(r"\[SMTP\] main, 127\.0\.0\.1:\d+: the message: an address is invalid", problem), (query, problem)
    assert send(server, b"a\0b", "/text")[0] == 22
    assert send(server, "x" * 999, "/text")[0] == 22
    assert send(server, "x\n" * 5121, "/text")[0] == 90
    assert send(server, "x" * 8000)[0] == 90, "too long after base64 encoding"
    assert not mail.got
    assert send(server, "x" * 7000)[0] == 0


def test_smtp_rejected_recipients_are_reported(monkey, mails, box):
    mail = box()
    server = start(monkey, mails, mail.address)
    code, _, _, refused = send(server, to="x@elsewhere.org,ana@example.org,later@example.org")
    assert code == 0 and mail.got[0][1] == ["ana@example.org"]
    assert refused == ["x@elsewhere.org 550 5.1.1 not here", "later@example.org 450 4.2.1 later"]
    code, _, problem, refused = send(server, to="x@elsewhere.org,y@elsewhere.org")
    assert code == 74 and "RCPT: 550 5.1.1 not here" in problem and len(refused) == 2
    assert send(server, to="x@elsewhere.org,later@example.org")[0] == 11, "a job would be retried"
    assert len(mail.got) == 1


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_smtp_uses_tls_and_authenticates(monkey, mails, box, tmp_path):
    authority = make_authority(tmp_path)
    pair = authority.issue(["localhost", "127.0.0.1"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)

    def authenticate(_server, _session, _envelope, _mechanism, data):
        return AuthResult(success=(data.login, data.password) == (b"shop", b"a secret"), handled=False)

    mail = box(authenticator=authenticate, auth_required=True, auth_require_tls=False, tls=context)
    top = f"[UPSTREAM]\n    Name mail\n    Server {mail.address}\n    TLS on\n    TLSAuthority {authority.file}\n"
    for password, code in (("a secret", 0), ("another", 126)):
        (tmp_path / "password").write_text(password)
        server = start(monkey, mails, "mail", f"    User shop\n    PasswordSource file:{tmp_path}/password\n", top)
        assert send(server)[0] == code
        server.stop()
    assert len(mail.got) == 1


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_smtp_works_with_a_small_stack(monkey, box, tmp_path):
    site = services.build(tmp_path, "mails", services.with_small_stacks(SOURCE), packages=["smtp"])
    test_smtp_uses_tls_and_authenticates(monkey, site, box, tmp_path)


def conversation(*steps):
    """A server that sends the first step immediately, and one more step for each line that it receives. At the step None, it
    sends nothing more, and reads until the client closes the connection. After the last step, it closes the connection.
    `.lines` contains the received lines."""
    lines = []

    def script(connection):
        stream = connection.makefile("rb")
        for i, step in enumerate(steps):
            if i and not (line := stream.readline()):
                return
            if i:
                lines.append(line)
            if step is None:
                stream.read()
                return
            connection.sendall(step)
    script.lines = lines
    return script


EHLO = b"250-mail\r\n250 SIZE 1000\r\n"
TALKS = {
    "greeting-for-good": ((b"554 no service\r\n",), 11, "greeting: 554 no service"),
    "greeting-for-now": ((b"421-busy\r\n421 come back\r\n",), 11, "greeting: 421 busy come back"),
    "no-smtp": ((b"SSH-2.0-x\r\n",), 71, "greeting: the server does not speak SMTP"),
    "odd-code": ((b"354 go on\r\n",), 71, "greeting: the server does not speak SMTP"),
    "two-codes": ((b"220-a\r\n250 b\r\n",), 71, "greeting: the server does not speak SMTP"),
    "endless-line": ((b"220 " + b"x" * 10000,), 71, "greeting: the server does not speak SMTP"),
    "endless-lines": ((b"220-x\r\n" * 10000,), 71, "greeting: the server does not speak SMTP"),
    "closed": ((b"220 x\r\n", b""), 104, "greeting: "),
    "sender": ((b"220 x\r\n", EHLO, b"530 log in\r\n"), 126, "MAIL: 530 log in"),
    "later": ((b"220 x\r\n", EHLO, b"250 ok\r\n", b"421 going down\r\n"), 11, "RCPT: 421 going down"),
    "recipient-odd": ((b"220 x\r\n", EHLO, b"250 ok\r\n", b"354 eh\r\n"), 71, "RCPT: the server does not speak SMTP"),
    "data": ((b"220 x\r\n", EHLO, b"250 ok\r\n", b"250 ok\r\n", b"554 no\r\n"), 74, "DATA: 554 no"),
    "data-odd": ((b"220 x\r\n", EHLO, b"250 ok\r\n", b"250 ok\r\n", b"250 ok\r\n"), 71, "DATA: the server does not speak SMTP"),
    "content": ((b"220 x\r\n", EHLO, b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n", b"552 \x1b[31mspam\r\n"), 74, "the message: 552 \\x1b[31mspam"),
    "cut-reply": ((b"220 x\r\n", EHLO, b"250 ok\r\n", b"25"), 104, "RCPT: "),
}


def test_smtp_error_replies_map_to_errno(monkey, mails):
    script = conversation()
    with Backend(script=lambda connection: script(connection)) as backend:
        server = start(monkey, mails, backend.address)
        for name, (steps, code, message) in TALKS.items():
            script = conversation(*steps)
            got, _, problem, _ = send(server)
            assert got == code and message in problem, (name, got, problem)
            assert re.match(r"\[SMTP\] main, 127\.0\.0\.1:\d+: ", problem), problem


def test_smtp_errors_name_the_server_of_an_upstream(monkey, mails):
    script = conversation(*TALKS["sender"][0])
    with Backend(script=lambda connection: script(connection)) as backend:
        server = start(monkey, mails, "relay", top=f"[UPSTREAM]\n    Name relay\n    Server {backend.address}\n")
        assert send(server)[2] == f"[SMTP] main, {backend.address}: MAIL: 530 log in"
        script = conversation(*TALKS["closed"][0])
        assert send(server)[2] == f"[SMTP] main, {backend.address}: greeting: the server has closed the connection"


def test_smtp_works_with_servers_without_extensions(monkey, mails):
    ok = [b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n"]
    script = conversation(b"220 x\r\n", b"502 what?\r\n", b"250 hello\r\n", *ok)
    done = threading.Event()

    def serve(connection):
        script(connection)
        stream = connection.makefile("rb")
        while (line := stream.readline()) != b".\r\n" and line:
            pass
        connection.sendall(b"250 kept\r\n")
        script.lines.append(stream.readline())
        done.set()  # the server sends no reply to QUIT

    with Backend(script=serve) as backend:
        server = start(monkey, mails, backend.address)
        assert send(server)[:2] == (0, "kept")
        assert done.wait(20) and script.lines[1].startswith(b"HELO ")
        assert script.lines[2:] == [b"MAIL FROM:<shop@example.org>\r\n", b"RCPT TO:<ana@example.org>\r\n", b"DATA\r\n", b"QUIT\r\n"]
        script = conversation(b"220 x\r\n", b"250 x\r\n", *ok)
        assert send(server, "ä", "/text")[0] == 95, "the server accepts only ASCII"
        script = conversation(b"220 x\r\n", EHLO)
        code, _, problem, _ = send(server, "x" * 1000)
        assert code == 90 and "MAIL: the message is too long" in problem


def test_smtp_reports_silent_and_unreachable_servers(monkey, mails):
    with Backend(script=conversation(b"220 x\r\n", EHLO, None)) as backend:
        server = monkey(plugins=[mails], top=f"[SMTP]\n    Server {backend.address}\n    Timeout 100ms\n")
        code, _, problem, _ = send(server)
        assert code == 110 and "MAIL: " in problem
        assert problem.endswith("MAIL: no reply within Timeout")
    assert send(server)[0] == 111, "nothing listens on the port"


def test_smtp_outage_is_logged_once(monkey, mails, tmp_path):
    at = str(tmp_path / "mail")
    server = start(monkey, mails, f"unix:{at}")
    script = conversation(b"220 x\r\n", b"250 x\r\n", b"530 log in\r\n")
    for outage in (1, 2):
        for _ in range(3):
            code, _, problem, _ = send(server)
            assert code == 111 and problem == f"[SMTP] main, unix:{at}: connecting: No such file or directory"
        server.err.wait_for(r"\[error\] .*\[SMTP\] main, unix:\S+: No such file or directory", outage)
        with Backend(script=lambda connection: script(connection), family=socket.AF_UNIX, at=at):
            assert [send(server)[0] for _ in range(3)] == [126] * 3
        server.err.wait_for(r"\[info\] .*\[SMTP\] main, unix:\S+ is back", outage)
        os.unlink(at)
    assert [server.err.text.count(f"[SMTP] main, unix:{at}{end}") for end in (": No such", " is back")] == [2, 2]


MISTAKES = [
    ("", "[SMTP] has no Server"),
    ("    Server mail.example.org:25\n    User x\n    PasswordSource env:MK_PASSWORD\n", "a password requires an [UPSTREAM] with TLS"),
    ("    Server 127.example.org:25\n    User x\n    PasswordSource env:MK_PASSWORD\n", "or a server on this machine"),
    ("    Server 127.0.0.1:25\n    User x\n", "set either both of User and PasswordSource or neither"),
    ("    Server 127.0.0.1:25\n    EhloName a b\n", "expected a host name"),
]


@pytest.mark.parametrize("keys, message", MISTAKES, ids=[message for _, message in MISTAKES])
def test_smtp_section_rejects_invalid_keys(run, tmp_path, keys, message):
    conf = tmp_path / "monkey.conf"
    conf.write_text(f"[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load duda-smtp\n[SMTP]\n{keys}[HOST]\n    DocumentRoot .\n")
    done = run("-t", "-c", conf, environment={"MK_PASSWORD": "secret"})
    assert done.code == 3 and message in done.err, done.err
