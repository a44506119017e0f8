# SPDX-License-Identifier: Apache-2.0
"""Every feature of a service in each way to serve it: loaded or isolated, over HTTP/2 with TLS, by several workers, across
reloads, and with a plugin that compresses. One service has all the features; a client gets the same responses in each way."""
import gzip
import json
import re
import signal

import pytest

import services
import users
import wsframes
from client import Closed
from proc import wait_until
from prometheus import parse
from starter import Starter

pytestmark = [pytest.mark.skipif(not services.BUILT.exists() or not services.has("auth"), reason="this build has no Duda, or no duda-auth"),
              pytest.mark.processes("it has no processes to reload or isolate")]

SOURCE = r"""
#define DUDA_USE "duda-auth"
#include <duda.h>
#include <duda/auth.h>
#include <duda/task.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

DUDA_COUNTER(orders, "orders_total", "Orders placed.", "country");

/* ---- JSON, errors, middleware ---- */

struct item {
    mk_str name;
    int64_t count;
};
static const struct duda_schema_field item_fields[] = {
    DUDA_STRING(struct item, name, .min_length = 2),
    DUDA_INTEGER(struct item, count, DUDA_MINIMUM(1)),
};
static const struct duda_schema item_schema = DUDA_SCHEMA(struct item, item_fields);

static int create(struct duda_ctx *d)
{
    struct item item;
    int e = duda_bind_json(d, &item_schema, &item, NULL);
    return e ? e : duda_printf(d, "%.*s %d\n", MK_STR_ARG(item.name), (int)item.count);
}

static int show_error(struct duda_ctx *d)
{
    return duda_printf(d, "Sorry: %u\n", duda_error_status(d));
}

static int gone(struct duda_ctx *d)
{
    (void)d;
    return 410;
}

static int late(struct duda_ctx *d)
{
    return duda_sleep(d, 60000);
}

static const char user;

static int around(struct duda_ctx *d)
{
    int e = duda_attach(d, &user, "ann", NULL), result = e ? e : duda_next(d);
    if (!e && !duda_response_has_started(d))
        e = duda_header_set(d, "X-Around", duda_attached(d, &user) ? MK_STR("ann") : MK_STR("-"));
    return e ? e : result;
}

static int attached(struct duda_ctx *d)
{
    return duda_printf(d, "%s\n", (const char *)duda_attached(d, &user));
}

static int hello(struct duda_ctx *d)
{
    return duda_puts(d, "hello\n");
}

static int length(struct duda_ctx *d)
{
    char buf[4096];
    size_t all = 0;
    ssize_t n;
    while ((n = duda_read(d, buf, sizeof buf)) > 0)
        all += (size_t)n;
    return n ? (int)n : duda_printf(d, "%zu\n", all);
}

static int find(struct duda_ctx *d, mk_str name, mk_str *hash, struct duda_identity *identity)
{
    static char known[DUDA_PASSWORD_SIZE];
    (void)identity;
    int e = mk_str_eq(name, MK_STR("ann")) ? 0 : -ENOENT;
    if (!e && !*known)
        e = duda_password_hash(d, MK_STR("secret"), known);
    *hash = mk_str_from_c(known);
    return e;
}

static const struct duda_basic_auth basic = DUDA_BASIC_AUTH(.find = find);
static const struct duda_route_auth people = {.authenticate = duda_auth_basic, .authenticate_data = &basic};

static int who(struct duda_ctx *d)
{
    return duda_printf(d, "%.*s\n", MK_STR_ARG(duda_identity(d)->user));
}

/* ---- Sessions ---- */

static int log_in(struct duda_ctx *d)
{
    int e = duda_session_log_in(d, MK_STR("ann"));
    e = e ? e : duda_session_set(d, "color", MK_STR("red"));
    e = e ? e : duda_flash(d, "success", MK_STR("Welcome"));
    mk_str token = e ? MK_STR_NULL : duda_csrf_token(d);
    return e ? e : duda_printf(d, "%.*s\n", MK_STR_ARG(token));
}

static int home(struct duda_ctx *d)
{
    const struct duda_flash_message *messages;
    mk_str color;
    size_t n;
    int e = duda_session_get(d, "color", &color);
    e = e ? e : duda_flash_take(d, &messages, &n);
    return e ? e : duda_printf(d, "%.*s %.*s\n", MK_STR_ARG(color), MK_STR_ARG(n ? messages[0].text : MK_STR("-")));
}

static int change(struct duda_ctx *d)
{
    return duda_puts(d, "changed\n");
}

static int devices(struct duda_ctx *d)
{
    const struct duda_session_info *list;
    size_t n;
    int e = duda_session_list(d, MK_STR("ann"), &list, &n);
    for (size_t i = 0; i < n && !e; i++)
        e = duda_printf(d, "%.*s %d\n", MK_STR_ARG(list[i].user_agent), list[i].is_current);
    return e;
}

static int revoke_all(struct duda_ctx *d)
{
    int e = duda_session_revoke_all(d, MK_STR("ann"));
    return e ? e : 204;
}

/* ---- Downloads, streams, uploads, tasks ---- */

static int download(struct duda_ctx *d)
{
    int e = duda_content_type(d, MK_STR("application/octet-stream"));
    e = e ? e : duda_attachment(d, MK_STR("numbers.txt"));
    return e ? e : duda_send_file(d, MK_STR("/numbers.txt"));
}

static int events(struct duda_ctx *d)
{
    mk_str last = duda_sse_last_id(d);
    uint64_t n = 0;
    int e = 0;
    (void)mk_num_parse(last, &n);
    for (uint64_t i = n + 1; i <= n + 3 && !e; i++) {
        mk_str id = duda_sprintf(d, "%d", (int)i);
        e = duda_sse_send(d, &(struct mk_sse_event){.id = id, .data = MK_STR("tick")});
        e = e ? e : duda_sleep(d, i == n + 1 ? 300 : 1);
    }
    return e;
}

DUDA_TOPIC(room, "room");

static int chat(struct duda_ctx *d)
{
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    if (!e)
        e = duda_topic_attach(s, &room);
    if (!e)
        e = duda_websocket_printf(d, s, "here");
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        e = duda_topic_publish(d, &room, m.data);
    return e;
}

static int upload(struct duda_ctx *d)
{
    int e = duda_form_load(d, NULL, NULL);
    const struct mk_upload *u = e ? NULL : duda_upload(d, "file");
    return e ? e : !u ? 400 : duda_printf(d, "%.*s %llu\n", MK_STR_ARG(u->file_name), (unsigned long long)u->size);
}

static int log_mark(struct duda_ctx *d)
{
    bool is_lost = strcmp(duda_task_context(d), "lost") == 0; /* in a crash of the worker */
    int e = duda_sleep(d, is_lost ? 60000 : 100);
    duda_log(d, MK_LOG_WARN, "mark %s: %d", (const char *)duda_task_context(d), e);
    return e;
}

static int later(struct duda_ctx *d)
{
    char mark[32] = "";
    mk_str name = duda_query(d, "mark");
    memcpy(mark, name.p, name.len < sizeof mark ? name.len : 0);
    int e = duda_after_response(d, log_mark, mark, sizeof mark);
    return e ? e : duda_puts(d, "later\n");
}

/* ---- What the service knows about the client ---- */

static int urls(struct duda_ctx *d)
{
    mk_str link = duda_url_for(d, "hello-page", duda_value_null()), url = duda_request_url(d), ip = duda_client_ip(d);
    return duda_printf(d, "%.*s %.*s %.*s\n", MK_STR_ARG(link), MK_STR_ARG(url), MK_STR_ARG(ip));
}

static int request_id(struct duda_ctx *d)
{
    mk_str id = duda_request_id(d);
    duda_log_fields(d, MK_LOG_INFO, "order placed", DUDA_LOG_FIELD("order", 17));
    return duda_printf(d, "%.*s\n", MK_STR_ARG(id));
}

static int count(struct duda_ctx *d)
{
    duda_counter_add(d, &orders, 1, MK_STR("nl"));
    return duda_puts(d, "counted\n");
}

static int ready(struct duda_ctx *d)
{
    int e = duda_set_readiness(duda_worker(d), "prices", duda_query(d, "reason").p);
    return e ? e : duda_printf(d, "%d\n", (int)getpid());
}

static int asset(struct duda_ctx *d)
{
    mk_str found = duda_asset_url(d, MK_STR("app.css"));
    return found.p ? duda_write(d, found) : 404;
}

static int crash(struct duda_ctx *d)
{
    (void)d;
    abort();
}

static const struct duda_cors cors = {.origins = "https://app.example.org", .credentials = true};

static int stream(struct duda_ctx *d)
{
    int e = duda_sse_send(d, &(struct mk_sse_event){.data = MK_STR("first")});
    return e ? e : duda_sleep(d, 60000);
}

static int version(struct duda_ctx *d)
{
    return duda_puts(d, VERSION "\n");
}

static int start(struct mk_worker *worker)
{
    (void)worker;
    return *BROKEN ? -EIO : 0;
}

DUDA_ROUTES(api, DUDA_ERROR(duda_error_problem), DUDA_CORS(&cors), DUDA_POST("/items", create), DUDA_GET("/gone", gone),
            DUDA_POST("/small", length, "", .body_max = 10), DUDA_GET("/late", late, "", .deadline_ms = 50), DUDA_GET("/crash", crash));
DUDA_ROUTES(pages, DUDA_ERROR(show_error), DUDA_GET("/gone", gone), DUDA_POST("/small", length, "", .body_max = 10));
DUDA_ROUTES(within, DUDA_AROUND(around), DUDA_GET("/attached", attached), DUDA_GET("/gone", gone));
DUDA_ROUTES(safe, DUDA_BEFORE(duda_csrf_check), DUDA_POST("/change", change));
DUDA_SERVICE(all, DUDA_START(start), DUDA_GET("/version", version), DUDA_GET("/stream", stream), DUDA_GROUP("/api", api), DUDA_GROUP("/pages", pages), DUDA_GROUP("/around", within), DUDA_GROUP("/safe", safe),
             DUDA_GET("/hello", hello, "", .url_name = "hello-page"), DUDA_GET("/gone", gone), DUDA_GET("/rated", hello, "", .rate = "3/hour"), DUDA_GET("/who", who, "", .auth = &people),
             DUDA_POST("/log-in", log_in), DUDA_GET("/home", home), DUDA_GET("/devices", devices), DUDA_POST("/revoke", revoke_all),
             DUDA_GET("/download", download), DUDA_GET("/events", events), DUDA_GET("/chat", chat), DUDA_POST("/upload", upload),
             DUDA_POST("/length", length), DUDA_GET("/later", later), DUDA_GET("/urls", urls), DUDA_GET("/request-id", request_id),
             DUDA_GET("/count", count), DUDA_GET("/ready", ready), DUDA_GET("/asset", asset), DUDA_ASSETS("/static"));
"""

