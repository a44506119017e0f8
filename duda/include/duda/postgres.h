/* SPDX-License-Identifier: Apache-2.0 */
/* Features specific to PostgreSQL: notifications (LISTEN, NOTIFY), and bulk transfer of rows (COPY). */
#ifndef DUDA_POSTGRES_H
#define DUDA_POSTGRES_H

/* A function and a struct in this header have the same name, which is valid C++, but some compilers warn
 * about it. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif

#include <duda/sql.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-postgres.so: `#define DUDA_USE "duda-sql", "duda-postgres"` before
 * including <duda.h>, and link with `pkg-config --libs duda-sql duda-postgres`. For statements and
 * transactions use duda/sql.h. The functions return -EOPNOTSUPP for other databases.
 */

/* ---- Notifications ---- */

/** Limits: bytes of a channel name; messages queued for one subscriber. */
enum { DUDA_POSTGRES_CHANNEL_MAX = 63, DUDA_POSTGRES_MESSAGES_MAX = 256 };

/** A subscription of a handler or a callback to a channel. */
struct duda_postgres_sub;

/**
 * Subscribes to a channel; waits until the server has confirmed the subscription, so that all later
 * notifications arrive. *out lives until the handler returns or calls duda_postgres_unsubscribe(). All
 * subscriptions of a worker share one connection, separate from those for statements. Returns 0; -EINVAL: the
 * name is empty, too long, or contains a NUL; -ETIMEDOUT: no confirmation within Timeout; -EOPNOTSUPP,
 * -ENOMEM, or the error of a failed wait.
 *
 *     struct duda_postgres_sub *sub;
 *     mk_str text;
 *     int e = duda_postgres_subscribe(d, db, MK_STR("orders"), &sub);
 *     while (!e) {
 *         e = duda_postgres_receive(d, sub, MK_FOREVER, &text);
 *         if (!e)
 *             e = duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("order"), .data = text});
 *         else if (e == -ECONNRESET || e == -EOVERFLOW)
 *             e = send_all_orders(d, db); // some may have been missed
 *     }
 *
 * To send a notification, call duda_sql_query(d, db, &result, "SELECT pg_notify($1, $2)",
 * duda_sql_text(channel), duda_sql_text(text)). In a transaction, the notification is sent on commit.
 * PostgreSQL limits the text to 7999 bytes: send the key of the changed row, not its contents.
 */
MK_API int duda_postgres_subscribe(struct duda_ctx *d, struct duda_sql_db *db, mk_str channel,
                                   struct duda_postgres_sub **out) MK_API_MUST_USE;
/**
 * Waits for the next message, which is valid until the next call. -ETIME: no message arrived within
 * `timeout_ms` milliseconds (MK_FOREVER: no limit; 0: does not wait). -ECONNRESET: the connection was lost
 * and is being restored; messages sent in the meantime are lost. -EOVERFLOW: messages were dropped because
 * more than DUDA_POSTGRES_MESSAGES_MAX were queued. After either error, read the tables again and continue
 * receiving. -EINVAL: the subscription has ended.
 */
MK_API int duda_postgres_receive(struct duda_ctx *d, struct duda_postgres_sub *sub, uint32_t timeout_ms,
                                 mk_str *text) MK_API_MUST_USE;
/** Ends the subscription early. Without this call, a subscription made by duda_postgres_subscribe() ends with
 * its handler, and a subscription with a callback ends with the worker. */
MK_API void duda_postgres_unsubscribe(struct duda_postgres_sub *sub);

/**
 * Subscribes with a callback, for data that a worker caches; call it in a DUDA_START() function. The event
 * loop calls on_message(ctx, text) for each message; the callback must not wait. It is also called with an
 * absent text whenever the subscription starts, both initially and after a lost connection: data read earlier
 * may be stale. The subscription ends with the worker. `database` is the Name of the database; NULL selects
 * "main". Returns 0; -ENODEV: no database with this Name; -EINVAL, -EOPNOTSUPP, -ENOMEM. `out` may be NULL.
 *
 *     static void on_price(void *ctx, mk_str text)
 *     {
 *         if (text.p)
 *             forget_price(ctx, text);
 *         else
 *             forget_all_prices(ctx);
 *     }
 *     static int start(struct mk_worker *w)
 *     {
 *         return duda_postgres_subscribe_callback(w, NULL, MK_STR("prices"), on_price, cache_of(w), NULL);
 *     }
 */
MK_API int duda_postgres_subscribe_callback(struct mk_worker *worker, const char *database, mk_str channel,
                                            void (*on_message)(void *ctx, mk_str text), void *ctx,
                                            struct duda_postgres_sub **out) MK_API_MUST_USE;

/* ---- COPY ---- */

/** A COPY in progress. It uses its own connection, or that of the handler's transaction. */
struct duda_postgres_copy;

