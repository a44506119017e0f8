/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the memory of worker processes: a worker near its limit releases memory and rejects requests, before the
 * kernel kills it. Allocations never fail because of this limit. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "settings.h"
#include "stage.h"
#include "usage.h"

enum {
    CHECK_MS = 200,
    RELEASE_AGAIN_MS = 10000, /* while memory stays scarce */
    RELEASE_MS = 1000,        /* when it becomes more scarce */
    REPLACE_AGAIN_MS = 5000,
    QUIET_MS = 5000,       /* a peak is over if no check has seen more for so long */
    TRIM_AGAIN_MS = 30000, /* while the worker uses more than at its start */
    SPARE_MIN = 1 << 20,   /* memory worth returning */
    PAUSE_MS = 3000,       /* a short lack of memory only delays new connections */
    RETRY_AFTER_S = 5,
    STATM_MAX = 256,
};

struct memory {
    const struct memory_settings *settings;
    uint64_t available; /* memory of the control group or the machine */
    unsigned table;
    uint32_t series;
};

/* A worker's state. */
struct monitor {
    const struct memory *memory;
    struct mk_worker *worker;
    struct mk_timer timer;
    int statm_fd;
    uint64_t page, limit, used;
    enum memory_stage stage;
    uint64_t released_ms, shed_since_ms, paused_since_ms, requested_ms;
    enum mk_rejection rejection;  /* of new connections */
    uint64_t n_rejected;          /* since the stage MEMORY_SHEDDING began */
    uint64_t used_at_start, peak; /* highest use since memory was last returned to the system */
    uint64_t trim_at_ms;
    uint64_t *cells;
};

MK_PLUGIN_DECLARE(memory);

/* ---- Statistics ---- */

enum {
    CELL_LIMIT,
    CELL_USED,
    CELL_RELEASING,
    CELL_SHEDDING,
    CELL_PAUSED,
    CELL_RELEASES,
    CELL_SHEDS,
    CELL_REJECTED
};

static const struct mk_stat_metric metrics[] = {
    [CELL_LIMIT] = {.name = "monkey_memory_limit_bytes",
                    .help = "Memory limit of all workers together.",
                    .column = "limit",
                    .kind = MK_STAT_GAUGE},
    [CELL_USED] = {.name = "monkey_memory_used_bytes",
                   .help = "Memory that counts toward the limit.",
                   .column = "used",
                   .kind = MK_STAT_GAUGE},
    [CELL_RELEASING] = {.name = "monkey_memory_workers",
                        .help = "Workers whose memory is scarce.",
                        .column = "releasing",
                        .kind = MK_STAT_GAUGE,
                        .label = "stage",
                        .value = "releasing"},
    [CELL_SHEDDING] = {.name = "monkey_memory_workers",
                       .column = "shedding",
                       .kind = MK_STAT_GAUGE,
                       .label = "stage",
                       .value = "shedding"},
    [CELL_PAUSED] = {.name = "monkey_memory_workers",
                     .column = "paused",
                     .kind = MK_STAT_GAUGE,
                     .label = "stage",
                     .value = "paused"},
    [CELL_RELEASES] = {.name = "monkey_memory_releases_total",
                       .help = "How often a worker released memory because of the limit.",
                       .column = "releases"},
    [CELL_SHEDS] = {.name = "monkey_memory_sheds_total",
                    .help = "How often a worker began to reject requests because of the limit.",
                    .column = "sheds"},
    [CELL_REJECTED] = {.name = "monkey_memory_rejected_requests_total",
                       .help = "Requests that were rejected because of the limit.",
                       .column = "rejected"},
};

static const struct mk_stat_table stat_table = {
    .name = "memory", .metrics = metrics, .n_metrics = MK_LEN(metrics)};

static void count(const struct monitor *m, unsigned cell)
{
    if (m->cells)
        mk_stat_add(&m->cells[cell], 1);
}

static void show_state(const struct monitor *m)
{
    if (!m->cells)
        return;
    mk_stat_set(&m->cells[CELL_LIMIT], m->limit);
    mk_stat_set(&m->cells[CELL_USED], m->used);
    mk_stat_set(&m->cells[CELL_RELEASING], m->stage == MEMORY_RELEASING);
    mk_stat_set(&m->cells[CELL_SHEDDING], m->stage == MEMORY_SHEDDING);
    mk_stat_set(&m->cells[CELL_PAUSED], m->stage == MEMORY_PAUSED);
}

