/* SPDX-License-Identifier: Apache-2.0 */
/* A key is one word of the protocol. A key with bytes other than visible ASCII could inject another word or
 * command, so it is sent in base64, which the server decodes. */
#include "command.h"

#include <duda/memcached.h>
#include <errno.h>
#include <monkey/text.h>

enum { BINARY_MAX = 180, RELATIVE_MAX_S = 30 * 24 * 3600 };

static bool is_plain_key(mk_str key)
{
    for (size_t i = 0; i < key.len; i++)
        if (key.p[i] <= ' ' || key.p[i] > '~')
            return false;
    return true;
}

int memcached_key_check(mk_str key)
{
    size_t max = is_plain_key(key) ? DUDA_MEMCACHED_KEY_MAX : BINARY_MAX;
    return key.len && key.len <= max ? 0 : -EINVAL;
}

/* Converts to whole seconds. Memcached treats values beyond 30 days as absolute times since 1970. */
static int64_t expiry_time(uint64_t ttl_ms, int64_t now)
{
    uint64_t s = ttl_ms / 1000 + (ttl_ms % 1000 > 0);
    if (s <= RELATIVE_MAX_S)
        return (int64_t)s;
    return s < (uint64_t)(INT32_MAX - now) ? now + (int64_t)s : INT32_MAX;
}

static void write_command_and_key(struct mk_buf *out, const char *word, const struct memcached_command *c)
{
    mk_buf_add(out, mk_str_from_c(word));
    mk_buf_add_char(out, ' ');
    if (is_plain_key(c->key))
        mk_buf_add(out, c->key);
    else
        mk_base64_encode(out, c->key);
}

/* Tells the server that the key is in base64. Flags follow the key or, in a set command, the length of the
 * value. */
static void write_base64_flag(struct mk_buf *out, const struct memcached_command *c)
{
    if (!is_plain_key(c->key))
        mk_buf_add(out, MK_STR(" b"));
}

static void format_set_command(struct mk_buf *out, const struct memcached_command *c, int64_t now)
{
    write_command_and_key(out, "ms", c);
    mk_buf_addf(out, " %zu", c->value.len);
    write_base64_flag(out, c);
    if (c->ttl_ms)
        mk_buf_addf(out, " T%lld", (long long)expiry_time(c->ttl_ms, now));
    if (c->verb == MEMCACHED_ADD)
        mk_buf_add(out, MK_STR(" ME"));
    if (c->verb == MEMCACHED_CAS)
        mk_buf_addf(out, " C%llu", (unsigned long long)c->cas);
    mk_buf_add(out, MK_STR("\r\n"));
    mk_buf_add(out, c->value);
}

static void format_incr_command(struct mk_buf *out, const struct memcached_command *c, int64_t now)
{
    uint64_t by = c->delta < 0 ? 0 - (uint64_t)c->delta : (uint64_t)c->delta;
    write_command_and_key(out, "ma", c);
    write_base64_flag(out, c);
    mk_buf_addf(out, " v N%lld J%llu D%llu%s", (long long)expiry_time(c->ttl_ms, now),
                (unsigned long long)(c->delta < 0 ? 0 : by), (unsigned long long)by,
                c->delta < 0 ? " MD" : "");
}

void memcached_command_format(struct mk_buf *out, const struct memcached_command *c, int64_t now)
{
    switch (c->verb) {
    case MEMCACHED_GET:
    case MEMCACHED_GET_CAS:
        write_command_and_key(out, "mg", c);
        write_base64_flag(out, c);
        mk_buf_add(out, c->verb == MEMCACHED_GET ? MK_STR(" v") : MK_STR(" v c"));
        break;
    case MEMCACHED_DELETE:
        write_command_and_key(out, "md", c);
        write_base64_flag(out, c);
        break;
    case MEMCACHED_TOUCH:
        write_command_and_key(out, "mg", c);
        write_base64_flag(out, c);
        mk_buf_addf(out, " T%lld", (long long)expiry_time(c->ttl_ms, now));
        break;
    case MEMCACHED_INCR:
        format_incr_command(out, c, now);
        break;
    case MEMCACHED_SET:
    case MEMCACHED_ADD:
    case MEMCACHED_CAS:
    default:
        format_set_command(out, c, now);
        break;
    }
    mk_buf_add(out, MK_STR("\r\n"));
}
