/* SPDX-License-Identifier: Apache-2.0 */
#include "service/symbolizer.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <monkey/subprocess.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FRAMES = 16, OFFSET = 24, PATIENCE_S = 10, MEMORY = 1 << 30, OUTPUT_MAX = 64 << 10 };

/* A shared object with services. */
struct duda_symbolizer_object {
    struct duda_symbolizer_object *next;
    mk_str name;
    char path[];
};

struct frame {
    uint64_t number; /* in frame 0, `offset` is the instruction itself; else a return address */
    char offset[OFFSET];
};

/* The report being resolved. */
struct duda_symbolizer {
    struct duda_worker_ctx *worker_ctx;
    struct mk_subprocess *child;
    int out;
    const struct duda_symbolizer_object *object;
    struct frame frames[FRAMES];
    size_t n;
};

/* ---- In the master ---- */

bool duda_symbolizer_find_program(struct mk_config *config, struct duda_symbolizer_config *sources)
{
    static const char *const programs[] = {"/usr/bin/addr2line", "/usr/local/bin/addr2line",
                                           "/usr/bin/llvm-addr2line", "/usr/local/bin/llvm-addr2line"};
    for (size_t i = 0; i < MK_LEN(programs) && !sources->addr2line; i++)
        if (access(programs[i], X_OK) == 0)
            sources->addr2line = programs[i];
    static const char *const no_variables[] = {NULL};
    if (sources->addr2line)
        mk_config_allow_program(config, NULL, NULL,
                                &(struct mk_program){.path = sources->addr2line, .variables = no_variables});
    return sources->addr2line;
}

static mk_str file_base_name(mk_str path)
{
    size_t slash = mk_str_find_last(path, '/');
    return slash == MK_STR_NONE ? path : mk_str_skip(path, slash + 1);
}

bool duda_symbolizer_add_object(struct mk_config *config, struct duda_symbolizer_config *sources,
                                const void *address)
{
    Dl_info info;
    char path[PATH_MAX];
    if (!dladdr(address, &info) || !info.dli_fname || !realpath(info.dli_fname, path))
        return true; /* log stacks without source lines */
    struct duda_symbolizer_object *o = mk_config_alloc(config, sizeof *o + strlen(path) + 1);
    if (!o)
        return false;
    memcpy(o->path, path, strlen(path) + 1);
    o->name = file_base_name(mk_str_from_c(info.dli_fname)); /* the object's name, as in reports */
    o->next = sources->objects;
    sources->objects = o;
    return true;
}

/* ---- Running addr2line ---- */

/* Parses "  #1 monkey-shop.so+0x11a2 in price_of()": the object, and the rest. */
static bool parse_frame_line(mk_str line, mk_str *object, struct frame *f)
{
    char buf[OFFSET];
    line = mk_str_trim(line);
    if (!mk_str_starts(line, MK_STR("#")) ||
        !mk_num_parse(mk_str_skip(mk_str_cut(&line, ' '), 1), &f->number) || !line.p)
        return false;
    mk_str word = mk_str_cut(&line, ' ');
    size_t plus = mk_str_find_last(word, '+');
    if (plus == MK_STR_NONE)
        return false;
    snprintf(buf, sizeof buf, "%.*s", MK_STR_ARG(mk_str_skip(word, plus + 1)));
    unsigned long long offset = strtoull(buf, NULL, 16);
    snprintf(f->offset, sizeof f->offset, "0x%llx", offset - (f->number > 0));
    *object = mk_str_first(word, plus);
    return offset > 0;
}

static const struct duda_symbolizer_object *find_object(const struct duda_symbolizer_config *sources,
                                                        mk_str name)
{
    const struct duda_symbolizer_object *o = sources->objects;
    while (o && !mk_str_eq(o->name, name))
        o = o->next;
    return o;
}

/* Parses the frames of the first service on the stack. */
static bool parse_report_frames(struct duda_symbolizer *l, mk_str report)
{
    while (report.p && l->n < FRAMES) {
        mk_str name;
        struct frame f;
        if (!parse_frame_line(mk_str_cut(&report, '\n'), &name, &f))
            continue;
        const struct duda_symbolizer_object *o = find_object(l->worker_ctx->sources, name);
        if (!o || (l->object && o != l->object))
            continue;
        l->object = o;
        l->frames[l->n++] = f;
    }
    return l->object != NULL;
}

