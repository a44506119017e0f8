/* SPDX-License-Identifier: Apache-2.0 */
#include "file_watch.h"

#include "paths.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

int dev_file_watch_open(void)
{
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0)
        fprintf(stderr, "monkey run: cannot watch files: %s\n", strerror(errno));
    return fd;
}

/* Watches a folder instead of its files: editors write a file in place or rename another one over it, and
 * folders such as html/ may be created later. */
void dev_file_watch_add_folder(int fd, const char *folder)
{
    (void)inotify_add_watch(
        fd, folder, IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_ONLYDIR);
}

void dev_file_watch_add_files(int fd, mk_str files)
{
    while (files.len) {
        mk_str line = mk_str_cut(&files, '\n');
        size_t slash = mk_str_find_last(line, '/');
        char folder[PATH_MAX];
        if (slash == MK_STR_NONE)
            dev_file_watch_add_folder(fd, ".");
        else if (dev_paths_format(folder, "%.*s", MK_STR_ARG(mk_str_first(line, slash ? slash : 1))))
            dev_file_watch_add_folder(fd, folder);
    }
}

/* Ignores the creation of files, which are still empty. */
static bool has_relevant_event(const char *buf, size_t n)
{
    bool any = false;
    for (size_t at = 0; at + sizeof(struct inotify_event) <= n;) {
        struct inotify_event event;
        memcpy(&event, buf + at, sizeof event);
        any = any || !(event.mask & IN_CREATE) || (event.mask & IN_ISDIR);
        at += sizeof event + event.len;
    }
    return any;
}

bool dev_file_watch_drain(int fd)
{
    char buf[16 * 1024];
    bool any = false;
    ssize_t n;
    while ((n = read(fd, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR))
        any = (n > 0 && has_relevant_event(buf, (size_t)n)) || any;
    return any;
}
