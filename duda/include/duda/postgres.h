/* SPDX-License-Identifier: Apache-2.0 */
/* What PostgreSQL alone can do: messages (LISTEN, NOTIFY), and rows as a stream (COPY). */
#ifndef DUDA_POSTGRES_H
#define DUDA_POSTGRES_H

#include <duda/sql.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-postgres.so: `#define DUDA_USE "duda-sql", "duda-postgres",` ahead of
 * <duda.h>, and link with `pkg-config --libs duda-sql duda-postgres`. Statements and transactions are those
 * of duda/sql.h. A database that is of another kind answers -EOPNOTSUPP.
 */

/* ---- Messages ---- */

/** Limits: bytes of a channel's name, and messages that wait for one listener. */
enum { DUDA_POSTGRES_CHANNEL_MAX = 63, DUDA_POSTGRES_MESSAGES_MAX = 256 };

/** A handler, or a function, that listens to a channel. */
struct duda_postgres_sub;

/**
 * Listens to a channel; waits until the server has confirmed, so that whatever is said from now on arrives.
 * *out lives until the handler returns, or duda_postgres_unsubscribe(). All listeners of a worker share one
 * connection, beside those for statements. 0; -EINVAL: the name is empty, too long, or has a NUL in it;
 * -ETIMEDOUT: the server has not confirmed within Timeout; -EOPNOTSUPP, -ENOMEM, or what waits answer.
 *
 *     struct duda_postgres_sub *sub;
 *     mk_str text;
 *     int e = duda_postgres_subscribe(d, db, MK_STR("orders"), &sub);
 *     while (!e) {
 *         e = duda_postgres_receive(d, sub, 0, &text);
 *         if (!e)
 *             e = duda_sse_send(d, "order", text, NULL);
 *         else if (e == -ECONNRESET || e == -EOVERFLOW)
 *             e = send_all_orders(d, db); // some may have been missed
 *     }
 *
 * To say something: duda_sql_query(d, db, &result, "SELECT pg_notify($1, $2)", duda_sql_text(channel),
 * duda_sql_text(text)). In a transaction it is said when that commits. PostgreSQL allows texts of up to 7999
 * bytes: say which row has changed, not what is in it.
 */
MK_API int duda_postgres_subscribe(struct duda_ctx *d, struct duda_sql_db *db, mk_str channel,
                                   struct duda_postgres_sub **out) MK_API_MUST_USE;
/**
 * Waits for the next message, which is valid until the next call; at most `ms` milliseconds (0: without
 * limit), then -EAGAIN. -ECONNRESET: the connection was lost and is back: what was said meanwhile is lost.
 * -EOVERFLOW: messages were lost, because more than DUDA_POSTGRES_MESSAGES_MAX waited. After both, read the
 * tables again, and go on receiving. -EINVAL: it has left.
 */
MK_API int duda_postgres_receive(struct duda_ctx *d, struct duda_postgres_sub *sub, uint32_t ms,
                                 mk_str *text) MK_API_MUST_USE;
/** Ends it before the handler does, or the worker. */
MK_API void duda_postgres_unsubscribe(struct duda_postgres_sub *sub);

/**
 * The same with a function, for what a worker keeps in memory: call it in a function of DUDA_START().
 * on_message(ctx, text) is called in the loop, and must not wait, for each message; and with an absent text
 * whenever listening has begun, at first and after the connection was lost: whatever was read before may be
 * old by now. Ends with the worker. `database` is its Name; NULL is "main". 0; -ENOENT: there is none of that
 * Name; -EINVAL, -EOPNOTSUPP, -ENOMEM. `out` may be NULL.
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
MK_API int duda_postgres_subscribe_callback(struct mk_worker *w, const char *database, mk_str channel,
                                            void (*on_message)(void *ctx, mk_str text), void *ctx,
                                            struct duda_postgres_sub **out) MK_API_MUST_USE;

/* ---- Rows as a stream ---- */

/** A COPY under way. It has a connection for itself, or that of the transaction that the handler is in. */
struct duda_postgres_copy;

