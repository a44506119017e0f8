/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <errno.h>

#include "head.h"
#include "input.h"

enum { LAST_WORDS_MS = 1000 };

enum phase { GATHER, WAIT, HEAD, CONTENT, OVER };

struct call {
    struct mk_request *request;
    const struct cgi_settings *settings;
    const struct cgi_route *route; /* NULL: it says nothing */
    struct cgi_pool *pool;
    struct cgi_script script;
    enum phase phase;
    struct cgi_ticket ticket;
    struct cgi_process *process;
    struct cgi_input input;
    struct mk_buf head;     /* what the script has said before its content, and the beginning of that */
    size_t seen, from;      /* of `head`: looked at; and sent, when it is content */
    uint64_t made;          /* content so far */
    int64_t length;         /* of the content as the script says, -1: it does not */
    bool at_end;            /* its output has ended */
    bool bare;              /* the client gets no content */
    struct mk_alarm *alarm; /* the script is too slow, or lives too long */
    uint64_t ends_at;       /* the clock of the loop; 0: no limit */
    bool late;
    const char *late_why;
};

/* ---- The clock ---- */

static void on_due(void *ctx)
{
    struct call *c = ctx;
    c->late = true;
    if (c->process)
        cgi_process_stop(c->process);
    mk_request_resume(c->request);
}

static uint64_t now_of(const struct call *c)
{
    return mk_worker_now_ms(mk_request_worker(c->request));
}

/* Wakes us after `ms` (0: no limit), or when the script's time is up. */
static void set_alarm(struct call *c, uint32_t ms, const char *why)
{
    uint64_t now = now_of(c);
    uint64_t left = c->ends_at > now ? c->ends_at - now : 1;
    if (c->late)
        return;
    c->late_why = why;
    if (c->ends_at && (!ms || left < ms)) {
        c->late_why = "MaxTime";
        mk_alarm_set(c->alarm, (uint32_t)left);
    } else if (ms) {
        mk_alarm_set(c->alarm, ms);
    } else {
        mk_alarm_stop(c->alarm);
    }
}

/* ---- The end ---- */

/* Has the client been answered, or is there nothing more that the script could add? */
static bool has_answered(const struct call *c)
{
    if (c->phase != CONTENT || c->late)
        return false;
    bool is_whole = c->length >= 0 && c->made >= (uint64_t)c->length;
    return c->at_end || c->bare || is_whole;
}

static void stop(struct call *c)
{
    struct cgi_process *process = c->process;
    c->process = NULL;
    cgi_pool_give_up(c->pool, &c->ticket);
    if (process)
        cgi_process_leave(process, has_answered(c));
    c->phase = OVER;
    cgi_input_fini(&c->input);
    mk_buf_free(&c->head);
    mk_alarm_free(c->alarm);
    c->alarm = NULL;
}

static void on_request_end(void *data)
{
    stop(data);
}

static enum mk_verdict refuse(struct call *c, struct mk_response *response, unsigned status)
{
    stop(c);
    if (status == 503)
        (void)mk_response_add(response, MK_STR("Retry-After"), MK_STR("1"));
    (void)mk_response_set_status(response, status);
    return MK_REFUSE;
}

/* The script is to blame: its owner shall know. */
static enum mk_verdict blame(struct call *c, struct mk_response *response, unsigned status, const char *what,
                             mk_str line)
{
    if (line.p)
        mk_request_log(c->request, MK_LOG_ERROR, "cgi: %.*s: its head has %s: `%.*s`",
                       MK_STR_ARG(c->script.file), what, MK_STR_ARG(mk_str_take(line, 100)));
    else
        mk_request_log(c->request, MK_LOG_ERROR, "cgi: %.*s: %s", MK_STR_ARG(c->script.file), what);
    return refuse(c, response, status);
}

static enum mk_verdict refuse_late(struct call *c, struct mk_response *response)
{
    char room[200];
    struct mk_buf what = mk_buf_fixed(room, sizeof room);
    if (!c->process)
        return refuse(c, response, 503);
    mk_buf_addf(&what, "no answer in the time of %s", c->late_why);
    mk_buf_add_char(&what, '\0');
    return blame(c, response, 504, room, (mk_str){NULL, 0});
}

