/* SPDX-License-Identifier: Apache-2.0 */
#include "web/forbidden.h"

#include "web/web.h"

static const char *reason_of(mk_err e)
{
    if (e == -ELOOP || e == -EXDEV)
        return "a symbolic link that `SymLink` does not allow";
    return e ? mk_err_text(e) : "neither a file nor a folder";
}

void mk_forbidden_log(const struct mk_request *r, mk_str path, const char *root, mk_err e)
{
    struct mk_web *web = r->web;
    bool is_right = e == -EACCES || e == -EPERM;
    const char *remedy = is_right ? "; let the workers' user read the file and search its folders" : "";
    if (web->told_forbidden == r->now)
        mk_log_debug(web->log, "403: %.*s beneath %s: %s%s", MK_STR_ARG(path), root, reason_of(e), remedy);
    else
        mk_log_warn(web->log, "403: %.*s beneath %s: %s%s", MK_STR_ARG(path), root, reason_of(e), remedy);
    web->told_forbidden = r->now;
}
