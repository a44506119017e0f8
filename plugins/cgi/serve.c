/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

#include <errno.h>

#include "answer.h"

enum { LAST_WORDS_MS = 1000 };

/* ---- The head ---- */

/* The output is over without a head. The reason follows soon. */
static enum mk_verdict blame_end(struct cgi_call *c, struct mk_response *response)
{
    char room[200];
    struct mk_buf what = mk_buf_fixed(room, sizeof room - 1);
    if (c->process->child && !c->late) {
        cgi_call_set_timer(c, LAST_WORDS_MS, "");
        return MK_WAIT;
    }
    int status = c->process->status;
    bool refused = !c->process->child && (status == -EACCES || status == -EPERM);
    bool busy = !c->process->child && (status == -EAGAIN || status == -ENOMEM);
    cgi_process_describe_end(c->process, &what);
    if (c->process->child || status >= 0)
        mk_buf_add(&what,
                   c->head.len ? MK_STR(" before its head was complete") : MK_STR(" without any output"));
    if (status == -ENOENT)
        mk_buf_add(&what, MK_STR(" (does the program in its first line exist?)"));
    if (status == -ENOEXEC)
        mk_buf_add(&what, MK_STR(" (does its first line begin with #! and a program?)"));
    room[what.len] = '\0';
    return cgi_call_blame(c, response, refused ? 403 : busy ? 503 : 502, room, (mk_str){NULL, 0});
}

/* One more piece of the head: bytes, 0 at the end, -EAGAIN when there is none now; -EMSGSIZE, -ENOMEM. */
static ssize_t read_piece(struct cgi_call *c)
{
    size_t room = (size_t)c->settings->head - c->head.len;
    if (!room)
        return -EMSGSIZE;
    if (!mk_buf_reserve(&c->head, room < 4096 ? room : 4096))
        return -ENOMEM;
    size_t free = c->head.cap - c->head.len;
    ssize_t n = cgi_process_read(c->process, c->head.p + c->head.len, free < room ? free : room);
    if (n == -EAGAIN)
        return n;
    if (n > 0)
        c->head.len += (size_t)n;
    c->at_end = n <= 0 || (!c->process->child && c->process->rest == 0);
    return n > 0 ? n : 0;
}

static enum mk_verdict read_head(struct cgi_call *c, struct mk_response *response)
{
    int input = cgi_input_pump(&c->input, c->request, c->process);
    enum mk_verdict verdict;
    if (input < 0)
        return cgi_call_refuse(c, response, mk_spool_status(input));
    while (!c->at_end) {
        ssize_t n = read_piece(c);
        if (n == -EAGAIN) {
            cgi_call_wait_for_output(c, input);
            return MK_WAIT;
        }
        if (n == -EMSGSIZE)
            return cgi_call_blame(c, response, 502, "its head is longer than MaxHead", (mk_str){NULL, 0});
        if (n < 0)
            return cgi_call_refuse(c, response, 503);
        if (n > 0 && cgi_answer_begin(c, response, &verdict))
            return verdict;
    }
    return blame_end(c, response);
}

/* ---- The start ---- */

static int64_t length_of(const struct cgi_call *c)
{
    if (c->content)
        return (int64_t)mk_spool_length(c->content);
    return c->input.ended ? (int64_t)c->input.to : mk_request_length(c->request);
}

static int start_process(struct cgi_call *c)
{
    struct cgi_environ e;
    int64_t length = length_of(c);
    int fd = c->content && length ? mk_spool_fd(c->content) : -1;
    int error = c->content && length && fd < 0 ? fd : 0;
    if (!error)
        error = cgi_environ_make(&e, c->request, &c->script, c->settings, length);
    else
        e = (struct cgi_environ){0};
    const struct cgi_start start = {.script = &c->script,
                                    .settings = c->settings,
                                    .environ = &e,
                                    .content_fd = fd,
                                    .piped = !c->content && length != 0};
    if (!error)
        c->process = cgi_process_start(c->pool, &c->ticket, &start, &error);
    cgi_environ_free(&e);
    return c->process ? 0 : error;
}