/* What an error of mk_request_read() is to be answered with. */
static enum mk_verdict refuse_input(struct call *c, struct mk_response *response, int error)
{
    return refuse(c, response,
                  error == -EMSGSIZE  ? 413
                  : error == -EBADMSG ? 400
                  : error == -ENOMEM  ? 503
                                      : 500);
}

/* ---- Content ---- */

static ssize_t pull_kept(struct call *c, char *room, size_t cap)
{
    mk_str rest = mk_str_take(mk_str_skip(mk_buf_str(&c->head), c->from), cap);
    memcpy(room, rest.p, rest.len);
    c->from += rest.len;
    if (c->from == c->head.len) {
        mk_buf_free(&c->head);
        c->from = 0;
    }
    return (ssize_t)rest.len;
}

static ssize_t give_up(struct call *c, int error, const char *why)
{
    mk_request_log(c->request, MK_LOG_ERROR, "cgi: %.*s: its answer was cut off after %llu bytes: %s",
                   MK_STR_ARG(c->script.file), (unsigned long long)c->made, why);
    stop(c);
    return error;
}

/* The script has nothing for us now. Is it its turn, or the client's? */
static void wait_for_output(struct call *c, int input)
{
    set_alarm(c, input == CGI_INPUT_CLIENT ? 0 : c->settings->silence_ms, "CgiTimeout");
}

static ssize_t pull_script(struct call *c, char *room, size_t cap)
{
    int input = cgi_input_pump(&c->input, c->request, c->process);
    if (input < 0)
        return give_up(c, input, "the content of the request ended too early");
    ssize_t n = cgi_process_read(c->process, room, cap);
    if (n == -EAGAIN)
        wait_for_output(c, input);
    else if (n == 0)
        c->at_end = true;
    else if (n > 0)
        set_alarm(c, 0, "MaxTime");
    return n;
}

static ssize_t pull(void *ctx, char *room, size_t cap)
{
    struct call *c = ctx;
    if (c->phase != CONTENT)
        return -EPIPE;
    if (c->late)
        return give_up(c, -ETIMEDOUT, c->late_why);
    ssize_t n = c->head.len ? pull_kept(c, room, cap) : c->at_end ? 0 : pull_script(c, room, cap);
    if (n > 0)
        c->made += (uint64_t)n;
    if (c->settings->output && c->made > c->settings->output)
        return give_up(c, -EFBIG, "it is more than MaxOutput");
    if (n == 0 && c->length >= 0 && c->made < (uint64_t)c->length)
        return give_up(c, -EIO, "it is shorter than its Content-Length");
    return n;
}

static void on_close(void *ctx)
{
    stop(ctx);
}

static const struct mk_source_ops content_ops = {.pull = pull, .close = on_close};

/* ---- The head, whole ---- */

static bool add_fields(struct call *c, struct mk_response *response, const struct cgi_head *h)
{
    mk_str rest = h->fields, name, value;
    while (cgi_head_next(&rest, &name, &value))
        if (mk_response_add(response, name, value) == -ENOMEM)
            return false;
    bool has_type = h->type.p || !c->route || !c->route->type.p;
    return has_type || mk_response_add(response, MK_STR("Content-Type"), c->route->type) != -ENOMEM;
}

/* All that there is has been read: its length need not be guessed by the client. */
static void measure(struct call *c)
{
    if (c->at_end && c->length < 0 && !c->bare)
        c->length = (int64_t)(c->head.len - c->from);
}

static enum mk_verdict answer(struct call *c, struct mk_response *response, const struct cgi_head *h)
{
    unsigned status = h->status ? h->status : h->location.p ? 302 : 200;
    uint64_t kept = c->head.len - c->from;
    c->bare = mk_request_method(c->request) == MK_METHOD_HEAD || status == 204 || status == 304;
    c->length = h->length;
    if (c->at_end && !c->bare && h->length > 0 && kept < (uint64_t)h->length)
        return blame(c, response, 502, "it is shorter than its Content-Length", (mk_str){NULL, 0});
    if (c->settings->output && h->length > 0 && (uint64_t)h->length > c->settings->output)
        return blame(c, response, 502, "its Content-Length is more than MaxOutput", (mk_str){NULL, 0});
    measure(c);
    if (!add_fields(c, response, h) || mk_response_set_status(response, status) != 0)
        return refuse(c, response, 503);
    if (c->from == c->head.len)
        mk_buf_free(&c->head);
    c->phase = CONTENT;
    set_alarm(c, 0, "MaxTime");
    int e = mk_response_set_source(response, &content_ops, c, c->length < 0 ? MK_LENGTH_UNKNOWN : c->length);
    return e ? refuse(c, response, 503) : MK_DONE;
}

