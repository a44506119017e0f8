/* SPDX-License-Identifier: Apache-2.0 */
/* A statement with its parameters as libpq wants them: text, bytes as they are. PostgreSQL finds out the
 * types. */
#include <monkey/mem.h>
#include <stdio.h>

#include "conn.h"

enum { NUMBER_ROOM = 32, BINARY = 1 };

static size_t room_for(const struct duda_sql_value *v)
{
    return v->type >= DUDA_SQL_TEXT ? v->text.len + 1 : NUMBER_ROOM;
}

static int write_value(char *at, const struct duda_sql_value *v)
{
    struct mk_buf text = mk_buf_fixed(at, room_for(v) - 1);
    if (v->type == DUDA_SQL_INTEGER) {
        mk_buf_add_int(&text, v->number);
    } else if (v->type == DUDA_SQL_REAL) {
        mk_buf_addf(&text, "%.17g", v->real);
        for (size_t i = 0; i < text.len; i++) /* the point of printf is the locale's */
            at[i] = at[i] == ',' ? '.' : at[i];
    } else {
        mk_buf_add(&text, v->text);
    }
    at[text.len] = 0;
    return (int)text.len;
}

/* All in one piece of memory: the arrays, then the texts. */
struct postgres_job *postgres_job_new(mk_str text, const struct duda_sql_value *values, size_t n)
{
    size_t arrays = (n + 1) * (sizeof(char *) + 2 * sizeof(int)), room = text.len + 1;
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(room, room_for(&values[i]), &room) || room > INT32_MAX)
            return NULL;
    struct postgres_job *job = mk_mem_alloc(sizeof *job + arrays + room);
    if (!job)
        return NULL;
    memset(job, 0, offsetof(struct postgres_job, problem));
    job->problem[0] = 0;
    job->values = (void *)(job + 1);
    job->lengths = (void *)(job->values + n + 1);
    job->formats = job->lengths + n + 1;
    memset(job->values, 0, arrays);
    char *at = (char *)(job->formats + n + 1);
    memcpy(at, text.p, text.len);
    at[text.len] = 0;
    job->text = mk_str_of(at, text.len);
    job->is_query = postgres_statement_read(text).is_query;
    at += text.len + 1;
    job->n = n;
    for (size_t i = 0; i < n; i++) {
        if (values[i].type == DUDA_SQL_NULL)
            continue;
        job->values[i] = at;
        job->lengths[i] = write_value(at, &values[i]);
        job->formats[i] = values[i].type == DUDA_SQL_BLOB ? BINARY : 0;
        at += room_for(&values[i]);
    }
    return job;
}

void postgres_job_fail(struct postgres_job *job, int error, mk_str base, const char *why)
{
    struct mk_buf text = mk_buf_fixed(job->problem, sizeof job->problem - 1);
    job->error = error;
    mk_buf_addf(&text, "[POSTGRES] %.*s: ", MK_STR_ARG(base));
    mk_buf_add(&text, mk_str_trim(mk_str_first(mk_str_from_c(why), sizeof job->problem - 1 - text.len)));
    job->problem[text.len] = 0;
}

void postgres_job_free(struct postgres_job *job)
{
    if (!job)
        return;
    PQclear(job->result);
    mk_mem_free(job);
}
