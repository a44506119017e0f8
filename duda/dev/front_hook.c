/* SPDX-License-Identifier: Apache-2.0 */
#include "front_hook.h"

#include "error_reason.h"
#include "ipc_protocol.h"
#include "server_config.h"

#include <errno.h>
#include <monkey/text.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A call to `monkey run`. It lives as long as the request. */
struct ipc_call {
    struct mk_request *request;
    struct mk_watcher *watcher;
    int fd;
    bool ended, passes;
    bool is_content; /* the first line has been consumed */
    struct mk_buf reply_text;
};

enum { TARGET_SHOWN = 500 };

static const char key; /* key of the call that asks `monkey run` whether to serve the request */

static void on_ipc_readable(void *ctx, unsigned events)
{
    struct ipc_call *c = ctx;
    (void)events;
    mk_request_resume(c->request);
}

static void ipc_call_close(void *ctx)
{
    struct ipc_call *c = ctx;
    mk_watcher_free(c->watcher);
    if (c->fd >= 0)
        close(c->fd);
    mk_buf_free(&c->reply_text);
}

static int connect_unix_socket(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    if (len >= sizeof a.sun_path)
        return -1;
    memcpy(a.sun_path, path, len + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool write_ipc_request(int fd, struct mk_request *r, const char *verb)
{
    char buf[DEV_LINE_MAX];
    struct mk_buf line = mk_buf_fixed(buf, sizeof buf);
    if (strcmp(verb, "events") == 0)
        mk_buf_add(&line, MK_STR("events\n"));
    else
        mk_buf_addf(&line, "%s %s %.*s %.*s\n", verb, dev_error_reason_accepts_html(r) ? "html" : "text",
                    MK_STR_ARG(mk_str_first(mk_request_method_text(r), 32)),
                    MK_STR_ARG(mk_str_first(mk_request_target(r), DEV_LINE_MAX / 2)));
    return !line.failed && send(fd, line.p, line.len, MSG_NOSIGNAL) == (ssize_t)line.len;
}

/* Returns NULL if `monkey run` does not listen, or if out of memory. */
static struct ipc_call *ipc_call_open(const struct dev_front_hook *g, struct mk_request *r, const char *verb)
{
    struct ipc_call *c = mk_request_alloc(r, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct ipc_call){.request = r, .fd = -1, .reply_text = mk_buf_growing(DEV_PAGE_MAX)};
    if (mk_request_add_cleanup(r, ipc_call_close, c))
        return NULL;
    c->fd = connect_unix_socket(g->socket_path);
    if (c->fd < 0 || !write_ipc_request(c->fd, r, verb))
        return NULL;
    c->watcher = mk_watcher_new(mk_request_worker(r), c->fd, MK_READABLE, on_ipc_readable, c);
    return c->watcher && mk_request_set_handler_timeout(r, MK_FOREVER) == 0 ? c : NULL;
}

/* ---- The reply ---- */

static ssize_t ipc_call_recv(const struct ipc_call *c, char *buf, size_t cap)
{
    ssize_t n = recv(c->fd, buf, cap, MSG_DONTWAIT);
    return n >= 0 ? n : errno == EINTR ? -EAGAIN : -errno;
}

static void ipc_call_read_reply(struct ipc_call *c)
{
    char buf[16 * 1024];
    ssize_t n = -1;
    while (!c->ended && (n = ipc_call_recv(c, buf, sizeof buf)) > 0)
        mk_buf_add(&c->reply_text, mk_str_of(buf, (size_t)n));
    if (n != -EAGAIN)
        c->ended = true;
    if (c->ended) {
        mk_watcher_free(c->watcher);
        c->watcher = NULL;
    }
}

/* Turns the reply, which is a line "page STATUS TYPE" followed by the body, into the response. Returns false
 * if the reply has another format. */
static bool set_page_response(struct mk_response *response, mk_str reply_text)
{
    uint64_t status;
    mk_str line = mk_str_cut(&reply_text, '\n');
    if (!mk_str_eq(mk_str_word(&line), MK_STR("page")) || !mk_num_parse(mk_str_word(&line), &status) ||
        status > 599)
        return false;
    (void)mk_response_set_status(response, (unsigned)status);
    (void)mk_response_set_header(response, MK_STR("Content-Type"), mk_str_trim(line));
    (void)mk_response_set_header(response, MK_STR("Cache-Control"), MK_STR("no-store"));
    return mk_response_set_body(response, reply_text) == 0;
}

/* ---- Event stream ---- */

static ssize_t read_event_stream(void *ctx, char *buf, size_t cap)
{
    return ipc_call_recv(ctx, buf, cap);
}

static const struct mk_body_source_ops events = {.read = read_event_stream};

static enum mk_verdict stream_events(const struct dev_front_hook *g, struct mk_request *r,
                                     struct mk_response *response)
{
    struct ipc_call *c = ipc_call_open(g, r, "events");
    if (!c)
        return MK_ERROR;
    mk_request_cancel_on_disconnect(r);
    (void)mk_response_begin_sse(response);
    return mk_response_set_body_source(response, &events, c, MK_LENGTH_UNKNOWN) == 0 ? MK_DONE : MK_ERROR;
}

/* ---- Admission of requests ---- */

static enum mk_verdict refuse_host_name(struct mk_response *response)
{
    (void)mk_response_set_status(response, 403);
    (void)mk_response_set_header(response, MK_STR("Content-Type"), MK_STR("text/plain; charset=utf-8"));
    return mk_response_set_body(response,
                                MK_STR("monkey run accepts only localhost, its subdomains and IP addresses "
                                       "as host. To allow another name: monkey run -n NAME\n"))
               ? MK_ERROR
               : MK_DONE;
}

enum mk_verdict dev_front_hook_on_request(const struct dev_front_hook *g, struct mk_request *request,
                                          struct mk_response *response)
{
    struct ipc_call *c = mk_request_attached(request, &key);
    if (!c && !dev_server_config_allows_host(g->names, mk_request_host(request)))
        return refuse_host_name(response);
    if (!c && mk_str_eq(mk_request_path(request), MK_STR(DEV_EVENTS_PATH)))
        return stream_events(g, request, response);
    if (!c) {
        c = ipc_call_open(g, request, "check");
        if (!c || mk_request_attach(request, &key, c, NULL))
            return MK_ERROR;
    }
    if (c->passes)
        return MK_NEXT;
    ipc_call_read_reply(c);
    mk_str reply_text = mk_buf_str(&c->reply_text);
    c->passes = mk_str_eq(reply_text, MK_STR("go\n"));
    if (!c->ended)
        return MK_WAIT;
    if (c->passes)
        return MK_NEXT;
    return set_page_response(response, reply_text) ? MK_DONE : MK_ERROR;
}

/* ---- Failed responses ---- */

static ssize_t read_page_body(void *ctx, char *buf, size_t cap)
{
    struct ipc_call *c = ctx;
    ipc_call_read_reply(c);
    if (!c->ended)
        return -EAGAIN;
    size_t line = mk_str_find(mk_buf_str(&c->reply_text), '\n');
    if (!c->is_content)
        mk_buf_consume(&c->reply_text, line == MK_STR_NONE ? c->reply_text.len : line + 1);
    c->is_content = true;
    size_t n = c->reply_text.len < cap ? c->reply_text.len : cap;
    memcpy(buf, c->reply_text.p ? c->reply_text.p : "", n);
    mk_buf_consume(&c->reply_text, n);
    return (ssize_t)n;
}

static const struct mk_body_source_ops page = {.read = read_page_body};

void dev_front_hook_on_response(const struct dev_front_hook *g, struct mk_request *request,
                                struct mk_response *response)
{
    const struct ipc_call *call = mk_request_attached(request, &key);
    unsigned status = mk_response_status(response);
    bool is_of_service = mk_response_header(response, MK_STR("Duda-Run")).p != NULL;
    (void)mk_response_remove_header(response, MK_STR("Duda-Run"));
    if (is_of_service || !call || !call->passes || (status != 502 && status != 504)) {
        dev_error_reason_on_response(request, response);
        return;
    }
    struct ipc_call *c = ipc_call_open(g, request, "fault");
    if (!c || mk_response_set_body_source(response, &page, c, MK_LENGTH_UNKNOWN))
        return;
    (void)mk_response_set_status(response, 500);
    (void)mk_response_set_header(response, MK_STR("Content-Type"),
                                 dev_error_reason_accepts_html(request)
                                     ? MK_STR("text/html; charset=utf-8")
                                     : MK_STR("text/plain; charset=utf-8"));
    (void)mk_response_set_header(response, MK_STR("Cache-Control"), MK_STR("no-store"));
}

/* ---- The line for each request ---- */

static void append_duration(struct mk_buf *out, uint64_t us)
{
    if (us < 10000)
        mk_buf_addf(out, " in %llu.%llu ms", (unsigned long long)us / 1000,
                    (unsigned long long)us / 100 % 10);
    else if (us < 10000000)
        mk_buf_addf(out, " in %llu ms", (unsigned long long)us / 1000);
    else
        mk_buf_addf(out, " in %llu s", (unsigned long long)us / 1000000);
}

void dev_front_hook_on_done(const struct mk_access_record *record)
{
    static const mk_str own = MK_STR_INIT(DEV_EVENTS_PATH);
    const struct mk_request *r = mk_access_record_request(record);
    char buf[TARGET_SHOWN * 4 + 256];
    struct mk_buf line = mk_buf_fixed(buf, sizeof buf);
    unsigned status = mk_access_record_status(record);
    mk_str target = mk_request_target(r);
    if (!target.p || mk_str_eq(mk_request_path(r), own))
        return;
    mk_buf_addf(&line, "%.*s ", MK_STR_ARG(mk_str_first(mk_request_method_text(r), 32)));
    mk_log_escape(&line, mk_str_first(target, TARGET_SHOWN));
    mk_buf_add(&line, target.len > TARGET_SHOWN ? MK_STR("...") : MK_STR(""));
    if (status)
        mk_buf_addf(&line, " %u", status);
    append_duration(&line, mk_access_record_duration_us(record));
    if (mk_access_record_outcome(record) == MK_OUTCOME_CLIENT_ABORTED)
        mk_buf_add(&line, MK_STR(", the client disconnected"));
    mk_buf_add_char(&line, '\n');
    (void)!write(STDOUT_FILENO, line.p, line.len); /* one call, so that lines of workers do not mix */
}
