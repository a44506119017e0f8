/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration reader with 1 to 4 files (separated by form feeds): the output has no control bytes, its
 * positions lie within its lines, and a tree without errors survives a round trip through the printer. */
#include <stdlib.h>

#include "conf/path.h"
#include "conf/print.h"
#include "conf/read.h"

enum { FILES = 4 };

struct world {
    mk_str names[FILES], texts[FILES];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static mk_err on_read(void *ctx, mk_str path, struct mk_buf *out)
{
    const struct world *w = (const struct world *)ctx;
    for (size_t i = 0; i < FILES; i++)
        if (w->texts[i].p && mk_str_eq(w->names[i], path)) {
            mk_buf_add(out, w->texts[i]);
            return out->failed ? -EFBIG : 0;
        }
    return -ENOENT;
}

static mk_err on_glob(void *ctx, mk_str pattern, bool (*found)(void *data, mk_str path), void *data)
{
    const struct world *w = (const struct world *)ctx;
    for (size_t i = FILES; i-- > 0;)
        if (w->texts[i].p && mk_str_match(w->names[i], pattern) && !found(data, w->names[i]))
            break;
    return 0;
}

static mk_str on_env(void *ctx, mk_str name)
{
    (void)ctx;
    if (mk_str_eq(name, MK_STR("E")))
        return MK_STR("a \"b\" ${C} d");
    return mk_str_eq(name, MK_STR("B")) ? MK_STR("bad\n") : MK_STR_NULL;
}

static bool is_clean(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((uint8_t)s.p[i] < 0x20 && s.p[i] != '\t')
            return false;
    return true;
}

static void check_entry(const struct mk_conf_entry *e)
{
    expect(e->key.len && e->value.p && is_clean(e->key) && is_clean(e->value));
    expect(e->value.len <= MK_CONF_LINE_MAX && e->at.source.len <= MK_CONF_LINE_MAX);
    expect(e->at.line && e->at.column > 1 && e->at.column + e->key.len <= e->value_column);
    expect(e->value_column <= e->at.source.len + 1);
}

static void write_tree(const struct mk_conf_tree *tree, struct mk_buf *out)
{
    for (const struct mk_conf_section *s = tree->first; s; s = s->next) {
        expect(s->name.len && is_clean(s->name));
        mk_buf_addf(out, "[%.*s]\n", MK_STR_ARG(s->name));
        for (const struct mk_conf_entry *e = s->first; e; e = e->next) {
            check_entry(e);
            mk_conf_print_entry(e->key, e->value, out);
        }
    }
    expect(!out->failed);
}

static bool has_long_line(mk_str text)
{
    while (text.p)
        if (mk_str_cut(&text, '\n').len > MK_CONF_LINE_MAX)
            return true;
    return false;
}

/* The text of a tree must parse as a tree with the same text. */
static void check_again(mk_str text)
{
    const struct mk_conf_io io = {.read = on_read};
    struct mk_arena arena;
    struct mk_conf_report report;
    struct mk_conf_tree tree = {0};
    if (has_long_line(text))
        return;
    mk_arena_init(&arena, NULL);
    mk_conf_report_init(&report, &arena);
    expect(mk_conf_read_text(&tree, &arena, &io, MK_STR("again"), text, &report) == 0);
    struct mk_buf out = mk_buf_growing(1 << 22);
    write_tree(&tree, &out);
    expect(mk_str_eq(mk_buf_str(&out), text));
    mk_buf_free(&out);
    mk_arena_fini(&arena);
}

static void check_report(const struct mk_conf_report *report)
{
    struct mk_buf out = mk_buf_growing(1 << 22);
    mk_conf_report_print(report, &out);
    expect(!out.failed && (out.len > 0) == (report->n_errors + report->n_warnings > 0));
    mk_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = {.names = {MK_STR("m.conf"), MK_STR("a"), MK_STR("d/b"), MK_STR("d/c")}};
    const struct mk_conf_io io = {.read = on_read, .glob = on_glob, .env = on_env, .ctx = &w};
    mk_str rest = mk_str_of(size ? (const char *)data : "", size);
    for (size_t i = 0; i < FILES && rest.p; i++)
        w.texts[i] = mk_str_cut(&rest, '\f');
    struct mk_arena arena;
    struct mk_conf_report report;
    struct mk_conf_tree tree = {0};
    struct mk_buf out = mk_buf_growing(1 << 22);
    mk_arena_init(&arena, NULL);
    mk_conf_report_init(&report, &arena);
    mk_err err = mk_conf_read_file(&tree, &arena, &io, w.names[0], &report);
    expect(err == (report.n_errors ? -EINVAL : 0));
    write_tree(&tree, &out);
    check_report(&report);
    if (!err)
        check_again(mk_buf_str(&out));
    mk_buf_free(&out);
    mk_arena_fini(&arena);
    return 0;
}
