/* SPDX-License-Identifier: Apache-2.0 */
#include "server_config.h"

#include "config_include.h"
#include "config_quote.h"

/* ---- The front server ---- */

static void append_quoted_key(struct mk_buf *out, const char *key, const char *text)
{
    mk_buf_addf(out, "    %s ", key);
    dev_config_quote_text(out, text);
    mk_buf_add_char(out, '\n');
}

void dev_server_config_write_front(struct mk_buf *out, const char *folder, const char *listen,
                                   const char *names)
{
    mk_buf_addf(out,
                "[SERVER]\n    Listen %s\n    Workers 1\n    ErrorLog stderr\n    MaxBodySize unlimited\n"
                "    DrainTimeout 1s\n[PLUGINS]\n    Load duda-dev\n    Load proxy\n"
                "[DUDA_DEV]\n    Socket %s/desk\n",
                listen, folder);
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

/* ---- The back server ---- */

/* In a folder, each service has its own path. Files outside html/, such as databases and keys, must not be
 * served. */
static void append_routes(struct mk_buf *out, const struct dev_source_set *u)
{
    const struct dev_source_unit *index = NULL;
    mk_buf_add(out, MK_STR("[ROUTES]\n"));
    for (size_t i = 0; i < u->n; i++) {
        const struct dev_source_unit *one = u->at[i];
        if (!*dev_source_set_object_path(one))
            continue;
        if (one->url_segment[0])
            mk_buf_addf(out, "    /%s %s\n    /%s/* %s\n", one->url_segment, one->service, one->url_segment,
                        one->service);
        else
            index = one;
    }
    if (index)
        mk_buf_addf(out, "    /* %s\n", index->service);
    mk_buf_add(out, MK_STR("    /* static\n"));
}

void dev_server_config_write_back(struct mk_buf *out, const struct dev_source_set *u, const char *extra)
{
    mk_buf_add(out, MK_STR("[PLUGINS]\n"));
    for (size_t i = 0; i < u->n; i++) {
        const char *object = dev_source_set_object_path(u->at[i]);
        if (!*object)
            continue;
        mk_buf_add(out, MK_STR("    Load "));
        dev_config_quote_path(out, object);
        mk_buf_add_char(out, '\n');
    }
    mk_buf_add(out, MK_STR("    Load duda-dev\n[DUDA_DEV]\n    Service on\n"));
    if (!extra || !dev_config_include_has(extra, "HOST", NULL))
        mk_buf_add(out, MK_STR("[HOST]\n"));
    if (extra) {
        mk_buf_add(out, MK_STR("@INCLUDE "));
        dev_config_quote_path(out, extra);
        mk_buf_add_char(out, '\n');
    }
    if (u->is_folder)
        append_routes(out, u);
}