static void symbolizer_free(struct duda_symbolizer *l)
{
    l->worker_ctx->symbolizer = NULL;
    if (l->out >= 0)
        close(l->out);
    mk_mem_free(l);
}

/* For each frame, addr2line prints the address, then a function and "FILE:LINE", possibly followed by "
 * (discriminator 2)"; the last two repeat for each function that it was inlined into; "?" stands for
 * unknown. */
static void log_source_lines(const struct duda_symbolizer *l, mk_str output)
{
    size_t n = 0, n_found = 0;
    while (output.len) {
        mk_str function = mk_str_cut(&output, '\n');
        if (mk_str_starts(function, MK_STR("0x"))) {
            n++;
            continue;
        }
        mk_str location = mk_str_cut(&output, '\n');
        bool is_known =
            n && n <= l->n && location.len && location.p[0] != '?' && !mk_str_ends(location, MK_STR(":?"));
        if (is_known && n_found++ == 0)
            mk_worker_log(l->worker_ctx->worker, MK_LOG_ERROR,
                          "source lines of that stack in %s:", l->object->path);
        if (is_known)
            mk_worker_log(l->worker_ctx->worker, MK_LOG_ERROR, "  #%llu %.*s() in %.*s",
                          (unsigned long long)l->frames[n - 1].number, MK_STR_ARG(function),
                          MK_STR_ARG(location));
    }
}

/* The whole output fits into the buffer of a pipe. */
static void on_addr2line_exit(void *ctx, int status)
{
    struct duda_symbolizer *l = ctx;
    struct mk_buf output = mk_buf_growing(OUTPUT_MAX);
    char buf[4096];
    ssize_t n;
    while (status == 0 && (n = read(l->out, buf, sizeof buf)) > 0)
        mk_buf_add(&output, mk_str_of(buf, (size_t)n));
    log_source_lines(l, mk_buf_str(&output));
    mk_buf_free(&output);
    symbolizer_free(l);
}

static struct mk_subprocess *start_addr2line(struct duda_symbolizer *l, const char *program)
{
    enum { BEFORE = 4 };
    const char *argv[BEFORE + FRAMES + 1] = {program, "-afi", "-e", l->object->path}, *const envp[] = {NULL};
    int out[2];
    for (size_t i = 0; i < l->n; i++)
        argv[BEFORE + i] = l->frames[i].offset;
    if (pipe2(out, O_CLOEXEC | O_NONBLOCK))
        return NULL;
    struct mk_subprocess_options o = {.argv = argv,
                                      .envp = envp,
                                      .in = -1,
                                      .out = out[1],
                                      .err = -1,
                                      .cpu_s = PATIENCE_S,
                                      .memory = MEMORY};
    l->out = out[0];
    struct mk_subprocess *child = mk_subprocess_start(l->worker_ctx->worker, &o, on_addr2line_exit, l);
    close(out[1]);
    return child;
}

void duda_symbolizer_log_stack(struct duda_worker_ctx *worker_ctx, mk_str report)
{
    const struct duda_symbolizer_config *sources = worker_ctx->sources;
    if (worker_ctx->symbolizer || !sources->is_started || !sources->addr2line)
        return;
    struct duda_symbolizer *l = mk_mem_zalloc(1, sizeof *l);
    if (!l)
        return;
    l->worker_ctx = worker_ctx;
    l->out = -1;
    worker_ctx->symbolizer = l;
    if (parse_report_frames(l, report))
        l->child = start_addr2line(l, sources->addr2line);
    if (!l->child)
        symbolizer_free(l);
}

void duda_symbolizer_cancel(struct duda_worker_ctx *worker_ctx)
{
    if (!worker_ctx->symbolizer)
        return;
    mk_subprocess_kill(worker_ctx->symbolizer->child);
    symbolizer_free(worker_ctx->symbolizer);
}