/**
 * Starts `COPY ... FROM STDIN` or `COPY ... TO STDOUT`, in any format of PostgreSQL. During a transaction,
 * the COPY is part of the transaction, whose other statements cannot run before the COPY ends. *out and
 * *result must live until then. After an error of this function or of those below, result->error describes
 * the error, with line and column: "[POSTGRES] main: invalid input syntax for type integer: "x" (COPY goods,
 * line 3, column price: "x")". After an error, the COPY has ended without effect, except after -ECONNRESET or
 * -ETIMEDOUT from duda_postgres_copy_end(): the COPY may then have taken effect.
 *
 * `Timeout` limits each wait for the server, not the whole COPY. If the handler returns before the end, or is
 * cancelled, the COPY is aborted without effect; its connection is closed, and a transaction on it is rolled
 * back.
 *
 * COPY takes no parameters: see duda_postgres_quote(). Returns 0; the errors of duda_sql_query(); -EINVAL:
 * not one of these COPY statements; or -EBADMSG: the data is not a valid row (class 22 of PostgreSQL's
 * errors).
 */
MK_API int duda_postgres_copy(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                              const char *text, struct duda_postgres_copy **out) MK_API_MUST_USE;
/**
 * FROM STDIN: sends the next bytes, in pieces of any size. Waits if the server falls behind, so that at most
 * about 100 KB are buffered. An error in earlier bytes may be reported by this call, or only at the end.
 *
 *     struct duda_sql_result result;
 *     struct duda_postgres_copy *copy;
 *     char buf[16384];
 *     ssize_t n = 0;
 *     int e = duda_postgres_copy(d, db, &result, "COPY goods FROM STDIN (FORMAT csv)", &copy);
 *     while (!e && (n = duda_read(d, buf, sizeof buf)) > 0)
 *         e = duda_postgres_copy_write(d, copy, mk_str_of(buf, (size_t)n));
 *     e = e ? e : n < 0 ? (int)n : duda_postgres_copy_end(d, copy);
 *     if (e == -EBADMSG || e == -EEXIST || e == -ERANGE)
 *         return duda_problem(d, 422, "%.*s", MK_STR_ARG(result.error));
 *     return e ? e : duda_printf(d, "%lld rows\n", (long long)result.rows_affected);
 */
MK_API int duda_postgres_copy_write(struct duda_ctx *d, struct duda_postgres_copy *copy,
                                    mk_str data) MK_API_MUST_USE;
/** FROM STDIN in the default (text) format: sends a row of these values, written like the parameters of
 * duda_sql_query(). */
#define duda_postgres_copy_write_row(d, copy, ...)                                                           \
    duda_postgres_copy_write_values(d, copy, (const struct duda_sql_value[]){__VA_ARGS__},                   \
                                    MK_LEN(((const struct duda_sql_value[]){__VA_ARGS__})))
/** Sends a row given as an array of values. */
MK_API int duda_postgres_copy_write_values(struct duda_ctx *d, struct duda_postgres_copy *copy,
                                           const struct duda_sql_value *values, size_t n) MK_API_MUST_USE;
/**
 * TO STDOUT: reads the next row, in the format of the COPY and with its line ending. The row is valid until
 * the next call. After the last row, *row is absent, and the COPY has ended. Data is read from the server
 * only on demand, so a slow client slows down the server instead of filling memory.
 *
 *     int e = duda_postgres_copy(d, db, &result, "COPY goods TO STDOUT (FORMAT csv, HEADER)", &copy);
 *     while (!e && !(e = duda_postgres_copy_read(d, copy, &row)) && row.p)
 *         e = duda_write(d, row);
 *     return e;
 */
MK_API int duda_postgres_copy_read(struct duda_ctx *d, struct duda_postgres_copy *copy,
                                   mk_str *row) MK_API_MUST_USE;
/** Ends the COPY. FROM STDIN: completes the data and waits until the COPY has taken effect;
 * result->rows_affected is the number of rows. TO STDOUT: returns 0 after the last row; before it, aborts
 * the COPY as above. After an error: returns the same error again. */
MK_API int duda_postgres_copy_end(struct duda_ctx *d, struct duda_postgres_copy *copy) MK_API_MUST_USE;

/**
 * Quotes a string as an SQL literal, for statements in which PostgreSQL allows no parameters; an absent
 * string becomes `NULL`. The result is NUL-terminated. It is absent if the string contains a NUL or memory is
 * exhausted.
 *
 *     mk_str who = duda_postgres_quote(d, duda_query(d, "who"));
 *     mk_str text = duda_sprintf(d, "COPY (SELECT * FROM orders WHERE who = %.*s) TO STDOUT",
 *                                MK_STR_ARG(who));
 *     if (!who.p || !text.p)
 *         return 400;
 */
MK_API mk_str duda_postgres_quote(struct duda_ctx *d, mk_str text);

#ifdef __cplusplus
}
#endif

#endif
