/* SPDX-License-Identifier: Apache-2.0 */
/* A mail server sends any bytes, split anywhere: each step of a conversation gets the same reply as if all
 * bytes had arrived at once, or the connection has failed. */
#include "fake_upstream.h"

#include <duda/request.h>
#include <smtp/session.h>

enum { TALK_MAX = 1 << 16, SHOWN_MAX = 1 << 19 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void (*free_it)(void *ctx);

int duda_defer(struct duda_ctx *d, void (*fn)(void *ctx), void *ctx)
{
    (void)d, (void)ctx;
    free_it = fn;
    return 0;
}

struct mk_worker *duda_worker(struct duda_ctx *d)
{
    (void)d;
    return NULL;
}

mk_str mk_upstream_conn_server_name(const struct mk_upstream_conn *conn)
{
    MK_ASSERT(conn);
    return MK_STR("mail");
}

int duda_wait_suspend(struct duda_wait *w)
{
    (void)w;
    MK_ASSERT(false); /* the peer always sends data */
    return -ECANCELED;
}

void duda_wait_wake(struct duda_wait *w)
{
    (void)w;
}

/* Appends the replies and the result. */
static void converse(struct mk_buf *out, mk_str input, size_t piece)
{
    struct duda_smtp smtp = {.name = MK_STR("main"), .timeout_ms = 1000, .message_max = 1000};
    struct smtp_session *line = smtp_session_new(NULL, &smtp);
    int e;
    peer_input = input;
    peer_piece = piece;
    MK_ASSERT(line && smtp_session_connect(line) == 0 && smtp_session_write(line, MK_STR("EHLO x\r\n")) == 0);
    while ((e = smtp_session_read(line)) == 0) {
        MK_ASSERT(line->code >= 200 && line->code <= 599 && line->text.p);
        for (size_t i = 0; i < line->text.len; i++)
            MK_ASSERT(line->text.p[i] >= ' ' && line->text.p[i] <= '~');
        const struct smtp_extensions *can = &line->extensions_in_reply;
        mk_buf_addf(out, "%u %d%d%d %llu ", line->code, can->has_8bitmime, can->auth_plain, can->has_size,
                    (unsigned long long)can->size_max);
        mk_buf_add(out, line->text);
        mk_buf_add_char(out, '\n');
    }
    MK_ASSERT(e == -EPROTO || e == -ECONNRESET);
    mk_buf_addf(out, "%d", e);
    free_it(line);
    MK_ASSERT(!peer_open);
    pool_free();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t pieces[] = {1, 7, 100};
    mk_str in = mk_str_of((const char *)data, size);
    struct mk_buf whole = mk_buf_growing(SHOWN_MAX), other = mk_buf_growing(SHOWN_MAX);
    if (size > TALK_MAX)
        return 0;
    converse(&whole, in, TALK_MAX);
    for (size_t i = size > 4096; i < MK_LEN(pieces); i++) {
        mk_buf_clear(&other);
        converse(&other, in, pieces[i]);
        MK_ASSERT(whole.failed == other.failed && mk_str_eq(mk_buf_str(&whole), mk_buf_str(&other)));
    }
    mk_buf_free(&whole);
    mk_buf_free(&other);
    return 0;
}
