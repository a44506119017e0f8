/* SPDX-License-Identifier: Apache-2.0 */
/* libmonkey: the server inside of a program. Link with -lmonkey (pkg-config: libmonkey). */
#ifndef MONKEY_SERVER_H
#define MONKEY_SERVER_H

#include <monkey/plugin.h>
#include <monkey/router.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A server. A program may have many; they share nothing.
 *
 *     static enum mk_verdict hello(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         (void)request, (void)data;
 *         mk_response_set_body_nocopy(response, MK_STR("hello\n"));
 *         return MK_DONE;
 *     }
 *
 *     int main(void)
 *     {
 *         unsigned port;
 *         struct mk_server *s = mk_server_new(NULL);
 *         if (!s || mk_server_add_route(s, "GET /hello", hello, NULL) ||
 *             mk_server_listen(s, "127.0.0.1:0", &port) || mk_server_run(s))
 *             fprintf(stderr, "%s\n", mk_server_error(s));
 *         mk_server_free(s);
 *     }
 *
 * First it is set up, by one thread at a time. What is set becomes a configuration, with the sections, keys
 * and messages of the configuration file. Then it runs, in one of three ways: mk_server_run(),
 * mk_server_start(), or mk_server_fd() with mk_server_step(). At last it is stopped and freed. It runs once.
 *
 * Functions that return an int return 0, or a negated errno value; mk_server_error() then has a text for
 * people. -EINVAL is a wrong value, -EBUSY a call that comes too late or from the wrong place.
 *
 * The library never exits, prints, forks, or changes signals, folders, umask or locale of the program. A
 * thread that it starts has all signals blocked. It opens every descriptor as close-on-exec. It keeps errno.
 * What needs the processes of the program `monkey` is absent: `Workers`, `User`, `Sandbox`, `PidFile`,
 * reloads, and plugins that start programs (`cgi`, `acme`).
 */
struct mk_server;

/** Options of a server. Set `size`; zero means the default. */
struct mk_server_options {
    size_t size; /**< sizeof(struct mk_server_options): members may be added */
    /** Gets every message up to `LogLevel`, without its line end, in any thread of the server. It must not
     * call functions of the server. NULL: messages go to `ErrorLog`, if one is set, and else nowhere. */
    void (*on_log)(void *ctx, enum mk_log_level level, mk_str text);
    void *log_ctx; /**< for on_log */
    /** Listens nowhere, whatever a configuration file says, so that tests disturb no server and no other
     * test: their clients are in memory (monkey/test_client.h). */
    bool in_memory;
};

/** A new server. `options` may be NULL; it is copied. NULL when memory is out, or when `size` is
 * not that of this or an earlier release. */
MK_API struct mk_server *mk_server_new(const struct mk_server_options *options) MK_API_MUST_USE;

/** What the last function that failed complains about: one or more lines, the last without its end. Empty if
 * nothing failed, but a configuration that was started may have warnings. Valid until the next call for this
 * server. NULL is fine: then memory is out. */
MK_API const char *mk_server_error(const struct mk_server *s);

/**
 * The heap of all servers of the program, in place of malloc(3): resize(old, size) as realloc(3), where `old`
 * may be NULL and `size` is never 0; give_back(p) as free(3). From any thread. Once, before any other
 * function of the library: else -EBUSY. What other libraries allocate for the server (OpenSSL, nghttp2) stays
 * theirs.
 */
MK_API int mk_mem_use(void *(*resize)(void *old, size_t size), void (*give_back)(void *p));

/* ---- Setting up ---- */

/**
 * Reads a configuration file, or the monkey.conf of a folder, when the server starts. Keys of [SERVER] that
 * are set by functions replace those of the file; other sections are added. Once.
 */
MK_API int mk_server_load_config(struct mk_server *s, const char *file_or_folder);

/**
 * One line of the configuration: `key value` in a section. A section of a host, [HOST] too, is that of the
 * host added last; without one, a first host is added. `${NAME}` is replaced as in the file.
 *
 *     mk_server_set(s, "SERVER", "KeepAliveTimeout", "5s");
 *     mk_server_set(s, "PLUGINS", "Load", "compress");
 *     mk_server_set(s, "ROUTES", "*.html", "static");
 *
 * Keys of the server itself are checked at once, all else when the server starts.
 */
MK_API int mk_server_set(struct mk_server *s, const char *section, const char *key, const char *value);