TOP = """[METRICS]
    Metrics /metrics
    Status  /status
    Ready   /readyz
    Allow   all
[SECURITY]
    TrustedProxy 127.0.0.1
    RealAddress  X-Forwarded-For
"""
NUMBERS = "".join(f"{i:06}\n" for i in range(20000))
HAS_COMPRESS = (services.OBJECTS / "monkey-compress.so").exists()


def build(folder, version="1", broken=""):
    return services.build(folder, "all", SOURCE, f'-DVERSION="{version}"', f'-DBROKEN="{broken}"', packages=["auth"])


class Way:
    """A way to serve: its options, and requests that a client sends to a server that is started once per module."""

    def __init__(self, name, isolated=False, protocol="h1", workers=1, reloads=False, compresses=False):
        self.name, self.isolated, self.protocol, self.workers = name, isolated, protocol, workers
        self.reloads, self.compresses = reloads, compresses

    def start(self, folder, encryption):
        folder.chmod(0o755)
        (folder / "assets").mkdir()
        (folder / "assets/app.css").write_text("body { color: red }\n")
        (folder / "site").mkdir()
        (folder / "site/numbers.txt").write_text(NUMBERS)
        (folder / "site/api").mkdir()
        (folder / "site/api/file.txt").write_text("a file\n")
        service = build(folder)
        plugins = ["metrics", "security", *(["compress"] if self.compresses else []), "isolate" if self.isolated else service]
        top = TOP + ("[COMPRESS]\n    Codings gzip\n    MinLength 1\n" if self.compresses else "")
        if self.isolated:
            top += f"[ISOLATE]\n    Service {service}\n    Workers {self.workers}\n    Include ./group.conf\n    DocumentRoot ./site\n"
        (folder / "group.conf").write_text("[DUDA]\n    CrashLimit 2\n")
        starter = Starter(folder, self.protocol, encryption if self.protocol.endswith("-tls") else None)
        starter.start(plugins=plugins, workers=1 if self.isolated else self.workers, top=top, server="ErrorLogFormat json\nMinRate off",
                      host="ErrorFormat json\nServerName localhost")
        return starter


