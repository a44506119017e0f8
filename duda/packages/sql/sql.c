/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: the databases of a worker, and the transactions of its handlers. */
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/sql_backend.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/sized.h>
#include <monkey/text.h>

#include "common/package.h"
#include "statement_check.h"
#include "transactions.h"
#include "violation.h"

MK_PLUGIN_DECLARE(duda_sql);

enum { ATTEMPTS = 3, PAUSE_MS = 8, PAUSE_DOUBLINGS = 5 };

struct sql_worker {
    struct duda_sql_db *first;
    struct sql_transactions transactions;
};

/* ---- In a configuration ---- */

struct declared {
    mk_str names[64];
    size_t n;
    bool is_checked;
};

static int load_plugin(struct mk_config *config, void **data)
{
    *data = mk_config_alloc(config, sizeof(struct declared));
    return *data ? 0 : -ENOMEM;
}

void duda_sql_declare(struct mk_config *config, const void *section, mk_str name)
{
    struct declared *all = mk_config_data(config, &MK_PLUGIN_OF(duda_sql));
    if (!all)
        return;
    for (size_t i = 0; i < all->n; i++)
        if (mk_str_eq(all->names[i], name))
            mk_config_error(config, section, "Name",
                            "another [SQLITE] or [POSTGRES] already has the Name `%.*s`: services find "
                            "databases by their Name",
                            MK_STR_ARG(name));
    if (all->n < MK_LEN(all->names))
        all->names[all->n++] = name;
}

/* Called when all databases have been declared: warns if there is none. */
static int check_databases_of_host(struct mk_config *config, struct mk_vhost *h, void *data, void **host_data)
{
    struct declared *all = data;
    (void)h;
    if (!all->n && !all->is_checked)
        mk_config_warn(
            config, NULL, NULL,
            "duda-sql is loaded, but there is no [SQLITE] or [POSTGRES]: all statements fail with -ENODEV");
    all->is_checked = true;
    *host_data = data;
    return 0;
}

/* ---- In a worker ---- */

static struct sql_worker *sql_worker_of(struct mk_worker *w)
{
    return mk_worker_data(w, &MK_PLUGIN_OF(duda_sql));
}

static int start_sql_in_worker(struct mk_worker *w, void *data)
{
    struct sql_worker *sql_worker = mk_mem_zalloc(1, sizeof *sql_worker);
    (void)data;
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_sql), sql_worker);
    return sql_worker ? 0 : -ENOMEM;
}

static void stop_sql_in_worker(struct mk_worker *w, void *data)
{
    (void)data;
    mk_mem_free(sql_worker_of(w));
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_sql), NULL);
}

int duda_sql_add(struct mk_worker *w, struct duda_sql_db *db)
{
    struct sql_worker *sql_worker = sql_worker_of(w);
    for (const struct duda_sql_db *other = sql_worker->first; other; other = other->next)
        if (mk_str_eq(other->name, db->name))
            return -EEXIST;
    db->next = sql_worker->first;
    sql_worker->first = db;
    return 0;
}

static struct duda_sql_db *find_database(struct mk_worker *w, const char *name)
{
    struct duda_sql_db *db = sql_worker_of(w)->first;
    if (!name && db && !db->next)
        return db; /* the only one */
    while (db && !mk_str_eq(db->name, mk_str_from_c(name ? name : PACKAGE_MAIN)))
        db = db->next;
    return db;
}

struct duda_sql_db *duda_sql_find(struct duda_ctx *d, const char *name)
{
    struct duda_sql_db *db = find_database(duda_worker(d), name);
    if (!db)
        package_log_missing_section(d, "[SQLITE] or [POSTGRES]", name);
    return db;
}

struct duda_sql_db *duda_sql_of(struct mk_worker *w, const char *name)
{
    struct duda_sql_db *db = find_database(w, name);
    if (!db)
        package_log_missing_section_in(w, "[SQLITE] or [POSTGRES]", name);
    return db;
}

/* ---- Statements ---- */

void *duda_sql_session(struct duda_ctx *d, const struct duda_sql_db *db)
{
    return sql_transactions_session(&sql_worker_of(duda_worker(d))->transactions, d, db);
}

