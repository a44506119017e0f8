/* SPDX-License-Identifier: Apache-2.0 */
/* Registry of live handles. Replaces lib/handle_registry.c in debug builds. */
#include "lib/handle_registry.h"

#include <pthread.h>
#include <signal.h>

#include "base/mem.h"

struct entry {
    struct entry *next;
    const void *p;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *first;

/* Blocks signals while the lock is held: a signal handler may call mk_server_stop(), which takes the same
 * lock. */
static void lock_registry(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
    pthread_mutex_lock(&lock);
}

static void unlock_registry(const sigset_t *before)
{
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

bool mk_handle_register(const void *p)
{
    struct entry *e = mk_mem_alloc(sizeof *e);
    if (!e)
        return false;
    sigset_t before;
    lock_registry(&before);
    *e = (struct entry){.next = first, .p = p};
    first = e;
    unlock_registry(&before);
    return true;
}

/* Returns the address of the pointer to the entry of the handle; that pointer is NULL if there is no
 * entry. */
static struct entry **find_handle(const void *p)
{
    struct entry **at = &first;
    while (*at && (*at)->p != p)
        at = &(*at)->next;
    return at;
}

void mk_handle_unregister(const void *p)
{
    sigset_t before;
    lock_registry(&before);
    struct entry **at = find_handle(p), *e = *at;
    if (e)
        *at = e->next;
    unlock_registry(&before);
    mk_mem_free(e);
}

bool mk_handle_is_valid(const void *p)
{
    sigset_t before;
    lock_registry(&before);
    bool known = p && *find_handle(p);
    unlock_registry(&before);
    return known;
}
