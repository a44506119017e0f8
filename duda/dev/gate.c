/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include "desk.h"
#include "names.h"
#include "reasons.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* One question to the desk; lives as long as the request. */
struct call {
    struct mk_request *request;
    struct mk_watcher *watcher;
    int fd;
    bool ended, passes;
    bool is_content; /* the first line was dropped */
    struct mk_buf answer;
};

static const char key; /* of the call that asks whether the request may pass */

static void on_ready(void *ctx, unsigned which)
{
    struct call *c = ctx;
    (void)which;
    mk_request_resume(c->request);
}

static void hang_up(void *ctx)
{
    struct call *c = ctx;
    mk_watcher_free(c->watcher);
    if (c->fd >= 0)
        close(c->fd);
    mk_buf_free(&c->answer);
}

static int dial(const char *path)
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

static bool write_question(int fd, struct mk_request *r, const char *what)
{
    char room[DEV_LINE_MAX];
    struct mk_buf line = mk_buf_fixed(room, sizeof room);
    if (strcmp(what, "events") == 0)
        mk_buf_add(&line, MK_STR("events\n"));
    else
        mk_buf_addf(&line, "%s %s %.*s %.*s\n", what, dev_reasons_wants_html(r) ? "html" : "text",
                    MK_STR_ARG(mk_str_first(mk_request_method_text(r), 32)),
                    MK_STR_ARG(mk_str_first(mk_request_target(r), DEV_LINE_MAX / 2)));
    return !line.failed && send(fd, line.p, line.len, MSG_NOSIGNAL) == (ssize_t)line.len;
}

/* NULL: the desk is closed, or memory is out. */
static struct call *call_desk(const struct dev_gate *g, struct mk_request *r, const char *what)
{
    struct call *c = mk_request_alloc(r, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct call){.request = r, .fd = -1, .answer = mk_buf_growing(DEV_PAGE_MAX)};
    if (mk_request_on_end(r, hang_up, c))
        return NULL;
    c->fd = dial(g->desk);
    if (c->fd < 0 || !write_question(c->fd, r, what))
        return NULL;
    c->watcher = mk_watcher_new(mk_request_worker(r), c->fd, MK_READABLE, on_ready, c);
    return c->watcher && mk_request_limit_wait(r, 0) == 0 ? c : NULL;
}

/* ---- The answer ---- */

static ssize_t receive(const struct call *c, char *room, size_t cap)
{
    ssize_t n = recv(c->fd, room, cap, MSG_DONTWAIT);
    return n >= 0 ? n : errno == EINTR ? -EAGAIN : -errno;
}

static void read_answer(struct call *c)
{
    char room[16 * 1024];
    ssize_t n = -1;
    while (!c->ended && (n = receive(c, room, sizeof room)) > 0)
        mk_buf_add(&c->answer, mk_str_of(room, (size_t)n));
    if (n != -EAGAIN)
        c->ended = true;
    if (c->ended) {
        mk_watcher_free(c->watcher);
        c->watcher = NULL;
    }
}

/* "page STATUS TYPE", and the content behind it. False: it is none. */
static bool take_page(struct mk_response *response, mk_str answer)
{
    uint64_t status;
    mk_str line = mk_str_cut(&answer, '\n');
    if (!mk_str_eq(mk_str_word(&line), MK_STR("page")) || !mk_num_parse(mk_str_word(&line), &status) ||
        status > 599)
        return false;
    (void)mk_response_set_status(response, (unsigned)status);
    (void)mk_response_set(response, MK_STR("Content-Type"), mk_str_trim(line));
    (void)mk_response_set(response, MK_STR("Cache-Control"), MK_STR("no-store"));
    return mk_response_set_text(response, answer) == 0;
}

/* ---- The stream of events ---- */

static ssize_t pull_events(void *ctx, char *room, size_t cap)
{
    return receive(ctx, room, cap);
}

static const struct mk_source_ops events = {.pull = pull_events};

