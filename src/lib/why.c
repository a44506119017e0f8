/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/why.h"

#include "lib/known.h"

/* The text of a call that came too late or from the wrong place: several threads may make such at once. */
static _Thread_local struct {
    const struct mk_server *server; /* NULL: there is none */
    const char *text;
} misuse;

void mk_why_restore_errno(const int *before)
{
    errno = *before;
}

mk_err mk_why_end(struct mk_server *s, mk_err e)
{
    if (!mk_buf_reserve(&s->why, 1)) {
        mk_buf_free(&s->why);
        return e;
    }
    s->why.p[s->why.len] = '\0';
    return e;
}

mk_err mk_why_misuse(const struct mk_server *s, const char *text)
{
    misuse.server = s;
    misuse.text = text;
    return -EBUSY;
}

void mk_why_forget(void)
{
    misuse.server = NULL;
}

mk_err mk_why(struct mk_server *s, mk_err e, const char *fmt, ...)
{
    va_list args;
    mk_why_forget();
    va_start(args, fmt);
    mk_buf_clear(&s->why);
    mk_buf_addv(&s->why, fmt, args);
    va_end(args);
    return mk_why_end(s, e);
}

mk_err mk_why_error(struct mk_server *s, mk_err e)
{
    return mk_why(s, e, "%s", mk_err_text(e));
}

mk_err mk_why_setting_up(struct mk_server *s)
{
    if (!mk_known_is(s))
        return -EINVAL;
    if (s->phase != MK_SERVER_SETTING_UP)
        return mk_why_misuse(s, "the server was started: set it up before");
    mk_why_forget();
    mk_buf_clear(&s->why);
    return mk_why_end(s, 0);
}

const char *mk_server_why(const struct mk_server *s)
{
    if (!s)
        return "out of memory";
    if (!mk_known_is(s))
        return "this is no server: it was freed, or never made";
    return misuse.server == s ? misuse.text : s->why.p ? s->why.p : "";
}
