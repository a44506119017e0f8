/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <monkey/clock.h>
#include <stdio.h>

#include "authorizer.h"
#include "migrate.h"
#include "violation.h"

enum { WAIT_MAX_MS = 25 }; /* interval between lock attempts */
enum { STEPS_BETWEEN_LOOKS = 4000 };

static int sqlite_rc_to_errno(int rc, int extended)
{
    if (extended == SQLITE_BUSY_SNAPSHOT)
        return -ESTALE;
    switch (rc) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_INTERRUPT:
        return -ETIMEDOUT;
    case SQLITE_TOOBIG:
        return -EMSGSIZE;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EIO;
    default:
        return -EREMOTEIO;
    }
}

static void set_session_error(struct sqlite_session *s, int error, const char *error_text)
{
    duda_sql_rows_fail(&s->rows, error, "SQLITE", s->settings->name, error_text);
    s->violated = DUDA_SQL_NO_CONSTRAINT;
}

static void set_violation(struct sqlite_session *s, int extended, const char *message)
{
    enum duda_sql_constraint kind = sqlite_violation_kind(extended, message);
    set_session_error(s, kind == DUDA_SQL_UNIQUE ? -EEXIST : -ERANGE, message);
    s->violated = kind;
    snprintf(s->violation_text, sizeof s->violation_text, "%s", message);
}

static void set_sqlite_error(struct sqlite_session *s, int rc)
{
    if (s->refusal) {
        set_session_error(s, -EOPNOTSUPP, s->refusal);
        return;
    }
    int extended = s->handle ? sqlite3_extended_errcode(s->handle) : rc;
    const char *message = s->handle ? sqlite3_errmsg(s->handle) : sqlite3_errstr(rc);
    if ((rc & 0xff) == SQLITE_CONSTRAINT)
        set_violation(s, extended, message);
    else
        set_session_error(s, sqlite_rc_to_errno(rc & 0xff, extended), message);
}

/* ---- Lifetime ---- */

static int should_interrupt_statement(void *ctx)
{
    const struct sqlite_session *s = ctx;
    if (atomic_load_explicit(&s->is_closing, memory_order_relaxed))
        return true;
    if (atomic_load_explicit(&s->is_migrating, memory_order_relaxed))
        return false;
    return atomic_load_explicit(&s->is_cancelled, memory_order_relaxed) || mk_clock_ms() >= s->due_ms;
}

/* Called while another connection has locked the file: waits, unless the handler was cancelled or the timeout
 * has passed. A migration waits as long as another one takes. */
static int on_locked_file(void *ctx, int n)
{
    if (should_interrupt_statement(ctx))
        return 0;
    sqlite3_sleep(n < WAIT_MAX_MS ? n + 1 : WAIT_MAX_MS);
    return 1;
}

/* Enables WAL mode in a new file. If two workers do this at once, one of them fails, because SQLite does not
 * call its busy handler here. So this function retries. */
static int enable_wal(struct sqlite_session *s)
{
    int rc;
    while ((rc = sqlite3_exec(s->handle, "PRAGMA journal_mode=WAL", NULL, NULL, NULL)) == SQLITE_BUSY &&
           !should_interrupt_statement(s))
        sqlite3_sleep(1);
    return rc;
}

static int configure_connection(struct sqlite_session *s)
{
    static const char always[] =
        "PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF;";
    int rc = sqlite3_busy_handler(s->handle, on_locked_file, s);
    sqlite3_db_config(s->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_progress_handler(s->handle, STEPS_BETWEEN_LOOKS, should_interrupt_statement, s);
    rc = rc ? rc : enable_wal(s);
    sqlite3_extended_result_codes(s->handle, 1);
    rc = rc ? rc : sqlite3_exec(s->handle, always, NULL, NULL, NULL);
    return rc ? rc
              : sqlite3_exec(s->handle,
                             s->settings->sync ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
                             NULL, NULL, NULL);
}

static int open_database_file(struct sqlite_session *s)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
    int rc = sqlite3_open_v2(s->settings->file.p, &s->handle, flags, NULL);
    return rc ? rc : configure_connection(s);
}

