/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/conn_manager.h"

#include "base/mem.h"
#include "connection/counters.h"
#include "connection/http2.h"
#include "os/fd.h"

enum { SPARE_ARENA_BLOCKS = 64 };

mk_err mk_conn_manager_init(struct mk_conn_manager *s, struct mk_loop *loop, struct mk_web_ctx *web,
                            const struct mk_conn_manager_limits *limits, struct mk_counters *counters,
                            mk_str server_name)
{
    *s = (struct mk_conn_manager){
        .loop = loop, .web = web, .limits = limits, .counters = counters, .log = web->log};
    web->limits = &limits->request;
    web->now_ms = &loop->now_ms;
    mk_arena_cache_init(&s->arenas, SPARE_ARENA_BLOCKS);
    mk_client_limits_init(&s->peers, limits->per_peer_max);
    mk_common_headers_init(&s->stamp, server_name);
    mk_list_init(&s->conns);
    mk_handshake_queue_init(&s->handshakes, loop);
    s->fields = mk_mem_zalloc(limits->head.fields_max, sizeof *s->fields);
    mk_err e = mk_offload_init(&s->helper, loop);
    if (!e && !s->fields)
        e = -ENOMEM;
    if (e)
        mk_conn_manager_fini(s);
    return e;
}

void mk_conn_manager_fini(struct mk_conn_manager *s)
{
    mk_offload_fini(&s->helper);
    mk_conn_free_freelist(s);
    mk_mem_free(s->input_buffer.in);
    mk_mem_free(s->out.p);
    mk_mem_free(s->fields);
    mk_client_limits_fini(&s->peers);
    mk_arena_cache_fini(&s->arenas);
    *s = (struct mk_conn_manager){0};
}

void mk_conn_manager_set_http2(struct mk_conn_manager *s, const struct mk_http2_module *module)
{
    s->http2 = module;
    if (module)
        module->encode_common_headers(&s->stamp);
}

void mk_conn_manager_limit_open_files(struct mk_conn_manager *s)
{
    unsigned left = s->limits->descriptors > s->n_conns ? s->limits->descriptors - s->n_conns : 0;
    mk_file_cache_set_max_entries(&s->web->files, left - left / 4);
}

/* ---- HTTP/2 ---- */

/* Defined by src/http2 if HTTP/2 is built in. */
extern const struct mk_http2_module mk_h2_module __attribute__((weak));

const struct mk_http2_module *mk_conn_manager_get_http2_module(void)
{
    return &mk_h2_module;
}

const char *const mk_conn_manager_h2_reason_names[MK_H2_REASONS] = {
    [MK_H2_BAD_PROTOCOL] = "protocol",
    [MK_H2_BAD_FRAME_SIZE] = "frame_size",
    [MK_H2_BAD_COMPRESSION] = "compression",
    [MK_H2_BAD_FLOW] = "flow_control",
    [MK_H2_STREAM_ENDED] = "stream_ended",
    [MK_H2_MANY_RESETS] = "resets",
    [MK_H2_MANY_PINGS] = "pings",
    [MK_H2_MANY_SETTINGS] = "settings",
    [MK_H2_MANY_EMPTY] = "empty_frames",
    [MK_H2_MANY_STREAMS] = "streams",
    [MK_H2_MANY_OTHERS] = "other_frames",
    [MK_H2_TINY_WINDOWS] = "tiny_windows",
    [MK_H2_LONG_HEAD] = "long_head",
    [MK_H2_SLOW] = "slow",
    [MK_H2_NO_MEMORY] = "no_memory",
};
