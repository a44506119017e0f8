/* SPDX-License-Identifier: Apache-2.0 */
/* An LMDB environment with two tables: `data` maps a key to expiry time and value, and `times` contains time
 * and key, in the order in which entries expire. */
#include "db.h"

#include <errno.h>
#include <lmdb.h>
#include <monkey/mem.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tables.h"

enum { READERS_MAX = 512, PURGED_AT_ONCE = 64, FILE_MODE = 0600, FULL = 1 << 20 };

/* LMDB must not be opened twice in a process: the second instance would consider itself the only one and
 * reset the locks. Worker threads share the instance of the first one, each with its own reader. */
struct env {
    struct env *next;
    dev_t device; /* device and inode identify the folder */
    ino_t inode;
    pid_t pid; /* the process that opened it; a forked process must not use it */
    unsigned users;
    struct duda_kv_tables tables;
    MDB_env *of;
};

static struct env *envs;
static pthread_mutex_t envs_lock = PTHREAD_MUTEX_INITIALIZER;

struct duda_kv_db {
    struct duda_kv_tables tables;
    struct env *env;
    MDB_txn *reader; /* transaction of the reading thread; holds no snapshot between calls */
};

static int open_tables(struct env *env)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(env->of, NULL, 0, &txn);
    if (rc)
        return rc;
    rc = mdb_dbi_open(txn, "data", MDB_CREATE, &env->tables.data);
    rc = rc ? rc : mdb_dbi_open(txn, "times", MDB_CREATE, &env->tables.times);
    if (!rc)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

static int open_env(struct env *env, const char *folder, uint64_t size_max, bool sync)
{
    int dead, rc = mdb_env_create(&env->of);
    rc = rc ? rc : mdb_env_set_mapsize(env->of, (size_t)size_max);
    rc = rc ? rc : mdb_env_set_maxdbs(env->of, 2);
    rc = rc ? rc : mdb_env_set_maxreaders(env->of, READERS_MAX);
    rc = rc ? rc : mdb_env_open(env->of, folder, MDB_NOTLS | (sync ? 0 : MDB_NOSYNC), FILE_MODE);
    rc = rc ? rc : mdb_reader_check(env->of, &dead); /* frees reader slots of crashed workers */
    return rc ? rc : open_tables(env);
}

static struct env *find_env(const struct stat *folder)
{
    struct env *env = envs;
    while (env && (env->device != folder->st_dev || env->inode != folder->st_ino || env->pid != getpid()))
        env = env->next;
    return env;
}

/* The caller must hold the lock. */
static int env_acquire(const char *folder, uint64_t size_max, bool sync, struct env **out)
{
    struct stat st;
    if (stat(folder, &st) < 0)
        return errno;
    struct env *env = find_env(&st);
    if (!env) {
        env = mk_mem_zalloc(1, sizeof *env);
        if (!env)
            return ENOMEM;
        *env = (struct env){.next = envs, .device = st.st_dev, .inode = st.st_ino, .pid = getpid()};
        int rc = open_env(env, folder, size_max, sync);
        if (rc) {
            mdb_env_close(env->of);
            mk_mem_free(env);
            return rc;
        }
        envs = env;
    }
    env->users++;
    *out = env;
    return 0;
}

/* The caller must hold the lock. */
static void env_release(struct env *env)
{
    if (--env->users)
        return;
    struct env **at = &envs;
    while (*at != env)
        at = &(*at)->next;
    *at = env->next;
    mdb_env_close(env->of);
    mk_mem_free(env);
}

static int open_db(struct duda_kv_db *s, const char *folder, uint64_t size_max, bool sync)
{
    int rc = env_acquire(folder, size_max, sync, &s->env);
    if (rc)
        return rc;
    s->tables = s->env->tables;
    rc = mdb_txn_begin(s->env->of, NULL, MDB_RDONLY, &s->reader);
    if (!rc)
        mdb_txn_reset(s->reader);
    return rc;
}

int duda_kv_db_open(const char *folder, uint64_t size_max, bool sync, struct duda_kv_db **out)
{
    struct duda_kv_db *s = size_max <= SIZE_MAX ? mk_mem_zalloc(1, sizeof *s) : NULL;
    if (!s)
        return -ENOMEM;
    pthread_mutex_lock(&envs_lock);
    int rc = open_db(s, folder, size_max, sync);
    pthread_mutex_unlock(&envs_lock);
    if (rc)
        duda_kv_db_close(s);
    else
        *out = s;
    return duda_kv_lmdb_errno(rc);
}

void duda_kv_db_close(struct duda_kv_db *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&envs_lock);
    if (s->reader)
        mdb_txn_abort(s->reader);
    if (s->env)
        env_release(s->env);
    pthread_mutex_unlock(&envs_lock);
    mk_mem_free(s);
}

/* ---- Reads ---- */

