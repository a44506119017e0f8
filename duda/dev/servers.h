/* SPDX-License-Identifier: Apache-2.0 */
/* The two servers of `monkey run`: one in front, which stays, and one with the services, which is replaced by
 * another with each change and may crash. */
#ifndef DUDA_DEV_SERVERS_H
#define DUDA_DEV_SERVERS_H

#include "process.h"
#include "source_set.h"
#include "stderr_reader.h"

#include <poll.h>

enum { DEV_LEAVING_MAX = 16, DEV_SERVERS_FDS = 2 * (DEV_LEAVING_MAX + 2) };

struct dev_servers {
    const struct dev_paths *paths;
    char folder[PATH_MAX]; /* a private one, for sockets and configurations */
    struct dev_process front, back;
    unsigned number; /* of the one with the services; 0: there was none yet */
    struct dev_process leaving[DEV_LEAVING_MAX];
    struct dev_stderr_reader stderr_reader; /* of the back's standard error */
    struct mk_buf tail;                     /* what the worker of the back that runs has said, for pages */
    struct mk_buf last_words;               /* of the one that died last */
};

/* False: reported. */
bool dev_servers_init(struct dev_servers *s, const struct dev_paths *paths);
/* Waits until it serves. `listen` is an address as [SERVER] takes it, `names` are for dev_allowed_hosts_contain().
 * False: reported. */
bool dev_servers_start_front(struct dev_servers *s, const char *listen, const char *names);
/* Starts another server with the services, waits until it serves, and lets the older one finish its requests.
 * False: it does not serve, `why` has its words, and the older one stays. */
bool dev_servers_replace_back(struct dev_servers *s, const struct dev_source_set *source_set,
                              const char *extra, struct mk_buf *why);
/* Adds what is to be waited for; answers how many were added, at most DEV_SERVERS_FDS. */
size_t dev_servers_add_pollfds(const struct dev_servers *s, struct pollfd *fds);
/* Passes on what they have said, and takes reports of crashes out of it. */
void dev_servers_read_output(struct dev_servers *s);
/* A request got no response: hears how its worker ended. What that one said, for a page. */
mk_str dev_servers_await_crash_output(struct dev_servers *s);
/* False: the server in front has ended. */
bool dev_servers_check_exits(struct dev_servers *s);
/* Ends them, and removes the folder with what was written into it. */
void dev_servers_stop(struct dev_servers *s);

#endif
