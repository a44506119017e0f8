# SPDX-License-Identifier: Apache-2.0
"""A plugin and a service that were compiled with headers of an earlier release, whose structs had fewer members (see
tests/older_headers.py), run with today's server: it neither reads nor writes beyond the end of their structs.
"""
import re
import subprocess

import pytest
from websockets.sync.client import connect

import older_headers
import services
from backend import Backend
from mail_server import boxes
from monkey import ROOT

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

PLUGIN = r"""
#include <errno.h>
#include <monkey/cgi.h>
#include <monkey/cookie.h>
#include <monkey/sse_stream.h>
#include <monkey/plugin.h>
#include <monkey/regex.h>
#include <monkey/stats.h>
#include <monkey/subprocess.h>
#include <monkey/upstream.h>
#include <older.h>

static struct mk_upstream *upstream;

static int load(struct mk_config *config, void **data)
{
    (void)data;
    const struct mk_program program = {.path = "/"};
    mk_config_allow_program(config, NULL, NULL, OLDER(program));
    const struct mk_upstream_defaults defaults = {.port = 9};
    upstream = mk_upstream_open(config, NULL, "Server", MK_STR("127.0.0.1:9"), OLDER(defaults));
    const struct mk_upstream_dynamic_options hosts = {.max_hosts = 1};
    bool has_hosts = mk_upstream_open_dynamic(config, NULL, "Server", MK_STR("any host"), OLDER(hosts));
    const struct mk_stat_source source = {.name = "older server"};
    int e = mk_config_add_statistics(config, OLDER(source));
    return e ? e : upstream && has_hosts ? 0 : -EINVAL;
}

static bool bind(const struct mk_conf_ctx *ctx, mk_str words, void **data)
{
    const struct mk_upstream_defaults defaults = {.port = 9};
    (void)words;
    return (*data = mk_upstream_find(ctx, MK_STR("127.0.0.1:9"), OLDER(defaults)));
}

static void add(struct mk_buf *out, const char *name, int64_t n)
{
    mk_buf_addf(out, "%s=%lld\n", name, (long long)n);
}

static void ignore_end(void *ctx, int status)
{
    (void)ctx, (void)status;
}

static void ask_worker(struct mk_worker *w, struct mk_buf *out)
{
    struct mk_reloads reloads = {0}, *r = OLDER(reloads);
    struct mk_worker_stats stats = {0}, *s = OLDER(stats);
    struct mk_cache_info cache = {0}, *c = OLDER(cache);
    struct mk_request_observer unset = {0}, *o = OLDER(unset);
    struct mk_config_request order = {.action = MK_CONFIG_CONFIRM}, *confirm = OLDER(order);
    mk_worker_observe_requests(w, o);
    (void)!mk_worker_request_config(w, confirm);
    mk_worker_reloads(w, r, NULL);
    add(out, "reloads", (int64_t)r->done);
    add(out, "stats", mk_worker_stats_at(w, 0, s) && s->pid > 0);
    mk_worker_stats_ended(w, s);
    add(out, "ended", s->pid);
    mk_worker_cache(w, c);
    add(out, "cache", c->files_max > 0);
    struct mk_stat_source unknown = {0}, *source = OLDER(unknown);
    add(out, "source", mk_worker_statistics_at(w, 0, source) && strcmp(source->name, "older server") == 0);
    struct mk_stat_field none = {0}, *field = OLDER(none);
    struct mk_stat_registry *registry = mk_worker_statistics(w);
    unsigned table = mk_stat_find(registry, "upstreams");
    uint32_t series = mk_stat_next(registry, table, 0);
    add(out, "field", mk_stat_field_at(registry, table, series, 0, field) && field->text.len);
    const char *const argv[] = {"/bin/true", NULL}, *const envp[] = {NULL};
    const struct mk_subprocess_options options = {
        .argv = argv, .envp = envp, .in = -1, .out = -1, .err = -1};
    add(out, "subprocess", mk_subprocess_start(w, OLDER(options), ignore_end, NULL) != NULL);
}

static void ask_request(struct mk_request *request, struct mk_buf *out)
{
    struct mk_tls_info tls = {0};
    add(out, "tls", mk_request_tls(request, OLDER(tls)));
    struct mk_vhost_certificate certificate = {0};
    add(out, "certificate", mk_vhost_certificate_get(mk_request_vhost(request), OLDER(certificate)));
    struct mk_destination destination = {0}, *d = OLDER(destination);
    add(out, "destination", mk_request_destination(request, d) == 0 && mk_str_eq(d->path, MK_STR("/to")));
    const struct mk_cgi_options options = {.script_name = MK_STR("/x"), .length = 3};
    struct mk_header *variables;
    size_t n = 0;
    add(out, "variables", mk_cgi_variables(request, OLDER(options), &variables, &n) == 0 && n > 5);
    struct mk_cgi_head head = {0}, *h = OLDER(head);
    add(out, "head", mk_cgi_head_read(h, MK_STR("Status: 201 x\r\n\r\n")) ? h->status : 0);
    struct mk_regex_error error = {0}, *e = OLDER(error);
    add(out, "regex", mk_regex_new(MK_STR("(a"), false, e) == NULL && e->code);
    const struct mk_sse_event event = {.data = MK_STR("x")};
    add(out, "sse", mk_sse_write(out, OLDER(event)));
}

static void write_cookie(const struct mk_request *request, struct mk_response *response, struct mk_buf *out)
{
    const struct mk_cookie cookie = {.name = "a", .value = MK_STR("b"), .path = MK_STR("/")};
    add(out, "cookie", mk_response_add_cookie(request, response, OLDER(cookie)));
}

static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
{
    char room[4096];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    ask_worker(mk_request_worker(request), &out);
    ask_request(request, &out);
    write_cookie(request, response, &out);
    const struct mk_header host = {MK_STR("Host"), MK_STR("a")};
    const struct mk_upstream_request_options options = {.upstream = data, .method = MK_STR("GET"),
        .target = MK_STR("/"), .headers = &host, .n_headers = 1, .conn.server = -1};
    struct mk_upstream_request *ask = mk_upstream_request_start(
        mk_request_worker(request), OLDER(options), (void (*)(void *))mk_request_resume, request);
    add(&out, "request", ask != NULL);
    mk_upstream_request_free(ask);
    return mk_response_set_body(response, mk_buf_str(&out)) ? MK_ERROR : MK_DONE;
}

static void on_close(void *ctx, struct mk_sse_stream *s)
{
    (void)ctx, (void)s;
}

static enum mk_verdict stream(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_sse_stream_ops ops = {.on_close = on_close};
    static const struct mk_sse_stream_options options = {.ops = &ops};
    const struct mk_sse_event event = {.data = MK_STR("x")};
    struct mk_sse_stream *s;
    (void)data;
    if (mk_sse_stream_open(request, response, &options, NULL, &s) || mk_sse_stream_send(s, OLDER(event)))
        return MK_ERROR;
    mk_sse_stream_end(s);
    return MK_DONE;
}

static const struct mk_handler all = {.name = "older-all", .methods = 0, .handle = handle, .bind = bind};
static const struct mk_handler events = {.name = "older-events", .methods = 0, .handle = stream};
static const struct mk_handler *const handlers[] = {&all, &events, NULL};
static const char *const needs[] = {"upstream", "websocket", NULL};
MK_PLUGIN(older) = {MK_PLUGIN_HEAD, .name = "older-structs", .version = "1", .help = "Of an earlier release.",
                    .handlers = handlers, .needs = needs, .load = load};
"""

