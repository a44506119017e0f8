/* SPDX-License-Identifier: Apache-2.0 */
/* Exports the spans of sampled traces by OTLP over HTTP. Workers write the spans of finished requests into a pipe and
 * never wait. A separate program, monkey-otlp, reads the pipe and sends batches to the collector. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <monkey/stats.h>
#include <monkey/version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper_process.h"
#include "spans.h"

#define PROGRAM "monkey-otlp"

enum { PIPE_SIZE = 1 << 20, CERTIFICATE_PART = 64 * 1024 };

struct otlp {
    struct otlp_helper_job job; /* job.settings is NULL: no [OTLP] */
    int write_fd;
    uint32_t series;
};

struct otlp_worker {
    uint64_t *cells;
    struct otlp_helper_process *helper; /* NULL: another worker has it */
};

MK_PLUGIN_DECLARE(otlp);

static const struct mk_stat_metric metrics[] = {
    [OTLP_STAT_EXPORTED] = {.name = "monkey_otlp_spans_exported_total",
                            .help = "Spans that the collector has accepted.",
                            .column = "exported"},
    [OTLP_STAT_LOST] =
        {.name = "monkey_otlp_spans_lost_total",
         .help = "Spans that could not be exported: the queue was full, or the collector rejected them.",
         .column = "lost"},
};

static const struct mk_stat_table table = {.name = "otlp", .metrics = metrics, .n_metrics = MK_LEN(metrics)};

/* ---- The configuration ---- */

/* Writes the folder of this plugin's shared object or, if the plugin is built in, of the server program. */
static mk_str find_own_folder(char path[PATH_MAX])
{
#ifdef MK_PLUGIN_STATIC
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[len > 0 ? len : 0] = '\0';
#else
    Dl_info info;
    if (!dladdr(&MK_PLUGIN_OF(otlp), &info) || !info.dli_fname || !realpath(info.dli_fname, path))
        path[0] = '\0';
#endif
    size_t slash = mk_str_find_last(mk_str_from_c(path), '/');
    return mk_str_first(mk_str_from_c(path), slash == MK_STR_NONE ? 0 : slash);
}

static const char *find_helper(struct mk_config *config)
{
    char path[PATH_MAX];
    mk_str folders[] = {find_own_folder(path), MK_STR_INIT(OTLP_PROGRAM_FOLDER)};
    for (size_t i = 0; i < MK_LEN(folders); i++) {
        size_t size = folders[i].len + sizeof "/" PROGRAM;
        char *file = mk_config_alloc(config, size);
        if (!file)
            return NULL;
        struct mk_buf text = mk_buf_fixed(file, size);
        mk_buf_addf(&text, "%.*s/%s", MK_STR_ARG(folders[i]), PROGRAM);
        mk_buf_add_char(&text, '\0');
        if (access(file, X_OK) == 0)
            return file;
    }
    mk_config_error(config, NULL, NULL, "cannot find the program %s, which exports spans, in %s", PROGRAM,
                    OTLP_PROGRAM_FOLDER);
    return NULL;
}

static const char *find_certificate_problem(struct mk_config *config, int fd)
{
    static const mk_str begin = MK_STR_INIT("-----BEGIN ");
    char text[CERTIFICATE_PART];
    struct stat st;
    uid_t uid;
    gid_t gid;
    ssize_t n = read(fd, text, sizeof text);
    if (n < 0)
        return strerror(errno);
    if (!memmem(text, (size_t)n, begin.p, begin.len))
        return "it contains no certificate";
    if (fstat(fd, &st) < 0)
        return strerror(errno);
    bool is_denied = mk_config_user(config, &uid, &gid) && uid != 0 &&
                     !(st.st_mode & (st.st_uid == uid   ? S_IRUSR
                                     : st.st_gid == gid ? S_IRGRP
                                                        : S_IROTH));
    return is_denied ? "the User of the workers may not read it" : NULL;
}

