/* SPDX-License-Identifier: Apache-2.0 */
/* Commands wait for the end of the turn, then for their replies. The server is up when it has answered a sign
 * of life, which a frozen one does not. */
#include "server.h"

#include <errno.h>
#include <monkey/mem.h>

enum { PIECE_MAX = 16 * 1024, LINES_ROOM = 4096 };

void memcache_job_free(struct memcache_job *job)
{
    if (job)
        mk_buf_free(&job->bytes);
    mk_mem_free(job);
}

static void finish_job(struct memcache_job *job, const struct memcache_reply *reply, int error)
{
    if (job->on_reply)
        job->on_reply(job->ctx, reply, error);
    memcache_job_free(job);
}

static void finish(struct pack_link *l, struct pack_request *r, int error, bool is_sent)
{
    (void)l, (void)is_sent;
    finish_job((struct memcache_job *)r, NULL, error);
}

static void close_stream(struct pack_link *l)
{
    struct memcache_server *s = (struct memcache_server *)l;
    pack_stream_close(l);
    mk_buf_free(&s->in);
}

/* ---- Bytes out ---- */

static void on_connected(struct pack_stream *stream)
{
    pack_link_move(&stream->link, PACK_LINK_GREETING);
    mk_buf_add(&stream->out, MK_STR("mn\r\n"));
}

static void send_waiting(struct pack_link *l)
{
    struct pack_stream *stream = (struct pack_stream *)l;
    for (struct pack_request *r = l->waiting.first; r; r = r->next) {
        struct memcache_job *job = (struct memcache_job *)r;
        mk_buf_add(&stream->out, mk_buf_str(&job->bytes));
        mk_buf_free(&job->bytes);
    }
    pack_requests_append(&l->sent, &l->waiting);
    pack_stream_flush(stream);
}

/* ---- Bytes in ---- */

static void on_greeting(struct pack_link *l, const struct memcache_reply *reply)
{
    if (reply->word == MEMCACHE_HERE)
        pack_link_up(l);
    else
        pack_link_fail(l, -EPROTO, "it does not speak the meta protocol (Memcached 1.6)");
}

static void on_reply(struct pack_link *l, const struct memcache_reply *reply)
{
    if (reply->word >= MEMCACHE_CLIENT_ERROR)
        pack_link_explain(l, reply->value);
    if (pack_link_is(l, PACK_LINK_GREETING))
        on_greeting(l, reply);
    else if (l->sent.first)
        finish_job((struct memcache_job *)pack_requests_pop(&l->sent), reply, 0);
    else
        pack_link_fail(l, -EPROTO, "a reply that no command asked for");
}

/* How many of these bytes are whole replies. */
static size_t parse(struct memcache_server *s, mk_str bytes)
{
    struct memcache_reply reply;
    size_t done = 0;
    while (s->stream.conn) {
        ssize_t n = memcache_reply_read(mk_str_skip(bytes, done), (size_t)s->settings->value_max, &reply);
        if (n == 0)
            break;
        if (n < 0) {
            pack_link_fail(&s->stream.link, (int)n,
                           n == -EMSGSIZE ? "a value is longer than MaxValueSize" : "it answers something odd");
            break;
        }
        on_reply(&s->stream.link, &reply);
        done += (size_t)n;
    }
    return done;
}

/* An idle connection has no buffer. */
static void on_bytes(struct pack_stream *stream, mk_str bytes)
{
    struct memcache_server *s = (struct memcache_server *)stream;
    bool is_rest = s->in.len;
    if (is_rest)
        mk_buf_add(&s->in, bytes);
    size_t done = s->in.failed ? 0 : parse(s, is_rest ? mk_buf_str(&s->in) : bytes);
    if (!stream->conn)
        return;
    if (is_rest)
        mk_buf_drop(&s->in, done);
    else
        mk_buf_add(&s->in, mk_str_skip(bytes, done));
    if (s->in.failed)
        pack_link_fail(&stream->link, -ENOMEM, "out of memory for a reply");
    else if (!s->in.len)
        mk_buf_free(&s->in);
}

/* ---- Its life ---- */

int memcache_server_add(struct memcache_server *s, struct memcache_job *job)
{
    struct pack_link *l = &s->stream.link;
    int e = pack_link_admit(l, s->settings->waiting_max);
    if (e)
        return e;
    job->request.due_ms = mk_worker_now_ms(l->worker) + l->timeout_ms;
    pack_link_enqueue(l, &job->request);
    return 0;
}

static const struct pack_stream_ops stream_ops = {.on_connected = on_connected, .on_bytes = on_bytes};

static const struct pack_link_ops link_ops = {.section = "MEMCACHED",
                                              .connect = pack_stream_connect,
                                              .close = close_stream,
                                              .send = send_waiting,
                                              .finish = finish};

int memcache_server_open(struct memcache_server *s, struct mk_worker *w,
                         const struct memcache_settings *settings, struct mk_upstream *upstream)
{
    struct pack_link *l = &s->stream.link;
    s->settings = settings;
    s->in = mk_buf_growing((size_t)settings->value_max + 2 * PIECE_MAX + LINES_ROOM);
    pack_stream_init(&s->stream, &stream_ops, upstream);
    l->server = mk_upstream_name(upstream);
    return pack_link_init(l, w, &link_ops, settings->name, settings->timeout_ms);
}

void memcache_server_close(struct memcache_server *s)
{
    pack_link_fini(&s->stream.link);
}