WAYS = [Way("plain"), Way("isolate", isolated=True), Way("h2-tls", protocol="h2-tls"), Way("workers", workers=2), Way("reload", reloads=True),
        Way("compress", compresses=True), Way("isolate-reload", isolated=True, reloads=True),
        Way("all", isolated=True, protocol="h2-tls", workers=2, compresses=True)]


class Site:
    """The server in the chosen way."""

    def __init__(self, way, starter):
        self.way, self.server, self.folder = way, starter.servers[0], starter._folder

    def reload(self):
        """Reloads the server in the ways that do so: new connections reach a new worker, open ones the old worker."""
        if not self.way.reloads:
            return
        n = self.status()["reloads"]
        self.server.tell(signal.SIGHUP)
        wait_until(lambda: self.status()["reloads"] > n, "the reload")

    def responds(self):
        try:
            return self.get("/hello").status == 200
        except (Closed, ConnectionError):
            return False

    def status(self):
        return json.loads(self.get("/status").text)

    def send(self, c, target, method="GET", fields=(), body=b"", **how):
        fields = list(dict(fields).items())
        if self.way.compresses:
            fields.append(("Accept-Encoding", "gzip"))
        c.ask(target, method, fields, body, **how)

    def decode(self, reply):
        if reply.get("Content-Encoding") == "gzip":
            reply.body = gzip.decompress(reply.body)
        return reply

    def get(self, target, method="GET", fields=(), body=b""):
        with self.server.connect() as c:
            self.send(c, target, method, fields, body)
            reply = self.decode(c.read(method))
        return reply

    def decode_stream(self, head, c):
        """Reads the rest of a response whose head was read."""
        if self.server.is_h2:
            return c.read_rest().decode() if head.get("Content-Encoding") is None else gzip.decompress(c.read_rest()).decode()
        c.read_chunks(head)
        return self.decode(head).text

    def post(self, target, body=b"", fields=()):
        return self.get(target, "POST", fields, body)


