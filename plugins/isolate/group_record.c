/* SPDX-License-Identifier: Apache-2.0 */
#include "group_record.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static struct isolate_record *all;

void isolate_record_close_private_fds(struct isolate_record *r)
{
    int *const fds[] = {&r->control_fd, &r->listen_fd, &r->scoreboard_fd, &r->config_fd};
    for (size_t i = 0; i < MK_LEN(fds); i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

/* Children must not have these descriptors: a process that can write a group's configuration determines which
 * code runs as the group's user. */
static void close_fds_in_child(void)
{
    for (struct isolate_record *r = all; r; r = r->next)
        isolate_record_close_private_fds(r);
}

static bool register_atfork_once(void)
{
    static bool does;
    does = does || pthread_atfork(NULL, NULL, close_fds_in_child) == 0;
    return does;
}

static struct isolate_record *find_record(const char *name)
{
    struct isolate_record *r = all;
    while (r && strcmp(r->name, name) != 0)
        r = r->next;
    return r;
}

static struct isolate_record *add_record(const char *name)
{
    struct isolate_record *r = register_atfork_once() ? mk_mem_alloc(sizeof *r) : NULL;
    if (!r)
        return NULL;
    *r = (struct isolate_record){.next = all,
                                 .control_fd = -1,
                                 .listen_fd = -1,
                                 .scoreboard_fd = -1,
                                 .config_fd = -1,
                                 .presence_fd = -1};
    (void)snprintf(r->name, sizeof r->name, "%s", name);
    all = r;
    return r;
}

void isolate_record_free_if_unused(struct isolate_record *r)
{
    struct isolate_record **at = &all;
    if (r->configs || r->users)
        return;
    while (*at && *at != r)
        at = &(*at)->next;
    if (*at)
        *at = r->next;
    mk_mem_free(r);
}

static void release_record(void *data)
{
    struct isolate_record *r = data;
    r->configs--;
    isolate_record_free_if_unused(r);
}

struct isolate_record *isolate_record_acquire(struct mk_config *config, const char *name)
{
    struct isolate_record *r = find_record(name);
    if (!r)
        r = add_record(name);
    if (!r)
        return NULL;
    r->configs++;
    return mk_config_add_cleanup(config, release_record, r) ? r : NULL;
}

bool isolate_record_has_live_workers(int presence_fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(presence_fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
