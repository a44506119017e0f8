/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/why.h"

#include "lib/known.h"

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

mk_err mk_why(struct mk_server *s, mk_err e, const char *fmt, ...)
{
    va_list args;
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
    mk_buf_clear(&s->why);
    if (s->phase == MK_SERVER_SETTING_UP)
        return mk_why_end(s, 0);
    return mk_why(s, -EBUSY, "the server was started: set it up before");
}

const char *mk_server_why(const struct mk_server *s)
{
    if (!s)
        return "out of memory";
    if (!mk_known_is(s))
        return "this is no server: it was freed, or never made";
    return s->why.p ? s->why.p : "";
}