@pytest.fixture(scope="module")
def started():
    starters = {}
    yield starters
    for starter in starters.values():
        starter.stop()


@pytest.fixture(params=WAYS, ids=lambda way: way.name)
def site(request, started, tmp_path_factory, encryption):
    """A server for all tests of the module. It is checked after each test; a server that a test has broken is replaced."""
    way = request.param
    if way.compresses and not HAS_COMPRESS:
        pytest.skip("this build has no compress")
    if way.name not in started:
        started[way.name] = way.start(tmp_path_factory.mktemp(way.name), encryption)
    found = Site(way, started[way.name])
    yield found
    if found.server.process.poll() is not None:
        del started[way.name]
    found.server.check_log()


PROBLEM = "application/problem+json"
ORIGIN = {"Origin": "https://app.example.org"}


def cookies(reply):
    return "; ".join(line.split(";")[0] for line in reply.all("Set-Cookie"))


def check_problem(reply, status):
    assert (reply.status, reply["Content-Type"]) == (status, PROBLEM), reply.body
    assert json.loads(reply.text)["status"] == status


# ---- Errors ----

def test_json_errors_name_the_fields(site):
    assert site.post("/api/items", b'{"name": "ann", "count": 2}', {"Content-Type": "application/json"}).text == "ann 2\n"
    site.reload()
    reply = site.post("/api/items", b'{"name": "a", "count": 0}', {"Content-Type": "application/json"})
    check_problem(reply, 422)
    assert {e["pointer"] for e in json.loads(reply.text)["errors"]} == {"/name", "/count"}


