/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/ws_handshake.h"

#include "http/upgrade.h"

static const mk_str key_name = MK_STR_INIT("Sec-WebSocket-Key");

/* Searches header lines written by the caller. */
static mk_str find_key_in_lines(mk_str lines)
{
    while (lines.len) {
        mk_str line = mk_str_cut(&lines, '\n'), name = mk_str_cut(&line, ':');
        if (mk_str_eq_nocase(name, key_name))
            return mk_str_trim(mk_str_first(line, mk_str_find(line, '\r')));
    }
    return MK_STR_NULL;
}

static mk_str find_websocket_key(const struct mk_upstream_request_options *options)
{
    for (size_t i = 0; i < options->n_fields; i++)
        if (mk_str_eq_nocase(options->fields[i].name, key_name))
            return mk_str_trim(options->fields[i].value);
    return find_key_in_lines(options->lines);
}

size_t mk_upstream_ws_handshake_accept_key(const struct mk_upstream_request_options *options, char *buf)
{
    struct mk_buf accept = mk_buf_fixed(buf, MK_UPGRADE_ACCEPT_LEN);
    mk_str key =
        mk_str_eq_nocase(options->upgrade, MK_UPGRADE_WEBSOCKET) ? find_websocket_key(options) : MK_STR_NULL;
    if (!key.p || key.len > MK_UPGRADE_KEY_LEN)
        return 0;
    mk_upgrade_websocket_accept_key(key, &accept);
    return accept.failed ? 0 : accept.len;
}

bool mk_upstream_ws_handshake_verify(const struct mk_upstream_request *c, const struct mk_headers *fields)
{
    mk_str wanted = mk_str_of(c->upgrade + c->upgrade_len, c->accept_len), value, more;
    unsigned at = 0;
    if (!c->accept_len)
        return true;
    return mk_headers_next(fields, MK_HEADER_SEC_WEBSOCKET_ACCEPT, &at, &value) && mk_str_eq(value, wanted) &&
           !mk_headers_next(fields, MK_HEADER_SEC_WEBSOCKET_ACCEPT, &at, &more);
}