/* ---- Measuring ---- */

static void measure_use(struct monitor *m)
{
    char buf[STATM_MAX];
    ssize_t n = pread(m->statm_fd, buf, sizeof buf, 0);
    m->used = n > 0 ? memory_usage_parse(mk_str_of(buf, (size_t)n), m->page) : 0;
}

enum { MB = 1 << 20 };

/* Two arguments of the format "%llu.%llu": a size in MB, or a time in seconds. */
#define MB_ARG(bytes)   (unsigned long long)(bytes) / MB, (unsigned long long)(bytes) % MB * 10 / MB
#define SECONDS_ARG(ms) (unsigned long long)(ms) / 1000, (unsigned long long)(ms) % 1000 / 100

static void log_use(const struct monitor *m, enum mk_log_level level, const char *what)
{
    mk_worker_log(m->worker, level, "memory: %llu.%llu of %llu.%llu MB are in use: %s", MB_ARG(m->used),
                  MB_ARG(m->limit), what);
}

/* ---- Stages ---- */

static const unsigned released_in[] = {
    [MEMORY_RELEASING] = MK_RELEASE_CACHES | MK_RELEASE_IDLE,
    [MEMORY_SHEDDING] = MK_RELEASE_CACHES | MK_RELEASE_IDLE,
    [MEMORY_PAUSED] = MK_RELEASE_CACHES | MK_RELEASE_IDLE | MK_RELEASE_INCOMPLETE,
};

static void release_memory(struct monitor *m, enum memory_stage stage)
{
    uint64_t before = m->used;
    mk_worker_release_memory(m->worker, released_in[stage]);
    m->released_ms = mk_worker_now_ms(m->worker);
    count(m, CELL_RELEASES);
    measure_use(m);
    if (m->stage == MEMORY_ENOUGH)
        mk_worker_log(m->worker, MK_LOG_INFO,
                      "memory: %llu.%llu of %llu.%llu MB were in use; released %llu.%llu MB", MB_ARG(before),
                      MB_ARG(m->limit), MB_ARG(before > m->used ? before - m->used : 0));
    m->peak = m->used;
    m->trim_at_ms = m->released_ms + TRIM_AGAIN_MS;
}

static void log_recovery(const struct monitor *m)
{
    mk_worker_log(m->worker, MK_LOG_WARN,
                  "memory: %llu.%llu of %llu.%llu MB are in use: requests are served again; %llu were "
                  "rejected in %llu.%llu s",
                  MB_ARG(m->used), MB_ARG(m->limit), (unsigned long long)m->n_rejected,
                  SECONDS_ARG(mk_worker_now_ms(m->worker) - m->shed_since_ms));
}

static void begin_shedding(struct monitor *m)
{
    m->shed_since_ms = mk_worker_now_ms(m->worker);
    m->n_rejected = 0;
    count(m, CELL_SHEDS);
}

static void pause_accepting(struct monitor *m)
{
    m->paused_since_ms = mk_worker_now_ms(m->worker);
    mk_worker_pause_accepting(m->worker, true);
}

static bool are_all_workers_paused(const struct monitor *m)
{
    return m->cells && mk_stat_sum(mk_worker_statistics(m->worker), m->memory->series, CELL_PAUSED) >=
                           mk_worker_count(m->worker);
}

/* Clients must not wait until the worker has memory again: with a leak, it never has. On a socket that workers share,
 * they need not wait either while another worker accepts. */
static void reject_connections_after_pause(struct monitor *m)
{
    if (m->stage != MEMORY_PAUSED || mk_worker_now_ms(m->worker) - m->paused_since_ms < PAUSE_MS)
        return;
    if (!m->rejection)
        log_use(m, MK_LOG_ERROR, "new connections get 503");
    enum mk_rejection rejection = are_all_workers_paused(m) ? MK_REJECT_ALL : MK_REJECT_UNSHARED;
    if (rejection == m->rejection)
        return;
    m->rejection = rejection;
    mk_worker_reject_connections(m->worker, rejection);
    mk_worker_pause_accepting(m->worker, false);
}

static void serve_connections(struct monitor *m)
{
    m->rejection = MK_REJECT_NONE;
    mk_worker_reject_connections(m->worker, MK_REJECT_NONE);
    mk_worker_pause_accepting(m->worker, false);
}

