/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/proxy.h"

#include <monkey/text.h>

enum { ID_LEN = 16 };

/* Value of the cookie; absent if the client did not send it. */
static mk_str request_find_cookie(const struct mk_request *request, mk_str name)
{
    mk_str field, lines;
    for (size_t i = 0; mk_request_header_at(request, i, &field, &lines); i++) {
        if (!mk_str_eq_nocase(field, MK_STR("Cookie")))
            continue;
        while (lines.p) {
            mk_str pair = mk_str_trim(mk_str_cut(&lines, ';')), key = mk_str_cut(&pair, '=');
            if (mk_str_eq(key, name))
                return pair;
        }
    }
    return mk_str_of(NULL, 0);
}

/* FNV-1a: a client that finds a collision only chooses its own server. */
static uint64_t fnv1a_hash(mk_str text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.p[i]) * 0x100000001b3;
    return hash;
}

static mk_str sticky_hash_key(const struct mk_proxy *p)
{
    const struct mk_proxy_route *r = p->route;
    switch (r->hash) {
    case MK_PROXY_HASH_ADDRESS:
        return mk_request_client_text(p->handler.request);
    case MK_PROXY_HASH_PATH:
        return mk_request_path(p->handler.request);
    case MK_PROXY_HASH_COOKIE:
        return request_find_cookie(p->handler.request, r->hash_name);
    case MK_PROXY_HASH_FIELD:
        return mk_request_header(p->handler.request, r->hash_name);
    case MK_PROXY_HASH_NONE:
        break;
    }
    return mk_str_of(NULL, 0);
}

static void server_id_format(uint64_t id, char out[ID_LEN])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = ID_LEN - 1; i >= 0; i--, id >>= 4)
        out[i] = digits[id & 15];
}

static int sticky_find_server(const struct mk_upstream *u, mk_str value)
{
    char id[ID_LEN];
    for (unsigned i = 0; value.len == ID_LEN && i < mk_upstream_count(u); i++) {
        server_id_format(mk_upstream_server_id(u, i), id);
        if (mk_consttime_eq(mk_str_of(id, sizeof id), value))
            return (int)i;
    }
    return -1;
}

void mk_proxy_sticky_choose(const struct mk_proxy *p, struct mk_upstream_conn_options *options)
{
    const struct mk_proxy_route *r = p->route;
    mk_str key = sticky_hash_key(p);
    *options = (struct mk_upstream_conn_options){.server = -1,
                                                 .hash = fnv1a_hash(key),
                                                 .counts = key.p,
                                                 .client = mk_request_client_addr(p->handler.request)};
    if (r->sticky.p)
        options->server = sticky_find_server(r->upstream, request_find_cookie(p->handler.request, r->sticky));
}

int mk_proxy_sticky_add_cookie(struct mk_proxy *p)
{
    const struct mk_proxy_route *r = p->route;
    int server = mk_upstream_request_server(p->handler.upstream);
    char buf[512], id[ID_LEN];
    struct mk_buf cookie = mk_buf_fixed(buf, sizeof buf);
    if (!r->sticky.p || server < 0 ||
        sticky_find_server(r->upstream, request_find_cookie(p->handler.request, r->sticky)) == server)
        return 0;
    server_id_format(mk_upstream_server_id(r->upstream, (unsigned)server), id);
    mk_buf_add(&cookie, r->sticky);
    mk_buf_add_char(&cookie, '=');
    mk_buf_add(&cookie, mk_str_of(id, sizeof id));
    mk_buf_add(&cookie, MK_STR("; Path=/; HttpOnly; SameSite=Lax"));
    if (mk_str_eq(mk_request_scheme(p->handler.request), MK_STR("https")))
        mk_buf_add(&cookie, MK_STR("; Secure"));
    return cookie.failed
               ? 0
               : mk_response_add_header(p->handler.response, MK_STR("Set-Cookie"), mk_buf_str(&cookie));
}
