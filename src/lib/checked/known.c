/* SPDX-License-Identifier: Apache-2.0 */
/* What this program has of the library. Takes the place of lib/known.c in debug builds. */
#include "lib/known.h"

#include <pthread.h>

#include "base/mem.h"

struct entry {
    struct entry *next;
    const void *p;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *first;

bool mk_known_add(const void *p)
{
    struct entry *e = mk_mem_alloc(sizeof *e);
    if (!e)
        return false;
    pthread_mutex_lock(&lock);
    *e = (struct entry){.next = first, .p = p};
    first = e;
    pthread_mutex_unlock(&lock);
    return true;
}

/* The place of the pointer to its entry; to NULL: there is none. */
static struct entry **find(const void *p)
{
    struct entry **at = &first;
    while (*at && (*at)->p != p)
        at = &(*at)->next;
    return at;
}

void mk_known_remove(const void *p)
{
    pthread_mutex_lock(&lock);
    struct entry **at = find(p), *e = *at;
    if (e)
        *at = e->next;
    pthread_mutex_unlock(&lock);
    mk_mem_free(e);
}

bool mk_known_is(const void *p)
{
    pthread_mutex_lock(&lock);
    bool known = p && *find(p);
    pthread_mutex_unlock(&lock);
    return known;
}