def test_error_handlers_respond_to_all_errors_of_their_group(site):
    unknown = 404 if site.way.isolated else 405  # the handler for static files accepts GET only
    for target, method, body, status in (("/gone", "GET", b"", 410), ("/nothing", "GET", b"", 404), ("/gone", "POST", b"", 405),
                                         ("/nothing", "POST", b"body", unknown), ("/nothing", "PUT", b"", unknown),
                                         ("/small", "POST", b"x" * 11, 413)):
        reply = site.get(f"/pages{target}", method, body=body)
        assert (reply.status, reply.text) == (status, f"Sorry: {status}\n"), target
        check_problem(site.get(f"/api{target}", method, body=body), status)
    site.reload()
    check_problem(site.get("/api/late"), 504)
    assert [name for name, _ in site.post("/pages/nothing", b"body").fields if name.lower().startswith("monkey-")] == []


def test_other_errors_have_the_pages_of_the_host(site):
    for target, method, status in (("/gone", "GET", 410), ("/nothing", "GET", 404), ("/hello", "POST", 405), ("/nothing", "DELETE", 405)):
        reply = site.get(target, method)
        check_problem(reply, status)
        assert "reference" not in json.loads(reply.text) and ("Allow" in reply) == (status == 405)
    assert [name for name, _ in site.get("/gone").fields if name.lower().startswith("monkey-")] == []


def test_files_of_the_host_follow_the_routes(site):
    assert site.get("/numbers.txt").text == NUMBERS
    assert site.get("/api/file.txt").text == "a file\n"
    site.reload()
    assert site.get("/api/file.txt", fields=ORIGIN).status == 200


def test_cors_headers_are_on_errors_too(site):
    preflight = site.get("/api/items", "OPTIONS", {**ORIGIN, "Access-Control-Request-Method": "POST"})
    assert preflight.status == 204 and preflight["Access-Control-Allow-Methods"] == "POST"
    for target, method, body, status in (("/gone", "GET", b"", 410), ("/nothing", "GET", b"", 404), ("/gone", "POST", b"", 405),
                                         ("/small", "POST", b"x" * 11, 413), ("/late", "GET", b"", 504)):
        reply = site.get(f"/api{target}", method, ORIGIN, body)
        assert (reply.status, reply["Access-Control-Allow-Origin"]) == (status, ORIGIN["Origin"]), target
        assert "origin" in reply.tokens("Vary") and reply["Access-Control-Allow-Credentials"] == "true"
        assert "Access-Control-Allow-Origin" not in site.get(f"/api{target}", method, {"Origin": "https://example.com"}, body)