/* Reopens the file afterwards, because settings that migrations leave in their connection, such as a PRAGMA,
 * must not affect handlers. */
static int migrate_and_reopen(struct sqlite_session *s)
{
    int rc = sqlite_migrate(&s->migration, s->handle);
    if (rc || !s->migration.has_migrated)
        return rc;
    sqlite3_close_v2(s->handle);
    s->handle = NULL;
    return open_database_file(s);
}

/* The statement that has caused the migration gets its whole timeout afterwards. */
static int migrate_database(struct sqlite_session *s)
{
    s->migration =
        (struct sqlite_migration){.all = s->settings->migrations, .service = s->settings->migrations_of};
    atomic_store(&s->is_migrating, s->migration.all != NULL);
    int rc = migrate_and_reopen(s);
    atomic_store(&s->is_migrating, false);
    s->due_ms = mk_clock_ms() + s->settings->timeout_ms;
    return rc;
}

static bool open_session(struct sqlite_session *s)
{
    s->migration.error_text[0] = 0;
    int rc = open_database_file(s);
    rc = rc ? rc : migrate_database(s);
    rc = rc ? rc : sqlite3_set_authorizer(s->handle, sqlite_authorizer_check, s);
    if (!rc)
        return true;
    if (s->migration.error_text[0])
        set_session_error(s, sqlite_rc_to_errno(rc & 0xff, rc), s->migration.error_text);
    else
        set_sqlite_error(s, rc);
    sqlite_session_close(s);
    return false;
}

void sqlite_session_close(struct sqlite_session *s)
{
    for (size_t i = 0; i < SQLITE_CURSORS_MAX; i++)
        sqlite3_finalize(s->cursors[i].stmt);
    memset(s->cursors, 0, sizeof s->cursors);
    for (size_t i = 0; i < SQLITE_STMT_CACHE_SIZE; i++)
        sqlite3_finalize(s->cached_stmts[i].stmt);
    memset(s->cached_stmts, 0, sizeof s->cached_stmts);
    sqlite3_close_v2(s->handle);
    s->handle = NULL;
    s->is_changed = false;
}

/* ---- Statements ---- */

static struct sqlite_cached_stmt *find_cached_stmt(struct sqlite_session *s, mk_str text)
{
    struct sqlite_cached_stmt *oldest = &s->cached_stmts[0];
    for (size_t i = 0; i < SQLITE_STMT_CACHE_SIZE; i++) {
        struct sqlite_cached_stmt *k = &s->cached_stmts[i];
        if (k->stmt && mk_str_eq(mk_str_from_c(sqlite3_sql(k->stmt)), text))
            return k;
        if (k->used < oldest->used)
            oldest = k;
    }
    sqlite3_finalize(oldest->stmt);
    *oldest = (struct sqlite_cached_stmt){.stmt = NULL};
    return oldest;
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n;")] == 0;
}

static struct sqlite_cached_stmt *prepare_statement(struct sqlite_session *s, mk_str text)
{
    struct sqlite_cached_stmt *k = find_cached_stmt(s, text);
    const char *rest = "";
    if (!k->stmt) {
        sqlite_authorizer_begin(s, text);
        int rc = sqlite3_prepare_v3(s->handle, text.p, (int)text.len + 1, SQLITE_PREPARE_PERSISTENT, &k->stmt,
                                    &rest);
        if (rc) {
            set_sqlite_error(s, rc);
            return NULL;
        }
        if (!k->stmt || !is_blank(rest)) {
            set_session_error(s, -EINVAL, "expected one statement");
            sqlite3_finalize(k->stmt);
            k->stmt = NULL;
            return NULL;
        }
    }
    k->is_uncached = s->is_uncached;
    k->used = ++s->n_used;
    return k;
}

