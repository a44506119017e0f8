/* SPDX-License-Identifier: Apache-2.0 */
/* The WebSocket client of a test (RFC 6455), without extensions. */
#include "clock.h"
#include "stream.h"

#include <monkey/mem.h>
#include <monkey/text.h>
#include <string.h>

enum { FIN = 0x80, MASKED = 0x80, CONTINUATION = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };

struct duda_test_websocket {
    struct duda_test *test;
    struct duda_test_websocket *next;
    struct tester_conn conn;
    struct duda_test_response head;
    bool is_open, was_closed;
    unsigned kind;         /* of the message whose fragments arrive */
    struct mk_buf message; /* its fragments so far */
};

/* The payload is masked with zeros, which servers must accept. */
static bool send_frame(struct duda_test_websocket *w, unsigned opcode, mk_str data)
{
    struct mk_buf frame = mk_buf_growing(TESTER_BODY_MAX);
    mk_buf_add_char(&frame, (char)(FIN | opcode));
    if (data.len < 126) {
        mk_buf_add_char(&frame, (char)(MASKED | data.len));
    } else if (data.len < 65536) {
        mk_buf_add_char(&frame, (char)(MASKED | 126));
        mk_buf_add_char(&frame, (char)(data.len >> 8));
        mk_buf_add_char(&frame, (char)(data.len & 0xff));
    } else {
        mk_buf_add_char(&frame, (char)(MASKED | 127));
        for (int shift = 56; shift >= 0; shift -= 8)
            mk_buf_add_char(&frame, (char)((uint64_t)data.len >> shift & 0xff));
    }
    mk_buf_add(&frame, mk_str_of("\0\0\0\0", 4));
    mk_buf_add(&frame, data);
    bool ok = w->is_open && mk_test_client_send(w->conn.client, mk_buf_str(&frame)) == 0;
    mk_buf_free(&frame);
    return ok;
}

struct frame {
    bool is_final;
    unsigned opcode;
    mk_str data;
    size_t len; /* of the whole frame */
};

/* Returns false if no complete frame has arrived. Servers do not mask. */
static bool parse_frame(mk_str in, struct frame *f)
{
    size_t head = 2;
    if (in.len < 2)
        return false;
    const unsigned char *b = (const unsigned char *)in.p;
    uint64_t len = b[1] & 0x7f;
    size_t extra = len == 126 ? 2 : len == 127 ? 8 : 0;
    if (in.len < head + extra)
        return false;
    for (size_t i = 0; extra && i < extra; i++)
        len = (i ? len << 8 : 0) | b[2 + i];
    head += extra;
    if (in.len - head < len)
        return false;
    *f = (struct frame){.is_final = b[0] & FIN,
                        .opcode = b[0] & 0x0f,
                        .data = mk_str_first(mk_str_skip(in, head), (size_t)len),
                        .len = head + (size_t)len};
    return true;
}

static unsigned close_code_of(mk_str data)
{
    const unsigned char *b = (const unsigned char *)data.p;
    return data.len >= 2 ? (unsigned)b[0] << 8 | b[1] : 1005;
}

/* Processes a frame. Returns true if it ends a message, or closes the connection. */
static bool process_frame(struct duda_test_websocket *w, const struct frame *f, struct duda_test_message *m)
{
    if (f->opcode == PING)
        (void)send_frame(w, PONG, f->data);
    if (f->opcode == CLOSE) {
        *m = (struct duda_test_message){.kind = DUDA_TEST_CLOSE,
                                        .data = tester_keep(w->test, mk_str_skip(f->data, 2)),
                                        .close_code = close_code_of(f->data)};
        if (!w->was_closed)
            (void)send_frame(w, CLOSE, mk_str_first(f->data, 2));
        w->was_closed = true;
        w->is_open = false;
        return true;
    }
    if (f->opcode > BINARY)
        return false;
    if (f->opcode != CONTINUATION) {
        w->kind = f->opcode;
        mk_buf_clear(&w->message);
    }
    mk_buf_add(&w->message, f->data);
    if (f->is_final)
        *m = (struct duda_test_message){
            .kind = w->kind == TEXT ? DUDA_TEST_TEXT : DUDA_TEST_BINARY,
            .data = tester_keep(w->test, w->message.p ? mk_buf_str(&w->message) : MK_STR(""))};
    return f->is_final;
}

/* ---- The functions of duda/test.h ---- */

struct duda_test_websocket *duda_test_websocket_open(struct duda_test *t,
                                                     const struct duda_test_request *request)
{
    struct duda_test_websocket *w = mk_mem_zalloc(1, sizeof *w);
    struct mk_buf headers = mk_buf_growing(1 << 20);
    char key[16], text[32];
    struct mk_buf encoded = mk_buf_fixed(text, sizeof text);
    if (!w)
        return NULL;
    mk_random(key, sizeof key);
    mk_base64_encode(&encoded, mk_str_of(key, sizeof key));
    mk_buf_add(&headers, mk_str_from_c(request->headers));
    mk_buf_addf(&headers,
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: %.*s\r\n",
                MK_STR_ARG(mk_buf_str(&encoded)));
    mk_buf_add_char(&headers, '\0');
    w->test = t;
    w->message = mk_buf_growing(TESTER_BODY_MAX);
    w->next = t->websockets;
    t->websockets = w;
    w->is_open =
        tester_conn_open(&w->conn, t,
                         &(struct duda_test_request){.target = request->target, .headers = headers.p},
                         &w->head) &&
        w->head.status == 101;
    mk_buf_free(&headers);
    return w;
}

struct duda_test_response duda_test_websocket_response(const struct duda_test_websocket *w)
{
    return w ? w->head : (struct duda_test_response){.headers = MK_STR(""), .body = MK_STR("")};
}

bool duda_test_websocket_send(struct duda_test_websocket *w, const char *text)
{
    return w && send_frame(w, TEXT, mk_str_from_c(text));
}

bool duda_test_websocket_send_binary(struct duda_test_websocket *w, mk_str data)
{
    return w && send_frame(w, BINARY, data);
}

bool duda_test_websocket_receive(struct duda_test_websocket *w, uint32_t timeout_ms,
                                 struct duda_test_message *m)
{
    uint64_t until = tester_clock_real_ms() + timeout_ms;
    struct frame f;
    *m = (struct duda_test_message){.data = MK_STR_NULL};
    while (w && w->head.status == 101) {
        if (parse_frame(mk_buf_str(&w->conn.in), &f)) {
            bool is_complete = process_frame(w, &f, m);
            mk_buf_consume(&w->conn.in, f.len);
            if (is_complete)
                return true;
        } else if (w->conn.is_closed || !tester_conn_wait(&w->conn, until)) {
            return false;
        }
    }
    return false;
}

void duda_test_websocket_close(struct duda_test_websocket *w, unsigned code)
{
    const char data[] = {(char)(code >> 8), (char)(code & 0xff)};
    if (!w || w->was_closed)
        return;
    (void)send_frame(w, CLOSE, mk_str_of(data, sizeof data));
    w->was_closed = true;
    for (unsigned i = 0; i < 10; i++)
        (void)mk_test_client_step(w->conn.client, 0);
}

void tester_websockets_close(struct duda_test *t)
{
    while (t->websockets) {
        struct duda_test_websocket *w = t->websockets;
        t->websockets = w->next;
        tester_conn_close(&w->conn);
        mk_buf_free(&w->message);
        mk_mem_free(w);
    }
}
