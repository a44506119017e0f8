/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the migrations that a database has run with the files. */
#include <duda/sql_backend.h>
#include <errno.h>

enum { NAMED_MAX = 3 };

static const struct duda_sql_applied *find_history_row(const struct duda_sql_history *h, mk_str service,
                                                       uint64_t number)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->applied[i].number == number && mk_str_eq(h->applied[i].service, service))
            return &h->applied[i];
    return NULL;
}

static const struct duda_sql_migration *find_migration(const struct duda_sql_migration *all, uint64_t number)
{
    while (all && all->number != number)
        all = all->next;
    return all;
}

/* Returns whether this service may adopt the rows of an earlier version, which name no service. It must have
 * a file for each of them. */
static bool can_adopt_rows(const struct duda_sql_history *h, const struct duda_sql_migration *all)
{
    bool has_any = false;
    for (size_t i = 0; i < h->n; i++) {
        const struct duda_sql_applied *row = &h->applied[i];
        const struct duda_sql_migration *m = find_migration(all, row->number);
        if (row->service.len || !m || !mk_str_eq(m->name, row->name))
            return false;
        has_any = true;
    }
    return has_any && h->service.len;
}

const struct duda_sql_applied *duda_sql_history_find(const struct duda_sql_history *h, uint64_t number)
{
    return find_history_row(h, h->is_adopted ? MK_STR("") : h->service, number);
}

/* The error messages; only the first NAMED_MAX of them are in the text. */
struct complaints {
    struct mk_buf text;
    unsigned n;
};

static void add_history_error(struct complaints *c, mk_str name, const char *problem, mk_str other)
{
    if (c->n++ >= NAMED_MAX)
        return;
    mk_buf_addf(&c->text, "%s%.*s %s%.*s", c->n > 1 ? "; " : "", MK_STR_ARG(mk_str_first(name, 40)), problem,
                MK_STR_ARG(mk_str_first(other, 40)));
}

static void check_history_row(struct duda_sql_history *h, const struct duda_sql_applied *row,
                              const struct duda_sql_migration *all, struct complaints *c)
{
    const struct duda_sql_migration *m = find_migration(all, row->number);
    if (!m)
        add_history_error(c, row->name, "has been run, but its file is missing", MK_STR(""));
    else if (!mk_str_eq(m->name, row->name))
        add_history_error(c, row->name, "has been run, but its file is now named ", m->name);
    else if (row->checksum.p && !mk_str_eq(row->checksum, mk_str_from_c(m->checksum)))
        add_history_error(c, row->name, "was edited after it had been run", MK_STR(""));
    h->lacks_checksums = h->lacks_checksums || !row->checksum.p;
}

static void check_migration_files(struct duda_sql_history *h, const struct duda_sql_migration *all,
                                  const struct duda_sql_applied *last, struct complaints *c)
{
    for (const struct duda_sql_migration *m = all; m; m = m->next) {
        if (duda_sql_history_find(h, m->number))
            continue;
        if (last && m->number < last->number)
            add_history_error(c, m->name,
                              "cannot run any more, because a later one has been run: ", last->name);
        else if (!h->pending)
            h->pending = m;
    }
}

/* Returns whether migrations were applied to the database, but none of them has the name of a file. They may
 * belong to another service. */
static bool are_all_foreign(const struct duda_sql_history *h, const struct duda_sql_migration *all)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct duda_sql_migration *m = find_migration(all, h->applied[i].number);
        if (m && mk_str_eq(m->name, h->applied[i].name))
            return false;
    }
    return h->n > 0;
}

int duda_sql_history_check(struct duda_sql_history *h, const struct duda_sql_migration *all)
{
    struct complaints c = {.text = mk_buf_fixed(h->message, sizeof h->message - 1)};
    const struct duda_sql_applied *last = NULL;
    const struct duda_sql_migration *newest = all;
    while (newest && newest->next)
        newest = newest->next;
    h->is_adopted = can_adopt_rows(h, all);
    h->pending = NULL;
    h->lacks_checksums = false;
    for (size_t i = 0; i < h->n; i++) {
        const struct duda_sql_applied *row = &h->applied[i];
        if (duda_sql_history_find(h, row->number) != row)
            continue;
        last = row;
        if (newest && row->number <= newest->number)
            check_history_row(h, row, all, &c);
    }
    check_migration_files(h, all, last, &c);
    if (c.n > NAMED_MAX)
        mk_buf_addf(&c.text, "; and %u more", c.n - NAMED_MAX);
    if (c.n && !h->service.len && are_all_foreign(h, all))
        mk_buf_add(&c.text, MK_STR(": several services in one database need MigrationsOf"));
    h->message[c.text.len] = 0;
    return c.n ? -EINVAL : 0;
}
