/* SPDX-License-Identifier: Apache-2.0 */
#include "handler.h"

#include <errno.h>

#include "response.h"

enum { LAST_WORDS_MS = 1000 };

/* ---- The head ---- */

/* Reports output that ended without a complete head, once the exit status is known. */
static enum mk_verdict report_missing_head(struct cgi_exchange *c, struct mk_response *response)
{
    char buf[200];
    struct mk_buf what = mk_buf_fixed(buf, sizeof buf - 1);
    if (c->process->subprocess && !c->late) {
        cgi_exchange_set_timer(c, LAST_WORDS_MS, "");
        return MK_WAIT;
    }
    int status = c->process->status;
    bool refused = !c->process->subprocess && (status == -EACCES || status == -EPERM);
    bool busy = !c->process->subprocess && (status == -EAGAIN || status == -ENOMEM);
    cgi_process_describe_exit(c->process, &what);
    if (c->process->subprocess || status >= 0)
        mk_buf_add(&what, c->head.len ? MK_STR(" before its response head was complete")
                                      : MK_STR(" without any output"));
    if (status == -ENOENT)
        mk_buf_add(&what, MK_STR(" (does the interpreter in its first line exist?)"));
    if (status == -ENOEXEC)
        mk_buf_add(&what, MK_STR(" (does its first line begin with #! and an interpreter?)"));
    buf[what.len] = '\0';
    return cgi_exchange_script_error(c, response, refused ? 403 : busy ? 503 : 502, buf, (mk_str){NULL, 0});
}

/* Reads more of the head. Returns the number of bytes, 0 at the end, or -EAGAIN, -EMSGSIZE or -ENOMEM. */
static ssize_t read_head_output(struct cgi_exchange *c)
{
    size_t space = (size_t)c->settings->head - c->head.len;
    if (!space)
        return -EMSGSIZE;
    if (!mk_buf_reserve(&c->head, space < 4096 ? space : 4096))
        return -ENOMEM;
    size_t free = c->head.cap - c->head.len;
    ssize_t n = cgi_process_read(c->process, c->head.p + c->head.len, free < space ? free : space);
    if (n == -EAGAIN)
        return n;
    if (n > 0)
        c->head.len += (size_t)n;
    c->at_end = n <= 0 || (!c->process->subprocess && c->process->rest == 0);
    return n > 0 ? n : 0;
}

static enum mk_verdict read_script_head(struct cgi_exchange *c, struct mk_response *response)
{
    int input = cgi_stdin_copy_body(&c->input, c->request, c->process);
    enum mk_verdict verdict;
    if (input < 0)
        return cgi_exchange_respond_error(c, response, mk_spool_status(input));
    while (!c->at_end) {
        ssize_t n = read_head_output(c);
        if (n == -EAGAIN) {
            cgi_exchange_wait_for_output(c, input);
            return MK_WAIT;
        }
        if (n == -EMSGSIZE)
            return cgi_exchange_script_error(c, response, 502, "the response head exceeds MaxHeaderSize",
                                             (mk_str){NULL, 0});
        if (n < 0)
            return cgi_exchange_respond_error(c, response, 503);
        if (n > 0 && cgi_response_begin(c, response, &verdict))
            return verdict;
    }
    return report_missing_head(c, response);
}

/* ---- The start ---- */

static int64_t request_body_length(const struct cgi_exchange *c)
{
    if (c->content)
        return (int64_t)mk_spool_length(c->content);
    return c->input.ended ? (int64_t)c->input.to : mk_request_length(c->request);
}

static int start_process(struct cgi_exchange *c)
{
    struct cgi_environ e;
    int64_t length = request_body_length(c);
    int fd = c->content && length ? mk_spool_fd(c->content) : -1;
    int error = c->content && length && fd < 0 ? fd : 0;
    if (!error)
        error = cgi_environ_build(&e, c->request, &c->script, c->settings, length);
    else
        e = (struct cgi_environ){0};
    const struct cgi_start start_script = {.script = &c->script,
                                           .settings = c->settings,
                                           .environ = &e,
                                           .content_fd = fd,
                                           .piped = !c->content && length != 0};
    if (!error)
        c->process = cgi_process_start(c->pool, &c->queue_entry, &start_script, &error);
    cgi_environ_free(&e);
    return c->process ? 0 : error;
}

static enum mk_verdict start_script(struct cgi_exchange *c, struct mk_response *response)
{
    int error = start_process(c);
    if (error) {
        mk_request_log(c->request, MK_LOG_ERROR, "cgi: %.*s: cannot be started: %s",
                       MK_STR_ARG(c->script.file), strerror(-error));
        return cgi_exchange_respond_error(c, response, error == -E2BIG ? 431 : 503);
    }
    if (c->content)
        mk_spool_free(c->content);
    c->content = NULL; /* passed to the script */
    cgi_exchange_start_max_time(c);
    cgi_exchange_move(c, CGI_HEAD);
    return read_script_head(c, response);
}

