/* SPDX-License-Identifier: Apache-2.0 */
/* Cursors. Each batch of rows is copied to the heap, and replaces the previous one. */
#include <duda/body.h>
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/sql_backend.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "common/package.h"
#include "row_binding.h"
#include "statement_check.h"

enum { BATCH_FIRST = 16, BATCH_MAX = 1024, BATCH_BYTES = 64 << 10 };

/* The handler may rewind its arena between two rows, so cursors keep their data on the heap. */
struct heap_block {
    struct heap_block *next;
    _Alignas(max_align_t) char data[];
};

struct duda_sql_cursor {
    struct duda_ctx *d;
    struct duda_sql_db *db;
    void *session;
    uint64_t number; /* identifies the cursor in the backend; 0: not open */
    bool owns_session, is_closed;
    bool is_last;                   /* the batch is the last one */
    struct duda_sql_result *result; /* of the handler */
    struct duda_sql_result batch;   /* on the heap: one block, which begins with its values */
    size_t next, batch_size;
    const struct duda_schema *bound; /* the schema of `binding` */
    struct sql_row_binding binding;
    struct heap_block *row_data;  /* freed with the row */
    struct heap_block *kept_data; /* freed with the cursor */
};

/* ---- Memory ---- */

static void *alloc_block(void *ctx, size_t size)
{
    struct heap_block **list = (struct heap_block **)ctx;
    struct heap_block *block = size < SIZE_MAX - sizeof *block ? mk_mem_alloc(sizeof *block + size) : NULL;
    if (!block)
        return NULL;
    block->next = *list;
    *list = block;
    return block->data;
}

static void free_blocks(struct heap_block **list)
{
    while (*list) {
        struct heap_block *block = *list;
        *list = block->next;
        mk_mem_free(block);
    }
}

static void free_batch(struct duda_sql_cursor *c)
{
    mk_mem_free((void *)(uintptr_t)c->batch.values);
    c->batch = (struct duda_sql_result){0};
    c->next = 0;
}

static bool is_text(const struct duda_sql_value *v)
{
    return v->type >= DUDA_SQL_TEXT;
}

/* Copies the rows to one block, with a NUL after each text. Returns its size in bytes; 0: out of memory. */
static size_t copy_batch(struct duda_sql_cursor *c, const struct duda_sql_result *from)
{
    size_t n = from->n_rows * from->n_columns, size = n * sizeof *from->values + 1;
    for (size_t i = 0; i < n; i++)
        size += is_text(&from->values[i]) ? from->values[i].text.len + 1 : 0;
    struct duda_sql_value *values = mk_mem_alloc(size);
    if (!values)
        return 0;
    char *text = (char *)(values + n);
    for (size_t i = 0; i < n; i++) {
        values[i] = from->values[i];
        if (!is_text(&values[i]))
            continue;
        if (values[i].text.len)
            memcpy(text, values[i].text.p, values[i].text.len);
        values[i].text.p = text;
        text += values[i].text.len;
        *text++ = '\0';
    }
    c->batch.n_rows = from->n_rows;
    c->batch.n_columns = from->n_columns;
    c->batch.values = values;
    return size;
}

/* ---- Lifetime ---- */

/* The handler's transaction may have ended, which closed the cursor. */
static bool is_session_alive(const struct duda_sql_cursor *c)
{
    return c->owns_session || duda_sql_session(c->d, c->db) == c->session;
}

static void end_cursor(void *ctx)
{
    struct duda_sql_cursor *c = ctx;
    c->is_closed = true;
    free_batch(c);
    free_blocks(&c->row_data);
    free_blocks(&c->kept_data);
    c->result->columns = NULL;
    c->result->n_columns = 0;
    if (c->owns_session)
        c->db->ops->release(c->db, c->session, false);
    else if (c->number && is_session_alive(c))
        c->db->ops->close_cursor(c->db, c->session, c->number);
}

/* A closed cursor no longer uses the handler's result, which another query may already have filled. */
void duda_sql_cursor_close(struct duda_sql_cursor *c)
{
    if (!c || c->is_closed)
        return;
    end_cursor(c);
    (void)duda_undefer(c->d, end_cursor, c);
}

static int set_reason(struct duda_sql_cursor *c, int e)
{
    if (!e || e == -ECANCELED || !c->result->error.len)
        return e;
    return duda_reason(c->d, e, "%.*s", MK_STR_ARG(c->result->error));
}

/* Uses the session of the handler's transaction, or begins a read-only transaction. */
static int acquire_session(struct duda_sql_cursor *c)
{
    static const struct duda_sql_transaction_options options = {.read_only = true};
    c->session = duda_sql_session(c->d, c->db);
    if (c->session)
        return 0;
    int e = c->db->ops->begin(c->d, c->db, c->result, &options, &c->session);
    c->owns_session = !e;
    return e;
}

static int open_cursor(struct duda_sql_cursor *c, const struct duda_sql_statement *query)
{
    int e = acquire_session(c);
    if (e)
        return e;
    e = duda_defer(c->d, end_cursor, c);
    if (e)
        return e;
    e = c->db->ops->open_cursor(c->d, c->db, c->session, c->result, query, &c->number);
    if (e)
        duda_sql_cursor_close(c);
    return e;
}