static enum mk_verdict redirect(struct call *c, struct mk_response *response, const struct cgi_head *h)
{
    int e = mk_request_rewrite(c->request, h->location);
    if (e == -EINVAL)
        return blame(c, response, 502, "a Location that leads nowhere", h->location);
    if (e)
        return refuse(c, response, 503);
    c->phase = CONTENT;
    c->bare = true; /* this one has done its work */
    stop(c);
    return MK_NEXT;
}

static enum mk_verdict take_head(struct call *c, struct mk_response *response, size_t len)
{
    struct cgi_head h;
    c->from = len;
    if (!cgi_head_parse(&h, mk_str_take(mk_buf_str(&c->head), len)))
        return blame(c, response, 502, h.wrong, h.where.p ? h.where : MK_STR(""));
    return cgi_head_is_local_redirect(&h) ? redirect(c, response, &h) : answer(c, response, &h);
}

/* The script speaks to the client itself; all that we know is how it begins. */
static enum mk_verdict let_speak(struct call *c, struct mk_response *response, unsigned status)
{
    c->phase = CONTENT;
    c->length = -1;
    (void)mk_response_set_status(response, status); /* for logs; one below 200 is none for them */
    set_alarm(c, 0, "MaxTime");
    int e = mk_response_set_raw_source(response, &content_ops, c);
    return e ? refuse(c, response, e == -EOPNOTSUPP ? 505 : 503) : MK_DONE;
}

/* ---- The head, piece by piece ---- */

/* MK_NEXT: there is not enough of it. */
static enum mk_verdict look(struct call *c, struct mk_response *response)
{
    mk_str text = mk_buf_str(&c->head);
    if (c->script.speaks_http && mk_request_version(c->request) < 20) {
        unsigned status = 0;
        int r = cgi_head_status_line(text, &status);
        if (r < 0)
            return blame(c, response, 502, "no status line", mk_str_take(text, mk_str_find(text, '\n')));
        return r ? let_speak(c, response, status) : MK_NEXT;
    }
    size_t len = cgi_head_end(text, c->seen);
    c->seen = text.len;
    return len ? take_head(c, response, len) : MK_NEXT;
}

/* It will say no more. Why is soon known. */
static enum mk_verdict blame_end(struct call *c, struct mk_response *response)
{
    char room[200];
    struct mk_buf what = mk_buf_fixed(room, sizeof room - 1);
    if (c->process->child && !c->late) {
        set_alarm(c, LAST_WORDS_MS, "");
        return MK_WAIT;
    }
    int status = c->process->status;
    bool refused = !c->process->child && (status == -EACCES || status == -EPERM);
    bool busy = !c->process->child && (status == -EAGAIN || status == -ENOMEM);
    cgi_process_describe_end(c->process, &what);
    if (c->process->child || status >= 0)
        mk_buf_add(&what, c->head.len ? MK_STR(" before its head was whole") : MK_STR(" and said nothing"));
    if (status == -ENOENT)
        mk_buf_add(&what, MK_STR(" (is the program in its first line there?)"));
    if (status == -ENOEXEC)
        mk_buf_add(&what, MK_STR(" (does its first line begin with #! and a program?)"));
    room[what.len] = '\0';
    return blame(c, response, refused ? 403 : busy ? 503 : 502, room, (mk_str){NULL, 0});
}

/* One more piece of the head: MK_NEXT when there may be more, MK_WAIT when there is none now. */
static enum mk_verdict read_piece(struct call *c, struct mk_response *response)
{
    size_t room = c->settings->head - c->head.len;
    if (!room)
        return blame(c, response, 502, "its head is longer than MaxHead", (mk_str){NULL, 0});
    if (!mk_buf_reserve(&c->head, room < 4096 ? room : 4096))
        return refuse(c, response, 503);
    size_t free = c->head.cap - c->head.len;
    ssize_t n = cgi_process_read(c->process, c->head.p + c->head.len, free < room ? free : room);
    if (n == -EAGAIN)
        return MK_WAIT;
    if (n <= 0) {
        c->at_end = true;
        return MK_NEXT;
    }
    c->head.len += (size_t)n;
    c->at_end = !c->process->child && c->process->rest == 0;
    return look(c, response);
}