/* With `copies`, SQLite copies texts, which then need not live as long as the statement runs. */
static int bind_value(sqlite3_stmt *stmt, int at, const struct duda_sql_value *v, bool copies)
{
    sqlite3_destructor_type lifetime = copies ? SQLITE_TRANSIENT : SQLITE_STATIC;
    switch (v->type) {
    case DUDA_SQL_INTEGER:
        return sqlite3_bind_int64(stmt, at, v->number);
    case DUDA_SQL_REAL:
        return sqlite3_bind_double(stmt, at, v->real);
    case DUDA_SQL_TEXT:
        return sqlite3_bind_text64(stmt, at, v->text.p, v->text.len, lifetime, SQLITE_UTF8);
    case DUDA_SQL_BLOB:
        return sqlite3_bind_blob64(stmt, at, v->text.p, v->text.len, lifetime);
    case DUDA_SQL_NULL:
    default:
        return sqlite3_bind_null(stmt, at);
    }
}

/* Binds the values: `$2` is the second value, wherever it occurs. */
static bool bind_values(struct sqlite_session *s, sqlite3_stmt *stmt, const struct duda_sql_value *values,
                        size_t n, bool copies)
{
    size_t most = 0;
    for (int i = 1; i <= sqlite3_bind_parameter_count(stmt); i++) {
        const char *name = sqlite3_bind_parameter_name(stmt, i);
        uint64_t number = 0;
        if (!name || name[0] != '$' || !mk_num_parse(mk_str_from_c(name + 1), &number) || !number ||
            number > n) {
            set_session_error(s, -EINVAL,
                              "parameters must be `$1`, `$2` and so on, up to the number of values");
            return false;
        }
        most = number > most ? number : most;
        int rc = bind_value(stmt, i, &values[number - 1], copies);
        if (rc) {
            set_sqlite_error(s, rc);
            return false;
        }
    }
    if (most < n)
        set_session_error(s, -EINVAL, "the statement has fewer parameters than values");
    return most == n;
}

static struct duda_sql_value column_value(sqlite3_stmt *stmt, int i)
{
    const void *bytes;
    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_INTEGER:
        return duda_sql_integer(sqlite3_column_int64(stmt, i));
    case SQLITE_FLOAT:
        return duda_sql_real(sqlite3_column_double(stmt, i));
    case SQLITE_TEXT:
        bytes = sqlite3_column_text(stmt, i);
        return duda_sql_text(mk_str_of(bytes ? bytes : "", (size_t)sqlite3_column_bytes(stmt, i)));
    case SQLITE_BLOB:
        bytes = sqlite3_column_blob(stmt, i);
        return duda_sql_blob(mk_str_of(bytes ? bytes : "", (size_t)sqlite3_column_bytes(stmt, i)));
    default:
        return duda_sql_null();
    }
}

/* Reads the column names after the first sqlite3_step(), which prepares the statement again if the schema has
 * changed: the columns may then differ. Reads at most `max` rows. Returns whether there may be more. */
static bool step_rows(struct sqlite_session *s, sqlite3_stmt *stmt, size_t max)
{
    int rc = sqlite3_step(stmt), n = sqlite3_column_count(stmt);
    for (int i = 0; i < n && (rc == SQLITE_ROW || rc == SQLITE_DONE); i++)
        duda_sql_rows_column(&s->rows, mk_str_from_c(sqlite3_column_name(stmt, i)));
    for (size_t row = 1; !s->rows.error && rc == SQLITE_ROW; rc = sqlite3_step(stmt), row++) {
        for (int i = 0; i < n; i++) {
            struct duda_sql_value value = column_value(stmt, i);
            duda_sql_rows_add(&s->rows, &value);
        }
        if (row == max)
            break;
    }
    if (!s->rows.error && rc != SQLITE_DONE && rc != SQLITE_ROW)
        set_sqlite_error(s, rc);
    if (s->rows.error == -EMSGSIZE && !s->rows.message[0])
        set_session_error(s, -EMSGSIZE, "the result is longer than MaxResultSize");
    return !s->rows.error && rc == SQLITE_ROW;
}

