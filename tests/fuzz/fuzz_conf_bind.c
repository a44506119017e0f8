/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and binds a section of every type: accepted input is printed; reading and binding that output prints
 * the same output again. */
#include <stdlib.h>

#include "conf/check.h"
#include "conf/print.h"
#include "conf/read.h"
#include "unit/conf/sample.h"

static const struct mk_conf_table *const tables[] = {&sample_table, &route_table};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static mk_err on_read(void *ctx, mk_str path, struct mk_buf *out)
{
    (void)ctx, (void)path, (void)out;
    return -ENOENT;
}

/* Binds each section to a struct of its own and prints it; returns false on errors. */
static bool print_bound(const struct mk_conf_tree *tree, struct mk_arena *arena,
                        struct mk_conf_report *report, struct mk_buf *out)
{
    for (const struct mk_conf_section *s = tree->first; s; s = s->next) {
        struct sample sample = {0};
        bool routes = mk_str_eq_nocase(s->name, MK_STR("ROUTES"));
        size_t n_errors = report->n_errors;
        mk_err err = mk_conf_bind(tables[routes], s, &sample, arena, report);
        expect(err == (report->n_errors > n_errors ? -EINVAL : 0));
        mk_conf_print_section(tables[routes], &sample, out);
        expect(!out->failed);
    }
    return report->n_errors == 0;
}

static bool has_long_line(mk_str text)
{
    while (text.p)
        if (mk_str_cut(&text, '\n').len > MK_CONF_LINE_MAX)
            return true;
    return false;
}

/* Binds the text and prints the result; returns false on errors. */
static bool run(mk_str text, struct mk_buf *out)
{
    const struct mk_conf_io io = {.read = on_read};
    struct mk_arena arena;
    struct mk_conf_report report;
    struct mk_conf_tree tree = {0};
    mk_arena_init(&arena, NULL);
    mk_conf_report_init(&report, &arena);
    bool ok = mk_conf_read_text(&tree, &arena, &io, MK_STR("t"), text, &report) == 0;
    ok = mk_conf_check_sections(&tree, tables, MK_LEN(tables), &report) == 0 && ok;
    ok = print_bound(&tree, &arena, &report, out) && ok;
    struct mk_buf problems = mk_buf_growing(1 << 22);
    mk_conf_report_print(&report, &problems);
    expect(!problems.failed);
    mk_buf_free(&problems);
    mk_arena_fini(&arena);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_buf first = mk_buf_growing(1 << 22), second = mk_buf_growing(1 << 22);
    bool ok = run(mk_str_of(size ? (const char *)data : "", size), &first);
    if (ok && !has_long_line(mk_buf_str(&first))) {
        expect(run(mk_buf_str(&first), &second));
        expect(mk_str_eq(mk_buf_str(&first), mk_buf_str(&second)));
    }
    mk_buf_free(&first);
    mk_buf_free(&second);
    return 0;
}
