/* SPDX-License-Identifier: Apache-2.0 */
#include "routes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "group_type.h"

/* The maxima bound the memory and the time that a hostile service can cost the server. */
enum {
    REPORT_MAX = 1024 * 1024,
    ROUTES_MAX = 10000,
    CONFLICTS_MAX = 10,
    PART_SIZE = 16 * 1024,
    FIELD_MAX = 2048,
};

int isolate_routes_create_file(void)
{
    int fd = memfd_create("isolate-routes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, REPORT_MAX) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
        return fd;
    int e = -errno;
    close(fd);
    return e;
}

/* Reads the text at the beginning of the file, before the first NUL byte. */
static void read_report(int fd, struct mk_buf *out)
{
    char part[PART_SIZE];
    ssize_t n;
    while ((n = pread(fd, part, sizeof part, (off_t)out->len)) > 0) {
        size_t len = strnlen(part, (size_t)n);
        mk_buf_add(out, mk_str_of(part, len));
        if (out->failed || len < (size_t)n)
            return;
    }
}

static bool is_field(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 127)
            return false;
    return s.p && s.len <= FIELD_MAX;
}

static struct isolate_route *parse_line(struct mk_config *config, mk_str line)
{
    mk_str where = line, host = mk_str_cut(&where, '\t'), route = mk_str_cut(&where, '\t');
    if (!is_field(host) || !is_field(route) || !route.len || !is_field(where))
        return NULL;
    struct isolate_route *r = mk_config_alloc(config, sizeof *r);
    if (r)
        *r = (struct isolate_route){.host = mk_config_copy(config, host),
                                    .route = mk_config_copy(config, route),
                                    .where = mk_config_copy(config, where)};
    return r;
}

/* Returns the number of lines, capped at ROUTES_MAX + 1. */
static size_t count_lines(mk_str text)
{
    size_t n = 0;
    while (text.len && n <= ROUTES_MAX) {
        (void)mk_str_cut(&text, '\n');
        n++;
    }
    return n;
}

static struct isolate_route *parse_report(struct mk_config *config, mk_str text)
{
    struct isolate_route *first = NULL, **end = &first;
    while (text.len) {
        *end = parse_line(config, mk_str_cut(&text, '\n'));
        end = *end ? &(*end)->next : end;
    }
    return first;
}

bool isolate_routes_read(struct mk_config *config, struct isolate_group *g, int fd)
{
    struct mk_buf text = mk_buf_growing(REPORT_MAX);
    read_report(fd, &text);
    /* A full file probably holds only the beginning of the report. */
    bool is_too_long = text.failed || text.len == REPORT_MAX || count_lines(mk_buf_str(&text)) > ROUTES_MAX;
    if (is_too_long)
        mk_config_error(config, g->settings, "Service",
                        "the service `%s` has too many routes: expected at most %d, in a report below %d KiB",
                        g->name, ROUTES_MAX, REPORT_MAX / 1024);
    else
        g->routes = parse_report(config, mk_buf_str(&text));
    mk_buf_free(&text);
    return !is_too_long;
}

bool isolate_routes_declare(struct mk_config *config, const struct isolate_group *g)
{
    bool ok = true;
    int n_conflicts = 0;
    for (const struct isolate_route *r = g->routes; r && n_conflicts < CONFLICTS_MAX; r = r->next) {
        mk_str conflict;
        int e = mk_config_declare_route(config, r->host, r->route, r->where, &conflict);
        ok = ok && !e;
        if (e != -EEXIST)
            continue;
        n_conflicts++;
        mk_config_error(config, g->settings, "Service", "%.*s", MK_STR_ARG(conflict));
        mk_config_hint(
            config,
            "give each service separate paths: `/shop/* isolate %s` in [ROUTES], or a prefix in its table",
            g->name);
    }
    return ok;
}
