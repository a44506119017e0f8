/* SPDX-License-Identifier: Apache-2.0 */
/* The two servers of `monkey run`: a permanent front server, and a back server with the services, which is
 * replaced after each change and may crash. */
#ifndef DUDA_DEV_SERVERS_H
#define DUDA_DEV_SERVERS_H

#include "process.h"
#include "source_set.h"
#include "stderr_reader.h"

#include <poll.h>

enum { DEV_DRAINING_MAX = 16, DEV_SERVERS_FDS = 2 * (DEV_DRAINING_MAX + 2), DEV_MARKS = 64 };

/* How much had been logged when a request began. */
struct dev_request_mark {
    uint64_t request; /* hash of its method and target */
    uint64_t n_logged;
};

struct dev_servers {
    const struct dev_paths *paths;
    char folder[PATH_MAX]; /* private folder for sockets and configurations */
    struct dev_process front, back;
    const char *workers; /* number of workers of the back server; NULL: that of the configuration, or 1 */
    unsigned number;     /* number of the back server; 0: none so far */
    struct dev_process draining[DEV_DRAINING_MAX];
    struct dev_stderr_reader stderr_reader; /* reads standard error of the back server */
    struct mk_buf tail;                     /* output of the back server's running worker, for error pages */
    struct mk_buf last_words;               /* output of the worker that died last */
    uint64_t n_logged, n_last_words;        /* bytes ever added to `tail`: now; when the last worker died */
    struct dev_request_mark marks[DEV_MARKS];
    unsigned n_marks;
    bool watchdog_expired; /* the master has reported that it killed the current worker */
    bool was_blocked;      /* the last worker died because a handler had blocked it; see stderr_reader.held */
};

/* `project` is the path of the source or folder. On failure, reports the error and returns false. */
bool dev_servers_init(struct dev_servers *s, const struct dev_paths *paths, const char *project);
/* Starts the front server and waits until it accepts connections. `listen` is an address in the syntax of
 * [SERVER]; `names` are the names for dev_server_config_allows_host(). If `quiet` is true, the server prints
 * no line for each request. On failure, reports the error and returns false. */
bool dev_servers_start_front(struct dev_servers *s, const char *listen, const char *names, bool quiet);
/* Starts a new back server, waits until it accepts connections, and drains the old one. If the new server
 * fails to start, stores its output in `error`, keeps the old server, and returns false. */
bool dev_servers_replace_back(struct dev_servers *s, const struct dev_source_set *source_set,
                              const char *extra, struct mk_buf *error);
/* Adds the descriptors to poll, and returns their number, at most DEV_SERVERS_FDS. */
size_t dev_servers_add_pollfds(const struct dev_servers *s, struct pollfd *fds);
/* Forwards the output of the servers, and extracts crash reports. */
void dev_servers_read_output(struct dev_servers *s);
/* Call it when a request begins, so that the page about its failure shows no earlier output. */
void dev_servers_mark_request(struct dev_servers *s, mk_str method, mk_str target);
/* Call it when a request got no response: waits for the crash output of its worker, and returns what the
 * worker has written since the request began, for an error page. */
mk_str dev_servers_await_crash_output(struct dev_servers *s, mk_str method, mk_str target);
/* Returns false, after an error message, if the front server has exited. */
bool dev_servers_is_front_running(struct dev_servers *s);
/* Stops the servers, and removes the private folder. */
void dev_servers_stop(struct dev_servers *s);

#endif