static int begin_call(struct package_call *call, struct duda_ctx *d, struct duda_sql_db *db,
                      struct duda_sql_result *result)
{
    int e = package_call_begin(call, d, db->meter);
    if (e)
        result->error = MK_STR("the handler was cancelled");
    return e;
}

/* Removes values that PostgreSQL quotes in messages, as `...: "x"` or `value "x" ...`, because they must not
 * be logged. */
static void append_redacted_message(struct mk_buf *out, mk_str message)
{
    static const mk_str marks[] = {MK_STR(": \""), MK_STR("value \"")};
    for (size_t i = 0; i < MK_LEN(marks); i++) {
        const char *at = message.len ? memmem(message.p, message.len, marks[i].p, marks[i].len) : NULL;
        size_t end = mk_str_find_last(message, '"'), begin = at ? (size_t)(at - message.p) + marks[i].len : 0;
        if (!at || end == MK_STR_NONE || end < begin)
            continue;
        mk_buf_add(out, mk_str_first(message, begin));
        mk_buf_add(out, MK_STR("..."));
        mk_buf_add(out, mk_str_skip(message, end));
        return;
    }
    mk_buf_add(out, message);
}

/* Sets the reason: the message of the database, and the beginning of the statement, which contains no
 * values. */
static int set_statement_reason(struct duda_ctx *d, int e, const struct duda_sql_result *result,
                                const char *text)
{
    enum { SHOWN_MAX = 120 };
    char buf[DUDA_REASON_MAX];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    mk_str statement = mk_str_trim(mk_str_first(mk_str_from_c(text), SHOWN_MAX));
    if (!e || e == -ECANCELED || !result->error.len)
        return e;
    append_redacted_message(&out, mk_str_first(result->error, sizeof buf - SHOWN_MAX));
    mk_buf_addf(&out, " (%.*s%s)", MK_STR_ARG(statement), strlen(text) > SHOWN_MAX ? "..." : "");
    return duda_reason(d, e, "%.*s", MK_STR_ARG(mk_buf_str(&out)));
}

int duda_sql_query_values(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                          const char *text, const struct duda_sql_value *parameters, size_t n)
{
    struct duda_sql_result own;
    result = result ? result : &own;
    if (!db) {
        *result =
            (struct duda_sql_result){.error = MK_STR("there is no such section [SQLITE] or [POSTGRES]")};
        return -ENODEV;
    }
    struct package_call call;
    mk_str statement = mk_str_from_c(text);
    void *session = duda_sql_session(d, db);
    *result = (struct duda_sql_result){0};
    int e = begin_call(&call, d, db, result);
    if (e)
        return e;
    e = sql_statement_check(result, statement, parameters, n);
    if (!e)
        e = db->ops->run_statement(d, db, session, result, &(struct duda_sql_statement){text, parameters, n});
    return set_statement_reason(d, package_call_end(&call, e), result, text);
}

/* Describes the first statement that failed, in the order of the batch. */
static int set_batch_reason(struct duda_ctx *d, int e, const struct duda_sql_statement *queries, size_t n,
                            const struct duda_sql_result *results)
{
    for (size_t i = 0; i < n && e; i++)
        if (results[i].error.len) {
            if (results[i].violation)
                sql_violation_remember(d, results[i].violation);
            return set_statement_reason(d, e, &results[i], queries[i].text);
        }
    return e;
}

/* Runs the statements one after the other, for a database without batches. */
static int run_each_statement(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                              struct duda_sql_result *results, const struct duda_sql_statement *queries,
                              size_t n)
{
    int e = 0;
    for (size_t i = 0; i < n; i++) {
        int failed = db->ops->run_statement(d, db, session, &results[i], &queries[i]);
        e = e ? e : failed;
    }
    return e;
}

int duda_sql_batch(struct duda_ctx *d, struct duda_sql_db *db, const struct duda_sql_statement *queries,
                   size_t n, struct duda_sql_result *results)
{
    for (size_t i = 0; !db && i < n; i++)
        results[i] =
            (struct duda_sql_result){.error = MK_STR("there is no such section [SQLITE] or [POSTGRES]")};
    if (!db)
        return -ENODEV;
    if (!n)
        return 0;
    struct package_call call;
    void *session = duda_sql_session(d, db);
    memset(results, 0, n * sizeof *results);
    if (n > DUDA_SQL_BATCH_MAX) {
        results->error = MK_STR("too many statements in a batch");
        return -EMSGSIZE;
    }
    int e = begin_call(&call, d, db, results);
    if (e)
        return e;
    for (size_t i = 0; i < n && !e; i++)
        e = sql_statement_check(&results[i], mk_str_from_c(queries[i].text), queries[i].parameters,
                                queries[i].n);
    if (!e)
        e = (db->ops->run_batch ? db->ops->run_batch : run_each_statement)(d, db, session, results, queries,
                                                                           n);
    return set_batch_reason(d, package_call_end(&call, e), queries, n, results);
}