static void enter_stage(struct monitor *m, enum memory_stage stage)
{
    bool shed = m->stage >= MEMORY_SHEDDING, sheds = stage >= MEMORY_SHEDDING;
    if (sheds && !shed)
        begin_shedding(m);
    if (stage == MEMORY_PAUSED)
        log_use(m, MK_LOG_ERROR, "no connections are accepted, and new requests get 503");
    else if (sheds && !shed)
        log_use(m, MK_LOG_ERROR, "new requests get 503");
    else if (sheds)
        log_use(m, MK_LOG_WARN, "connections are accepted again, and new requests get 503");
    else if (shed)
        log_recovery(m);
    else if (stage == MEMORY_RELEASING)
        log_use(m, MK_LOG_WARN, "idle connections are closed, and caches are emptied");
    if (stage == MEMORY_PAUSED)
        pause_accepting(m);
    else if (m->stage == MEMORY_PAUSED)
        serve_connections(m);
    m->stage = stage;
}

static bool is_release_due(const struct monitor *m, enum memory_stage stage)
{
    uint64_t pause = stage > m->stage ? RELEASE_MS : RELEASE_AGAIN_MS;
    return stage > MEMORY_ENOUGH &&
           (!m->released_ms || mk_worker_now_ms(m->worker) - m->released_ms >= pause);
}

/* Memory that a service leaks is freed only when its process ends. */
static void request_replacement(struct monitor *m)
{
    uint64_t now = mk_worker_now_ms(m->worker), after = m->memory->settings->replace_ms;
    if (m->stage < MEMORY_SHEDDING || !after || now - m->shed_since_ms < after ||
        (m->requested_ms && now - m->requested_ms < REPLACE_AGAIN_MS))
        return;
    if (!m->requested_ms)
        log_use(m, MK_LOG_ERROR, "this worker requests its replacement, because it does not recover");
    m->requested_ms = now;
    (void)mk_worker_request_replacement(m->worker);
}

/* Returns freed memory to the system after a peak, because the C library keeps it for the next one. It also does so
 * from time to time later: memory that is freed then is not seen in the process's use. */
static void trim_after_peak(struct monitor *m)
{
    uint64_t now = mk_worker_now_ms(m->worker);
    if (m->used > m->peak) {
        m->peak = m->used;
        m->trim_at_ms = now + QUIET_MS;
    }
    if (now < m->trim_at_ms || m->used < m->used_at_start + SPARE_MIN)
        return;
    mk_mem_trim();
    measure_use(m);
    m->peak = m->used;
    m->trim_at_ms = now + TRIM_AGAIN_MS;
}

static void check_memory(struct monitor *m)
{
    measure_use(m);
    enum memory_stage stage = memory_stage_next(m->stage, m->used, m->limit);
    if (is_release_due(m, stage)) {
        release_memory(m, stage);
        stage = memory_stage_next(m->stage, m->used, m->limit);
    }
    if (stage != m->stage)
        enter_stage(m, stage);
    reject_connections_after_pause(m);
    if (stage == MEMORY_ENOUGH)
        trim_after_peak(m);
    if (stage < MEMORY_SHEDDING)
        m->requested_ms = 0;
    request_replacement(m);
    show_state(m);
}

static void on_check_timer(struct mk_timer *t)
{
    struct monitor *m = MK_CONTAINER(t, struct monitor, timer);
    check_memory(m);
    mk_timer_set(t, m->worker, CHECK_MS);
}

/* ---- Requests ---- */

static bool is_exempt(const struct memory_exceptions *e, struct mk_request *request)
{
    for (size_t i = 0; i < e->n; i++)
        if (mk_conditions_match(e->at[i], request) == MK_REGEX_MATCH)
            return true;
    return false;
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct memory *memory = host_data;
    struct monitor *m = mk_worker_data(mk_request_worker(request), &MK_PLUGIN_OF(memory));
    if (!m || m->stage < MEMORY_SHEDDING || is_exempt(&memory->settings->except, request))
        return MK_NEXT;
    m->n_rejected++;
    count(m, CELL_REJECTED);
    char buf[8];
    struct mk_buf seconds = mk_buf_fixed(buf, sizeof buf);
    mk_buf_add_num(&seconds, RETRY_AFTER_S);
    mk_response_set_header(response, MK_STR("Retry-After"), mk_buf_str(&seconds));
    mk_response_set_status(response, 503);
    return MK_ERROR;
}

/* ---- Configuration ---- */