SERVICE = r"""
#define DUDA_USE "duda-http", "duda-smtp", "duda-jobs", "duda-store", "duda-kv", "duda-subprocess", "duda-sql", "duda-oidc"
#include <duda.h>
#include <duda/chart.h>
#include <monkey/cookie.h>
#include <duda/crypto.h>
#include <duda/http.h>
#include <duda/jobs.h>
#include <duda/mail.h>
#include <duda/oidc.h>
#include <duda/smtp.h>
#include <duda/sql.h>
#include <duda/store.h>
#include <duda/subprocess.h>
#include <duda/task.h>
#include <duda/template.h>
#include <errno.h>
#include <monkey/router.h>
#include <older.h>

static int route(struct duda_ctx *d)
{
    struct mk_router *router = mk_router_new();
    struct mk_router_match none = {0}, *match = OLDER(none);
    int e = mk_router_add(router, MK_STR("GET /users/:id<int>"), router, MK_STR_NULL);
    e = e ? e : (int)mk_router_find(router, MK_STR("GET"), MK_STR("/users/7"), match);
    mk_router_free(router);
    return e ? e : duda_printf(d, "%d %zu", match->data == router, match->n);
}

static int cookies(struct duda_ctx *d)
{
    const struct mk_cookie cookie = {.name = "a", .value = MK_STR("b"), .path = MK_STR("/")};
    char room[200];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    int e = mk_cookie_write(&out, OLDER(cookie), true);
    e = e ? e : duda_cookie_set(d, OLDER(cookie));
    e = e ? e : duda_cookie_set_signed(d, OLDER(cookie));
    e = e ? e : duda_cookie_set_encrypted(d, OLDER(cookie));
    return e ? e : duda_write(d, mk_buf_str(&out));
}

static int tokens(struct duda_ctx *d)
{
    static const char pem[] = "-----BEGIN PRIVATE KEY-----\n"
                              "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
                              "-----END PRIVATE KEY-----\n";
    static const char set[] = "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"alg\":\"EdDSA\","
                              "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";
    struct duda_jwt_key *key = duda_jwt_key_new(DUDA_JWT_EDDSA, MK_STR_NULL, mk_str_from_c(pem));
    struct duda_jwks *keys = duda_jwks_new(mk_str_from_c(set));
    struct mk_buf token = mk_buf_growing(1000), claims = mk_buf_growing(1000);
    const struct duda_jwt_rules rules = {.now = 1, .allow_no_expiry = true, .issuer = MK_STR("me")};
    int e = key && keys ? duda_jwt_sign(&token, key, MK_STR("{\"iss\":\"me\"}")) : -ENOMEM;
    e = e ? e : duda_jwt_verify(&claims, key, mk_buf_str(&token), OLDER(rules));
    e = e ? e : duda_jwt_verify_jwks(&claims, keys, mk_buf_str(&token), OLDER(rules));
    e = e ? e : duda_write(d, mk_buf_str(&claims));
    duda_jwt_key_free(key);
    duda_jwks_free(keys);
    mk_buf_free(&token);
    mk_buf_free(&claims);
    return e;
}

static int fetch(struct duda_ctx *d)
{
    struct duda_http_request request = {.method = MK_STR("POST"), .target = MK_STR("/")};
    struct duda_http_response response;
    struct duda_http_stream *stream;
    struct duda_http_client *client = duda_http_find(d, NULL);
    int e = duda_http_fetch(d, client, OLDER(request), &response);
    e = e ? e : duda_http_open(d, client, OLDER(request), &response, &stream);
    e = e ? e : duda_http_read_all(d, stream, &response);
    e = e ? e : duda_http_begin(d, client, OLDER(request), 1, &response, &stream);
    e = e ? e : duda_http_write(d, stream, MK_STR("y"));
    e = e < 0 ? e : duda_http_end(d, stream);
    e = e ? e : duda_http_read_all(d, stream, &response);
    if (e)
        duda_log(d, MK_LOG_ERROR, "fetch: %d %.*s", e, MK_STR_ARG(response.error));
    return e ? e : duda_write(d, response.body);
}

static int mail(struct duda_ctx *d)
{
    const mk_str to[] = {MK_STR("ana@example.org")};
    const struct duda_mail m = {.from = MK_STR("me@example.org"), .to = to, .n_to = 1,
                                .subject = MK_STR("s"), .body = MK_STR("b")};
    struct duda_smtp_message raw;
    struct duda_smtp_result result;
    struct mk_buf out = mk_buf_growing(10000);
    memset(&raw, 0, sizeof raw);
    raw.from = m.from, raw.to = to, raw.n_to = 1;
    int e = duda_mail_write(&out, OLDER(m), 0);
    e = e ? e : duda_smtp_send(d, duda_smtp_find(d, NULL), OLDER(m), &result);
    e = e ? e : duda_smtp_send_raw(d, duda_smtp_find(d, NULL), OLDER(raw), &result);
    e = e ? e : duda_write(d, mk_buf_str(&out));
    mk_buf_free(&out);
    return e;
}

static int jobs(struct duda_ctx *d)
{
    const struct duda_job_options options = {.delay_ms = 100000};
    struct duda_job_counts none = {0}, *counts = OLDER(none);
    int e = duda_jobs_enqueue(d, "mail", MK_STR("x"), OLDER(options), NULL);
    e = e ? e : duda_jobs_count(d, "mail", counts);
    return e ? e : duda_printf(d, "%d", (int)counts->waiting);
}

static int nothing(struct duda_ctx *d)
{
    (void)d;
    return 0;
}

static int processes(struct duda_ctx *d)
{
    const char *const argv[] = {"/bin/echo", "hello", NULL};
    const struct duda_subprocess_options options = {.argv = argv};
    const struct duda_task task = {.name = "t", .fn = nothing};
    struct duda_subprocess *p;
    struct duda_ctx *spawned;
    mk_str output;
    int status;
    int e = duda_task_spawn(duda_worker(d), OLDER(task), &spawned);
    e = e ? e : duda_subprocess_start(d, OLDER(options), &p);
    e = e ? e : duda_subprocess_run(d, OLDER(options), MK_STR_NULL, 100, &output, &status);
    return e ? e : duda_write(d, output);
}

static int texts(struct duda_ctx *d)
{
    const double days[] = {1, 2};
    const struct duda_chart_series series = {.name = MK_STR("r"), .values = days, .n = 2};
    const struct duda_chart chart = {.title = MK_STR("title"), .series = &series, .n_series = 1};
    const struct duda_render_options lenient = {.strict = false};
    const struct duda_value value = duda_value_null();
    struct mk_buf out = mk_buf_growing(100000), error = mk_buf_growing(100);
    struct duda_template *t = duda_template_new(MK_STR("{{missing}}!"), "t", &error);
    int e = t ? duda_template_render(t, &value, OLDER(lenient), &out, &error) : -ENOMEM;
    e = e ? e : duda_chart_svg(&out, OLDER(chart));
    e = e ? e : duda_write(d, mk_buf_str(&out));
    duda_template_free(t);
    mk_buf_free(&out);
    mk_buf_free(&error);
    return e;
}

DUDA_TOPIC(news, "news");

static int topic(struct duda_ctx *d)
{
    struct duda_topic_message none = {0}, *message = OLDER(none);
    int e = duda_topic_subscribe(d, &news);
    e = e ? e : duda_topic_publish(d, &news, MK_STR("hello"));
    e = e ? e : duda_topic_receive_message(d, 5000, message);
    return e ? e : duda_write(d, message->data);
}

/* There is no [OIDC] section, but the function copies the struct first. */
static int log_in(struct duda_ctx *d)
{
    const struct duda_oidc_request request = {.next = MK_STR("/")};
    return duda_printf(d, "%d", duda_oidc_log_in_with(d, NULL, OLDER(request)) == -ENODEV);
}

static int chat(struct duda_ctx *d)
{
    const struct duda_websocket_options options = {.ping_ms = 1000};
    struct duda_message none = {0}, *message = OLDER(none);
    struct duda_websocket *s;
    int e = duda_websocket_open(d, OLDER(options), NULL, &s);
    while (!e && (e = duda_websocket_receive(d, s, message)) > 0)
        e = duda_websocket_printf(d, s, "kind %d", (int)message->kind);
    return e;
}

static int events(struct duda_ctx *d)
{
    const struct mk_sse_event event = {.name = MK_STR("n"), .data = MK_STR("x")};
    return duda_sse_send(d, OLDER(event));
}

static int pages(struct duda_ctx *d)
{
    struct duda_page first = {.size = 5, .size_max = 50, .total = 20}, *page = OLDER(first);
    int e = duda_page_read(d, page);
    e = e ? e : duda_page_links(d, page);
    return e ? e : duda_printf(d, "%d %d", (int)page->number, (int)page->offset);
}

static int in_transaction(struct duda_ctx *d, struct duda_sql_db *db, void *ctx)
{
    struct duda_sql_result result;
    (void)ctx;
    return duda_sql_query(d, db, &result, "SELECT 1");
}

static int transactions(struct duda_ctx *d)
{
    const struct duda_sql_transaction_options options = {.isolation = DUDA_SQL_SERIALIZABLE, .read_only = true};
    struct duda_sql_db *db = duda_sql_find(d, NULL);
    int e = duda_sql_begin_with(d, db, OLDER(options));
    e = e ? e : duda_sql_rollback(d, db);
    e = e ? e : duda_sql_transaction(d, db, OLDER(options), in_transaction, NULL);
    return e ? e : duda_puts(d, "read");
}

DUDA_SERVICE(olds, DUDA_GET("/pages", pages), DUDA_GET("/transactions", transactions), DUDA_GET("/events", events), DUDA_GET("/route", route, "Finds a route."), DUDA_GET("/cookies", cookies, "Sets cookies."),
    DUDA_GET("/tokens", tokens, "Verifies tokens."), DUDA_GET("/fetch", fetch, "Sends requests."),
    DUDA_GET("/mail", mail, "Sends mail."), DUDA_GET("/jobs", jobs, "Enqueues a job."),
    DUDA_GET("/processes", processes, "Starts processes."), DUDA_GET("/texts", texts, "Renders."),
    DUDA_GET("/topic", topic, "Receives a message."), DUDA_GET("/chat", chat, "A WebSocket."), DUDA_GET("/login", log_in, "Begins a login."));
"""