/**
 * Begins `COPY ... FROM STDIN` or `COPY ... TO STDOUT`, in any format of PostgreSQL. In a transaction it
 * belongs to that, and no other statement runs in it before it is over. *out and *result must live until
 * then; after an error of this function or of those below, result->problem says what happened, with the line
 * and the column: "[POSTGRES] main: invalid input syntax for type integer: "x" (COPY goods, line 3, column
 * price: "x")". After an error the COPY is over, and nothing of it was done, unless that is
 * -ECONNRESET or -ETIMEDOUT of duda_postgres_copy_end(): then it was done or not.
 *
 * `Timeout` holds for each wait for the server, not for the whole. If the handler returns before the end, or
 * is cancelled, the COPY is stopped and nothing of it is done; its connection is closed, and the transaction
 * with it.
 *
 * A COPY has no parameters: see duda_postgres_quote(). 0, or errors as of duda_sql_query(), or: -EINVAL: it is no
 * COPY of these; -EBADMSG: the data is no such row (class 22 of PostgreSQL's errors).
 */
MK_API int duda_postgres_copy(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                              const char *text, struct duda_postgres_copy **out) MK_API_MUST_USE;
/**
 * FROM STDIN: the next bytes, in pieces of any size. Waits while the server is behind, so that no more than
 * some 100 KB are in memory. An error in earlier bytes may come now, or at the end.
 *
 *     struct duda_sql_result result;
 *     struct duda_postgres_copy *copy;
 *     char room[16384];
 *     ssize_t n = 0;
 *     int e = duda_postgres_copy(d, db, &result, "COPY goods FROM STDIN (FORMAT csv)", &copy);
 *     while (!e && (n = duda_read(d, room, sizeof room)) > 0)
 *         e = duda_postgres_copy_write(d, copy, mk_str_of(room, (size_t)n));
 *     e = e ? e : n < 0 ? (int)n : duda_postgres_copy_end(d, copy);
 *     if (e == -EBADMSG || e == -EEXIST)
 *         return duda_problem(d, 422, "%.*s", MK_STR_ARG(result.problem));
 *     return e ? e : duda_printf(d, "%lld rows\n", (long long)result.changed);
 */
MK_API int duda_postgres_copy_write(struct duda_ctx *d, struct duda_postgres_copy *copy,
                                    mk_str bytes) MK_API_MUST_USE;
/** FROM STDIN in the usual format (text): a row of these values, as parameters of duda_sql_query(). */
#define duda_postgres_copy_write_row(d, copy, ...)                                                           \
    duda_postgres_copy_write_values(d, copy, (const struct duda_sql_value[]){__VA_ARGS__},                   \
                                    MK_LEN(((const struct duda_sql_value[]){__VA_ARGS__})))
/** The same with an array. */
MK_API int duda_postgres_copy_write_values(struct duda_ctx *d, struct duda_postgres_copy *copy,
                                           const struct duda_sql_value *values, size_t n) MK_API_MUST_USE;
/**
 * TO STDOUT: the next row, in the format of the COPY, with its line end; valid until the next call. Absent
 * behind the last one: then the COPY is over. Reads no more from the server than it is asked for, so that a
 * slow client slows down the server, and not memory.
 *
 *     int e = duda_postgres_copy(d, db, &result, "COPY goods TO STDOUT (FORMAT csv, HEADER)", &copy);
 *     while (!e && !(e = duda_postgres_copy_read(d, copy, &row)) && row.p)
 *         e = duda_write(d, row);
 *     return e;
 */
MK_API int duda_postgres_copy_read(struct duda_ctx *d, struct duda_postgres_copy *copy,
                                   mk_str *row) MK_API_MUST_USE;
/** Ends it. FROM STDIN: all bytes were put; waits until it is done: result->changed rows. TO STDOUT: 0 behind
 * the last row; earlier it is stopped, as above. After an error: the same again. */
MK_API int duda_postgres_copy_end(struct duda_ctx *d, struct duda_postgres_copy *copy) MK_API_MUST_USE;

/**
 * A text as a constant of SQL, in quotes, for where PostgreSQL takes no parameters; absent text is `NULL`. A
 * NUL follows. Absent: there is a NUL inside, or memory is out.
 *
 *     mk_str who = duda_postgres_quote(d, duda_query(d, "who"));
 *     mk_str text = duda_sprintf(d, "COPY (SELECT * FROM orders WHERE who = %.*s) TO STDOUT", MK_STR_ARG(who));
 *     if (!who.p || !text.p)
 *         return 400;
 */
MK_API mk_str duda_postgres_quote(struct duda_ctx *d, mk_str text);

#ifdef __cplusplus
}
#endif

#endif