static int load_plugin(struct mk_config *config, void **data)
{
    struct memory *memory = mk_config_alloc(config, sizeof *memory);
    if (!memory)
        return -ENOMEM;
    memory->settings = mk_config_settings(config, &memory_table);
    if (!memory->settings)
        return -ENOMEM;
    uint64_t machine = memory_usage_machine();
    memory->available = memory_usage_cgroup_max("/proc/self");
    if (machine < memory->available)
        memory->available = machine;
    struct mk_stat_registry *r = mk_config_statistics(config);
    memory->series = mk_stat_series(r, mk_stat_register_table(r, &stat_table), NULL);
    mk_config_allow_path(config, NULL, NULL, MK_STR(MEMORY_STATM));
    *data = memory;
    return 0;
}

static int bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    (void)config, (void)host;
    *host_data = data;
    return 0;
}

/* ---- Lifetime ---- */

static uint64_t limit_of_worker(const struct memory *memory, unsigned workers)
{
    uint64_t limit = memory->settings->limit;
    return limit ? limit : memory_usage_share(memory->available, workers, MEMORY_LIMIT_MIN);
}

static void check_total(const struct monitor *m)
{
    unsigned workers = mk_worker_count(m->worker);
    if (mk_worker_index(m->worker) || m->limit <= m->memory->available / workers)
        return;
    mk_worker_log(m->worker, MK_LOG_WARN,
                  "memory: %u workers with a Limit of %llu.%llu MB may use more than the %llu.%llu MB that "
                  "the server has: the "
                  "kernel may kill them; reduce %s",
                  workers, MB_ARG(m->limit), MB_ARG(m->memory->available),
                  m->memory->settings->limit ? "Limit or Workers" : "Workers");
}

/* A worker that can never serve must not start: a reload then keeps the old configuration. */
static int check_start(struct monitor *m)
{
    measure_use(m);
    m->used_at_start = m->peak = m->used;
    if (m->used && memory_stage_next(MEMORY_RELEASING, m->used, m->limit) == MEMORY_ENOUGH)
        return 0;
    if (m->used)
        log_use(m, MK_LOG_ERROR, "the Limit in [MEMORY] is too low, because the worker has only started");
    else
        mk_worker_log(m->worker, MK_LOG_ERROR, "memory: the Limit in [MEMORY] needs " MEMORY_STATM);
    return -EINVAL;
}

static int start_monitor(struct monitor *m)
{
    if (mk_worker_master_pid(m->worker) == getpid()) {
        mk_worker_log(
            m->worker, MK_LOG_ERROR,
            "memory: a program that embeds the server has no worker processes whose memory can be limited");
        return -ENOTSUP;
    }
    m->statm_fd = open(MEMORY_STATM, O_RDONLY | O_CLOEXEC);
    m->page = (uint64_t)sysconf(_SC_PAGESIZE);
    m->limit = limit_of_worker(m->memory, mk_worker_count(m->worker));
    m->cells = mk_worker_cells(m->worker, m->memory->series);
    check_total(m);
    int e = check_start(m);
    if (e)
        return e;
    show_state(m);
    mk_timer_init(&m->timer, on_check_timer);
    mk_timer_set(&m->timer, m->worker, CHECK_MS);
    return 0;
}

static void free_monitor(struct monitor *m)
{
    mk_timer_stop(&m->timer);
    if (m->statm_fd >= 0)
        close(m->statm_fd);
    mk_mem_free(m);
}

static int worker_start(struct mk_worker *worker, void *data)
{
    struct monitor *m = mk_mem_zalloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->memory = data;
    m->worker = worker;
    m->statm_fd = -1;
    int e = start_monitor(m);
    if (e)
        free_monitor(m);
    else
        mk_worker_set_data(worker, &MK_PLUGIN_OF(memory), m);
    return e;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    free_monitor(mk_worker_data(worker, &MK_PLUGIN_OF(memory)));
    mk_worker_set_data(worker, &MK_PLUGIN_OF(memory), NULL);
}

MK_PLUGIN(memory) = {
    MK_PLUGIN_HEAD,
    .name = "memory",
    .version = "1.0",
    .help = "Limits the memory of workers: rejects requests before the kernel kills a worker.",
    .priority = MK_PRIORITY_ADDRESS + 1, /* the client address is known */
    .sections = (const struct mk_conf_table *const[]){&memory_table, NULL},
    .load = load_plugin,
    .host = bind_vhost,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_request = on_request,
};
