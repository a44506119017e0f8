/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/subprocess.h"

#include <limits.h>
#include <monkey/sized.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "os/fd.h"
#include "os/fd_passing.h"
#include "worker/worker_type.h"

enum { TEXT_MAX = 120 * 1024 }; /* maximum bytes of argv and envp together (monkey/subprocess.h) */

struct mk_subprocess {
    struct mk_list link;
    struct mk_subprocesses *all;
    uint32_t id;
    bool ended, dropped;
    uint64_t unsent; /* signals not sent yet because the socket was full, as a bitmap */
    void (*on_end)(void *ctx, int status);
    void *ctx;
};

static void free_subprocess(struct mk_subprocess *c)
{
    mk_list_remove(&c->link);
    mk_mem_free(c);
}

/* ---- Messages from the spawner ---- */

static void finish_subprocess(struct mk_subprocess *c, int status)
{
    c->ended = true;
    if (!c->dropped)
        c->on_end(c->ctx, status);
    free_subprocess(c);
}

static void on_spawner_gone(struct mk_subprocesses *c)
{
    mk_loop_remove(c->loop, c->spawner.fd);
    mk_fd_close(&c->spawner.fd);
    mk_log_error(c->log, "the spawner, process %d, has exited", (int)c->spawner.pid);
    while (!mk_list_empty(&c->list))
        finish_subprocess(MK_LIST_ENTRY(c->list.next, struct mk_subprocess, link), -EPIPE);
    if (c->on_lost)
        c->on_lost(c);
}

static struct mk_subprocess *find_subprocess(const struct mk_subprocesses *c, uint32_t id)
{
    for (struct mk_list *l = c->list.next; l != &c->list; l = l->next)
        if (MK_LIST_ENTRY(l, struct mk_subprocess, link)->id == id)
            return MK_LIST_ENTRY(l, struct mk_subprocess, link);
    return NULL;
}

static mk_err request_signal(struct mk_subprocess *c, int signal)
{
    struct mk_spawner_request q = {.kind = MK_SPAWNER_SIGNAL, .id = c->id, .signal = signal};
    const struct iovec v = {.iov_base = &q, .iov_len = sizeof q};
    return mk_fd_passing_send(c->all->spawner.fd, &v, 1, NULL, 0);
}

static void send_pending_signals(struct mk_subprocess *c)
{
    for (int i = 1; c->unsent && i < 64; i++)
        if (c->unsent >> i & 1 && request_signal(c, i) == 0)
            c->unsent &= ~(UINT64_C(1) << i);
}

static void on_spawner_message(struct mk_fd_watch *w, uint32_t events)
{
    struct mk_subprocesses *c = MK_CONTAINER(w, struct mk_subprocesses, watch);
    struct mk_spawner_answer a;
    int fds[MK_FD_PASSING_MAX];
    ssize_t n;
    if (c->spawner.fd < 0) /* this is a late event: the spawner was lost earlier in this iteration */
        return;
    while ((n = mk_fd_passing_receive(c->spawner.fd, &a, sizeof a, fds)) == (ssize_t)sizeof a) {
        struct mk_subprocess *child = find_subprocess(c, a.id);
        if (child)
            finish_subprocess(child, a.status);
    }
    if (n != -EAGAIN) {
        on_spawner_gone(c);
        return;
    }
    if (events & EPOLLOUT)
        for (struct mk_list *l = c->list.next; l != &c->list; l = l->next)
            send_pending_signals(MK_LIST_ENTRY(l, struct mk_subprocess, link));
}

mk_err mk_subprocesses_init(struct mk_subprocesses *c, struct mk_loop *loop, struct mk_log *log,
                            const struct mk_spawner *spawner)
{
    *c = (struct mk_subprocesses){
        .loop = loop, .log = log, .spawner = {.fd = -1}, .watch = {.on_ready = on_spawner_message}};
    mk_list_init(&c->list);
    if (!spawner)
        return 0;
    c->spawner = *spawner;
    return mk_loop_add(loop, spawner->fd, &c->watch, EPOLLIN | EPOLLOUT | EPOLLET);
}

void mk_subprocesses_fini(struct mk_subprocesses *c)
{
    mk_fd_close(&c->spawner.fd);
    while (!mk_list_empty(&c->list))
        free_subprocess(MK_LIST_ENTRY(c->list.next, struct mk_subprocess, link));
}