/** Begins another section of that name, for those that may be there more than once: [LOCATION], some of
 * plugins. The lines that follow are its. */
MK_API int mk_server_add_section(struct mk_server *s, const char *section);

/**
 * Adds a host. `names` are its names, with blanks between them (`ServerName`); NULL: it has none. `root` is
 * the folder of its files (`DocumentRoot`); NULL: it has no files. The first host serves requests for hosts
 * that are not known.
 */
MK_API int mk_server_add_vhost(struct mk_server *s, const char *names, const char *root);

/** Loads a plugin of the program, which must stay there as long as the server. The same one may be added
 * again; -EINVAL: another one has its name. Those that come with Monkey are loaded by name:
 * mk_server_set(s, "PLUGINS", "Load", "compress"). */
MK_API int mk_server_add_plugin(struct mk_server *s, const struct mk_plugin *plugin);

/** A handler: see struct mk_handler of <monkey/handler.h>. `data` is that of mk_server_add_route(). */
typedef enum mk_verdict mk_server_fn(struct mk_request *request, struct mk_response *response, void *data);

/**
 * A route, `METHODS PATTERN` as of <monkey/router.h>, for the host added last, or for all hosts if none was
 * added. Routes come before [ROUTES] and files. Without methods, the handler gets all of them. -EEXIST: there
 * is such a route.
 *
 *     mk_server_add_route(s, "GET /users/:id<int>", show_user, NULL);
 */
MK_API int mk_server_add_route(struct mk_server *s, const char *what, mk_server_fn *fn, void *data);

/** The parameter of that name of the route that answers the request; NULL if it has none. In the thread of
 * the request. */
MK_API const struct mk_router_param *mk_server_param(const struct mk_request *request, const char *name);

/**
 * Opens an address, as in `Listen`: "127.0.0.1:8080", "[::1]:8443 tls", "*:80", "unix:/run/a.sock". Port 0
 * lets the system choose one, and *port (may be NULL) tells which. Clients may connect from now on; they wait
 * until the server runs.
 */
MK_API int mk_server_listen(struct mk_server *s, const char *where, unsigned *port);

/** Listens on a bound stream socket of the caller, who keeps the descriptor; it becomes non-blocking. */
MK_API int mk_server_listen_fd(struct mk_server *s, int fd, bool tls);

/** The i-th address of a server that was started, in the form of `Listen`, "127.0.0.1:8443 tls": those of the
 * file, too. -ENOENT: there are no more; -ENOSPC: `room` is too small (192 bytes are enough). */
MK_API int mk_server_address(const struct mk_server *s, size_t i, char *room, size_t cap);

/* ---- Running ---- */

/** Runs the server in the thread of the caller until it is stopped. */
MK_API int mk_server_run(struct mk_server *s);

/** Runs the server in so many threads of its own (1 to 512), which share the configuration. Returns when all
 * of them serve, or with an error when none does. */
MK_API int mk_server_start(struct mk_server *s, unsigned threads);

/**
 * For a loop of the caller: starts the server, and returns a descriptor that is readable whenever there is
 * something to do, timers included. Watch it for reading (level triggered), and call mk_server_step() when it
 * is readable.
 */
MK_API int mk_server_fd(struct mk_server *s);

/** Does what there is to do, and never waits. 1: the server goes on; 0: it has ended, and needs no more
 * calls; or an error, which ends it, but for -EBUSY: another step is under way. Always in the same thread. */
MK_API int mk_server_step(struct mk_server *s);

/**
 * Ends the server: accepts no more connections, gives open requests `drain_ms` to end (0: none;
 * UINT32_MAX: all the time they need), and closes all connections. Returns at once. From any thread, from
 * handlers, and from signal handlers (it is async-signal-safe), at any time before mk_server_free(). A later
 * call may shorten the time, but never extends it.
 */
MK_API void mk_server_stop(struct mk_server *s, uint32_t drain_ms);

/** Waits until the threads of mk_server_start() have ended; by one thread. Without any it returns at once.
 * -EDEADLK from one of them; else the first error that ended a thread. */
MK_API int mk_server_wait(struct mk_server *s);

/**
 * Stops at once, waits, and frees everything. In the thread of mk_server_step(), if there was a step. Not
 * from a handler or a callback of the server: that is reported to on_log, and nothing is freed. NULL is fine.
 */
MK_API void mk_server_free(struct mk_server *s);

#ifdef __cplusplus
}
#endif

#endif