static enum mk_verdict queue_for_slot(struct cgi_exchange *c, struct mk_response *response)
{
    cgi_exchange_move(c, CGI_WAIT);
    if (!cgi_pool_request_slot(c->pool, c->settings, &c->queue_entry, c->request))
        return cgi_exchange_respond_error(c, response, 503);
    if (c->queue_entry.state.current == CGI_SLOT_GRANTED)
        return start_script(c, response);
    cgi_exchange_set_timer(c, c->settings->wait_ms, "WaitTimeout");
    return MK_WAIT;
}

static enum mk_verdict start_if_slot_granted(struct cgi_exchange *c, struct mk_response *response)
{
    switch ((enum cgi_slot_state)c->queue_entry.state.current) {
    case CGI_SLOT_GRANTED:
        return start_script(c, response);
    case CGI_SLOT_WAITING:
        return MK_WAIT;
    case CGI_SLOT_REJECTED:
    case CGI_SLOT_NONE:
    case CGI_SLOT_STATES:
        break;
    }
    return cgi_exchange_respond_error(c, response, 503);
}

/* ---- The body ---- */

/* Receives the whole body before a process is started, so that a slow client does not occupy a process. */
static enum mk_verdict spool_request_body(struct cgi_exchange *c, struct mk_response *response)
{
    bool wants_length = mk_request_length(c->request) < 0 && c->settings->body == CGI_BODY_REFUSE;
    struct mk_spool *content;
    int e = mk_spool_request(c->request, wants_length ? CGI_STDIN_BUF_SIZE : 0, &content);
    if (e == -EAGAIN)
        return MK_WAIT;
    if (e == -EMSGSIZE && wants_length && mk_request_body_max(c->request) > CGI_STDIN_BUF_SIZE)
        return cgi_exchange_respond_error(c, response, 411);
    if (e)
        return cgi_exchange_respond_error(c, response, mk_spool_status(e));
    c->content = content;
    return queue_for_slot(c, response);
}

/* Buffers a short body to determine its length, because scripts treat a body of unknown length as empty. */
static enum mk_verdict buffer_request_body(struct cgi_exchange *c, struct mk_response *response)
{
    int r = cgi_stdin_buffer_body(&c->input, c->request);
    if (r == 0)
        return MK_WAIT;
    return r > 0 ? queue_for_slot(c, response) : cgi_exchange_respond_error(c, response, mk_spool_status(r));
}

static enum mk_verdict receive_request_body(struct cgi_exchange *c, struct mk_response *response)
{
    int64_t length = mk_request_length(c->request);
    if (c->settings->body == CGI_BODY_STREAM && length < 0) {
        cgi_exchange_move(c, CGI_GATHER);
        return buffer_request_body(c, response);
    }
    if (c->settings->body == CGI_BODY_STREAM || !length)
        return queue_for_slot(c, response);
    return spool_request_body(c, response);
}

/* ---- The handler ---- */

static enum mk_verdict respond_timeout(struct cgi_exchange *c, struct mk_response *response)
{
    char buf[200];
    struct mk_buf what = mk_buf_fixed(buf, sizeof buf);
    if (!c->process)
        return cgi_exchange_respond_error(c, response, 503);
    mk_buf_addf(&what, "no response within %s", c->late_why);
    mk_buf_add_char(&what, '\0');
    return cgi_exchange_script_error(c, response, 504, buf, (mk_str){NULL, 0});
}

static enum mk_verdict run_phase(struct cgi_exchange *c, struct mk_response *response)
{
    if (c->late && !c->at_end)
        return respond_timeout(c, response);
    switch ((enum cgi_phase)c->phase.current) {
    case CGI_SPOOL:
        return spool_request_body(c, response);
    case CGI_GATHER:
        return buffer_request_body(c, response);
    case CGI_WAIT:
        return start_if_slot_granted(c, response);
    case CGI_HEAD:
        return read_script_head(c, response);
    case CGI_CONTENT:
    case CGI_OVER:
    case CGI_PHASES:
        break;
    }
    return cgi_exchange_respond_error(c, response, 500);
}

enum mk_verdict cgi_handler_run(struct mk_request *request, struct mk_response *response,
                                const struct cgi_settings *settings, const struct cgi_route *route,
                                struct cgi_pool *pool)
{
    struct cgi_script script;
    struct cgi_exchange *c = mk_request_data(request);
    if (c)
        return run_phase(c, response);
    unsigned status = cgi_script_find(request, settings, route, &script);
    if (status == 404) { /* so that `static` does not send the source if the script reappears */
        (void)mk_response_set_status(response, 404);
        return MK_NEXT;
    }
    c = status ? NULL : cgi_exchange_new(request, &script);
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
    return receive_request_body(c, response);
}
