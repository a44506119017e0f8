/* SPDX-License-Identifier: Apache-2.0 */
/* Flight recorder: keeps the last requests in a file that outlives crashes. */
#include <errno.h>
#include <monkey/attempt.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder/recorder_settings.h"
#include "recorder/recorder_writer.h"

struct recorder {
    const struct mk_recorder_settings *settings;
    struct mk_recorder_store store;
};

/* What a worker has. */
struct worker_recording {
    int fd;
    struct mk_recorder_writer *writer; /* NULL: this worker does not record */
};

MK_PLUGIN_DECLARE(recorder);

/* ---- Configuration ---- */

static int load_plugin(struct mk_config *config, void **data)
{
    struct recorder *r = mk_config_alloc(config, sizeof *r);
    struct mk_recorder_settings *s = mk_config_settings(config, &mk_recorder_table);
    if (!r || !s)
        return -ENOMEM;
    r->settings = s;
    r->store.fd = -1;
    s->file = mk_config_path(config, mk_config_section(config, &mk_recorder_table, NULL), s->file);
    *data = r;
    return s->file.p ? 0 : -ENOMEM;
}

static void unload_plugin(void *data)
{
    struct recorder *r = data;
    mk_recorder_store_close(&r->store);
}

static int bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    (void)host;
    mk_config_record_attempts(config);
    *host_data = data;
    return 0;
}

static uint32_t count_slots(const struct mk_recorder_settings *s)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t n = s->processes ? s->processes : 2 + 2 * (uint64_t)(cpus > 3 ? cpus : 3);
    return n < MK_RECORDER_SLOTS_MAX ? (uint32_t)n : MK_RECORDER_SLOTS_MAX;
}

static int master_start(struct mk_config *config, void *data)
{
    struct recorder *r = data;
    const struct mk_recorder_settings *s = r->settings;
    struct mk_recorder_header wanted = {.magic = {0},
                                        .version = MK_RECORDER_VERSION,
                                        .record_size = sizeof(struct mk_recorder_record),
                                        .n_slots = count_slots(s),
                                        .n_requests = s->requests,
                                        .n_failures = s->failures};
    memcpy(wanted.magic, MK_RECORDER_MAGIC, sizeof wanted.magic);
    if (mk_str_eq(s->file, MK_STR(MK_RECORDER_FILE)))
        (void)mkdir(MK_RECORDER_FOLDER, 0755); /* without a service manager, it does not exist yet */
    const char *error = mk_recorder_store_open(&r->store, s->file.p, &wanted);
    if (!error)
        return 0;
    mk_recorder_store_close(&r->store);
    mk_config_error(config, mk_config_section(config, &mk_recorder_table, NULL), "File",
                    "the recording %s cannot be opened: %s", s->file.p, error);
    return -EINVAL;
}

/* ---- Workers ---- */

static int start_writer(struct mk_worker *worker, const struct recorder *r, struct worker_recording *own)
{
    const struct mk_recorder_limits limits = {.slow_ms = r->settings->slow_ms,
                                              .with_query = r->settings->query};
    if (!mk_recorder_store_is_whole(&r->store)) {
        mk_worker_log(worker, MK_LOG_ERROR, "recorder: %s was truncated: restart the server to record again",
                      r->settings->file.p);
        return 0;
    }
    struct mk_recorder_slot *slot = mk_recorder_store_claim(&r->store);
    if (!slot) {
        mk_worker_log(worker, MK_LOG_WARN,
                      "recorder: %u processes record already, so this one does not: see `Processes`",
                      (unsigned)r->store.header.n_slots);
        return 0;
    }
    own->writer = mk_recorder_writer_new(&r->store, slot, &limits);
    if (!own->writer)
        return -ENOMEM;
    const struct mk_request_observer observer = {mk_recorder_writer_begin, mk_recorder_writer_end,
                                                 own->writer};
    mk_worker_observe_requests(worker, &observer);
    return 0;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    const struct recorder *r = data;
    if (r->store.fd < 0)
        return 0;
    struct worker_recording *own = mk_mem_zalloc(1, sizeof *own);
    if (!own)
        return -ENOMEM;
    own->fd = r->store.fd;
    int e = start_writer(worker, r, own);
    if (e)
        mk_mem_free(own);
    else
        mk_worker_set_data(worker, &MK_PLUGIN_OF(recorder), own);
    return e;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    struct worker_recording *own = mk_worker_data(worker, &MK_PLUGIN_OF(recorder));
    (void)data;
    mk_worker_observe_requests(worker, NULL);
    if (own)
        mk_recorder_writer_free(own->writer);
    mk_mem_free(own);
}

int mk_worker_recording(const struct mk_worker *worker)
{
    const struct worker_recording *own = mk_worker_data(worker, &MK_PLUGIN_OF(recorder));
    return own ? own->fd : -1;
}

MK_PLUGIN(recorder) = {
    MK_PLUGIN_HEAD,
    .name = "recorder",
    .version = "1.0",
    .help = "Keeps the last requests, and the failed and slow ones for longer: `monkey recorder`.",
    .sections = (const struct mk_conf_table *const[]){&mk_recorder_table, NULL},
    .load = load_plugin,
    .unload = unload_plugin,
    .host = bind_vhost,
    .master_start = master_start,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
};