static void fetch_rows(struct sqlite_session *s, sqlite3_stmt *stmt)
{
    int64_t before = sqlite3_total_changes64(s->handle);
    (void)step_rows(s, stmt, SIZE_MAX);
    s->rows.rows_affected = sqlite3_total_changes64(s->handle) - before;
}

/* ---- Cursors ---- */

/* Returns the cursor with that number; with 0, an unused one. NULL: there is none. */
static struct sqlite_cursor *find_cursor(struct sqlite_session *s, uint64_t number)
{
    for (size_t i = 0; i < SQLITE_CURSORS_MAX; i++)
        if (number ? s->cursors[i].stmt && s->cursors[i].number == number : !s->cursors[i].stmt)
            return &s->cursors[i];
    return NULL;
}

static void end_cursor(struct sqlite_cursor *c)
{
    sqlite3_finalize(c->stmt);
    c->stmt = NULL;
}

static void end_all_cursors(struct sqlite_session *s)
{
    for (size_t i = 0; i < SQLITE_CURSORS_MAX; i++)
        end_cursor(&s->cursors[i]);
}

/* Prepares a statement that stays out of the cache: several cursors may have the same text. */
static bool prepare_cursor(struct sqlite_session *s, struct sqlite_cursor *c, mk_str text)
{
    const char *rest = "";
    sqlite_authorizer_begin(s, text);
    int rc = sqlite3_prepare_v3(s->handle, text.p, (int)text.len + 1, 0, &c->stmt, &rest);
    if (rc)
        set_sqlite_error(s, rc);
    else if (!c->stmt || !is_blank(rest))
        set_session_error(s, -EINVAL, "expected one statement");
    else if (!sqlite3_stmt_readonly(c->stmt) || !sqlite3_column_count(c->stmt))
        set_session_error(s, -EOPNOTSUPP, "a cursor can only read rows");
    return !s->rows.error;
}

static void begin_job(struct sqlite_session *s, enum sqlite_use use)
{
    s->due_ms = mk_clock_ms() + s->settings->timeout_ms;
    s->rows.max = s->settings->result_max;
    s->refusal = NULL;
    s->violated = DUDA_SQL_NO_CONSTRAINT;
    s->use = use;
    duda_sql_rows_clear(&s->rows);
}

void sqlite_session_open_cursor(struct sqlite_session *s, uint64_t number, mk_str text,
                                const struct duda_sql_value *values, size_t n)
{
    struct sqlite_cursor *c = find_cursor(s, 0);
    begin_job(s, SQLITE_USE_TRANSACTION);
    if (!c) {
        set_session_error(s, -EBUSY, "the transaction has too many open cursors");
        return;
    }
    if (!s->handle || sqlite3_get_autocommit(s->handle)) {
        set_session_error(s, -ECONNRESET, "an earlier error has rolled back the transaction");
        return;
    }
    c->number = number;
    if (!prepare_cursor(s, c, text) || !bind_values(s, c->stmt, values, n, true))
        end_cursor(c);
}

void sqlite_session_fetch(struct sqlite_session *s, uint64_t number, size_t n)
{
    struct sqlite_cursor *c = find_cursor(s, number);
    begin_job(s, SQLITE_USE_TRANSACTION);
    if (!c)
        set_session_error(s, -EINVAL, "the cursor has been closed");
    else if (!step_rows(s, c->stmt, n))
        end_cursor(c);
}

void sqlite_session_close_cursor(struct sqlite_session *s, uint64_t number)
{
    struct sqlite_cursor *c = find_cursor(s, number);
    if (c)
        end_cursor(c);
}

/* ---- Transactions ---- */

