/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/ws_message.h"

#include <monkey/mem.h>

#include "http/ws_frame_head.h"

struct mk_websocket_message {
    size_t refs;
    uint8_t opcode;
    bool was_packed; /* compression was tried */
    uint8_t head_len;
    size_t len;         /* payload length */
    struct mk_buf code; /* data of `packed` */
    struct mk_ws_frame plain, packed;
    char text[]; /* data of `plain` */
};

struct mk_websocket_message *mk_websocket_message_new(enum mk_websocket_kind kind, mk_str data)
{
    if (data.len > SIZE_MAX / 2)
        return NULL;
    struct mk_websocket_message *m = mk_mem_alloc(sizeof *m + MK_WS_HEAD_MAX + data.len);
    uint8_t head[MK_WS_HEAD_MAX];
    if (!m)
        return NULL;
    *m = (struct mk_websocket_message){.refs = 1, .opcode = (uint8_t)kind, .len = data.len};
    m->head_len = (uint8_t)mk_ws_frame_head_write(head, MK_WS_FIN | m->opcode, data.len);
    memcpy(m->text, head, m->head_len);
    if (data.len)
        memcpy(m->text + m->head_len, data.p, data.len);
    m->plain = (struct mk_ws_frame){m, mk_str_of(m->text, m->head_len + data.len)};
    return m;
}

void mk_ws_message_ref(struct mk_websocket_message *m)
{
    m->refs++;
}

void mk_websocket_message_free(struct mk_websocket_message *m)
{
    if (!m || --m->refs)
        return;
    mk_buf_free(&m->code);
    mk_mem_free(m);
}

const struct mk_ws_frame *mk_ws_message_plain_frame(const struct mk_websocket_message *m)
{
    return &m->plain;
}

size_t mk_ws_message_len(const struct mk_websocket_message *m)
{
    return m->len;
}

static void compress_message(struct mk_websocket_message *m, struct mk_ws_deflate *coder)
{
    uint8_t head[MK_WS_HEAD_MAX];
    struct mk_buf code = mk_buf_growing(m->len);
    m->was_packed = true;
    if (mk_ws_deflate_compress(coder, mk_str_of(m->text + m->head_len, m->len), false, &code)) {
        mk_buf_free(&code);
        return;
    }
    size_t n = mk_ws_frame_head_write(head, MK_WS_FIN | MK_WS_COMPRESSED | m->opcode, code.len);
    m->code = mk_buf_growing(n + code.len);
    if (mk_buf_reserve(&m->code, n + code.len)) {
        mk_buf_add(&m->code, mk_str_of((const char *)head, n));
        mk_buf_add(&m->code, mk_buf_str(&code));
        m->packed = (struct mk_ws_frame){m, mk_buf_str(&m->code)};
    }
    mk_buf_free(&code);
}

const struct mk_ws_frame *mk_ws_message_compressed_frame(struct mk_websocket_message *m,
                                                         struct mk_ws_deflate *coder)
{
    if (!m->was_packed)
        compress_message(m, coder);
    return m->packed.message ? &m->packed : NULL;
}