static enum mk_verdict stream_events(const struct dev_gate *g, struct mk_request *r,
                                     struct mk_response *response)
{
    struct call *c = call_desk(g, r, "events");
    if (!c)
        return MK_REFUSE;
    mk_request_follow_client(r);
    (void)mk_response_set(response, MK_STR("Content-Type"), MK_STR("text/event-stream"));
    (void)mk_response_set(response, MK_STR("Cache-Control"), MK_STR("no-store"));
    return mk_response_set_source(response, &events, c, MK_LENGTH_UNKNOWN) == 0 ? MK_DONE : MK_REFUSE;
}

/* ---- May it pass? ---- */

static enum mk_verdict refuse_name(struct mk_response *response)
{
    (void)mk_response_set_status(response, 403);
    (void)mk_response_set(response, MK_STR("Content-Type"), MK_STR("text/plain; charset=utf-8"));
    return mk_response_set_text(response,
                                MK_STR("monkey run answers for localhost and for addresses. Another name "
                                       "must be allowed: monkey run -n NAME\n"))
               ? MK_REFUSE
               : MK_DONE;
}

enum mk_verdict dev_gate_ask(const struct dev_gate *g, struct mk_request *request,
                             struct mk_response *response)
{
    struct call *c = mk_request_attached(request, &key);
    if (!c && !dev_names_have(mk_request_host(request), g->names))
        return refuse_name(response);
    if (!c && mk_str_eq(mk_request_path(request), MK_STR(DEV_EVENTS_PATH)))
        return stream_events(g, request, response);
    if (!c) {
        c = call_desk(g, request, "ask");
        if (!c || mk_request_attach(request, &key, c, NULL))
            return MK_REFUSE;
    }
    if (c->passes)
        return MK_NEXT;
    read_answer(c);
    mk_str answer = mk_buf_str(&c->answer);
    c->passes = mk_str_eq(answer, MK_STR("go\n"));
    if (!c->ended)
        return MK_WAIT;
    if (c->passes)
        return MK_NEXT;
    return take_page(response, answer) ? MK_DONE : MK_REFUSE;
}

/* ---- A response that never came ---- */

static ssize_t pull_page(void *ctx, char *room, size_t cap)
{
    struct call *c = ctx;
    read_answer(c);
    if (!c->ended)
        return -EAGAIN;
    size_t line = mk_str_find(mk_buf_str(&c->answer), '\n');
    if (!c->is_content)
        mk_buf_drop(&c->answer, line == MK_STR_NONE ? c->answer.len : line + 1);
    c->is_content = true;
    size_t n = c->answer.len < cap ? c->answer.len : cap;
    memcpy(room, c->answer.p ? c->answer.p : "", n);
    mk_buf_drop(&c->answer, n);
    return (ssize_t)n;
}

static const struct mk_source_ops page = {.pull = pull_page};

void dev_gate_mend(const struct dev_gate *g, struct mk_request *request, struct mk_response *response)
{
    const struct call *asked = mk_request_attached(request, &key);
    unsigned status = mk_response_status(response);
    bool is_of_service = mk_response_field(response, MK_STR("Duda-Run")).p != NULL;
    (void)mk_response_remove(response, MK_STR("Duda-Run"));
    if (is_of_service || !asked || !asked->passes || (status != 502 && status != 504)) {
        dev_reasons_show(request, response);
        return;
    }
    struct call *c = call_desk(g, request, "fault");
    if (!c || mk_response_set_source(response, &page, c, MK_LENGTH_UNKNOWN))
        return;
    (void)mk_response_set_status(response, 500);
    (void)mk_response_set(response, MK_STR("Content-Type"),
                          dev_reasons_wants_html(request) ? MK_STR("text/html; charset=utf-8")
                                                          : MK_STR("text/plain; charset=utf-8"));
    (void)mk_response_set(response, MK_STR("Cache-Control"), MK_STR("no-store"));
}