def test_middleware_keeps_its_data(site):
    reply = site.get("/around/attached")
    assert (reply.text, reply["X-Around"]) == ("ann\n", "ann")
    site.reload()
    assert site.get("/around/gone")["X-Around"] == "ann" and site.get("/around/gone").status == 410


# ---- Limits and logins ----

def test_rate_limit_is_shared(site):
    client = {"X-Forwarded-For": f"192.0.2.{sum(map(ord, site.way.name)) % 200}"}
    assert [site.get("/rated", fields=client)["RateLimit-Remaining"] for _ in range(2)] == ["2", "1"]
    site.reload()
    assert site.get("/rated", fields=client).status == 200
    reply = site.get("/rated", fields=client)
    check_problem(reply, 429)
    assert int(reply["Retry-After"]) <= 3600 and reply["RateLimit-Limit"] == "3"
    assert site.get("/rated", fields={"X-Forwarded-For": "192.0.2.250"}).status in (200, 429)


def test_basic_authentication(site):
    assert site.get("/who", fields=users.basic("ann", "secret")).text == "ann\n"
    site.reload()
    reply = site.get("/who", fields=users.basic("ann", "wrong"))
    check_problem(reply, 401)
    assert reply["WWW-Authenticate"].startswith("Basic ")


def test_session_with_flash_message_and_csrf_token(site):
    reply = site.post("/log-in")
    token, cookie = reply.text.strip(), {"Cookie": cookies(reply)}
    assert token and site.get("/home").status == 404
    site.reload()
    assert site.get("/home", fields=cookie).text == "red Welcome\n"
    assert site.get("/home", fields=cookie).text == "red -\n"
    check_problem(site.post("/safe/change", fields=cookie), 403)
    assert site.post("/safe/change", fields={**cookie, "X-CSRF-Token": token}).text == "changed\n"


def test_sessions_of_a_user_are_listed_and_revoked(site):
    assert site.post("/revoke").status == 204
    cookie = {"Cookie": cookies(site.post("/log-in", fields={"User-Agent": "one"})), "User-Agent": "one"}
    other = {"Cookie": cookies(site.post("/log-in", fields={"User-Agent": "two"})), "User-Agent": "two"}
    site.reload()
    assert set(site.get("/devices", fields=cookie).text.splitlines()) == {"one 1", "two 0"}
    assert site.post("/revoke", fields=cookie).status == 204
    assert site.get("/home", fields=other).status == 404 and site.get("/devices", fields=cookie).text == ""


# ---- Downloads, streams, uploads, tasks ----

def test_download_has_ranges_and_an_etag(site):
    reply = site.get("/download")
    tag = reply["ETag"]
    assert reply.text == NUMBERS and "numbers.txt" in reply["Content-Disposition"]
    site.reload()
    assert site.get("/download", fields={"If-None-Match": tag}).status == 304
    if not site.way.compresses:
        part = site.get("/download", fields={"Range": "bytes=7-13"})
        assert (part.status, part.text) == (206, "000001\n")
        assert site.get("/download", fields={"Range": "bytes=7-13", "If-Range": '"x"'}).status == 200
    assert site.get("/download", "HEAD").body == b""


def test_event_stream_continues_after_the_last_id(site):
    with site.server.connect() as c:
        site.send(c, "/events")
        head = c.read_head()
        assert head["Content-Type"] == "text/event-stream"
        site.reload()
        ids = re.findall("id: (\\d+)", site.decode_stream(head, c))
    while len(ids) < 6:  # a worker that stops may end the stream; browsers then reconnect
        more = re.findall("id: (\\d+)", site.get("/events", fields={"Last-Event-ID": ids[-1]}).text)
        assert more and (len(more) == 3 or site.way.reloads)
        ids += more
    assert ids == [str(i + 1) for i in range(len(ids))]


