/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/embedding.h"

#include "conf/table.h"
#include "setup/conf_disk_io.h"
#include "setup/keys.h"

static bool is_server_section(const struct mk_conf_section *s)
{
    return mk_str_eq_nocase(s->name, MK_STR("SERVER"));
}

/* Drops the [SERVER] entries of the file whose keys the program also sets. */
static void drop_overridden_entries(struct mk_conf_section *of_file, const struct mk_conf_section *of_program)
{
    struct mk_conf_entry **at = &of_file->first;
    of_file->last = NULL;
    while (*at)
        if (mk_conf_table_entry(&mk_keys_server, of_program, (*at)->key)) {
            *at = (*at)->next;
            of_file->n--;
        } else {
            of_file->last = *at;
            at = &(*at)->next;
        }
}

static void merge_section(struct mk_config_generation *g, struct mk_conf_section *into,
                          const struct mk_conf_section *from)
{
    drop_overridden_entries(into, from);
    for (const struct mk_conf_entry *e = from->first; e; e = e->next)
        (void)!mk_conf_tree_add_entry(into, &g->arena, e); /* the arena records the failure */
}

static struct mk_conf_section *find_server_section(const struct mk_conf_tree *t)
{
    struct mk_conf_section *s = t->first;
    while (s && !is_server_section(s))
        s = s->next;
    return s;
}

static void append_section(struct mk_conf_tree *t, struct mk_conf_section *s)
{
    s->next = NULL;
    if (t->last)
        t->last->next = s;
    else
        t->first = s;
    t->last = s;
    t->n++;
}

/* Merges the sections of `text`, which the program has set. */
static void merge_text(struct mk_config_generation *g, mk_str text, struct mk_conf_report *report)
{
    struct mk_conf_tree own = {0};
    struct mk_conf_section *server = find_server_section(&g->tree);
    (void)!mk_conf_read_text(&own, &g->arena, &mk_conf_disk_io, MK_EMBEDDING_NAME, text, report);
    for (struct mk_conf_section *s = own.first, *next; s; s = next) {
        next = s->next;
        if (is_server_section(s) && server)
            merge_section(g, server, s);
        else
            append_section(&g->tree, s);
    }
}

/* Adds a [HOST] if there is none: the program's own routes need a host, but not one in the file. */
void mk_embedding_merge_text(struct mk_config_generation *g, mk_str text, struct mk_conf_report *report)
{
    merge_text(g, text, report);
    if (!mk_conf_tree_find(&g->tree, MK_STR("HOST")))
        merge_text(g, MK_STR("[HOST]\n"), report);
}

void mk_embedding_default_logs(struct mk_config_generation *g)
{
    if (!mk_conf_table_find_entry(find_server_section(&g->tree), MK_STR("ErrorLog")))
        g->server.error_log = MK_STR("off");
}
