/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes and verifies passwords in a thread. The job is on the heap, and is erased even if its handler ends
 * first. */
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>
#include <string.h>

#include "auth.h"

struct password_job {
    size_t len, hash_len;
    bool has_hash, matches;
    char password[DUDA_PASSWORD_MAX], hash[DUDA_PASSWORD_SIZE];
};

static void drop_job(void *job)
{
    explicit_bzero(job, sizeof(struct password_job));
    mk_mem_free(job);
}

static mk_str password_of(const struct password_job *j)
{
    return mk_str_of(j->password, j->len);
}

static int hash_in_thread(void *job)
{
    struct password_job *j = job;
    return duda_password_hash_blocking(password_of(j), j->hash);
}

static int verify_in_thread(void *job)
{
    struct password_job *j = job;
    mk_str hash = j->has_hash ? mk_str_of(j->hash, j->hash_len) : MK_STR_NULL;
    j->matches = duda_password_verify_blocking(password_of(j), hash);
    return 0;
}

/* Returns NULL if out of memory. The caller has checked the length of the password. */
static struct password_job *new_job(mk_str password)
{
    struct password_job *j = mk_mem_zalloc(1, sizeof *j);
    if (j && password.len)
        memcpy(j->password, password.p, password.len);
    if (j)
        j->len = password.len;
    return j;
}

int duda_password_hash(struct duda_ctx *d, mk_str password, char out[DUDA_PASSWORD_SIZE])
{
    out[0] = '\0';
    if (password.len > DUDA_PASSWORD_MAX)
        return -EINVAL;
    struct password_job *j = new_job(password);
    if (!j)
        return -ENOMEM;
    int e = duda_offload_owned(d, NULL, hash_in_thread, j, drop_job);
    if (e)
        return e;
    memcpy(out, j->hash, sizeof j->hash);
    drop_job(j);
    return 0;
}

int duda_password_verify(struct duda_ctx *d, mk_str password, mk_str hash, bool *matches)
{
    *matches = false;
    if (password.len > DUDA_PASSWORD_MAX)
        return 0;
    struct password_job *j = new_job(password);
    if (!j)
        return -ENOMEM;
    j->has_hash = hash.len > 0 && hash.len < sizeof j->hash;
    if (j->has_hash) {
        memcpy(j->hash, hash.p, hash.len);
        j->hash_len = hash.len;
    }
    int e = duda_offload_owned(d, NULL, verify_in_thread, j, drop_job);
    if (e)
        return e;
    *matches = j->matches;
    drop_job(j);
    return 0;
}
