/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <errno.h>
#include <unistd.h>

enum { MESSAGE_MAX = 32 * 1024 };

bool cheetah_is_worker_superseded(const struct mk_worker *w)
{
    struct mk_worker_stats stats;
    bool draining = false, others = false;
    for (size_t i = 0; mk_worker_stats_at(w, i, &stats); i++) {
        draining |= stats.pid == getpid() && stats.draining;
        others |= stats.pid && !stats.draining;
    }
    return draining && others;
}

/* ---- Facts ---- */

/* Parses /proc/self/statm: "size resident shared ...", in pages. */
static uint64_t read_process_memory(int fd)
{
    char buf[256];
    uint64_t pages = 0;
    ssize_t n = fd >= 0 ? pread(fd, buf, sizeof buf, 0) : -1;
    long page = sysconf(_SC_PAGESIZE);
    mk_str text = mk_str_of(buf, n > 0 ? (size_t)n : 0);
    (void)mk_str_word(&text);
    return page > 0 && mk_num_parse(mk_str_word(&text), &pages) ? pages * (uint64_t)page : 0;
}

void cheetah_worker_facts_collect(const struct shell *s, struct cheetah_worker_facts *out)
{
    memset(out, 0, sizeof *out);
    out->process = getpid();
    out->memory = read_process_memory(s->statm_fd);
    out->level = mk_worker_log_level(s->worker);
    mk_worker_cache(s->worker, &out->cache);
}

/* ---- Sending ---- */

bool cheetah_message_send(struct shell *s, unsigned to, const struct cheetah_message *note, mk_str text)
{
    struct mk_buf message = mk_buf_growing(MESSAGE_MAX);
    mk_buf_add(&message, mk_str_of((const char *)note, sizeof *note));
    mk_buf_add(&message, text);
    int e =
        message.failed ? -ENOMEM : mk_worker_send(s->worker, s->cheetah->plugin, to, mk_buf_str(&message));
    mk_buf_free(&message);
    return e == 0 || e == -ENOTCONN; /* without a master there are no other workers */
}
