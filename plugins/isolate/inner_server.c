/* SPDX-License-Identifier: Apache-2.0 */
#include "inner_server.h"

#include <errno.h>
#include <monkey/upstream.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "process.h"
#include "scoreboard.h"

struct isolate_inner_server {
    struct isolate_scoreboard *scoreboard;
    int scoreboard_fd;
    uint64_t version;
    unsigned char secret[ISOLATE_SECRET]; /* copied from the scoreboard before the service could run */
    bool has_logged;                      /* this process has logged a request without a signature */
};

static void unmap_scoreboard(void *scoreboard)
{
    munmap(scoreboard, sizeof(struct isolate_scoreboard));
}

int isolate_inner_server_load(struct mk_config *config, struct isolate_inner_server **out)
{
    uint64_t fd;
    mk_str variable = mk_str_from_c(getenv(ISOLATE_VARIABLE));
    *out = NULL;
    if (!variable.p)
        return 0;
    struct isolate_inner_server *inner = mk_config_alloc(config, sizeof *inner);
    (void)prctl(PR_SET_DUMPABLE, 0); /* other processes of the user can neither read the secret nor attach */
    if (!inner || !mk_num_parse(variable, &fd) || fd > INT32_MAX)
        return inner ? -EINVAL : -ENOMEM;
    void *scoreboard = mmap(NULL, sizeof *inner->scoreboard, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
    if (scoreboard == MAP_FAILED)
        return -errno;
    inner->scoreboard = scoreboard;
    inner->scoreboard_fd = (int)fd;
    inner->version = atomic_load(&inner->scoreboard->version);
    memcpy(inner->secret, inner->scoreboard->secret, sizeof inner->secret);
    *out = inner;
    return mk_config_add_cleanup(config, unmap_scoreboard, scoreboard) ? 0 : -ENOMEM;
}

/* ---- Declined and rejected requests ---- */

/* Returns an error so that the error handlers of the service write a page. */
static enum mk_verdict decline_request(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)data;
    int e = mk_response_add_header_nocopy(response, MK_STR(MK_LOCAL_BACKEND_DECLINED), MK_STR("1"));
    (void)mk_response_set_status(response, e ? 503 : 404);
    return MK_ERROR;
}

/* Leaves the default page of an error to the front server, whose virtual host has settings for it. */
void isolate_inner_server_finish_response(struct mk_response *response)
{
    if (mk_response_is_error_page(response) &&
        !mk_response_add_header_nocopy(response, MK_STR(MK_LOCAL_BACKEND_DEFAULT_PAGE), MK_STR("1")))
        (void)mk_response_set_body_nocopy(response, MK_STR(""));
}

static const struct mk_handler passes = {.name = "isolate", .handle = decline_request};

void isolate_inner_server_add_fallback(struct mk_config *config, struct isolate_inner_server *inner)
{
    mk_config_add_route(config, MK_STR("/*"), &passes, inner);
}

/* ---- Requests ---- */

/* Rejects other programs of the same user, which can also connect: CGI scripts, other groups, and
 * subprocesses of services. */
static enum mk_verdict reject_foreign_sender(struct mk_request *request, struct mk_response *response,
                                             struct isolate_inner_server *inner)
{
    if (!inner->has_logged)
        mk_worker_log(mk_request_worker(request), MK_LOG_WARN,
                      "a process other than a worker of the front server has sent a request to the socket "
                      "of the group: 403");
    inner->has_logged = true;
    (void)mk_response_set_status(response, 403);
    return MK_ERROR;
}

enum mk_verdict isolate_inner_server_check_sender(struct mk_request *request, struct mk_response *response,
                                                  struct isolate_inner_server *inner)
{
    uint64_t max;
    if (!mk_local_backend_verify(request, mk_str_of((const char *)inner->secret, sizeof inner->secret)))
        return reject_foreign_sender(request, response, inner);
    int e = mk_local_backend_accept_client(request);
    if (!e && mk_num_parse(mk_request_header(request, MK_STR(MK_LOCAL_BACKEND_BODY_MAX)), &max))
        e = mk_request_set_body_max(request, max);
    if (e == -EMSGSIZE)
        (void)mk_response_set_status(response, 413);
    return e ? MK_ERROR : MK_NEXT;
}

/* ---- Workers ---- */

struct worker {
    struct isolate_slot *slot;
    struct isolate_scoreboard *scoreboard;
};

/* Called when every plugin has started, and before the worker reports to its master that it serves. */
static void mark_worker_up(void *ctx)
{
    struct worker *w = ctx;
    atomic_store_explicit(&w->slot->state, ISOLATE_WORKER_SERVES, memory_order_release);
    atomic_store(&w->scoreboard->down_ms, 0);
    atomic_store(&w->scoreboard->failure_logged, 0);
}

int isolate_inner_server_start(struct mk_worker *worker, struct isolate_inner_server *inner,
                               const struct mk_plugin *plugin)
{
    /* Only the master of the group may use these descriptors, because a worker may be compromised. */
    close(inner->scoreboard_fd);
    close(ISOLATE_CONFIG_FD);
    close(ISOLATE_STATISTICS_FD);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* printf(3) of the service also writes to the log */
    struct worker *w = mk_mem_alloc(sizeof *w);
    if (!w)
        return -ENOMEM;
    *w = (struct worker){.slot = isolate_scoreboard_acquire_slot(inner->scoreboard, inner->version),
                         .scoreboard = inner->scoreboard};
    mk_worker_set_data(worker, plugin, w);
    return w->slot ? mk_worker_post(worker, mark_worker_up, w) : -ENOSPC;
}

/* Marks this worker as not serving, because it no longer accepts connections. Another worker takes the queued
 * requests. */
void isolate_inner_server_drain(struct mk_worker *worker, const struct mk_plugin *plugin)
{
    struct worker *w = mk_worker_data(worker, plugin);
    atomic_store(&w->slot->state, ISOLATE_WORKER_DRAINS);
}

void isolate_inner_server_stop(struct mk_worker *worker, const struct mk_plugin *plugin)
{
    struct worker *w = mk_worker_data(worker, plugin);
    if (w && w->slot)
        atomic_store(&w->slot->pid, 0);
    mk_mem_free(w);
}