PACKAGES = ["seal", "http", "smtp", "jobs", "store", "kv", "subprocess", "crypto", "small", "sql", "oidc"]


def compile_and_run(tmp_path):
    def call(source, flags):
        (tmp_path / "sizes.c").write_text(source)
        program = tmp_path / "sizes"
        subprocess.run([services.COMPILER, "-std=gnu11", *flags, f"-I{ROOT / 'include'}", f"-I{ROOT / 'duda' / 'include'}", "-o", program,
                        tmp_path / "sizes.c"], check=True, timeout=60)
        return subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout

    return call


def test_headers_of_an_earlier_release_have_smaller_structs(tmp_path):
    older_headers.write(tmp_path / "older")
    assert older_headers.sizes_shrink(tmp_path / "older", compile_and_run(tmp_path)) == []


@pytest.mark.parametrize("prefix, sources", [("mk", PLUGIN + SERVICE), ("duda", SERVICE)])
def test_every_function_that_takes_a_size_is_called(prefix, sources):
    functions = older_headers.sized_functions(prefix)
    assert len(functions) > 15
    assert [name for name in functions if not re.search(rf"\b{name}\(", sources)] == []


def test_plugin_of_an_earlier_release_runs(monkey, tmp_path):
    flags = older_headers.write(tmp_path / "older")
    plugin = services.build(tmp_path, "older-structs", PLUGIN, "-Wno-cast-function-type", "-Wl,--no-as-needed", f"-L{services.OBJECTS}",
                            "-l:monkey-readers.so", first=flags)
    server = monkey(plugins=[plugin], sections="[ROUTES]\n    /all older-all\n    /events older-events\n")
    got = dict(line.split("=") for line in server.get("/all", fields=[("Destination", "/to")]).text.splitlines() if "=" in line)
    assert got == {"reloads": "0", "stats": "1", "ended": "0", "cache": "1", "source": "1", "field": "1", "subprocess": "1", "tls": "0", "certificate": "0",
                   "destination": "1", "variables": "1", "head": "201", "regex": "1", "sse": "0", "cookie": "0", "request": "1"}
    assert server.get("/events").text == "data: x\n\n"