/* ---- Transactions ---- */

int duda_sql_begin_with_sized(struct duda_ctx *d, struct duda_sql_db *db,
                              const struct duda_sql_transaction_options *options, size_t options_size)
{
    struct duda_sql_transaction_options full = {0};
    struct duda_sql_result result = {0};
    struct package_call call;
    if (!db)
        return -ENODEV;
    options = options ? mk_sized_in(&full, sizeof full, options, options_size) : &full;
    int e = begin_call(&call, d, db, &result);
    if (e)
        return e;
    e = sql_transactions_begin(&sql_worker_of(duda_worker(d))->transactions, d, db, options, &result);
    return set_statement_reason(d, package_call_end(&call, e), &result, "BEGIN");
}

int duda_sql_begin(struct duda_ctx *d, struct duda_sql_db *db)
{
    return duda_sql_begin_with(d, db, &(struct duda_sql_transaction_options){0});
}

static int finish_transaction(struct duda_ctx *d, struct duda_sql_db *db, bool commits)
{
    if (!db)
        return -ENODEV;
    struct duda_sql_result result = {0};
    struct package_call call;
    int e = begin_call(&call, d, db, &result);
    if (e)
        return e;
    e = sql_transactions_finish(&sql_worker_of(duda_worker(d))->transactions, d, db, &result, commits);
    return set_statement_reason(d, package_call_end(&call, e), &result, commits ? "COMMIT" : "ROLLBACK");
}

int duda_sql_commit(struct duda_ctx *d, struct duda_sql_db *db)
{
    return finish_transaction(d, db, true);
}

int duda_sql_rollback(struct duda_ctx *d, struct duda_sql_db *db)
{
    return finish_transaction(d, db, false);
}

/* Commits or rolls back. A handler that is cancelled must return that error, whatever fn() returned. */
static int end_attempt(struct duda_ctx *d, struct duda_sql_db *db, int result)
{
    if (!result)
        return duda_sql_commit(d, db);
    int e = duda_sql_rollback(d, db);
    return e == -ECANCELED || e == -ETIMEDOUT ? e : result;
}

/* Sleeps for a random time, so that the same transactions do not conflict again. */
static int pause_before_attempt(struct duda_ctx *d, unsigned n)
{
    uint32_t random, max = (uint32_t)PAUSE_MS << (n < PAUSE_DOUBLINGS ? n : PAUSE_DOUBLINGS);
    mk_random(&random, sizeof random);
    return duda_sleep(d, 1 + random % max);
}

int duda_sql_transaction_sized(struct duda_ctx *d, struct duda_sql_db *db,
                               const struct duda_sql_transaction_options *options, size_t options_size,
                               duda_sql_transaction_fn *fn, void *ctx)
{
    struct duda_sql_transaction_options full = {0};
    options = options ? mk_sized_in(&full, sizeof full, options, options_size) : &full;
    bool is_nested = db && duda_sql_session(d, db);
    unsigned attempts = is_nested ? 1 : options->attempts ? options->attempts : ATTEMPTS;
    int e = 0;
    for (unsigned n = 0; n < attempts; n++) {
        e = n ? pause_before_attempt(d, n) : 0;
        e = e ? e : duda_sql_begin_with(d, db, options);
        if (e)
            return e;
        e = end_attempt(d, db, fn(d, db, ctx));
        if (e != -ESTALE)
            return e;
    }
    return e;
}

PACKAGE_PLUGIN(sql, "Database interface for Duda services, which duda-sqlite and duda-postgres implement.",
               .load = load_plugin, .host = check_databases_of_host, .worker_start = start_sql_in_worker,
               .worker_stop = stop_sql_in_worker, .needs = PACKAGE_NEEDS("duda"));
