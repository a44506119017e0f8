/* SPDX-License-Identifier: Apache-2.0 */
#include "http/upgrade.h"

#include "base/codec.h"
#include "base/sha1.h"

enum { KEY_BYTES = 16 };

#define MAGIC "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

/* Is it a protocol: a name, optionally followed by a slash and a version? */
static bool is_protocol(mk_str s)
{
    bool has_version = mk_str_find(s, '/') != MK_STR_NONE;
    mk_str name = mk_str_cut(&s, '/');
    return mk_is_token(name) && (!has_version || mk_is_token(s));
}

mk_str mk_upgrade_protocol(const struct mk_headers *fields)
{
    mk_str list = mk_headers_get(fields, MK_HEADER_UPGRADE), first;
    if (!list.p || !mk_headers_has_token(fields, MK_HEADER_CONNECTION, MK_STR("upgrade")) ||
        !mk_header_list_next(&list, &first) || !is_protocol(first))
        return (mk_str){NULL, 0};
    return mk_str_eq_nocase(first, MK_UPGRADE_WEBSOCKET) ? MK_UPGRADE_WEBSOCKET : first;
}

/* Returns the value of a header that may occur only once; absent: missing or repeated. */
static mk_str get_unique_header(const struct mk_headers *fields, enum mk_header_id id)
{
    mk_str value = {NULL, 0}, more;
    unsigned at = 0;
    if (!mk_headers_next(fields, id, &at, &value) || mk_headers_next(fields, id, &at, &more))
        return (mk_str){NULL, 0};
    return value;
}

static bool is_valid_key(mk_str key)
{
    char buf[KEY_BYTES + 8];
    struct mk_buf bytes = mk_buf_fixed(buf, sizeof buf);
    return key.len == MK_UPGRADE_KEY_LEN && mk_base64_decode(&bytes, key) && bytes.len == KEY_BYTES;
}

int mk_upgrade_check_websocket(const struct mk_headers *fields, bool with_key)
{
    if (!mk_headers_has(fields, MK_HEADER_SEC_WEBSOCKET_VERSION))
        return 400;
    if (!mk_str_eq(get_unique_header(fields, MK_HEADER_SEC_WEBSOCKET_VERSION), MK_STR("13")))
        return 426;
    return !with_key || is_valid_key(get_unique_header(fields, MK_HEADER_SEC_WEBSOCKET_KEY)) ? 0 : 400;
}

void mk_upgrade_websocket_accept_key(mk_str key, struct mk_buf *out)
{
    char buf[MK_UPGRADE_KEY_LEN + sizeof MAGIC];
    struct mk_buf joined = mk_buf_fixed(buf, sizeof buf);
    unsigned char sum[MK_SHA1_LEN];
    mk_buf_add(&joined, key);
    mk_buf_add(&joined, MK_STR(MAGIC));
    mk_sha1(mk_buf_str(&joined), sum);
    mk_base64_encode(out, mk_str_of((const char *)sum, sizeof sum));
}