int duda_sql_cursor_open(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                         const char *text, const struct duda_sql_value *parameters, size_t n,
                         struct duda_sql_cursor **out)
{
    struct package_call call;
    struct duda_sql_cursor *c = duda_alloc(d, sizeof *c);
    *out = NULL;
    *result = (struct duda_sql_result){0};
    if (!db)
        return -ENODEV;
    if (!c)
        return -ENOMEM;
    int e = sql_statement_check(result, mk_str_from_c(text), parameters, n);
    e = e ? e : package_call_begin(&call, d, db->meter);
    if (e)
        return e;
    *c = (struct duda_sql_cursor){.d = d, .db = db, .result = result, .batch_size = BATCH_FIRST};
    e = package_call_end(&call, open_cursor(c, &(struct duda_sql_statement){text, parameters, n}));
    if (!e)
        *out = c;
    return set_reason(c, e);
}

/* ---- Rows ---- */

static size_t next_batch_size(size_t n_rows, size_t size)
{
    size_t n = n_rows ? BATCH_BYTES / (size / n_rows + 1) : BATCH_FIRST;
    return n < 1 ? 1 : n > BATCH_MAX ? BATCH_MAX : n;
}

static int copy_columns(struct duda_sql_cursor *c, const mk_str *names, size_t n)
{
    const struct mk_allocator memory = {alloc_block, &c->kept_data};
    mk_str *columns = (mk_str *)mk_allocator_zalloc(&memory, n, sizeof *columns);
    for (size_t i = 0; columns && i < n; i++) {
        columns[i] = mk_allocator_copy(&memory, names[i]);
        if (!columns[i].p)
            return -ENOMEM;
    }
    c->result->columns = columns;
    c->result->n_columns = n;
    return columns ? 0 : -ENOMEM;
}

/* Reads a batch into the memory of the handler, and moves it to the heap. */
static int fetch_batch(struct duda_sql_cursor *c)
{
    struct duda_sql_result rows = {0};
    size_t mark = duda_arena_mark(c->d);
    int e = c->db->ops->fetch(c->d, c->db, c->session, c->number, c->batch_size, &rows);
    if (e) {
        c->result->error = rows.error; /* in the arena, which is therefore not rewound */
        c->result->violation = rows.violation;
        return e;
    }
    size_t size = copy_batch(c, &rows);
    c->is_last = rows.n_rows < c->batch_size;
    c->batch_size = next_batch_size(rows.n_rows, size);
    if (size && !c->result->columns)
        e = copy_columns(c, rows.columns, rows.n_columns);
    duda_arena_rewind(c->d, mark);
    return size ? e : -ENOMEM;
}

static int fetch_next_batch(struct duda_sql_cursor *c)
{
    struct package_call call;
    free_batch(c);
    if (c->is_last)
        return 0;
    if (c->is_closed || !is_session_alive(c))
        return -EINVAL;
    int e = package_call_begin(&call, c->d, c->db->meter);
    e = e ? e : package_call_end(&call, fetch_batch(c));
    return set_reason(c, e);
}

int duda_sql_cursor_next(struct duda_ctx *d, struct duda_sql_cursor *c, const struct duda_sql_value **row)
{
    (void)d;
    *row = NULL;
    if (c->next == c->batch.n_rows) {
        int e = fetch_next_batch(c);
        if (e)
            return e;
        if (!c->batch.n_rows) {
            duda_sql_cursor_close(c);
            return 0;
        }
    }
    *row = duda_sql_cell(&c->batch, c->next++, 0);
    return 1;
}

static int prepare_binding(struct duda_sql_cursor *c, const struct duda_schema *schema)
{
    const struct mk_allocator memory = {alloc_block, &c->kept_data};
    c->bound = schema;
    return sql_row_binding_prepare(&c->binding, c->result, schema, &memory);
}

int duda_sql_cursor_bind_checked(struct duda_ctx *d, struct duda_sql_cursor *c,
                                 const struct duda_schema *schema, void *out, size_t size)
{
    const struct duda_sql_value *row;
    const struct mk_allocator memory = {alloc_block, &c->row_data};
    free_blocks(&c->row_data);
    int e = duda_schema_check_size(d, schema, size);
    if (e)
        return e;
    e = duda_sql_cursor_next(d, c, &row);
    if (e != 1)
        return e;
    e = c->bound == schema ? 0 : prepare_binding(c, schema);
    memset(out, 0, schema->size);
    c->binding.memory = &memory;
    c->binding.errors = NULL; /* they were allocated for the row before */
    e = e ? e : sql_row_binding_store(&c->binding, &c->batch, c->next - 1, 1, schema->size, out);
    c->binding.memory = NULL;
    if (!e)
        return 1;
    c->bound = NULL;
    c->result->error = duda_strdup(d, mk_str_from_c(e == -ENOMEM ? "out of memory" : c->binding.message));
    return set_reason(c, e);
}