static enum mk_verdict start(struct cgi_call *c, struct mk_response *response)
{
    int error = start_process(c);
    if (error) {
        mk_request_log(c->request, MK_LOG_ERROR, "cgi: %.*s: cannot be started: %s",
                       MK_STR_ARG(c->script.file), strerror(-error));
        return cgi_call_refuse(c, response, error == -E2BIG ? 431 : 503);
    }
    if (c->content)
        mk_spool_free(c->content);
    c->content = NULL; /* the script has it */
    cgi_call_start_life(c);
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
    cgi_call_set_timer(c, c->settings->wait_ms, "WaitTimeout");
    return MK_WAIT;
}

static enum mk_verdict leave_queue(struct cgi_call *c, struct mk_response *response)
{
    switch (c->ticket.state) {
    case CGI_TICKET_VALID:
        return start(c, response);
    case CGI_TICKET_WAITS:
        return MK_WAIT;
    case CGI_TICKET_LOST:
    case CGI_TICKET_NONE:
        break;
    }
    return cgi_call_refuse(c, response, 503);
}

/* ---- The content ---- */

/* All of it, before a process is taken: a slow client occupies none. */
static enum mk_verdict spool(struct cgi_call *c, struct mk_response *response)
{
    bool wants_length = mk_request_length(c->request) < 0 && c->settings->content == CGI_CONTENT_REFUSE;
    struct mk_spool *content;
    int e = mk_spool_request(c->request, wants_length ? CGI_INPUT_ROOM : 0, &content);
    if (e == -EAGAIN)
        return MK_WAIT;
    if (e)
        return cgi_call_refuse(c, response, e == -EFBIG ? 411 : mk_spool_status(e));
    c->content = content;
    return queue(c, response);
}

/* A script takes content without a length for none: what is short enough gets one. */
static enum mk_verdict gather(struct cgi_call *c, struct mk_response *response)
{
    int r = cgi_input_gather(&c->input, c->request);
    if (r == 0)
        return MK_WAIT;
    return r > 0 || r == -EFBIG ? queue(c, response) : cgi_call_refuse(c, response, mk_spool_status(r));
}

static enum mk_verdict receive(struct cgi_call *c, struct mk_response *response)
{
    int64_t length = mk_request_length(c->request);
    if (c->settings->content == CGI_CONTENT_STREAM && length < 0) {
        c->phase = CGI_GATHER;
        return gather(c, response);
    }
    if (c->settings->content == CGI_CONTENT_STREAM || !length)
        return queue(c, response);
    c->phase = CGI_SPOOL;
    return spool(c, response);
}

/* ---- The handler ---- */

static enum mk_verdict refuse_late(struct cgi_call *c, struct mk_response *response)
{
    char room[200];
    struct mk_buf what = mk_buf_fixed(room, sizeof room);
    if (!c->process)
        return cgi_call_refuse(c, response, 503);
    mk_buf_addf(&what, "no answer within %s", c->late_why);
    mk_buf_add_char(&what, '\0');
    return cgi_call_blame(c, response, 504, room, (mk_str){NULL, 0});
}

static enum mk_verdict go_on(struct cgi_call *c, struct mk_response *response)
{
    if (c->late && !c->at_end)
        return refuse_late(c, response);
    switch (c->phase) {
    case CGI_SPOOL:
        return spool(c, response);
    case CGI_GATHER:
        return gather(c, response);
    case CGI_WAIT:
        return leave_queue(c, response);
    case CGI_HEAD:
        return read_head(c, response);
    case CGI_CONTENT:
    case CGI_OVER:
        break;
    }
    return cgi_call_refuse(c, response, 500);
}

enum mk_verdict cgi_serve_handle(struct mk_request *request, struct mk_response *response,
                                 const struct cgi_settings *settings, const struct cgi_route *route,
                                 struct cgi_pool *pool)
{
    struct cgi_script script;
    struct cgi_call *c = mk_request_data(request);
    if (c)
        return go_on(c, response);
    unsigned status = cgi_script_find(request, settings, route, &script);
    if (status == 404) { /* said aloud, so that `static` does not send a script that comes back meanwhile */
        (void)mk_response_set_status(response, 404);
        return MK_NEXT;
    }
    c = status ? NULL : cgi_call_new(request, &script);
    if (!c) {
        (void)mk_response_set_status(response, status ? status : 503);
        return MK_ERROR;
    }
    mk_request_set_data(request, c);
    c->settings = settings;
    c->route = route;
    c->pool = pool;
    c->head = mk_buf_growing((size_t)settings->head);
    if (settings->follow)
        mk_request_cancel_on_disconnect(request);
    return receive(c, response);
}
