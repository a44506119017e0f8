/* SPDX-License-Identifier: Apache-2.0 */
/* When SQLite prepares a statement, it calls the authorizer for each action of the statement. */
#include "authorizer.h"

static const char begins[] =
    "use duda_sql_begin(), duda_sql_commit() and duda_sql_rollback() for transactions";
static const char changes[] = "the statement would change a connection that all handlers share";
static const char belongs[] =
    "the statement would change a connection that all handlers share: run it in a transaction";

static int deny_statement(struct sqlite_session *s, const char *error)
{
    s->refusal = error;
    return SQLITE_DENY;
}

/* Returns whether a service may pass a value to the pragma: only to pragmas that query something or change
 * the file, but do not change the session. */
static bool is_allowed_pragma(const char *pragma)
{
    static const char *const all[] = {
        "table_info",     "table_xinfo",      "table_list",        "index_info",      "index_xinfo",
        "index_list",     "foreign_key_list", "foreign_key_check", "integrity_check", "quick_check",
        "optimize",       "wal_checkpoint",   "user_version",      "application_id",  "incremental_vacuum",
        "schema_version", "auto_vacuum"};
    for (size_t i = 0; i < MK_LEN(all); i++)
        if (sqlite3_stricmp(pragma, all[i]) == 0)
            return true;
    return false;
}

static int authorize_pragma(struct sqlite_session *s, const char *pragma, const char *value)
{
    if (!value || is_allowed_pragma(pragma))
        return SQLITE_OK;
    if (sqlite3_stricmp(pragma, "defer_foreign_keys") != 0) /* SQLite resets it after the transaction */
        return deny_statement(s, changes);
    s->is_uncached = true;
    return s->use == SQLITE_USE_AUTOCOMMIT ? deny_statement(s, belongs) : SQLITE_OK;
}

/* Denies temporary objects outside of transactions: such an object would hide a table with the same name from
 * other handlers. */
static int authorize_temporary_object(struct sqlite_session *s)
{
    s->is_uncached = true;
    if (s->use == SQLITE_USE_AUTOCOMMIT)
        return deny_statement(s, belongs);
    s->is_changed = true;
    return SQLITE_OK;
}

void sqlite_authorizer_begin(struct sqlite_session *s, mk_str text)
{
    mk_str word = mk_str_word(&text);
    s->is_uncached = false;
    s->is_vacuum = mk_str_eq_nocase(mk_str_first(word, 6), MK_STR("VACUUM"));
}

int sqlite_authorizer_check(void *ctx, int action, const char *a, const char *b, const char *schema,
                            const char *trigger)
{
    struct sqlite_session *s = ctx;
    (void)schema, (void)trigger;
    if (s->is_vacuum) /* VACUUM attaches a file, and has its own transaction */
        return SQLITE_OK;
    switch (action) {
    case SQLITE_TRANSACTION:
        s->is_uncached = true;
        return s->use == SQLITE_USE_INTERNAL ? SQLITE_OK : deny_statement(s, begins);
    case SQLITE_SAVEPOINT:
        s->is_uncached = true;
        return s->use == SQLITE_USE_AUTOCOMMIT ? deny_statement(s, begins) : SQLITE_OK;
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
        return deny_statement(s, changes);
    case SQLITE_PRAGMA:
        return authorize_pragma(s, a, b);
    case SQLITE_CREATE_TEMP_INDEX:
    case SQLITE_CREATE_TEMP_TABLE:
    case SQLITE_CREATE_TEMP_TRIGGER:
    case SQLITE_CREATE_TEMP_VIEW:
        return authorize_temporary_object(s);
    default:
        return SQLITE_OK;
    }
}