int duda_kv_db_get(struct duda_kv_db *s, mk_str key, uint64_t now_ms,
                   bool (*found)(void *ctx, mk_str key, mk_str value), void *ctx)
{
    mk_str value;
    int e = duda_kv_lmdb_errno(mdb_txn_renew(s->reader));
    if (e)
        return e;
    e = duda_kv_tables_get(&s->tables, s->reader, key, now_ms, &value);
    if (!e)
        found(ctx, key, value);
    mdb_txn_reset(s->reader);
    return e;
}

static int scan_range(MDB_cursor *cursor, mk_str prefix, mk_str from, uint64_t now_ms,
                      bool (*found)(void *ctx, mk_str key, mk_str value), void *ctx)
{
    MDB_val key = duda_kv_to_mdb_val(from.len && mk_str_cmp(from, prefix) > 0 ? from : prefix), data;
    int rc = mdb_cursor_get(cursor, &key, &data, key.mv_size ? MDB_SET_RANGE : MDB_FIRST);
    for (; !rc; rc = mdb_cursor_get(cursor, &key, &data, MDB_NEXT)) {
        mk_str name = duda_kv_from_mdb_val(key), value;
        if (!mk_str_starts(name, prefix))
            return 0;
        if (duda_kv_tables_row_value(data, now_ms, &value) == 0 && !found(ctx, name, value))
            return 0;
    }
    return rc == MDB_NOTFOUND ? 0 : duda_kv_lmdb_errno(rc);
}

int duda_kv_db_scan(struct duda_kv_db *s, mk_str prefix, mk_str from, uint64_t now_ms,
                    bool (*found)(void *ctx, mk_str key, mk_str value), void *ctx)
{
    MDB_cursor *cursor;
    int e = duda_kv_lmdb_errno(mdb_txn_renew(s->reader));
    if (e)
        return e;
    e = duda_kv_lmdb_errno(mdb_cursor_open(s->reader, s->tables.data, &cursor));
    if (!e) {
        e = scan_range(cursor, prefix, from, now_ms, found, ctx);
        mdb_cursor_close(cursor);
    }
    mdb_txn_reset(s->reader);
    return e;
}

/* ---- Writes ---- */

static bool expectation_holds(const struct duda_kv_tables *tables, MDB_txn *txn, const struct duda_kv_op *op,
                              uint64_t now_ms)
{
    mk_str value;
    int e = duda_kv_tables_get(tables, txn, op->key, now_ms, &value);
    return op->value.p ? e == 0 && mk_str_eq(value, op->value) : e == -ENOENT;
}

/* Stores the result of the batch in *op_error: 0, or an error that changed nothing. An error in the return
 * value aborts the transaction. */
static int apply_batch(const struct duda_kv_tables *tables, MDB_txn *txn, const struct duda_kv_batch *b,
                       uint64_t now_ms, int *op_error)
{
    int rc = 0;
    *op_error = 0;
    for (size_t i = 0; i < b->n; i++)
        if (b->ops[i].verb == DUDA_KV_OP_EXPECT && !expectation_holds(tables, txn, &b->ops[i], now_ms)) {
            *op_error = -ESTALE;
            return 0;
        }
    for (size_t i = 0; i < b->n && !rc && (b->n > 1 || !*op_error); i++)
        rc = duda_kv_tables_apply(tables, txn, &b->ops[i], now_ms, op_error);
    if (b->n > 1 && *op_error == -ENOENT) /* in a batch, deleting a missing key is not an error */
        *op_error = 0;
    return rc;
}

/* Writes all batches up to `end` in one commit. */
static int write_batches(struct duda_kv_db *s, struct duda_kv_batch *first, const struct duda_kv_batch *end,
                         uint64_t now_ms, bool purges)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(s->env->of, NULL, 0, &txn);
    if (rc)
        return rc;
    for (struct duda_kv_batch *b = first; b != end && !rc; b = b->next)
        rc = apply_batch(&s->tables, txn, b, now_ms, &b->error);
    if (!rc && purges)
        rc = duda_kv_tables_purge(&s->tables, txn, now_ms, PURGED_AT_ONCE);
    if (!rc)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

/* LMDB reports a short write as EIO. A full disk causes short writes, so an EIO without free space means
 * ENOSPC. */
static int write_errno(const struct duda_kv_db *s, int rc)
{
    mdb_filehandle_t fd;
    struct statvfs disk;
    if (rc != EIO || mdb_env_get_fd(s->env->of, &fd) || fstatvfs(fd, &disk))
        return duda_kv_lmdb_errno(rc);
    return (uint64_t)disk.f_bavail * disk.f_frsize < FULL ? -ENOSPC : -EIO;
}

void duda_kv_db_write(struct duda_kv_db *s, struct duda_kv_batch *first, uint64_t now_ms)
{
    if (write_batches(s, first, NULL, now_ms, true) == 0)
        return;
    /* The commit failed, perhaps because of a single batch: retries each batch in its own commit. */
    for (struct duda_kv_batch *b = first; b; b = b->next) {
        int e = write_errno(s, write_batches(s, b, b->next, now_ms, false));
        b->error = e ? e : b->error;
    }
}
