/* SPDX-License-Identifier: Apache-2.0 */
#include "group_config.h"

#include <errno.h>
#include <unistd.h>

enum { TEXT_MAX = 256 * 1024 };

/* Appends the rest of a line, in which only references to variables need escaping. */
static void append_value(struct mk_buf *out, mk_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '$' && i + 1 < text.len && text.p[i + 1] == '{')
            mk_buf_add_char(out, '$');
        mk_buf_add_char(out, text.p[i]);
    }
    mk_buf_add_char(out, '\n');
}

/* Gives the service the same spool that it would have if the server had loaded it. */
static void append_spool(const struct isolate_group *group, struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("    SpoolFolder "));
    append_value(out, group->spool_folder);
    if (group->spool_max)
        mk_buf_addf(out, "    SpoolMax %llu\n", (unsigned long long)group->spool_max);
    else
        mk_buf_add(out, MK_STR("    SpoolMax unlimited\n"));
}

/* Disables limits, because the front server has its own limits and handles slow clients. */
static void append_server_section(const struct isolate_group *group, struct mk_buf *out)
{
    const struct isolate_settings *s = group->settings;
    mk_buf_addf(
        out,
        "[SERVER]\n    Workers %u\n    Sandbox %s\n    ErrorLog stderr\n    KeepAliveTimeout 1h\n"
        "    KeepAliveRequests unlimited\n    MaxHeaderSize 60K\n    MaxURISize 59K\n    MaxHeaders 250\n"
        "    MaxBodySize unlimited\n    MinRate off\n    TunnelTimeout unlimited\n",
        s->workers, s->sandbox ? "on" : "off");
    if (group->log_is_json) /* so that the supervisor can pass on the fields of messages */
        mk_buf_add(out, MK_STR("    ErrorLogFormat json\n"));
    if (s->handler_ms)
        mk_buf_addf(out, "    HandlerTimeout %ums\n", s->handler_ms);
    else
        mk_buf_add(out, MK_STR("    HandlerTimeout unlimited\n"));
}

static void write_config_text(const struct isolate_group *group, const char *root, struct mk_buf *out)
{
    append_server_section(group, out);
    append_spool(group, out);
    mk_buf_add(out, MK_STR("[PLUGINS]\n    Load isolate\n"));
    for (size_t i = 0; i < group->settings->include.n; i++) {
        mk_buf_add(out, MK_STR("@INCLUDE "));
        append_value(out, group->include[i]);
    }
    /* Last, so that it stops before the databases and stores of the included files. */
    mk_buf_add(out, MK_STR("[PLUGINS]\n    Load "));
    append_value(out, group->service);
    mk_buf_add(out, MK_STR("[HOST]\n    DocumentRoot "));
    append_value(out, group->document_root.len ? group->document_root : mk_str_from_c(root));
    mk_buf_add(out, MK_STR("[ROUTES]\n"));
    for (const struct isolate_mount *m = group->mounts; m; m = m->next) {
        mk_buf_addf(out, "    %.*s ", MK_STR_ARG(m->pattern));
        append_value(out, mk_str_from_c(group->name));
    }
    if (!group->mounts)
        mk_buf_addf(out, "    /* %s\n", group->name);
}

static int write_all(int fd, mk_str text)
{
    size_t at = 0;
    while (at < text.len) {
        ssize_t n = pwrite(fd, text.p + at, text.len - at, (off_t)at);
        if (n < 0)
            return -errno;
        at += (size_t)n;
    }
    return ftruncate(fd, (off_t)text.len) < 0 ? -errno : 0;
}

int isolate_group_config_write(const struct isolate_group *group, const char *root, int fd)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    write_config_text(group, root, &text);
    int e = text.failed ? -ENOMEM : write_all(fd, mk_buf_str(&text));
    mk_buf_free(&text);
    return e;
}
