/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest WebSocket server (RFC 6455) that satisfies a real client: it echoes every message, and replies
 * to ping and close frames. The client's messages may be fragmented, each frame of at most 16 KB. */
#include <errno.h>
#include <monkey/plugin.h>

enum { PING = 9, PONG = 10, CLOSE = 8, MESSAGE_MAX = 16 * 1024, HEAD_MAX = 14 };

struct socket {
    struct mk_request *request;
    struct mk_buf in, out;
    bool closing;
};

struct frame {
    unsigned char first; /* FIN and opcode */
    size_t head, len;
    const unsigned char *mask;
};

/* Returns 1 if the input begins with a complete frame, 0 if the frame is incomplete, -1 if it is invalid. */
static int read_frame(const struct mk_buf *in, struct frame *f)
{
    const unsigned char *p = (const unsigned char *)in->p;
    if (in->len < 2)
        return 0;
    if (!(p[1] & 0x80))
        return -1;
    f->first = p[0];
    f->len = p[1] & 0x7f;
    f->head = 6;
    if (f->len == 127)
        return -1;
    if (f->len == 126) {
        if (in->len < 4)
            return 0;
        f->len = (size_t)p[2] << 8 | p[3];
        f->head = 8;
    }
    if (f->len > MESSAGE_MAX)
        return -1;
    f->mask = p + f->head - 4;
    return in->len >= f->head + f->len;
}

static void answer(struct socket *s, const struct frame *f)
{
    unsigned op = f->first & 0x0f;
    unsigned char head[4] = {op == PING ? (unsigned char)(0x80 | PONG) : f->first, (unsigned char)f->len};
    size_t n = 2;
    if (f->len > 125) {
        head[1] = 126;
        head[2] = (unsigned char)(f->len >> 8);
        head[3] = (unsigned char)f->len;
        n = 4;
    }
    mk_buf_add(&s->out, mk_str_of((const char *)head, n));
    for (size_t i = 0; i < f->len; i++)
        mk_buf_add_char(&s->out, (char)((unsigned char)s->in.p[f->head + i] ^ f->mask[i % 4]));
    s->closing = op == CLOSE;
}

/* Processes frames while the output buffer has space. */
static int work(struct socket *s)
{
    struct frame f;
    int got = 1;
    while (!s->closing && s->out.len < MESSAGE_MAX && (got = read_frame(&s->in, &f)) > 0) {
        if ((f.first & 0x0f) != PONG)
            answer(s, &f);
        mk_buf_consume(&s->in, f.head + f.len);
    }
    return got < 0 ? -EPROTO : 0;
}

static ssize_t pull(void *ctx, char *buffer, size_t cap)
{
    struct socket *s = ctx;
    char more[4096];
    for (;;) {
        if (work(s))
            return -EPROTO;
        if (s->out.len || s->closing)
            break;
        ssize_t got = mk_request_read(s->request, more, sizeof more);
        if (got <= 0)
            return got;
        mk_buf_add(&s->in, mk_str_of(more, (size_t)got));
    }
    size_t n = s->out.len < cap ? s->out.len : cap;
    if (n)
        memcpy(buffer, s->out.p, n);
    mk_buf_consume(&s->out, n);
    return s->in.failed || s->out.failed ? -ENOMEM : (ssize_t)n;
}

static void on_close(void *ctx)
{
    struct socket *s = ctx;
    mk_buf_free(&s->in);
    mk_buf_free(&s->out);
}

static const struct mk_tunnel_ops ops = {.source = {.read = pull, .close = on_close}};

static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    if (!mk_str_eq(mk_request_tunnel(request), MK_STR("websocket")))
        return MK_NEXT;
    struct socket *s = mk_request_alloc(request, sizeof *s);
    if (!s)
        return MK_ERROR;
    *s = (struct socket){
        .request = request, .in = mk_buf_growing(2 * MESSAGE_MAX), .out = mk_buf_growing(3 * MESSAGE_MAX)};
    mk_str protocols = mk_request_header(request, MK_STR("Sec-WebSocket-Protocol")), first;
    if (mk_header_list_next(&protocols, &first))
        mk_response_add_header(response, MK_STR("Sec-WebSocket-Protocol"), first);
    return mk_response_open_tunnel(request, response, &ops, s) ? MK_ERROR : MK_DONE;
}

static const struct mk_handler handler = {
    .name = "websocket-echo", .methods = MK_METHOD_BIT(MK_METHOD_GET), .handle = handle};

MK_PLUGIN(tunnel_socket) = {
    MK_PLUGIN_HEAD,
    .name = "tunnel-socket",
    .handlers = (const struct mk_handler *const[]){&handler, NULL},
};
