/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/service.h"

#include "base/mem.h"
#include "os/fd.h"
#include "proto/http2.h"

enum { SPARE_ARENA_BLOCKS = 64 };

mk_err mk_service_init(struct mk_service *s, struct mk_loop *loop, struct mk_web *web,
                       const struct mk_limits *limits, struct mk_counters *counters, mk_str server_name)
{
    *s = (struct mk_service){
        .loop = loop, .web = web, .limits = limits, .counters = counters, .log = web->log};
    web->limits = &limits->request;
    web->now_ms = &loop->now_ms;
    mk_arena_cache_init(&s->arenas, SPARE_ARENA_BLOCKS);
    mk_peers_init(&s->peers, limits->per_peer_max);
    mk_stamp_init(&s->stamp, server_name);
    mk_list_init(&s->conns);
    mk_turns_init(&s->handshakes, loop);
    s->fields = mk_mem_zalloc(limits->head.fields_max, sizeof *s->fields);
    mk_err e = mk_offload_init(&s->helper, loop);
    if (!e && !s->fields)
        e = -ENOMEM;
    if (e)
        mk_service_fini(s);
    return e;
}

void mk_service_fini(struct mk_service *s)
{
    mk_offload_fini(&s->helper);
    mk_conn_free_spare(s);
    mk_mem_free(s->window.in);
    mk_mem_free(s->out.p);
    mk_mem_free(s->fields);
    mk_peers_fini(&s->peers);
    mk_arena_cache_fini(&s->arenas);
    *s = (struct mk_service){0};
}

void mk_service_use_http2(struct mk_service *s, const struct mk_http2_module *module)
{
    s->http2 = module;
    if (module)
        module->pack_stamp(&s->stamp);
}

void mk_service_record(struct mk_service *s, struct mk_exchange *x, enum mk_outcome ending,
                       uint64_t content_sent)
{
    struct mk_counters *n = s->counters;
    unsigned class = x->response.sealed ? x->response.status / 100 : 0;
    mk_counter_add(&n->requests, 1);
    mk_counter_add(&n->by_class[class < MK_LEN(n->by_class) ? class : 0], 1);
    mk_counter_add(&n->by_ending[ending], 1);
    mk_flow_end(x, ending, content_sent, s->loop->now_ms);
}

void mk_service_leave_line(struct mk_service *s, mk_str line)
{
    size_t n = mk_min(line.len, MK_TRAIL_LINE - 1);
    if (n)
        memcpy(s->counters->line, line.p, n);
    s->counters->line[n] = '\0';
}

void mk_service_leave_trail(struct mk_service *s, mk_str method, mk_str target)
{
    char room[MK_TRAIL_LINE];
    struct mk_buf line = mk_buf_fixed(room, sizeof room);
    mk_buf_add(&line, mk_str_first(method, 16));
    mk_buf_add_char(&line, ' ');
    mk_buf_add(&line, mk_str_first(target, MK_TRAIL_LINE - 18));
    mk_service_leave_line(s, mk_buf_str(&line));
}

void mk_service_share_descriptors(struct mk_service *s)
{
    unsigned left = s->limits->descriptors > s->n_conns ? s->limits->descriptors - s->n_conns : 0;
    mk_file_cache_set_max_entries(&s->web->files, left - left / 4);
}
