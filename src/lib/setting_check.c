/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/setting_check.h"

#include "conf/bind.h"
#include "conf/read.h"
#include "setup/conf_disk_io.h"
#include "setup/embedding.h"
#include "setup/keys.h"

/* Storage for the settings of any section. */
union settings {
    struct mk_server_settings server;
    struct mk_vhost_settings host;
    struct mk_location_settings location;
    struct mk_conf_pairs pairs;
};

struct setting_trial {
    struct mk_arena arena;
    struct mk_conf_report report;
    struct mk_conf_tree tree;
    union settings settings;
};

static const struct mk_conf_table *find_table(mk_str section)
{
    for (size_t i = 0; i < MK_SECTIONS; i++)
        if (mk_str_eq_nocase(section, mk_str_from_c(mk_keys_tables[i]->section)))
            return mk_keys_tables[i];
    return NULL;
}

/* Explains the first problem without its position, which the caller knows. */
static void explain_first_problem(const struct mk_conf_report *report, struct mk_buf *error)
{
    const struct mk_conf_problem *p = report->first;
    if (!p)
        return;
    mk_buf_add(error, p->text);
    if (p->hint.p)
        mk_buf_addf(error, "; %.*s", MK_STR_ARG(p->hint));
}

static void init_setting_trial(struct setting_trial *t)
{
    memset(t, 0, sizeof *t);
    mk_arena_init(&t->arena, NULL);
    mk_conf_report_init(&t->report, &t->arena);
}

static mk_err bind_setting(struct setting_trial *t, const struct mk_conf_table *table,
                           const struct mk_conf_section *section, struct mk_buf *error)
{
    if (section)
        (void)!mk_conf_bind_without_defaults(table, section, &t->settings, &t->arena, &t->report);
    mk_err e = mk_conf_report_result(&t->report);
    if (e)
        explain_first_problem(&t->report, error);
    return e;
}

static mk_err parse_setting_line(struct setting_trial *t, const struct mk_conf_table *table, mk_str key,
                                 mk_str value, struct mk_buf *error)
{
    mk_str text = mk_arena_printf(&t->arena, "[%s]\n    %.*s %.*s\n", table->section, MK_STR_ARG(key),
                                  MK_STR_ARG(value));
    if (!text.p)
        return -ENOMEM;
    (void)!mk_conf_read_text(&t->tree, &t->arena, &mk_conf_disk_io, MK_EMBEDDING_NAME, text, &t->report);
    return bind_setting(t, table, t->tree.first, error);
}

mk_err mk_setting_check(mk_str section, mk_str key, mk_str value, struct mk_buf *error)
{
    const struct mk_conf_table *table = find_table(section);
    struct setting_trial t;
    if (!table)
        return 0;
    init_setting_trial(&t);
    mk_err e = parse_setting_line(&t, table, key, value, error);
    mk_arena_fini(&t.arena);
    return e;
}

mk_err mk_setting_check_listen(mk_str where, struct mk_listen *out, struct mk_buf *error)
{
    struct setting_trial t;
    init_setting_trial(&t);
    const struct mk_conf_entry entry = {.key = MK_STR("Listen"),
                                        .value = mk_arena_copy(&t.arena, mk_str_trim(where))};
    struct mk_conf_section section = {.name = MK_STR("SERVER")};
    if (!entry.value.p || !mk_conf_tree_add_entry(&section, &t.arena, &entry)) {
        mk_arena_fini(&t.arena);
        return -ENOMEM;
    }
    mk_err e = bind_setting(&t, &mk_keys_server, &section, error);
    if (!e && t.settings.server.listens.n != 1)
        e = -EINVAL;
    if (!e)
        *out = t.settings.server.listens.at[0];
    out->written = MK_STR_NULL; /* freed with the arena */
    mk_arena_fini(&t.arena);
    return e;
}

/* In generated text, line numbers mean nothing to the caller, and the library may have added the header of a
 * section: only the line itself is shown. */
static struct mk_conf_problem without_line_number(const struct mk_conf_problem *p)
{
    struct mk_conf_problem shown = *p;
    if (!mk_str_eq(p->at.file, MK_EMBEDDING_NAME))
        return shown;
    shown.at = (struct mk_conf_source_pos){.source = mk_str_trim(p->at.source)};
    if (mk_str_starts(shown.at.source, MK_STR("[HOST]")))
        shown.at.source = MK_STR_NULL;
    return shown;
}

void mk_setting_print_problems(const struct mk_conf_report *report, struct mk_buf *out)
{
    for (const struct mk_conf_problem *p = report->first; p; p = p->next) {
        const struct mk_conf_problem shown = without_line_number(p);
        mk_conf_report_print_one(&shown, out);
    }
    mk_conf_report_print_omitted(report, out);
    if (mk_conf_report_out_of_memory(report))
        mk_buf_add(out, MK_STR("out of memory\n"));
    while (out->len && out->p[out->len - 1] == '\n')
        out->len--;
}
