/* SPDX-License-Identifier: Apache-2.0 */
#include "test_schema.h"

#include <monkey/clock.h>
#include <monkey/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/package.h"

enum { NAME_SIZE = 64, STALE_S = 3600 };

static const char prefix[] = "monkey_test_";

static PGconn *connect_to(const struct postgres_settings *s)
{
    const char *names[] = {"connect_timeout", "client_encoding", "dbname", "password", NULL};
    const char *values[] = {"5", "UTF8", s->server.p, s->password.p, NULL};
    return PQconnectdbParams(names, values, 1);
}

static bool run_statement(PGconn *pg, const char *text)
{
    PGresult *result = PQexec(pg, text);
    bool ok = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return ok;
}

static bool drop_schema(PGconn *pg, const char *name)
{
    char text[2 * NAME_SIZE];
    snprintf(text, sizeof text, "DROP SCHEMA IF EXISTS %s CASCADE", name);
    return run_statement(pg, text);
}

/* Drops the schemas that crashed tests have left; their names contain the time of the test. */
static void drop_stale_schemas(PGconn *pg, unsigned long long now_s)
{
    PGresult *found = PQexec(pg, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'monkey\\_test\\_%'");
    for (int i = 0; PQresultStatus(found) == PGRES_TUPLES_OK && i < PQntuples(found); i++) {
        const char *name = PQgetvalue(found, i, 0);
        unsigned long long created_s = strtoull(name + sizeof prefix - 1, NULL, 10);
        bool is_ours = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
        if (is_ours && strlen(name) < NAME_SIZE && created_s && created_s + STALE_S < now_s)
            (void)drop_schema(pg, name);
    }
    PQclear(found);
}

bool postgres_test_schema_create(struct mk_config *config, struct postgres_settings *s)
{
    const unsigned long long now_s = mk_clock_unix_ms() / 1000;
    char name[NAME_SIZE], text[2 * NAME_SIZE], random[4], hex[8];
    struct mk_buf number = mk_buf_fixed(hex, sizeof hex);
    if (!package_test_folder())
        return true;
    mk_random(random, sizeof random);
    mk_hex_encode(&number, mk_str_of(random, sizeof random));
    snprintf(name, sizeof name, "%s%llu_%d_%.8s", prefix, now_s, (int)getpid(), hex);
    snprintf(text, sizeof text, "CREATE SCHEMA %s", name);
    PGconn *pg = connect_to(s);
    bool is_connected = PQstatus(pg) == CONNECTION_OK, ok = true; /* without a server, statements will fail */
    if (is_connected)
        drop_stale_schemas(pg, now_s);
    if (is_connected && run_statement(pg, text)) {
        s->test_schema = mk_config_copy(config, mk_str_from_c(name));
    } else if (is_connected) {
        mk_str error = mk_str_from_c(PQerrorMessage(pg));
        ok = false;
        mk_config_error(config, s, "Server", "cannot create a schema for this test: %.*s",
                        MK_STR_ARG(mk_str_trim(error)));
    }
    PQfinish(pg);
    return ok;
}

void postgres_test_schema_drop(const struct postgres_settings *s)
{
    if (!s->test_schema.len)
        return;
    PGconn *pg = connect_to(s);
    (void)drop_schema(pg, s->test_schema.p);
    PQfinish(pg);
}
