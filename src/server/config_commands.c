/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config_commands.h"

#include <stdio.h>
#include <time.h>

#include "base/num.h"
#include "server/config_diff.h"
#include "server/config_store.h"
#include "server/report_output.h"
#include "setup/config_generation.h"

enum { SAME = 0, DIFFERENT = 1, TROUBLE = 2, OUT_MAX = 64 << 20, TIME_SIZE = 32 };

/* ---- Help ---- */

#define CONFIG_OPTION                                                                                        \
    "\nOptions, before the command:\n"                                                                       \
    "  -c, --config FILE|FOLDER          The configuration (default: " MK_SYSCONFDIR "/monkey).\n"

mk_str mk_config_commands_help(const char *command)
{
    if (strcmp(command, "diff") == 0)
        return MK_STR(CONFIG_OPTION
                      "\nExit codes: 0 no differences, 1 differences, 2 failure or wrong usage.\n");
    if (strcmp(command, "configurations") == 0)
        return MK_STR(CONFIG_OPTION "\nExit codes: 0 success, 2 failure or wrong usage.\n");
    return MK_STR_NULL;
}

static int print_store_error(const char *error)
{
    mk_report_output_print_error("cannot read the kept configurations: %s", error);
    return TROUBLE;
}

static void write_time(char buf[TIME_SIZE], int64_t at)
{
    time_t t = (time_t)at;
    struct tm tm;
    localtime_r(&t, &tm);
    if (!strftime(buf, TIME_SIZE, "%Y-%m-%d %H:%M:%S", &tm))
        buf[0] = '\0';
}

static void print_nothing_kept(const char *path)
{
    mk_report_output_print_error(
        "no configuration of %s is kept: no server has served it, or its state folder cannot be written",
        path);
}

/* ---- monkey configurations ---- */

static const char *describe_outcome(const struct mk_config_entry *e, bool is_newest)
{
    if (!is_newest)
        return mk_config_outcome_names[e->outcome];
    return e->outcome == MK_OUTCOME_UNCONFIRMED ? "serves, waits for its confirmation"
           : e->outcome == MK_OUTCOME_CONFIRMED ? "serves, confirmed"
                                                : "serves";
}

int mk_config_commands_list(const struct mk_config_source *files)
{
    struct mk_config_list list;
    const char *error;
    char time[TIME_SIZE];
    if (!files->path) {
        mk_report_output_print_error("only configurations in files are kept");
        return TROUBLE;
    }
    if (mk_config_store_list(files->path, &list, &error))
        return print_store_error(error);
    if (!list.n) {
        print_nothing_kept(files->path);
        return TROUBLE;
    }
    printf("%8s  %-19s  %-40s  %s\n", "number", "since", "by", "outcome");
    for (size_t i = 0; i < list.n; i++) {
        write_time(time, list.at[i].time);
        printf("%8u  %-19s  %-40s  %s\n", list.at[i].number, time, list.at[i].by,
               describe_outcome(&list.at[i], i == 0));
    }
    return fflush(stdout) ? TROUBLE : 0;
}

/* ---- monkey diff ---- */

/* Loads a configuration as `monkey -T` does, and lists its lines. */
static bool load_lines(const struct mk_config_source *source, struct mk_arena *arena,
                       struct mk_config_lines *out)
{
    struct mk_conf_report report;
    struct mk_config_generation *g = mk_config_generation_load(source, arena, &report);
    if (!g) {
        mk_report_output_print(&report);
        return false;
    }
    bool ok = mk_config_diff_lines(g, arena, out);
    mk_config_generation_free(g);
    return ok;
}

/* Finds the configuration that serves. 0: none is kept, which was reported. */
static unsigned newest_number(const char *path)
{
    struct mk_config_list list;
    const char *error;
    if (mk_config_store_list(path, &list, &error)) {
        (void)print_store_error(error);
        return 0;
    }
    if (!list.n)
        print_nothing_kept(path);
    return list.n ? list.at[0].number : 0;
}

static bool load_kept_lines(const struct mk_config_source *files, unsigned number, struct mk_arena *arena,
                            struct mk_config_lines *out, struct mk_buf *name)
{
    struct mk_config_entry entry;
    struct mk_config_source source = *files;
    struct mk_config_texts *texts = mk_config_texts_new();
    const char *error = "out of memory";
    char time[TIME_SIZE];
    mk_err e = texts ? mk_config_store_read(files->path, number, &entry, texts, &error) : -ENOMEM;
    bool ok = !e;
    if (ok) {
        write_time(time, entry.time);
        mk_buf_addf(name, "configuration %u, since %s, by %s", number, time, entry.by);
        mk_config_texts_replay(texts, &source);
        ok = load_lines(&source, arena, out);
    } else {
        mk_report_output_print_error("cannot read configuration %u: %s", number,
                                     e == -ENOENT ? "it is not kept" : error);
    }
    mk_config_texts_unref(texts);
    return ok;
}

static int print_diff(const struct mk_config_lines *a, const struct mk_config_lines *b, mk_str a_name,
                      const char *b_name)
{
    struct mk_buf out = mk_buf_growing(OUT_MAX);
    int code = TROUBLE;
    if (mk_config_diff_write(a, b, a_name, mk_str_from_c(b_name), &out))
        code = out.len ? DIFFERENT : SAME;
    if (out.len && fwrite(out.p, 1, out.len, stdout) != out.len)
        code = TROUBLE;
    mk_buf_free(&out);
    return fflush(stdout) ? TROUBLE : code;
}

int mk_config_commands_diff(const struct mk_config_source *files, const char *number)
{
    uint64_t n = 0;
    char buf[256];
    struct mk_buf name = mk_buf_fixed(buf, sizeof buf);
    struct mk_arena arena;
    struct mk_config_lines kept, now;
    if (!files->path || (number && (!mk_num_parse(mk_str_from_c(number), &n) || !n || n > UINT32_MAX))) {
        mk_report_output_print_error(files->path ? "expected the number of a kept configuration, not `%s`"
                                                 : "only configurations in files are kept",
                                     number);
        return TROUBLE;
    }
    if (!number)
        n = newest_number(files->path);
    if (!n)
        return TROUBLE;
    mk_arena_init(&arena, NULL);
    int code = load_kept_lines(files, (unsigned)n, &arena, &kept, &name) && load_lines(files, &arena, &now)
                   ? print_diff(&kept, &now, mk_buf_str(&name), files->path)
                   : TROUBLE;
    mk_arena_fini(&arena);
    return code;
}