/* Rolls back, regardless of the timeout of the statement. */
static void rollback_transaction(struct sqlite_session *s)
{
    if (!s->handle || sqlite3_get_autocommit(s->handle))
        return;
    s->use = SQLITE_USE_INTERNAL;
    sqlite3_progress_handler(s->handle, 0, NULL, NULL);
    sqlite3_exec(s->handle, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_progress_handler(s->handle, STEPS_BETWEEN_LOOKS, should_interrupt_statement, s);
}

static bool is_rollback(mk_str text)
{
    return mk_str_eq(text, MK_STR("ROLLBACK"));
}

/* Returns whether SQLite has rolled the transaction back after an error. The remaining statements must not
 * run outside of it. */
static bool is_transaction_lost(struct sqlite_session *s)
{
    if (s->use != SQLITE_USE_TRANSACTION || !sqlite3_get_autocommit(s->handle))
        return false;
    set_session_error(s, -ECONNRESET, "an earlier error has rolled back the transaction");
    return true;
}

/* Rolls back a transaction that the statement has left open, because no later statement would end it. */
static void check_no_open_transaction(struct sqlite_session *s)
{
    if (s->use != SQLITE_USE_AUTOCOMMIT || sqlite3_get_autocommit(s->handle))
        return;
    rollback_transaction(s);
    duda_sql_rows_clear(&s->rows);
    set_session_error(s, -EOPNOTSUPP, "the statement has begun a transaction: use duda_sql_begin()");
}

static bool is_write_in_read_only_transaction(struct sqlite_session *s, sqlite3_stmt *stmt)
{
    if (s->use == SQLITE_USE_INTERNAL)
        s->is_read_only = mk_str_eq(mk_str_from_c(sqlite3_sql(stmt)), MK_STR(SQLITE_BEGIN_READ_ONLY));
    if (s->use != SQLITE_USE_TRANSACTION || !s->is_read_only || sqlite3_stmt_readonly(stmt))
        return false;
    set_session_error(s, -EREMOTEIO, "the transaction is read-only");
    return true;
}

static void run_statement(struct sqlite_session *s, mk_str text, const struct duda_sql_value *values,
                          size_t n)
{
    struct sqlite_cached_stmt *k = prepare_statement(s, text);
    if (!k)
        return;
    if (!is_write_in_read_only_transaction(s, k->stmt) && bind_values(s, k->stmt, values, n, false))
        fetch_rows(s, k->stmt);
    sqlite3_reset(k->stmt);
    sqlite3_clear_bindings(k->stmt);
    if (k->is_uncached) {
        sqlite3_finalize(k->stmt);
        *k = (struct sqlite_cached_stmt){.stmt = NULL};
    }
    check_no_open_transaction(s);
}

/* Returns whether the handler has left during the migration, which may take hours: its statement must not run
 * that late. */
static bool was_cancelled_meanwhile(struct sqlite_session *s)
{
    if (!atomic_load(&s->is_cancelled))
        return false;
    set_session_error(s, -ECANCELED, "the handler was cancelled");
    return true;
}

void sqlite_session_run(struct sqlite_session *s, enum sqlite_use use, mk_str text,
                        const struct duda_sql_value *values, size_t n)
{
    begin_job(s, use);
    if (use == SQLITE_USE_INTERNAL) /* the transaction of the cursors begins or ends */
        end_all_cursors(s);
    if (s->must_roll_back)
        rollback_transaction(s);
    s->must_roll_back = false;
    if (s->is_changed && s->handle && sqlite3_get_autocommit(s->handle) && use != SQLITE_USE_TRANSACTION)
        sqlite_session_close(s);
    s->use = use;
    if (!s->handle && (!open_session(s) || was_cancelled_meanwhile(s)))
        return;
    if (!text.len && use == SQLITE_USE_INTERNAL)
        return;
    if (is_rollback(text) && use == SQLITE_USE_INTERNAL && sqlite3_get_autocommit(s->handle))
        return; /* an error has already ended the transaction */
    if (!is_transaction_lost(s))
        run_statement(s, text, values, n);
}
