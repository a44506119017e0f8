/* SPDX-License-Identifier: Apache-2.0 */
#include "service/route_conflicts.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUTE_MAX = MK_ROUTER_PATTERN_MAX + 1, WHERE_MAX = 512, REPORT_MAX = 16 * 1024 * 1024 };

static void append_route(struct mk_buf *out, const struct duda_route_entry *entry)
{
    if (!mk_str_eq(mk_str_from_c(entry->route->method), MK_STR("*")))
        mk_buf_addf(out, "%s ", entry->route->method);
    mk_buf_add(out, entry->pattern);
}

static void append_where(struct mk_buf *out, const struct duda_service *service, const struct duda_route *r)
{
    mk_buf_addf(out, "%s() of the service %s, %s:%d", r->name, service->name, r->file, r->line);
}

static bool declare_entry(struct mk_config *config, const struct duda_service *service,
                          const struct duda_route_entry *entry)
{
    char text[ROUTE_MAX], position[WHERE_MAX];
    mk_str conflict;
    const struct duda_route *r = entry->route;
    struct mk_buf route = mk_buf_fixed(text, sizeof text), where = mk_buf_fixed(position, sizeof position);
    append_route(&route, entry);
    append_where(&where, service, r);
    int e = mk_config_declare_route(config, entry->host, mk_buf_str(&route), mk_buf_str(&where), &conflict);
    if (e == -EEXIST) {
        mk_config_error(config, NULL, NULL, "%s:%d: %.*s", r->file, r->line, MK_STR_ARG(conflict));
        mk_config_hint(config,
                       "give each service separate paths: `/shop/* %s` in [ROUTES], or a prefix in its table",
                       service->name);
    }
    return e == 0;
}

bool duda_route_conflicts_declare(struct mk_config *config, const struct duda_service *service,
                                  const struct duda_route_table *table)
{
    const struct duda_route_entry *entry;
    bool ok = true;
    for (size_t i = 0; (entry = duda_route_table_at(table, i)); i++)
        ok = declare_entry(config, service, entry) && ok;
    return ok;
}

/* The size of the file is fixed. A longer report fills the file, which the reader detects. */
static void write_report(int fd, mk_str text)
{
    struct stat st;
    if (fstat(fd, &st) == 0)
        text = mk_str_first(text, (size_t)st.st_size);
    while (text.len) {
        ssize_t n = write(fd, text.p, text.len);
        if (n <= 0)
            return; /* the reader detects only the conflicts of the routes that were written */
        text = mk_str_skip(text, (size_t)n);
    }
}

void duda_route_conflicts_report(const struct duda_service *service, const struct duda_route_table *table)
{
    uint64_t fd;
    mk_str variable = mk_str_from_c(getenv(MK_ROUTES_FD_VARIABLE));
    const struct duda_route_entry *entry;
    if (!variable.p || !mk_num_parse(variable, &fd) || fd > INT32_MAX)
        return;
    struct mk_buf out = mk_buf_growing(REPORT_MAX);
    for (size_t i = 0; (entry = duda_route_table_at(table, i)); i++) {
        mk_buf_addf(&out, "%.*s\t", MK_STR_ARG(entry->host));
        append_route(&out, entry);
        mk_buf_add_char(&out, '\t');
        append_where(&out, service, entry->route);
        mk_buf_add_char(&out, '\n');
    }
    write_report((int)fd, mk_buf_str(&out));
    mk_buf_free(&out);
}
