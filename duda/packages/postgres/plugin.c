/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [POSTGRES] sections, and the connections of every worker. */
#include <dlfcn.h>
#include <duda/config.h>
#include <duda/sql_backend.h>
#include <monkey/plugin.h>

#include "common/package.h"
#include "conninfo.h"
#include "pool.h"
#include "test_schema.h"

#define AT(member) MK_CONF_AT(struct postgres_settings, member)

enum { BASES_MAX = 16 };

static const struct mk_conf_key keys[] = {
    PACKAGE_NAME_KEY,
    {.name = "Server",
     .type = MK_CONF_TEXT,
     AT(server),
     .max = 4000,
     .help = "Connection string of libpq: `host=/run/postgresql dbname=shop`, or a URL `postgresql://...`. "
             "Host names are resolved without blocking."},
    {.name = "PasswordSource",
     .type = MK_CONF_CUSTOM,
     AT(password),
     .parse = duda_secret,
     .syntax = DUDA_SECRET_SYNTAX,
     .help = "Source of the password."},
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
     AT(connections),
     .default_value = "4",
     .min = 1,
     .max = 256,
     .help = "Connections per worker. Statements share them; a transaction reserves one."},
    {.name = "Prepare",
     .type = MK_CONF_BOOL,
     AT(prepares),
     .default_value = "on",
     .help = "Let the server prepare each statement once for each connection. Use `off` with a pooler that "
             "may give each transaction another session, such as PgBouncer with `pool_mode = transaction`."},
    {.name = "Timeout",
     .type = MK_CONF_TIME,
     AT(timeout_ms),
     .default_value = "5s",
     .min = 10,
     .max = 3600000,
     .help = "Timeout for a connection, and for a statement; not for migrations."},
    {.name = "MaxQueue",
     .type = MK_CONF_NUM,
     AT(waiting_max),
     .default_value = "10000",
     .min = 1,
     .max = 1000000,
     .help = "Maximum number of handlers of a worker that wait for a connection. Further ones fail."},
    {.name = "MaxResultSize",
     .type = MK_CONF_SIZE,
     AT(result_max),
     .default_value = "16M",
     .min = 1024,
     .max = (uint64_t)1 << 30,
     .help = "Maximum size of a result."},
};

/* Keeps libpq loaded, because it never frees what it has registered with OpenSSL: a program that repeatedly
 * loads and unloads this plugin would leak memory each time. */
static void pin_libpq(void)
{
    Dl_info libpq;
    if (dladdr((void *)(intptr_t)PQlibVersion, &libpq))
        (void)!dlopen(libpq.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static bool check_postgres_section(struct mk_config *config, const struct package_sections *before,
                                   void *settings)
{
    struct postgres_settings *s = settings;
    (void)before;
    pin_libpq();
    if (s->password.len && memchr(s->password.p, 0, s->password.len)) {
        mk_config_error(config, s, "PasswordSource", "a password must not contain NUL");
        return false;
    }
    s->server = mk_config_copy(config, s->server);
    if (!s->server.p || !postgres_conninfo_parse(config, s))
        return false;
    if (s->migrations_folder.len) {
        s->migrations_folder = mk_config_path(config, s, s->migrations_folder);
        s->migrations = duda_sql_migrations_read(config, s, "Migrations", s->migrations_folder);
    }
    return postgres_test_schema_create(config, s);
}

/* ---- In a worker ---- */

static int open_pool(void *instance, struct mk_worker *w, const void *settings)
{
    struct postgres_pool *b = instance;
    int e = postgres_pool_open(b, w, settings);
    return e ? e : duda_sql_add(w, &b->sql);
}

static void close_pool(void *instance)
{
    struct postgres_pool *b = instance;
    const struct postgres_settings *settings = b->settings;
    postgres_pool_close(b);
    postgres_test_schema_drop(settings);
}

PACKAGE_TYPE(postgres, "POSTGRES", struct postgres_settings, struct postgres_pool,
             "A PostgreSQL database for Duda services.", .location = "Server", .max = BASES_MAX,
             .check_section = check_postgres_section, .declare = duda_sql_declare, .open = open_pool,
             .close = close_pool);

PACKAGE_PLUGIN(postgres, "PostgreSQL client for Duda services.", PACKAGE_HAS_TYPE,
               .needs = PACKAGE_NEEDS("duda", "duda-sql"));