void mk_subprocesses_reap_spawner(struct mk_subprocesses *c)
{
    if (c->spawner.pid > 0 && waitpid(c->spawner.pid, NULL, WNOHANG) == c->spawner.pid)
        c->spawner.pid = 0;
}

/* ---- Requests to the spawner ---- */

static uint32_t append_strings(struct mk_buf *out, const char *const *list)
{
    uint32_t n = 0;
    for (; list[n] && out->len <= TEXT_MAX; n++)
        mk_buf_add(out, mk_str_of(list[n], strlen(list[n]) + 1));
    return n;
}

static mk_err request_start(struct mk_subprocesses *all, uint32_t id, const struct mk_subprocess_options *o)
{
    struct mk_spawner_request q = {
        .kind = MK_SPAWNER_START,
        .id = id,
        .keeps_nonblocking = o->keeps_nonblocking,
        .limits = {[MK_SPAWN_CPU_S] = o->cpu_s,
                   [MK_SPAWN_MEMORY] = o->memory,
                   [MK_SPAWN_PROCESSES] = o->processes,
                   [MK_SPAWN_FILE_SIZE] = o->file_size},
    };
    const int given[] = {o->in, o->out, o->err};
    int fds[MK_FD_PASSING_MAX];
    size_t n_fds = 0;
    for (unsigned i = 0; i < MK_LEN(given); i++)
        if (given[i] >= 0) {
            q.fds |= 1u << i;
            fds[n_fds++] = given[i];
        }
    struct mk_buf text = mk_buf_growing(MK_SPAWNER_TEXT);
    const char *cwd = o->cwd ? o->cwd : "/";
    q.argc = append_strings(&text, o->argv);
    q.envc = append_strings(&text, o->envp);
    bool fits = text.len <= TEXT_MAX;
    struct iovec v[] = {{.iov_base = &q, .iov_len = sizeof q},
                        {.iov_base = (void *)(uintptr_t)cwd, .iov_len = strlen(cwd) + 1},
                        {.iov_base = text.p, .iov_len = text.len}};
    mk_err e = !fits || v[1].iov_len > PATH_MAX ? -E2BIG : text.failed ? -ENOMEM : 0;
    if (!e)
        e = mk_fd_passing_send(all->spawner.fd, v, MK_LEN(v), fds, n_fds);
    mk_buf_free(&text);
    return e;
}

static mk_err check_subprocess_options(const struct mk_subprocesses *all,
                                       const struct mk_subprocess_options *o)
{
    if (!o->argv || !o->argv[0] || !strchr(o->argv[0], '/') || !o->envp)
        return -EINVAL;
    return all->spawner.fd < 0 ? -ENOTCONN : 0;
}

static void report_start_error(struct mk_subprocesses *all, const struct mk_subprocess_options *o, mk_err e)
{
    const char *file = o->argv && o->argv[0] ? o->argv[0] : "?";
    if (e == -ENOTCONN)
        mk_log_error(all->log, "cannot start %s: this worker has no spawner", file);
    else
        mk_log_error(all->log, "cannot start %s: %s", file, mk_err_text(e));
}

struct mk_subprocess *mk_subprocess_start_sized(struct mk_worker *w, const struct mk_subprocess_options *o,
                                                size_t o_size, void (*on_end)(void *ctx, int status),
                                                void *ctx)
{
    struct mk_subprocess_options full;
    o = mk_sized_in(&full, sizeof full, o, o_size);
    struct mk_subprocesses *all = &w->children;
    struct mk_subprocess *c = mk_mem_zalloc(1, sizeof *c);
    mk_err e = c ? check_subprocess_options(all, o) : -ENOMEM;
    if (!e)
        e = request_start(all, ++all->last_id, o);
    if (e) {
        report_start_error(all, o, e);
        mk_mem_free(c);
        return NULL;
    }
    *c = (struct mk_subprocess){.all = all, .id = all->last_id, .on_end = on_end, .ctx = ctx};
    mk_list_add_last(&all->list, &c->link);
    return c;
}

void mk_subprocess_signal(struct mk_subprocess *c, int signal)
{
    if (c->ended || signal < 1 || signal > 63)
        return;
    if (request_signal(c, signal) == -EAGAIN)
        c->unsent |= UINT64_C(1) << signal;
}

void mk_subprocess_kill(struct mk_subprocess *c)
{
    if (!c || c->ended)
        return;
    c->dropped = true; /* the struct is kept until the spawner reports the exit */
    mk_subprocess_signal(c, SIGKILL);
}
