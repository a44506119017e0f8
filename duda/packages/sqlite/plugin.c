/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [SQLITE] sections, and a database for each of them in every worker. */
#include <duda/sql_backend.h>
#include <errno.h>
#include <monkey/plugin.h>
#include <sys/stat.h>

#include "common/package.h"
#include "pool.h"

#define AT(member) MK_CONF_AT(struct sqlite_settings, member)

enum { BASES_MAX = 16 };

static const struct mk_conf_key keys[] = {
    PACKAGE_NAME_KEY,
    {.name = "File",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_WRITES,
     AT(file),
     .max = 4000,
     .help =
         "Database file, in a folder that the workers can write to: SQLite creates further files beside it."},
    {.name = "Migrations",
     .type = MK_CONF_TEXT,
     AT(migrations_folder),
     .max = 4000,
     .help = "Folder of migrations, NUMBER-NAME.sql, which are applied once each, in order."},
    {.name = "MigrationsOf",
     .type = MK_CONF_TEXT,
     AT(migrations_of),
     .max = 60,
     .help = "Service that owns these migrations, if several services share a database: each has its own "
             "numbers."},
    {.name = "PoolSize",
     .type = MK_CONF_NUM,
     AT(threads),
     .default_value = "4",
     .min = 1,
     .max = 64,
     .help = "Concurrent statements per worker."},
    {.name = "Timeout",
     .type = MK_CONF_TIME,
     AT(timeout_ms),
     .default_value = "5s",
     .min = 10,
     .max = 3600000,
     .help = "Timeout for a statement, and for a lock of the file; not for migrations."},
    {.name = "MaxQueue",
     .type = MK_CONF_NUM,
     AT(waiting_max),
     .default_value = "1000",
     .min = 1,
     .max = 1000000,
     .help = "Maximum number of handlers of a worker that wait for a thread. Further ones fail."},
    {.name = "MaxResultSize",
     .type = MK_CONF_SIZE,
     AT(result_max),
     .default_value = "16M",
     .min = 1024,
     .max = (uint64_t)1 << 30,
     .help = "Maximum size of a result."},
    {.name = "Sync",
     .type = MK_CONF_BOOL,
     AT(sync),
     .default_value = "on",
     .help = "Syncs every commit to disk. `off`: a crash of the system may lose the last commits."},
};

static mk_str parent_folder(struct mk_config *config, mk_str file)
{
    size_t slash = mk_str_find_last(file, '/');
    return mk_config_copy(config, slash == MK_STR_NONE ? MK_STR(".") : mk_str_first(file, slash ? slash : 1));
}

static bool check_sqlite_section(struct mk_config *config, const struct package_sections *before,
                                 void *settings)
{
    struct sqlite_settings *s = settings;
    (void)before;
    if (!s->file.len || s->file.p[0] == ':' || mk_str_starts(s->file, MK_STR("file:"))) {
        mk_config_error(config, s, "File",
                        "expected the path of a file, because each thread of each worker would have a "
                        "separate database in memory");
        return false;
    }
    s->file = package_data_path(config, s, s->file);
    mk_str folder = s->file.p ? parent_folder(config, s->file) : MK_STR_NULL;
    if (!folder.p)
        return false; /* already reported */
    mk_config_allow_writing(config, s, "File", folder);
    if (s->migrations_folder.len) {
        s->migrations_folder = mk_config_path(config, s, s->migrations_folder);
        s->migrations = duda_sql_migrations_read(config, s, "Migrations", s->migrations_folder);
    }
    return true;
}

static int check_database_folders(struct mk_config *config, void *data)
{
    const struct package_sections *all = data;
    for (size_t i = 0; i < all->n; i++) {
        struct stat st;
        const struct sqlite_settings *s = all->v[i];
        mk_str folder = parent_folder(config, s->file);
        if (folder.p && (stat(folder.p, &st) < 0 || !S_ISDIR(st.st_mode))) {
            mk_config_error(config, s, "File", "there is no folder %s", folder.p);
            mk_config_hint(config, "create it for the user of the workers");
            return -ENOENT;
        }
    }
    return 0;
}

/* ---- In a worker ---- */

static int open_pool(void *instance, struct mk_worker *w, const void *settings)
{
    struct sqlite_pool *b = instance;
    int e = sqlite_pool_open(b, w, settings);
    return e ? e : duda_sql_add(w, &b->sql);
}

static void close_pool(void *instance)
{
    sqlite_pool_close(instance);
}

PACKAGE_TYPE(sqlite, "SQLITE", struct sqlite_settings, struct sqlite_pool,
             "An SQLite database for Duda services.", .location = "File", .max = BASES_MAX,
             .check_section = check_sqlite_section, .declare = duda_sql_declare, .open = open_pool,
             .close = close_pool);

PACKAGE_PLUGIN(sqlite, "SQLite databases for Duda services.", PACKAGE_HAS_TYPE,
               .master_start = check_database_folders, .needs = PACKAGE_NEEDS("duda", "duda-sql"));
