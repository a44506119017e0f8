/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#define TO(phase) MK_STATE_TO(CGI_##phase)

static const struct mk_state_table phases = {
    MK_STATE_ROW(CGI_SPOOL, "spool", TO(GATHER) | TO(WAIT) | TO(OVER)),
    MK_STATE_ROW(CGI_GATHER, "gather", TO(WAIT) | TO(OVER)),
    MK_STATE_ROW(CGI_WAIT, "wait", TO(HEAD) | TO(OVER)),
    MK_STATE_ROW(CGI_HEAD, "head", TO(CONTENT) | TO(OVER)),
    MK_STATE_ROW(CGI_CONTENT, "content", TO(OVER)),
    MK_STATE_ROW(CGI_OVER, "over", TO(OVER)), /* stopped again */
};

static const char *phase_problem(const void *owner)
{
    const struct cgi_exchange *c = owner;
    return c->phase.current == CGI_OVER && c->process ? "its process was released" : NULL;
}

const struct mk_state_machine cgi_exchange_machine = {"request of a script", &phases, CGI_PHASES,
                                                      phase_problem};

/* ---- The clock ---- */

static uint64_t exchange_now_ms(const struct cgi_exchange *c)
{
    return mk_worker_now_ms(mk_request_worker(c->request));
}

/* Returns whether more data is available but the client cannot receive it yet. */
static bool is_waiting_for_client(const struct cgi_exchange *c)
{
    bool may_live = !c->ends_at || exchange_now_ms(c) < c->ends_at;
    return may_live && c->phase.current == CGI_CONTENT && c->process && cgi_process_has_output(c->process);
}

static void on_exchange_timeout(struct mk_timer *t)
{
    struct cgi_exchange *c = MK_CONTAINER(t, struct cgi_exchange, timer);
    if (is_waiting_for_client(c)) {
        cgi_exchange_set_timer(c, 0, "MaxRunTime");
        return;
    }
    c->late = true;
    if (c->process)
        cgi_process_stop(c->process);
    mk_request_resume(c->request);
}

void cgi_exchange_start_max_time(struct cgi_exchange *c)
{
    c->ends_at = c->settings->life_ms ? exchange_now_ms(c) + c->settings->life_ms : 0;
}

void cgi_exchange_set_timer(struct cgi_exchange *c, uint32_t ms, const char *error)
{
    uint64_t now = exchange_now_ms(c);
    uint64_t left = c->ends_at > now ? c->ends_at - now : 1;
    if (c->late)
        return;
    c->late_why = error;
    if (c->ends_at && (!ms || left < ms)) {
        c->late_why = "MaxRunTime";
        mk_timer_set(&c->timer, mk_request_worker(c->request), (uint32_t)left);
    } else if (ms) {
        mk_timer_set(&c->timer, mk_request_worker(c->request), ms);
    } else {
        mk_timer_stop(&c->timer);
    }
}

void cgi_exchange_wait_for_output(struct cgi_exchange *c, int input)
{
    cgi_exchange_set_timer(c, input == CGI_STDIN_NEEDS_CLIENT ? 0 : c->settings->silence_ms, "ReadTimeout");
}

/* ---- Stopping ---- */

/* Returns whether the client has its complete response, or the script can add nothing more to it. */
static bool is_response_complete(const struct cgi_exchange *c)
{
    if (c->phase.current != CGI_CONTENT || c->late)
        return false;
    bool is_whole = c->length >= 0 && c->made >= (uint64_t)c->length;
    return c->at_end || c->bare || is_whole;
}

void cgi_exchange_stop(struct cgi_exchange *c)
{
    struct cgi_process *process = c->process;
    c->process = NULL;
    cgi_pool_cancel(c->pool, &c->queue_entry);
    if (process)
        cgi_process_detach(process, is_response_complete(c));
    cgi_exchange_move(c, CGI_OVER);
    cgi_stdin_fini(&c->input);
    mk_buf_free(&c->head);
    mk_timer_stop(&c->timer);
}

static void stop_on_request_end(void *data)
{
    cgi_exchange_stop(data);
}

enum mk_verdict cgi_exchange_respond_error(struct cgi_exchange *c, struct mk_response *response,
                                           unsigned status)
{
    cgi_exchange_stop(c);
    if (status == 503)
        (void)mk_response_add_default(response, MK_STR("Retry-After"), MK_STR("1"));
    (void)mk_response_set_status(response, status);
    return MK_ERROR;
}

enum mk_verdict cgi_exchange_script_error(struct cgi_exchange *c, struct mk_response *response,
                                          unsigned status, const char *what, mk_str line)
{
    if (line.p)
        mk_request_log(c->request, MK_LOG_ERROR, "cgi: %.*s: invalid response head, %s: `%.*s`",
                       MK_STR_ARG(c->script.file), what, MK_STR_ARG(mk_str_first(line, 100)));
    else
        mk_request_log(c->request, MK_LOG_ERROR, "cgi: %.*s: %s", MK_STR_ARG(c->script.file), what);
    return cgi_exchange_respond_error(c, response, status);
}

/* ---- Creation ---- */

struct cgi_exchange *cgi_exchange_new(struct mk_request *request, const struct cgi_script *script)
{
    struct cgi_exchange *c = mk_request_alloc(request, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct cgi_exchange){.request = request, .script = *script, .length = -1};
    mk_state_init(&c->phase, &cgi_exchange_machine, CGI_SPOOL);
    mk_timer_init(&c->timer, on_exchange_timeout);
    return mk_request_add_cleanup(request, stop_on_request_end, c) ? NULL : c;
}
