/* SPDX-License-Identifier: Apache-2.0 */
#include "server_config.h"

#include <monkey/addr.h>

#include "config_include.h"

/* After this time, the browser gets a page about a handler that never returns. */
enum { DEV_WATCHDOG_S = 5 };

/* ---- Quoting ---- */

/* `$${` escapes `${`. */
static void append_escaped_char(struct mk_buf *out, const char *at)
{
    if (at[0] == '$' && at[1] == '{')
        mk_buf_add_char(out, '$');
    mk_buf_add_char(out, *at);
}

void dev_server_config_quote(struct mk_buf *out, const char *text)
{
    mk_buf_add_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            mk_buf_add_char(out, '\\');
        append_escaped_char(out, text);
    }
    mk_buf_add_char(out, '"');
}

void dev_server_config_quote_path(struct mk_buf *out, const char *path)
{
    for (; *path; path++)
        append_escaped_char(out, path);
}

/* ---- The front server ---- */

static void append_quoted_key(struct mk_buf *out, const char *key, const char *text)
{
    mk_buf_addf(out, "    %s ", key);
    dev_server_config_quote(out, text);
    mk_buf_add_char(out, '\n');
}

void dev_server_config_write_front(struct mk_buf *out, const char *folder, const char *listen,
                                   const char *names, bool quiet)
{
    mk_buf_addf(out,
                "[SERVER]\n    Listen %s\n    Workers 1\n    ErrorLog stderr\n    MaxBodySize unlimited\n"
                "    DrainTimeout 1s\n[PLUGINS]\n    Load duda-dev\n    Load proxy\n"
                "[DUDA_DEV]\n    Socket %s/ipc\n    Quiet %s\n",
                listen, folder, quiet ? "on" : "off");
    if (*names)
        append_quoted_key(out, "AllowedHosts", names);
    mk_buf_addf(out,
                "[UPSTREAM]\n    Name service\n    Server unix:%s/back\n    KeepAliveConnections 0\n    "
                "MaxFails off\n"
                "[HOST]\n    DocumentRoot %s/none\n"
                "[ROUTES]\n    /* proxy http://service forwarded=local stream response_timeout=off "
                "read_timeout=off tunnel=off "
                "max_tries=1\n",
                folder, folder);
}

static bool host_list_contains(mk_str names, mk_str host)
{
    while (names.len) {
        size_t n = 0;
        while (n < names.len && names.p[n] != ',' && names.p[n] != ' ')
            n++;
        if (n && mk_str_eq_nocase(host, mk_str_first(names, n)))
            return true;
        names = mk_str_skip(names, n < names.len ? n + 1 : n);
    }
    return false;
}

bool dev_server_config_allows_host(mk_str names, mk_str host)
{
    static const mk_str local = MK_STR_INIT("localhost"), below = MK_STR_INIT(".localhost");
    struct mk_addr address;
    if (mk_str_ends(host, MK_STR("."))) /* trailing dot of a fully qualified name */
        host = mk_str_first(host, host.len - 1);
    size_t from = host.len > below.len ? host.len - below.len : host.len;
    return host.len == 0 || mk_str_eq_nocase(host, local) ||
           mk_str_eq_nocase(mk_str_skip(host, from), below) || mk_addr_parse(host, &address) ||
           host_list_contains(names, host);
}

/* ---- The back server ---- */

/* Appends the routes and the document root. In a folder, each service has its own path. Only files in html/
 * are served, not databases or keys beside it. */
static void append_routes(struct mk_buf *out, const struct dev_source_set *u)
{
    const struct dev_source_unit *index = NULL;
    mk_buf_add(out, MK_STR("[ROUTES]\n"));
    for (size_t i = 0; i < u->n; i++) {
        const struct dev_source_unit *unit = u->at[i];
        if (!*dev_source_set_object_path(unit))
            continue;
        if (unit->url_segment[0])
            mk_buf_addf(out, "    /%s %s\n    /%s/* %s\n", unit->url_segment, unit->service,
                        unit->url_segment, unit->service);
        else
            index = unit;
    }
    if (index)
        mk_buf_addf(out, "    /* %s\n", index->service);
    mk_buf_add(out, MK_STR("    /* static\n"));
}

void dev_server_config_write_back(struct mk_buf *out, const struct dev_source_set *u, const char *extra)
{
    /* duda-dev is first, so that it stops last: until then it reports a service that calls exit(). Services are last, so
     * that they stop before the databases and stores of `extra`. */
    mk_buf_add(out, MK_STR("[PLUGINS]\n    Load duda-dev\n[DUDA_DEV]\n    Service on\n"));
    if (!extra || !dev_config_include_has(extra, "SERVER", NULL)) /* there can be only one such section */
        mk_buf_addf(out, "[SERVER]\n    WatchdogTimeout %ds\n", DEV_WATCHDOG_S);
    if (!extra || !dev_config_include_has(extra, "HOST", NULL))
        mk_buf_add(out, MK_STR("[HOST]\n"));
    if (extra) {
        mk_buf_add(out, MK_STR("@INCLUDE "));
        dev_server_config_quote_path(out, extra);
        mk_buf_add_char(out, '\n');
    }
    mk_buf_add(out, MK_STR("[PLUGINS]\n"));
    for (size_t i = 0; i < u->n; i++) {
        const char *object = dev_source_set_object_path(u->at[i]);
        if (!*object)
            continue;
        mk_buf_add(out, MK_STR("    Load "));
        dev_server_config_quote_path(out, object);
        mk_buf_add_char(out, '\n');
    }
    if (u->is_folder)
        append_routes(out, u);
}
