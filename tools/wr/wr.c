/* SPDX-License-Identifier: Apache-2.0 */
/* The main program of wr, "watch resources": measures what a server uses while a load client runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "wr/child.h"
#include "wr/message.h"
#include "wr/report.h"

enum { USAGE = 2, TEXT_MAX = 1 << 30 };

struct outputs {
    FILE *table, *csv, *json; /* NULL: not requested */
};

/* Writes the buffer to the file and frees it. */
static bool write_output(FILE *to, struct mk_buf *text)
{
    bool good =
        !text->failed && fwrite(text->p ? text->p : "", 1, text->len, to) == text->len && fflush(to) == 0;
    mk_buf_free(text);
    return good || wr_message_error("cannot write the results: is the disk full?");
}

static bool create_output_file(const char *path, FILE **out)
{
    *out = fopen(path, "we");
    return *out || wr_message_error("cannot write %s: %s", path, mk_err_text(mk_err_last()));
}

static bool open_outputs(const struct wr_options *o, struct outputs *out)
{
    bool to_stdout = o->json && strcmp(o->json, "-") == 0;
    *out = (struct outputs){.table = to_stdout ? NULL : stdout, .json = to_stdout ? stdout : NULL};
    return (!o->csv || create_output_file(o->csv, &out->csv)) &&
           (!o->json || to_stdout || create_output_file(o->json, &out->json));
}

static bool on_step_finished(void *data, const struct wr_sweep *sweep, const struct wr_step *step)
{
    struct outputs *to = data;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    if (to->table) {
        wr_table_write_row(sweep, step, &text);
        if (!write_output(to->table, &text))
            return false;
    }
    if (!to->csv)
        return true;
    wr_csv_write_rows(step, &text);
    return write_output(to->csv, &text);
}

static bool write_headers(const struct wr_sweep *s, struct outputs *to)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    if (to->table) {
        wr_table_write_header(s, &text);
        if (!write_output(to->table, &text))
            return false;
    }
    if (!to->csv)
        return true;
    wr_csv_write_header(&text);
    return write_output(to->csv, &text);
}

static bool write_footers(const struct wr_sweep *s, struct outputs *to, bool complete)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    if (to->table && complete) {
        wr_table_write_footer(s, &text);
        if (!write_output(to->table, &text))
            return false;
    }
    if (!to->json)
        return true;
    wr_json_write(s, complete, &text);
    return write_output(to->json, &text);
}

static bool run_sweep(const struct wr_options *o)
{
    struct outputs to = {NULL, NULL, NULL};
    struct wr_sweep_callback listener = {.data = &to, .on_step = on_step_finished};
    struct mk_arena arena;
    struct wr_sweep sweep;
    mk_arena_init(&arena, NULL);
    bool good = wr_sweep_init(&sweep, o, &arena) && open_outputs(o, &to) && write_headers(&sweep, &to) &&
                wr_sweep_run(&sweep, &listener);
    if (to.table || to.json || to.csv) /* writes the finished steps even after a failure */
        good = write_footers(&sweep, &to, good) && good;
    if (sweep.had_error_responses && !o->json) /* the JSON document reports them */
        good = false;
    wr_sweep_fini(&sweep);
    mk_arena_fini(&arena);
    return good;
}

/* Sets the descriptor limit and the affinity mask, which the client inherits. */
static bool set_limits_and_affinity(const struct wr_options *o)
{
    enum { MANY = 1 << 20 };
    struct rlimit files;
    mk_err e = wr_child_prepare();
    if (e)
        return wr_message_error("cannot handle signals: %s", mk_err_text(e));
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max < MANY ? files.rlim_max : MANY;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (o->has_client_cores && sched_setaffinity(0, sizeof o->client_cores, &o->client_cores) < 0)
        return wr_message_error("--client-cores: wr may not run there: %s", mk_err_text(mk_err_last()));
    return true;
}

int main(int argc, char **argv)
{
    static struct wr_options options;
    if (!wr_options_parse(argc, argv, &options)) {
        fputs("Try `wr --help`.\n", stderr);
        return USAGE;
    }
    if (options.help || options.version) {
        if (options.help)
            fputs(wr_options_help, stdout);
        else
            puts("wr " MK_VERSION);
        return EXIT_SUCCESS;
    }
    wr_message_init(options.quiet);
    return set_limits_and_affinity(&options) && run_sweep(&options) ? EXIT_SUCCESS : EXIT_FAILURE;
}