static enum mk_verdict read_head(struct call *c, struct mk_response *response)
{
    int input = cgi_input_pump(&c->input, c->request, c->process);
    enum mk_verdict v = MK_NEXT;
    if (input < 0)
        return refuse_input(c, response, input);
    while (v == MK_NEXT && c->phase == HEAD && !c->at_end)
        v = read_piece(c, response);
    if (c->phase == HEAD && c->at_end && v == MK_NEXT)
        return blame_end(c, response);
    if (v == MK_WAIT)
        wait_for_output(c, input);
    return v;
}

/* ---- The beginning ---- */

static enum mk_verdict start(struct call *c, struct mk_response *response)
{
    struct cgi_environ e;
    bool has_input = !c->input.ended || c->input.to;
    int64_t length = c->input.ended ? (int64_t)c->input.to : mk_request_length(c->request);
    int error = cgi_environ_make(&e, c->request, &c->script, c->settings, length);
    if (!error)
        c->process = cgi_process_start(c->pool, &c->ticket, &c->script, c->settings, &e,
                                       has_input && mk_request_length(c->request) != 0, &error);
    cgi_environ_free(&e);
    if (!c->process) {
        mk_request_log(c->request, MK_LOG_ERROR, "cgi: %.*s: cannot be started: %s",
                       MK_STR_ARG(c->script.file), strerror(-error));
        return refuse(c, response, error == -E2BIG ? 431 : 503);
    }
    c->ends_at = c->settings->life_ms ? now_of(c) + c->settings->life_ms : 0;
    c->phase = HEAD;
    return read_head(c, response);
}

static enum mk_verdict queue(struct call *c, struct mk_response *response)
{
    c->phase = WAIT;
    if (!cgi_pool_enter(c->pool, c->settings, &c->ticket, c->request))
        return refuse(c, response, 503);
    if (c->ticket.state == CGI_TICKET_VALID)
        return start(c, response);
    set_alarm(c, c->settings->wait_ms, "WaitTimeout");
    return MK_WAIT;
}

/* Without a length a script believes that there is no content: what is short enough gets one. */
static enum mk_verdict gather(struct call *c, struct mk_response *response)
{
    int r = cgi_input_gather(&c->input, c->request);
    if (r == 0)
        return MK_WAIT;
    if (r == -EFBIG && c->settings->chunked == CGI_CHUNKED_REFUSE)
        return refuse(c, response, 411);
    return r > 0 || r == -EFBIG ? queue(c, response) : refuse_input(c, response, r);
}

static enum mk_verdict go_on(struct call *c, struct mk_response *response)
{
    if (c->late && !c->at_end)
        return refuse_late(c, response);
    switch (c->phase) {
    case GATHER:
        return gather(c, response);
    case WAIT:
        return c->ticket.state == CGI_TICKET_VALID ? start(c, response) : MK_WAIT;
    case HEAD:
        return read_head(c, response);
    case CONTENT:
    case OVER:
        break;
    }
    return refuse(c, response, 500);
}

static struct call *new_call(struct mk_request *request, const struct cgi_script *script)
{
    struct call *c = mk_request_alloc(request, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct call){.request = request, .script = *script, .length = -1};
    c->alarm = mk_alarm_new(mk_request_worker(request), on_due, c);
    if (c->alarm && mk_request_on_end(request, on_request_end, c) == 0)
        return c;
    mk_alarm_free(c->alarm);
    return NULL;
}

enum mk_verdict cgi_call_handle(struct mk_request *request, struct mk_response *response,
                                const struct cgi_settings *settings, const struct cgi_route *route,
                                struct cgi_pool *pool)
{
    struct cgi_script script;
    struct call *c = mk_request_data(request);
    if (c)
        return go_on(c, response);
    unsigned status = cgi_script_find(request, settings, route, &script);
    if (status == 404)
        return MK_NEXT;
    c = status ? NULL : new_call(request, &script);
    if (!c) {
        (void)mk_response_set_status(response, status ? status : 503);
        return MK_REFUSE;
    }
    mk_request_set_data(request, c);
    c->settings = settings;
    c->route = route;
    c->pool = pool;
    c->head = mk_buf_growing(settings->head);
    if (settings->follow)
        mk_request_follow_client(request);
    return mk_request_length(request) < 0 ? gather(c, response) : queue(c, response);
}
