/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static struct isolate_record *all;

void isolate_record_close_secrets(struct isolate_record *r)
{
    int *const fds[] = {&r->control_fd, &r->listen_fd, &r->board_fd, &r->config_fd};
    for (size_t i = 0; i < MK_LEN(fds); i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

/* A process that can write a group's configuration decides what runs as its user. */
static void on_child(void)
{
    for (struct isolate_record *r = all; r; r = r->next)
        isolate_record_close_secrets(r);
}

static bool watch_forks(void)
{
    static bool does;
    does = does || pthread_atfork(NULL, NULL, on_child) == 0;
    return does;
}

static struct isolate_record *find(const char *name)
{
    struct isolate_record *r = all;
    while (r && strcmp(r->name, name) != 0)
        r = r->next;
    return r;
}

static struct isolate_record *add(const char *name)
{
    struct isolate_record *r = watch_forks() ? mk_mem_alloc(sizeof *r) : NULL;
    if (!r)
        return NULL;
    *r = (struct isolate_record){
        .next = all, .control_fd = -1, .listen_fd = -1, .board_fd = -1, .config_fd = -1, .presence_fd = -1};
    (void)snprintf(r->name, sizeof r->name, "%s", name);
    all = r;
    return r;
}

void isolate_record_tidy(struct isolate_record *r)
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

static void leave(void *data)
{
    struct isolate_record *r = data;
    r->configs--;
    isolate_record_tidy(r);
}

struct isolate_record *isolate_record_use(struct mk_config *config, const char *name)
{
    struct isolate_record *r = find(name);
    if (!r)
        r = add(name);
    if (!r)
        return NULL;
    r->configs++;
    return mk_config_add_cleanup(config, leave, r) ? r : NULL;
}

bool isolate_record_is_needed(int presence_fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(presence_fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