/* Without the file, each request to the collector would fail. */
static void check_certificate(struct mk_config *config, const struct otlp_settings *s)
{
    if (!s->certificate.len)
        return;
    int fd = open(s->certificate.p, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *problem = fd < 0 ? strerror(errno) : find_certificate_problem(config, fd);
    if (problem)
        mk_config_error(config, s, "Certificate", "%s cannot be used: %s", s->certificate.p, problem);
    if (fd >= 0)
        close(fd);
}

static int load_settings(struct mk_config *config, void **data)
{
    struct otlp *o = mk_config_alloc(config, sizeof *o);
    if (!o)
        return -ENOMEM;
    *data = o;
    o->write_fd = o->job.read_fd = -1;
    o->job.settings = mk_config_section(config, &otlp_table, NULL);
    if (!o->job.settings)
        return 0;
    struct mk_stat_registry *registry = mk_config_statistics(config);
    o->series = mk_stat_series(registry, mk_stat_register_table(registry, &table), NULL);
    check_certificate(config, o->job.settings);
    o->job.program = find_helper(config);
    if (o->job.program)
        mk_config_allow_program(config, o->job.settings, NULL,
                                &(struct mk_program){.path = o->job.program,
                                                     .arguments = otlp_helper_arguments,
                                                     .variables = otlp_helper_variables,
                                                     .first_worker_only = true});
    return 0;
}

static int bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct otlp *o = data;
    (void)host;
    if (!o->job.settings)
        return 0;
    *host_data = o;
    mk_config_record_traces(config);
    return 0;
}

/* ---- The pipe ---- */

/* The read end, between the two calls of mk_config_shared_fd() in the master. */
static _Thread_local int new_read_fd = -1;

static int make_write_end(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    (void)fcntl(ends[1], F_SETPIPE_SZ,
                PIPE_SIZE); /* may exceed a limit of the user: the pipe is then smaller */
    new_read_fd = ends[0];
    return ends[1];
}

static int make_read_end(void)
{
    return new_read_fd;
}

/* All configurations share the pipe, so that a new helper process exports the spans of draining workers. */
static int open_pipe(struct mk_config *config, void *data)
{
    struct otlp *o = data;
    if (!o->job.settings)
        return 0;
    o->write_fd = mk_config_shared_fd(config, "otlp: write end", make_write_end);
    o->job.read_fd = o->write_fd < 0 ? -1 : mk_config_shared_fd(config, "otlp: read end", make_read_end);
    return o->write_fd < 0 ? o->write_fd : o->job.read_fd < 0 ? o->job.read_fd : 0;
}

/* ---- The worker ---- */

static int worker_start(struct mk_worker *worker, void *data)
{
    const struct otlp *o = data;
    if (!o->job.settings)
        return 0;
    struct otlp_worker *w = mk_mem_zalloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->cells = mk_worker_cells(worker, o->series);
    mk_worker_set_data(worker, &MK_PLUGIN_OF(otlp), w);
    if (mk_worker_index(worker) != 0)
        return 0;
    w->helper = otlp_helper_process_start(worker, &o->job, w->cells);
    return w->helper ? 0 : -ENOMEM;
}

static void worker_drain(struct mk_worker *worker, void *data)
{
    struct otlp_worker *w = mk_worker_data(worker, &MK_PLUGIN_OF(otlp));
    (void)data;
    if (w)
        otlp_helper_process_drain(w->helper);
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    struct otlp_worker *w = mk_worker_data(worker, &MK_PLUGIN_OF(otlp));
    (void)data;
    if (w)
        otlp_helper_process_stop(w->helper);
    mk_mem_free(w);
}

/* ---- Requests ---- */

static void write_spans(const struct mk_access_record *access, void *host_data)
{
    const struct otlp *o = host_data;
    const struct mk_request *request = mk_access_record_request(access);
    const struct mk_trace *trace = mk_request_trace(request);
    if (!trace || !trace->is_recorded)
        return;
    unsigned n_lost = otlp_spans_write(o->write_fd, access, trace);
    const struct otlp_worker *w =
        n_lost ? mk_worker_data(mk_request_worker(request), &MK_PLUGIN_OF(otlp)) : NULL;
    if (w && w->cells)
        mk_stat_add(&w->cells[OTLP_STAT_LOST], n_lost);
}

MK_PLUGIN(otlp) = {
    MK_PLUGIN_HEAD,
    .name = "otlp",
    .version = MONKEY_VERSION,
    .help = "Exports the spans of traces to a collector (OpenTelemetry, OTLP over HTTP).",
    .priority = MK_PRIORITY_LATE,
    .sections = (const struct mk_conf_table *const[]){&otlp_table, NULL},
    .load = load_settings,
    .host = bind_vhost,
    .master_start = open_pipe,
    .worker_start = worker_start,
    .worker_drain = worker_drain,
    .worker_stop = worker_stop,
    .on_done = write_spans,
};
