/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/last_error.h"

#include <stdio.h>

#include "lib/handle_registry.h"

enum { RUNNING_TEXT_MAX = 400 };

/* The error of the last call of this thread that failed while the server was running, or that came at the
 * wrong time or from the wrong thread. Thread-local, because several threads may make such calls at once. */
static _Thread_local struct {
    const struct mk_server *server; /* NULL: none */
    const char *text;               /* may be `formatted` */
    char formatted[RUNNING_TEXT_MAX];
} misuse;

void mk_last_error_restore_errno(const int *before)
{
    errno = *before;
}

mk_err mk_last_error_terminate(struct mk_server *s, mk_err e)
{
    if (!mk_buf_reserve(&s->error_text, 1)) {
        mk_buf_free(&s->error_text);
        return e;
    }
    s->error_text.p[s->error_text.len] = '\0';
    return e;
}

mk_err mk_last_error_set_misuse(const struct mk_server *s, const char *text)
{
    misuse.server = s;
    misuse.text = text;
    return -EBUSY;
}

mk_err mk_last_error_set_running(const struct mk_server *s, mk_err e, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(misuse.formatted, sizeof misuse.formatted, fmt, args);
    va_end(args);
    misuse.server = s;
    misuse.text = misuse.formatted;
    return e;
}

void mk_last_error_clear_misuse(void)
{
    misuse.server = NULL;
}

mk_err mk_last_error_set(struct mk_server *s, mk_err e, const char *fmt, ...)
{
    va_list args;
    mk_last_error_clear_misuse();
    va_start(args, fmt);
    mk_buf_clear(&s->error_text);
    mk_buf_addv(&s->error_text, fmt, args);
    va_end(args);
    return mk_last_error_terminate(s, e);
}

mk_err mk_last_error_set_code(struct mk_server *s, mk_err e)
{
    return mk_last_error_set(s, e, "%s", mk_err_text(e));
}

mk_err mk_last_error_require_setup(struct mk_server *s)
{
    if (!mk_handle_is_valid(s))
        return -EINVAL;
    if (s->phase != MK_SERVER_SETTING_UP)
        return mk_last_error_set_misuse(
            s, "the server was started already: call this function before starting it");
    mk_last_error_clear_misuse();
    mk_buf_clear(&s->error_text);
    return mk_last_error_terminate(s, 0);
}

/* The phase is protected by the lock once the server has been started. */
mk_err mk_last_error_check_running(struct mk_server *s, bool *is_running)
{
    *is_running = false;
    if (!mk_handle_is_valid(s))
        return -EINVAL;
    pthread_mutex_lock(&s->lock);
    enum mk_server_phase phase = s->phase;
    pthread_mutex_unlock(&s->lock);
    if (phase == MK_SERVER_SETTING_UP)
        return mk_last_error_require_setup(s);
    mk_last_error_clear_misuse();
    bool is_stopping = atomic_load(&s->stop_at) != MK_SERVER_STOP_NOT_REQUESTED;
    if (phase == MK_SERVER_ENDED || (phase == MK_SERVER_RUNNING && is_stopping))
        return mk_last_error_set_running(s, -ESHUTDOWN, "the server is stopping, or has stopped");
    if (phase != MK_SERVER_RUNNING)
        return mk_last_error_set_misuse(s, "the server is starting: call this function after its start");
    *is_running = true;
    return 0;
}

mk_err mk_last_error_require_running(struct mk_server *s)
{
    bool is_running;
    mk_err e = mk_last_error_check_running(s, &is_running);
    return e || is_running ? e : mk_last_error_set_misuse(s, "the server is not running: start it first");
}

const char *mk_server_error(const struct mk_server *s)
{
    if (!s)
        return "out of memory";
    if (!mk_handle_is_valid(s))
        return "this is not a server: it was freed, or never created";
    return misuse.server == s ? misuse.text : s->error_text.p ? s->error_text.p : "";
}