def test_websockets_of_a_topic_get_each_others_messages(site):
    with wsframes.Peer(site.server, "/chat") as a, wsframes.Peer(site.server, "/chat") as b:
        a.expect("here")
        b.expect("here")
        a.text("hello")
        a.expect("hello")
        b.expect("hello")
        if site.way.reloads:
            site.reload()
            with wsframes.Peer(site.server, "/chat") as c:
                c.expect("here")


def test_upload(site):
    boundary, data = "xyz", b"x" * 700000
    body = (f"--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n").encode() + data + \
        f"\r\n--{boundary}--\r\n".encode()
    with site.server.connect() as c:
        site.send(c, "/upload", "POST", {"Content-Type": f"multipart/form-data; boundary={boundary}"}, streamed=True)
        c.more(body[:100000])
        site.reload()
        c.more(body[100000:])
        reply = site.decode(c.done().read())
    assert reply.text == "a.bin 700000\n"
    assert site.post("/length", b"y" * 50000).text == "50000\n"


def test_background_task_runs_after_the_response(site):
    assert site.get("/later?mark=one").text == "later\n"
    site.reload()
    wait_until(lambda: "mark one: 0" in site.server.log, "the task has run")


# ---- What the service knows ----

def test_urls_and_addresses_behind_a_proxy(site):
    scheme = "https" if site.server.protocol.endswith("tls") else "http"
    assert site.get("/urls").text == f"/hello {scheme}://localhost/urls 127.0.0.1\n"
    site.reload()
    proxied = {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "shop.example.org"}
    assert site.get("/urls", fields=proxied).text.split()[1:] in ([f"https://{host}/urls", "192.0.2.7"] for host in ("localhost", "shop.example.org"))


def test_request_id_is_in_the_log(site):
    given = f"id-{site.way.name}"
    assert site.get("/request-id", fields={"X-Request-Id": given}).text == given + "\n"
    site.reload()
    own = site.get("/request-id").text.strip()
    assert re.fullmatch("[0-9a-f]{32}", own)
    for expected in (given, own):
        wait_until(lambda: f'"{expected}"' in site.server.log or f"request {expected}" in site.server.log, "the line of the request")
    lines = [line for line in site.server.log.splitlines() if "order placed" in line]
    for line in lines:
        message = json.loads(line)
        assert message["order"] == 17 and message["request_id"] and message["level"] == "info" and message["route"] == "GET /request-id"


def value(site, family, **labels):
    if site.way.isolated:
        labels["isolate"] = "all"
    return sum(n for found, n in parse(site.get("/metrics").text).all(family) if labels.items() <= found.items())


def test_metrics_of_the_service(site):
    before = value(site, "all_orders_total", country="nl")
    for _ in range(4):
        site.get("/count")
    assert value(site, "all_orders_total", country="nl") == before + 4
    assert value(site, "monkey_route_requests_total", route="/count") >= 4
    site.reload()
    assert value(site, "all_orders_total", country="nl") == before + 4
    rows = site.status()["all_orders_total"]
    assert [row["country"] for row in rows] == ["nl"] and rows[0].get("isolate") == ("all" if site.way.isolated else None)


def test_readiness_of_the_service(site):
    assert site.get("/readyz").status == 200
    pids = {site.get("/ready?reason=loading").text for _ in range(1 if site.way.workers == 1 else 30)}
    assert len(pids) == site.way.workers or site.way.isolated, "an isolated service is not ready if one worker is not"
    reply = site.get("/readyz")
    assert (reply.status, reply.text) == (503, "not ready: prices: loading\n")
    assert value(site, "monkey_component_not_ready", component="prices") == len(pids)
    wait_until(lambda: site.get("/ready").status == 200 and value(site, "monkey_component_not_ready", component="prices") == 0, "all are ready")
    assert site.get("/readyz").status == 200


def test_assets_have_a_fingerprint(site):
    url = site.get("/asset").text
    assert re.fullmatch(r"/static/app\.[0-9a-f]+\.css", url)
    site.reload()
    reply = site.get(url)
    assert reply.text == "body { color: red }\n" and "immutable" in reply["Cache-Control"]


