/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the migration files of a folder, in the master. */
#include <dirent.h>
#include <duda/sql_backend.h>
#include <errno.h>
#include <limits.h>
#include <monkey/config.h>
#include <monkey/mem.h>
#include <monkey/text.h>
#include <stdio.h>

enum { FILE_MAX = 1024 * 1024 };

struct reading {
    struct mk_config *config;
    const void *section;
    const char *key;
    struct duda_sql_migration *first;
    bool failed;
};

static void report_file_error(struct reading *r, const char *name, const char *error)
{
    mk_config_error(r->config, r->section, r->key, "%s: %s", name, error);
    r->failed = true;
}

/* Inserts the migration after all migrations with lower numbers. */
static void insert_migration_sorted(struct reading *r, struct duda_sql_migration *m)
{
    struct duda_sql_migration **at = &r->first;
    while (*at && (*at)->number < m->number)
        at = &(*at)->next;
    if (*at && (*at)->number == m->number) {
        report_file_error(r, m->name.p, "another migration already has this number");
        return;
    }
    m->next = *at;
    *at = m;
}

static mk_str read_migration_file(struct reading *r, mk_str folder, const char *name)
{
    mk_str text = MK_STR_NULL;
    char *buf = mk_mem_alloc(FILE_MAX + 1);
    struct mk_buf path = mk_buf_growing(PATH_MAX);
    mk_buf_addf(&path, "%.*s/%s", MK_STR_ARG(folder), name);
    mk_buf_add_char(&path, '\0');
    errno = ENAMETOOLONG;
    FILE *f = path.failed ? NULL : fopen(path.p, "re");
    mk_buf_free(&path);
    if (f && buf) {
        size_t n = fread(buf, 1, FILE_MAX + 1, f);
        if (ferror(f) || n > FILE_MAX || memchr(buf, 0, n))
            report_file_error(r, name,
                              n > FILE_MAX ? "it is longer than 1 MB" : "it cannot be read, or contains NUL");
        else
            text = mk_config_copy(r->config, mk_str_of(buf, n));
    } else {
        report_file_error(r, name, strerror(errno));
    }
    if (f)
        fclose(f);
    mk_mem_free(buf);
    return text;
}

/* Computes an FNV-1a hash, which detects accidental edits, not deliberate ones. Ignores CRs, because git may
 * add them. */
static void compute_checksum(mk_str text, char out[17])
{
    uint64_t sum = MK_FNV1A_INIT;
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] != '\r')
            sum = mk_fnv1a_byte(sum, text.p[i]);
    snprintf(out, 17, "%016llx", (unsigned long long)sum);
}

static void add_migration_file(struct reading *r, mk_str folder, const char *name)
{
    mk_str all = mk_str_from_c(name), digits = all;
    uint64_t number;
    if (name[0] == '.' || !mk_str_ends(all, MK_STR(".sql")))
        return;
    digits.len = mk_str_find(all, '-');
    if (digits.len == MK_STR_NONE || !mk_num_parse(digits, &number) || !number || number > UINT32_MAX) {
        report_file_error(r, name, "expected a name NUMBER-NAME.sql, with a NUMBER of at least 1");
        return;
    }
    struct duda_sql_migration *m = mk_config_alloc(r->config, sizeof *m);
    if (!m) {
        r->failed = true;
        return;
    }
    m->number = (uint32_t)number;
    m->name = mk_config_copy(r->config, all);
    m->text = read_migration_file(r, folder, name);
    if (!m->name.p || !m->text.p)
        return;
    compute_checksum(m->text, m->checksum);
    insert_migration_sorted(r, m);
}

struct duda_sql_migration *duda_sql_migrations_read(struct mk_config *c, const void *section, const char *key,
                                                    mk_str folder)
{
    struct reading r = {.config = c, .section = section, .key = key};
    DIR *dir = opendir(folder.p);
    if (!dir) {
        report_file_error(&r, folder.p, strerror(errno));
        return NULL;
    }
    for (const struct dirent *entry; (entry = readdir(dir));)
        add_migration_file(&r, folder, entry->d_name);
    closedir(dir);
    return r.failed ? NULL : r.first;
}
