/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <errno.h>

#include "answer.h"

enum { LAST_WORDS_MS = 1000 };

/* ---- The clock ---- */

static void on_due(void *ctx)
{
    struct cgi_call *c = ctx;
    c->late = true;
    if (c->process)
        cgi_process_stop(c->process);
    mk_request_resume(c->request);
}

static uint64_t now_of(const struct cgi_call *c)
{
    return mk_worker_now_ms(mk_request_worker(c->request));
}

void cgi_call_set_alarm(struct cgi_call *c, uint32_t ms, const char *why)
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

void cgi_call_wait_for_output(struct cgi_call *c, int input)
{
    cgi_call_set_alarm(c, input == CGI_INPUT_CLIENT ? 0 : c->settings->silence_ms, "CgiTimeout");
}

/* ---- The end ---- */

/* Has the client been answered, or is there nothing more that the script could add? */
static bool has_answered(const struct cgi_call *c)
{
    if (c->phase != CGI_CONTENT || c->late)
        return false;
    bool is_whole = c->length >= 0 && c->made >= (uint64_t)c->length;
    return c->at_end || c->bare || is_whole;
}

void cgi_call_stop(struct cgi_call *c)
{
    struct cgi_process *process = c->process;
    c->process = NULL;
    cgi_pool_give_up(c->pool, &c->ticket);
    if (process)
        cgi_process_leave(process, has_answered(c));
    c->phase = CGI_OVER;
    cgi_input_fini(&c->input);
    mk_buf_free(&c->head);
    mk_alarm_free(c->alarm);
    c->alarm = NULL;
}

static void on_request_end(void *data)
{
    cgi_call_stop(data);
}

enum mk_verdict cgi_call_refuse(struct cgi_call *c, struct mk_response *response, unsigned status)
{
    cgi_call_stop(c);
    if (status == 503)
        (void)mk_response_add(response, MK_STR("Retry-After"), MK_STR("1"));
    (void)mk_response_set_status(response, status);
    return MK_REFUSE;
}

enum mk_verdict cgi_call_blame(struct cgi_call *c, struct mk_response *response, unsigned status,
                               const char *what, mk_str line)
{
    if (line.p)
        mk_request_log(c->request, MK_LOG_ERROR, "cgi: %.*s: its head has %s: `%.*s`",
                       MK_STR_ARG(c->script.file), what, MK_STR_ARG(mk_str_take(line, 100)));
    else
        mk_request_log(c->request, MK_LOG_ERROR, "cgi: %.*s: %s", MK_STR_ARG(c->script.file), what);
    return cgi_call_refuse(c, response, status);
}

static enum mk_verdict refuse_late(struct cgi_call *c, struct mk_response *response)
{
    char room[200];
    struct mk_buf what = mk_buf_fixed(room, sizeof room);
    if (!c->process)
        return cgi_call_refuse(c, response, 503);
    mk_buf_addf(&what, "no answer in the time of %s", c->late_why);
    mk_buf_add_char(&what, '\0');
    return cgi_call_blame(c, response, 504, room, (mk_str){NULL, 0});
}

/* What an error of mk_request_read() is to be answered with. */
static enum mk_verdict refuse_input(struct cgi_call *c, struct mk_response *response, int error)
{
    return cgi_call_refuse(c, response,
                           error == -EMSGSIZE  ? 413
                           : error == -EBADMSG ? 400
                           : error == -ENOMEM  ? 503
                                               : 500);
}

/* ---- The head ---- */

/* It will say no more. Why is soon known. */
static enum mk_verdict blame_end(struct cgi_call *c, struct mk_response *response)
{
    char room[200];
    struct mk_buf what = mk_buf_fixed(room, sizeof room - 1);
    if (c->process->child && !c->late) {
        cgi_call_set_alarm(c, LAST_WORDS_MS, "");
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
    return cgi_call_blame(c, response, refused ? 403 : busy ? 503 : 502, room, (mk_str){NULL, 0});
}

/* One more piece of the head: MK_NEXT when there may be more, MK_WAIT when there is none now. */
static enum mk_verdict read_piece(struct cgi_call *c, struct mk_response *response)
{
    size_t room = (size_t)c->settings->head - c->head.len;
    if (!room)
        return cgi_call_blame(c, response, 502, "its head is longer than MaxHead", (mk_str){NULL, 0});
    if (!mk_buf_reserve(&c->head, room < 4096 ? room : 4096))
        return cgi_call_refuse(c, response, 503);
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
    return cgi_answer_look(c, response);
}

static enum mk_verdict read_head(struct cgi_call *c, struct mk_response *response)
{
    int input = cgi_input_pump(&c->input, c->request, c->process);
    enum mk_verdict v = MK_NEXT;
    if (input < 0)
        return refuse_input(c, response, input);
    while (v == MK_NEXT && c->phase == CGI_HEAD && !c->at_end)
        v = read_piece(c, response);
    if (c->phase == CGI_HEAD && c->at_end && v == MK_NEXT)
        return blame_end(c, response);
    if (v == MK_WAIT)
        cgi_call_wait_for_output(c, input);
    return v;
}

/* ---- The beginning ---- */

static enum mk_verdict start(struct cgi_call *c, struct mk_response *response)
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
        return cgi_call_refuse(c, response, error == -E2BIG ? 431 : 503);
    }
    c->ends_at = c->settings->life_ms ? now_of(c) + c->settings->life_ms : 0;
    c->phase = CGI_HEAD;
    return read_head(c, response);
}

static enum mk_verdict queue(struct cgi_call *c, struct mk_response *response)
{
    c->phase = CGI_WAIT;
    if (!cgi_pool_enter(c->pool, c->settings, &c->ticket, c->request))
        return cgi_call_refuse(c, response, 503);
    if (c->ticket.state == CGI_TICKET_VALID)
        return start(c, response);
    cgi_call_set_alarm(c, c->settings->wait_ms, "WaitTimeout");
    return MK_WAIT;
}

/* Without a length a script believes that there is no content: what is short enough gets one. */
static enum mk_verdict gather(struct cgi_call *c, struct mk_response *response)
{
    int r = cgi_input_gather(&c->input, c->request);
    if (r == 0)
        return MK_WAIT;
    if (r == -EFBIG && c->settings->chunked == CGI_CHUNKED_REFUSE)
        return cgi_call_refuse(c, response, 411);
    return r > 0 || r == -EFBIG ? queue(c, response) : refuse_input(c, response, r);
}

static enum mk_verdict go_on(struct cgi_call *c, struct mk_response *response)
{
    if (c->late && !c->at_end)
        return refuse_late(c, response);
    switch (c->phase) {
    case CGI_GATHER:
        return gather(c, response);
    case CGI_WAIT:
        return c->ticket.state == CGI_TICKET_VALID ? start(c, response) : MK_WAIT;
    case CGI_HEAD:
        return read_head(c, response);
    case CGI_CONTENT:
    case CGI_OVER:
        break;
    }
    return cgi_call_refuse(c, response, 500);
}

static struct cgi_call *new_call(struct mk_request *request, const struct cgi_script *script)
{
    struct cgi_call *c = mk_request_alloc(request, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct cgi_call){.request = request, .script = *script, .length = -1};
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
    struct cgi_call *c = mk_request_data(request);
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
    c->head = mk_buf_growing((size_t)settings->head);
    if (settings->follow)
        mk_request_follow_client(request);
    return mk_request_length(request) < 0 ? gather(c, response) : queue(c, response);
}
