/* SPDX-License-Identifier: Apache-2.0 */
/* The servers of this program. Takes the place of lib/known.c in debug builds. */
#include "lib/known.h"

#include <pthread.h>

#include "base/mem.h"

struct entry {
    struct entry *next;
    const struct mk_server *server;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *first;

bool mk_known_add(struct mk_server *s)
{
    struct entry *e = mk_mem_alloc(sizeof *e);
    if (!e)
        return false;
    pthread_mutex_lock(&lock);
    *e = (struct entry){.next = first, .server = s};
    first = e;
    pthread_mutex_unlock(&lock);
    return true;
}

/* The place of the pointer to its entry; to NULL: there is none. */
static struct entry **find(const struct mk_server *s)
{
    struct entry **at = &first;
    while (*at && (*at)->server != s)
        at = &(*at)->next;
    return at;
}

void mk_known_remove(const struct mk_server *s)
{
    pthread_mutex_lock(&lock);
    struct entry **at = find(s), *e = *at;
    if (e)
        *at = e->next;
    pthread_mutex_unlock(&lock);
    mk_mem_free(e);
}

bool mk_known_is(const struct mk_server *s)
{
    pthread_mutex_lock(&lock);
    bool known = s && *find(s);
    pthread_mutex_unlock(&lock);
    return known;
}
