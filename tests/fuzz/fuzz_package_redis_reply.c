/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are parsed as Redis replies or rejected, regardless of how they are split or where they are
 * allocated. The memory that they use is proportional to their length. */
#include <duda/memory.h>
#include <errno.h>
#include <redis/reply_parser.h>

#include "base/assert.h"
#include "unit/readers/test_allocator.h"

enum { REPLY_MAX = 4096, TEXT_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- A handler ---- */

void *duda_alloc(struct duda_ctx *d, size_t size)
{
    (void)d;
    return pool_alloc(NULL, size);
}

mk_str duda_strdup(struct duda_ctx *d, mk_str text)
{
    char *buffer = duda_alloc(d, text.len + 1);
    if (!buffer)
        return MK_STR_NULL;
    if (text.len)
        memcpy(buffer, text.p, text.len);
    buffer[text.len] = 0;
    return mk_str_of(buffer, text.len);
}

/* ---- Replies as text ---- */

static void show(struct mk_buf *out, const struct duda_redis_reply *r)
{
    mk_buf_addf(out, "%d %lld %zu:", (int)r->type, (long long)r->number, r->text.len);
    mk_buf_add(out, r->text);
    MK_ASSERT(r->type == DUDA_REDIS_LIST || r->n == 0);
    if (r->text.p)
        MK_ASSERT(!r->text.p[r->text.len]);
    for (size_t i = 0; i < r->n; i++)
        show(out, &r->items[i]);
    mk_buf_add_char(out, '\n');
}

/* Appends all replies, read in pieces of `piece` bytes; the last line is the result. */
static void read_all(struct mk_buf *out, mk_str in, size_t piece, bool is_handler)
{
    static char someone;
    struct redis_reply_parser p = {.list_max = REPLY_MAX};
    struct duda_redis_reply own, *reply;
    int e = 0;
    redis_reply_parser_init(&p);
    while (in.len && (e == 0 || e == -EAGAIN)) {
        mk_str now = mk_str_first(in, piece < in.len ? piece : in.len);
        in = mk_str_skip(in, now.len);
        MK_ASSERT(redis_reply_parser_feed(&p, now) == 0);
        do {
            p.d = is_handler ? (struct duda_ctx *)(void *)&someone : NULL;
            p.to = &own;
            e = redis_reply_parser_next(&p, &reply);
            if (e)
                continue;
            mk_buf_add_char(out, p.is_push ? '>' : ' ');
            show(out, reply);
        } while (e == 0);
    }
    MK_ASSERT(e == 0 || e == -EAGAIN || e == -EPROTO || e == -EMSGSIZE);
    MK_ASSERT(!p.is_out_of_memory);
    mk_buf_addf(out, "%d", e);
    redis_reply_parser_fini(&p);
    pool_free();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t pieces[] = {1, 3, 17};
    mk_str in = mk_str_of((const char *)data, size);
    struct mk_buf whole = mk_buf_growing(TEXT_MAX), other = mk_buf_growing(TEXT_MAX);
    if (size > REPLY_MAX)
        return 0;
    read_all(&whole, in, size, false);
    read_all(&other, in, size, true);
    MK_ASSERT(!whole.failed && mk_str_eq(mk_buf_str(&whole), mk_buf_str(&other)));
    for (size_t i = 0; i < MK_LEN(pieces); i++) {
        mk_buf_clear(&other);
        read_all(&other, in, pieces[i], i % 2);
        MK_ASSERT(mk_str_eq(mk_buf_str(&whole), mk_buf_str(&other)));
    }
    mk_buf_free(&whole);
    mk_buf_free(&other);
    return 0;
}