@pytest.fixture
def server(monkey, tmp_path):
    if any(not services.has(package) for package in PACKAGES):
        pytest.skip("this build lacks a package of Duda")
    flags = older_headers.write(tmp_path / "older")
    service = services.build(tmp_path, "olds", SERVICE, packages=PACKAGES[1:], first=flags)
    with boxes() as box, Backend() as backend:
        top = (f"[HTTP_CLIENT]\n    Server {backend.address}\n[SMTP]\n    Server {box().address}\n    EhloName shop.example.org\n"
               f"[KV]\n    Folder {tmp_path}/data\n[DUDA]\n    WritablePaths {tmp_path}\n[SESSIONS]\n    Store cookie\n")
        if services.has("sqlite"):
            top += f"[SQLITE]\n    File {tmp_path}/a.db\n"
        yield monkey(plugins=[service, *(["duda-sqlite"] if services.has("sqlite") else [])], top=top)


@pytest.mark.parametrize("path, text", [
    ("/route", "1 1"), ("/cookies", r"a=b; Path=/.*"), ("/tokens", r'\{"iss":"me"\}\{"iss":"me"\}'), ("/fetch", r".*"), ("/mail", r"From: (.|\n)*"),
    ("/jobs", "1"), ("/pages", "1 0"), ("/processes", "hello\n"), ("/texts", r"!<svg (.|\n)*"), ("/topic", "hello"), ("/login", "1"), ("/events", r"event: n\ndata: x\n\n"),
    pytest.param("/transactions", "read", marks=pytest.mark.skipif(not services.has("sqlite"), reason="this build has no SQLite"))])
def test_service_of_an_earlier_release_runs(server, path, text):
    answer = server.get(path)
    assert answer.status == 200 and re.fullmatch(text, answer.text), server.err.text + answer.text


def test_websocket_of_an_earlier_release_runs(server):
    with connect(server.url.replace("http", "ws", 1) + "/chat", proxy=None, compression=None, open_timeout=30) as ws:
        ws.send("hello")
        assert ws.recv(30) == "kind 1"