# ---- Crashes, and new versions ----

@pytest.fixture(params=[way for way in WAYS if way.name in ("isolate", "plain")], ids=lambda way: way.name)
def own(request, tmp_path, encryption):
    """A server for one test, which may crash it or replace the service."""
    starter = request.param.start(tmp_path, encryption)
    yield Site(request.param, starter)
    starter.stop()


def crash(site):
    """Calls a handler that crashes, and waits until the service responds again."""
    try:
        assert site.get("/api/crash").status in (502, 503)
    except (Closed, ConnectionError):
        assert not site.way.isolated
    wait_until(site.responds, "a new worker")


def allow_crashes(site):
    site.server.allow("killed by signal", "exited unexpectedly", "Sanitizer")


def test_disabled_route_has_cors_headers_and_the_page_of_its_group(own):
    allow_crashes(own)
    for _ in range(3):
        crash(own)
    reply = own.get("/api/crash", fields=ORIGIN)
    check_problem(reply, 503)
    assert reply["Access-Control-Allow-Origin"] == ORIGIN["Origin"] and int(reply["Retry-After"]) > 0
    assert own.get("/hello").text == "hello\n"


def busy_connections(site):
    return sum(n for labels, n in parse(site.get("/metrics").text).all("monkey_upstream_connections") if labels["state"] == "busy")


def test_crash_ends_streams_uploads_and_tasks_and_releases_them(own):
    allow_crashes(own)
    boundary = {"Content-Type": "multipart/form-data; boundary=xyz"}
    with own.server.connect() as events, own.server.connect() as upload, wsframes.Peer(own.server, "/chat") as socket:
        events.ask("/stream")
        head = events.read_head()
        assert head.status == 200 and b"data: " in events.read_until(b"first\n\n\r\n")
        socket.expect("here")
        upload.ask("/upload", "POST", boundary, streamed=True)
        upload.more(b"--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n" + b"x" * 100000)
        assert own.get("/later?mark=lost").text == "later\n"
        crash(own)
        with pytest.raises((Closed, ConnectionError)):
            events.read_chunks(head)
        with pytest.raises((Closed, ConnectionError, AssertionError)):
            socket.read_frame()
        if own.way.isolated:
            reply = upload.read()
            assert (reply.status, reply["Content-Type"]) == (502, PROBLEM)
        else:
            with pytest.raises((Closed, ConnectionError)):
                upload.read()
    if own.way.isolated:
        wait_until(lambda: busy_connections(own) == 0, "the connections to the group are released")
    assert own.get("/hello").text == "hello\n" and "mark lost: 0" not in own.server.log
    with wsframes.Peer(own.server, "/chat") as socket:
        socket.expect("here").text("again").expect("again")


def test_new_version_reads_sessions_of_the_old_one_and_a_broken_one_is_refused(own):
    own.server.allow("exited unexpectedly")
    cookie = {"Cookie": cookies(own.post("/log-in"))}
    own.way = Way(own.way.name, own.way.isolated, reloads=True)
    build(own.folder, version="2")
    own.reload()
    wait_until(lambda: own.get("/version").text == "2\n", "the new version")
    assert own.get("/home", fields=cookie).text == "red Welcome\n"
    build(own.folder, version="3", broken="yes")
    failed = own.status()["failed_reloads"]
    own.server.tell(signal.SIGHUP)
    wait_until(lambda: own.status()["failed_reloads"] > failed, "the reload has failed")
    assert own.get("/version").text == "2\n" and own.get("/home", fields=cookie).text == "red -\n"
    build(own.folder, version="4")
    own.reload()
    wait_until(lambda: own.get("/version").text == "4\n", "the version after that")
    assert own.get("/home", fields=cookie).text == "red -\n"
