/* SPDX-License-Identifier: Apache-2.0 */
/* libmonkey: the server as a library. Link with -lmonkey (pkg-config: libmonkey). */
#ifndef MONKEY_SERVER_H
#define MONKEY_SERVER_H

#include <monkey/addr.h>
#include <monkey/plugin.h>
#include <monkey/router.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A server. A program may run several, which share nothing.
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
 * A server has three phases. First, you set it up, from one thread at a time. Your settings form a
 * configuration with the same sections, keys and error messages as a configuration file. Second, you run it
 * in one of three ways: mk_server_run(), mk_server_start(), or mk_server_fd() with mk_server_step(). Finally,
 * you stop and free it. A server runs only once.
 *
 * Functions that return an int return 0 or a negative errno value; mk_server_error() then describes the
 * error. -EINVAL means an invalid value, -EBUSY a call that is too early, too late or from the wrong context,
 * and -ESHUTDOWN a server that is stopping or has stopped.
 *
 * The library never exits, prints or forks, and it never changes the signal handling, working directory,
 * umask or locale of the program. Its threads block all signals. All descriptors are opened with
 * close-on-exec. The library preserves errno. Features that need the process model of the program `monkey`
 * are absent: `Workers`, `User`, `Sandbox`, `PidFile`, reloads, and plugins that start programs (`cgi`,
 * `acme`). Listeners and certificates can be changed while the server is running.
 */
struct mk_server;

/** Options of a server. Set `size`; zero in any other member selects its default. */
struct mk_server_options {
    size_t size; /**< sizeof(struct mk_server_options), so that members can be added */
    /** Receives every message up to `LogLevel`, without its line ending, in any thread of the server.
     * It must not call functions of the server. NULL: messages go to `ErrorLog` if that is set, and are
     * discarded otherwise. */
    void (*on_log)(void *ctx, enum mk_log_level level, mk_str text);
    void *log_ctx; /**< argument of on_log */
    /** Opens no listeners, not even those of the configuration file, so that tests cannot interfere
     * with servers or other tests. Use in-memory clients instead (monkey/test_client.h). */
    bool in_memory;
    /** Folder of the plugins and other loadable objects that come with Monkey (monkey-NAME.so). It applies to
     * all servers of the program: the last server created decides. NULL: the folder of the installation,
     * which is `monkey` beside the library. */
    const char *plugin_folder;
    /** Logs a warning when handlers have blocked the event loop of a worker, and thereby all of its other
     * connections, for this time in milliseconds. 0: 500 ms; MK_FOREVER: never. */
    uint32_t slow_loop_ms;
};

/** Creates a server. `options` may be NULL; it is copied. Returns NULL if out of memory, if `size` matches
 * neither this nor an earlier release, or if `plugin_folder` is empty or too long. */
MK_API struct mk_server *mk_server_new(const struct mk_server_options *options) MK_API_MUST_USE;

/** Returns the error messages of the last function that failed: one or more lines, the last without a line
 * ending. Empty if no function failed; after a successful start, it holds the warnings about the
 * configuration, if any. Functions that fail while the server is running set the message of the calling
 * thread only. Valid until the next call for this server. For NULL, it reports an out-of-memory error. */
MK_API const char *mk_server_error(const struct mk_server *server);

/**
 * Replaces the heap of all servers in the program: realloc_fn(old, size) works like realloc(3), where `old`
 * may be NULL and `size` is never 0; free_fn(p) works like free(3). Both must be thread-safe. Call it once,
 * before any other function of the library; a later call returns -EBUSY. Other libraries (OpenSSL, nghttp2)
 * keep their own allocators.
 */
MK_API int mk_mem_set_allocator(void *(*realloc_fn)(void *old, size_t size), void (*free_fn)(void *p));

/* ---- Setting up ---- */

/**
 * Loads a configuration file, or the monkey.conf in a folder, when the server starts. [SERVER] keys that you
 * set with functions override those of the file; other sections are added to those of the file. Call it at
 * most once.
 */
MK_API int mk_server_load_config(struct mk_server *server, const char *file_or_folder);

/**
 * Adds a configuration line: a key and value in a section. Sections of a virtual host, including [HOST],
 * refer to the host added last; if there is none, the function adds a host first. `${NAME}` is expanded as in
 * the file.
 *
 *     mk_server_set(s, "SERVER", "KeepAliveTimeout", "5s");
 *     mk_server_set(s, "PLUGINS", "Load", "compress");
 *     mk_server_set(s, "ROUTES", "*.html", "static");
 *     mk_server_set(s, "SERVER", "ErrorFormat", "json"); // errors as application/problem+json (RFC 9457)
 *
 * Keys of the server itself are checked immediately, all others when the server starts.
 */
MK_API int mk_server_set(struct mk_server *server, const char *section, const char *key, const char *value);

/** Starts another section with that name, for repeatable sections such as [LOCATION] and some plugin
 * sections. Subsequent lines belong to the new section. */
MK_API int mk_server_add_section(struct mk_server *server, const char *section);

/**
 * Adds a virtual host. `names` is a space-separated list (`ServerName`); NULL: none. `root` is the folder of
 * its files (`DocumentRoot`); NULL: it has no files. The first host serves requests for unknown hosts.
 */
MK_API int mk_server_add_vhost(struct mk_server *server, const char *names, const char *root);

/**
 * Adds a certificate from memory, for TLS listeners: to the host added last, or, if no host was added, to all
 * hosts without their own certificate. `certificate` holds the host's certificate, followed by its chain;
 * `key` holds its private key, without a password; NULL: `certificate` also contains it. Both are PEM
 * strings, which the function checks before it returns. It keeps no copy of them: erase the key afterwards. A
 * host may have one certificate for each type of key (RSA, ECDSA, Ed25519).
 *
 * Returns 0; -EINVAL if the PEM data is invalid or the key belongs to another certificate; -ENOTSUP if the
 * library was built without TLS; -ENOMEM or -EBUSY. An expired certificate only causes a warning: see
 * mk_server_error() after startup. The server does not start if a host has two certificates with the same
 * type of key.
 *
 *     if (mk_server_add_certificate(s, certificate, key) || mk_server_listen(s, "*:443 tls", NULL))
 *         fprintf(stderr, "%s\n", mk_server_error(s));
 *     explicit_bzero(key, strlen(key));
 */
MK_API int mk_server_add_certificate(struct mk_server *server, const char *certificate, const char *key);

/** Loads a plugin that is part of the program; its struct must outlive the server. You may add the same
 * plugin again. Returns -EINVAL if another plugin has the same name. Load plugins that come with Monkey by
 * name: mk_server_set(s, "PLUGINS", "Load", "compress"). */
MK_API int mk_server_add_plugin(struct mk_server *server, const struct mk_plugin *plugin);

/**
 * Sets a function that accepts or rejects each connection, on every listener, before TLS and HTTP. If
 * accepts(client, ctx) returns false, the server resets the connection without a response, and counts it as
 * dropped. The function runs in the threads of the workers: several threads may call it at once, and it must
 * not block. `client` is valid during the call. If the plugin `security` expects a PROXY header, `client` is
 * the address from that header; clients of a Unix socket have `is_unix`. Limits for the number of connections
 * apply as well. `ctx` must stay valid until mk_server_free(); synchronize accesses to data that other
 * threads change. A later call replaces the function.
 *
 * Returns 0; -EINVAL if `accepts` is NULL; -EBUSY after the start.
 *
 *     static bool is_local(const struct mk_addr *client, void *ctx)
 *     {
 *         return mk_network_contains(ctx, client);
 *     }
 *
 *     struct mk_network home;
 *     if (mk_network_parse(MK_STR("192.168.0.0/16"), &home))
 *         mk_server_set_accept_filter(s, is_local, &home);
 */
MK_API int mk_server_set_accept_filter(struct mk_server *server,
                                       bool (*accepts)(const struct mk_addr *client, void *ctx), void *ctx);

/** A handler function: see struct mk_handler in <monkey/handler.h>. `data` is the argument of
 * mk_server_add_route(). */
typedef enum mk_verdict mk_server_fn(struct mk_request *request, struct mk_response *response, void *data);

/**
 * Adds a route, `METHODS PATTERN` as in <monkey/router.h>, to the host added last, or to all hosts if no host
 * was added. These routes precede [ROUTES] and files. Without methods, the handler receives all methods.
 * Returns -EEXIST if the route already exists.
 *
 *     mk_server_add_route(s, "GET /users/:id<int>", show_user, NULL);
 */
MK_API int mk_server_add_route(struct mk_server *server, const char *route, mk_server_fn *fn, void *data);

/**
 * Sets the Content-Type of responses of mk_server_add_route() handlers whose body is text in memory and that
 * have no Content-Type. The initial value is `text/plain; charset=utf-8`: without a type, a browser may
 * interpret text that came from a client as HTML, and run its scripts. Files and body sources get no default.
 * `type` is copied; NULL: no default. Returns 0; -EINVAL if `type` is not a media type, with optional
 * parameters; -ENOMEM or -EBUSY.
 *
 *     mk_server_set_default_type(s, "application/json");
 */
MK_API int mk_server_set_default_type(struct mk_server *server, const char *type);

/**
 * Sets a function that responds to errors in place of the server's error pages, on all virtual hosts: an
 * unknown path (404), a method without a route (405), a body larger than `MaxBodySize` (413), an overloaded
 * server (503), and MK_ERROR from any route handler or plugin. `response` has the status
 * (mk_response_status()), no body, and the headers of the error, such as Allow (405), Retry-After or
 * WWW-Authenticate. Return MK_DONE after writing the response. The server keeps the status unless you change
 * it, and sends HEAD responses without their body. MK_NEXT leaves the page to [ERROR_PAGES] or the built-in
 * page in the format of `ErrorFormat`. MK_ERROR sends the built-in page for the status that the response then
 * has. MK_WAIT suspends the request as in a handler, but counts as MK_NEXT if the server must respond at once
 * (see mk_plugin.on_error).
 *
 * The workers call the function, several of them at the same time, so it must be thread-safe and must not
 * block. It is called for at most one error of a request, and not for input that is not a valid request, such
 * as a malformed header: the client then gets the built-in page. `data` must stay valid until
 * mk_server_free(). A later call replaces the function.
 *
 * Returns 0; -EINVAL if `fn` is NULL; -EBUSY after the start.
 *
 *     static enum mk_verdict explain(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         mk_str phrase = mk_status_phrase(mk_response_status(response));
 *         (void)data;
 *         if (!mk_request_accepts_type(request, MK_STR("text/plain")) || !phrase.p)
 *             return MK_NEXT;
 *         if (mk_response_set_header(response, MK_STR("Content-Type"), MK_STR("text/plain")) ||
 *             mk_response_set_body(response, phrase))
 *             return MK_ERROR;
 *         return MK_DONE;
 *     }
 *
 *     mk_server_set_error_handler(s, explain, NULL);
 */
MK_API int mk_server_set_error_handler(struct mk_server *server, mk_server_fn *fn, void *data);

/** Enables mk_spool_request() and multipart forms for request bodies that do not fit in memory: workers write
 * them to unlinked files in `SpoolFolder` (default: /var/tmp). */
MK_API int mk_server_enable_body_spool(struct mk_server *server);

/** A file in memory. Its bytes must stay valid until mk_server_free(); the rest is copied. */
struct mk_memory_file {
    const char *path; /**< path of the URL: "/app.js"; an index.html is also served for its folder */
    mk_str content;
    mk_str gzip, br;  /**< the content, compressed with gzip or Brotli; absent: none */
    const char *type; /**< media type; NULL: derived from the extension of the path */
    int64_t modified; /**< seconds since 1970, for Last-Modified; 0: none */
};

/**
 * Serves n files from memory, without copying them, for GET and HEAD. They become routes of the host added
 * last, or of all hosts if no host was added. The server computes the ETag of each file, evaluates conditions
 * (If-None-Match) and ranges, and sends the compressed variant that the client prefers. `size` is
 * sizeof(struct mk_memory_file).
 *
 * Returns 0; -EINVAL if a path does not begin with a slash or contains a character that a route would
 * interpret, or if the type or `size` is invalid; -EEXIST if the path already has a route; -ENAMETOOLONG;
 * -ENOMEM; or -EBUSY. On error, the files before the invalid one remain added.
 *
 *     static const struct mk_memory_file files[] = {
 *         {.path = "/index.html", .content = MK_STR_INIT("<script src=app.js></script>")},
 *         {.path = "/app.js", .content = MK_STR_INIT("alert('hello')")},
 *     };
 *     mk_server_add_files(s, files, 2, sizeof files[0]);
 */
MK_API int mk_server_add_files(struct mk_server *server, const struct mk_memory_file *files, size_t n,
                               size_t size);

/** Returns the matched route's parameter with that name; NULL if there is none. Call it in the thread of the
 * request. */
MK_API const struct mk_router_param *mk_server_param(const struct mk_request *request, const char *name);

/**
 * Opens a listener, as in `Listen`: "127.0.0.1:8080", "[::1]:8443 tls", "*:80", "unix:/run/a.sock". For port
 * 0, the system chooses a port. *port is set to the actual port, unless `port` is NULL. Clients can connect
 * from now on; before the start, they wait until the server runs.
 *
 * While the server is running, any thread may call this function, including handlers. The call returns
 * immediately, and the workers begin to accept in their next iteration. The new listener serves the hosts
 * without their own `Listen`. `tls` requires that at least one host has had a certificate since the start.
 *
 * Returns 0; -EINVAL (the address is malformed, or already has a listener, or 64 listeners are open);
 * -EADDRINUSE, -EACCES, -EMFILE and other errors of bind(2) and socket(2); -ENOTSUP (the address requires
 * HTTP/2, which the server does not support, or the server has the option `in_memory`); -ENOMEM, -EBUSY or
 * -ESHUTDOWN. On error, nothing has changed.
 *
 *     unsigned port;
 *     if (mk_server_listen(s, "127.0.0.1:0", &port)) // s is running
 *         fprintf(stderr, "%s\n", mk_server_error(s));
 */
MK_API int mk_server_listen(struct mk_server *server, const char *address, unsigned *port);

/**
 * Listens on a bound stream socket, like mk_server_listen(). The caller keeps the descriptor, which becomes
 * non-blocking. Before the start, you may pass several sockets that share an address (SO_REUSEPORT), such as
 * those of another server (mk_server_listener_fd()): they become one listener.
 */
MK_API int mk_server_listen_fd(struct mk_server *server, int fd, bool tls);

/**
 * Closes a listener of a running server; `address` has the form of mk_server_listen() (flags such as `tls`
 * are ignored), or is a result of mk_server_address(). Any thread may call this function, including handlers.
 * It returns immediately. In its next iteration, each worker accepts the connections that wait in its queue,
 * unless accepting is paused, and closes its socket. Open connections are served as before. The address can
 * be used again at once, also with or without `tls`; the file of a Unix socket is removed, unless the socket
 * came from mk_server_listen_fd(). The last listener may be closed as well.
 *
 * Clients that connect at the moment of closing may be refused. To move an address to another server without
 * refusing clients, hand over its sockets: see mk_server_listener_fd().
 *
 * Returns 0; -ENOENT (no listener has this address); -EINVAL, -EBUSY or -ESHUTDOWN. On error, nothing has
 * changed.
 *
 *     mk_server_unlisten(s, "127.0.0.1:8080");
 */
MK_API int mk_server_unlisten(struct mk_server *server, const char *address);

/** Writes the address of the i-th listener of a started server, in the form of `Listen`: "127.0.0.1:8443
 * tls", with the actual port. This includes the addresses of the configuration file. Closing a listener
 * renumbers those after it. Any thread may call this function. Returns -ENOENT if `i` is out of range, and
 * -ENOSPC if `buf` is too small (192 bytes are enough). */
MK_API int mk_server_address(const struct mk_server *server, size_t i, char *buf, size_t cap) MK_API_MUST_USE;

/**
 * Returns a duplicate of the j-th socket of the i-th listener, which the caller closes; -ENOENT if there is
 * none, or an error such as -EMFILE. A server with several threads has one socket of each listener for each
 * thread, and each socket has its own accept queue. Therefore pass all sockets to the successor, which calls
 * mk_server_listen_fd() for each socket before it starts; then stop this server. In the meantime, either
 * server accepts new connections. Any thread may call this function.
 *
 *     for (size_t i = 0; i < 64; i++)
 *         for (size_t j = 0; (fd = mk_server_listener_fd(s, i, j)) >= 0; j++)
 *             send_to_successor(fd), close(fd);
 */
MK_API int mk_server_listener_fd(const struct mk_server *server, size_t i, size_t j) MK_API_MUST_USE;

/**
 * Replaces a certificate of a running server. `name` is a name of the host, as in its `ServerName`; NULL: all
 * hosts that have a certificate. `certificate` and `key` are as for mk_server_add_certificate(): the function
 * keeps no copy of the strings. The new certificate replaces the one with the same type of key (RSA, ECDSA,
 * Ed25519), if the host has one, and the others stay. The old one may have come from elsewhere, such as a
 * file. Hosts that use the same certificate under another name keep the old one.
 *
 * New connections get the new certificate as soon as the function has returned; open connections are not
 * affected. Any thread may call it, including handlers.
 *
 * Returns 0; -EINVAL if the PEM data is invalid or the key belongs to another certificate; -ENOENT if no such
 * host has had a certificate since the start; -ENOMEM, -EBUSY or -ESHUTDOWN. On error, nothing
 * has changed. After success, mk_server_error() may hold a warning: the certificate has expired.
 *
 *     if (mk_server_replace_certificate(s, "www.example.org", certificate, key))
 *         fprintf(stderr, "%s\n", mk_server_error(s));
 */
MK_API int mk_server_replace_certificate(struct mk_server *server, const char *name, const char *certificate,
                                         const char *key);

/* ---- Running ---- */

/** Runs the server in the calling thread until it is stopped. Returns 0 after a stop, or the error that
 * prevented the start or ended the server. */
MK_API int mk_server_run(struct mk_server *server);

/** Starts `threads` threads (1 to 512), which run the server and share the configuration. Returns 0 once all
 * of them serve requests. If a thread fails to start, stops the others and returns an error. */
MK_API int mk_server_start(struct mk_server *server, unsigned threads);

/**
 * Starts the server for use in your own event loop. Returns a descriptor that is readable whenever the server
 * has work to do, including timers. Poll it for reading (level triggered), and call mk_server_step() when it
 * is readable.
 */
MK_API int mk_server_fd(struct mk_server *server);

/** Runs one non-blocking iteration. Returns 1 if the server is still running, 0 if it has stopped, or an
 * error. An error stops the server, except for -EBUSY, which means that another step is in progress. Always
 * call it from the same thread. */
MK_API int mk_server_step(struct mk_server *server);

/**
 * Runs fn(worker, ctx) once in the loop of each worker, in its thread, for example to send an event to all
 * clients, or to change data of which each worker has its own copy. Calls from one thread run in order.
 * done(ctx) runs when all calls to fn have returned, in the thread that finishes last, which may be the
 * calling one; done() may free `ctx`, and may be NULL. Any thread may call this, from the start of the server
 * until mk_server_free().
 *
 * Returns 0 if at least one worker will call fn, even if the server stops before that; stopping workers are
 * skipped. On error, neither function is called: -ESHUTDOWN (the server is not running), -ENOMEM, -EINVAL.
 *
 *     static void send_temperature(struct mk_worker *worker, void *ctx)
 *     {
 *         struct reading *reading = ctx;
 *         for (struct client *c = clients[mk_worker_index(worker)]; c; c = c->next)
 *             (void)mk_websocket_send(c->socket, MK_WEBSOCKET_TEXT, reading->text);
 *     }
 *
 *     if (mk_server_post(server, send_temperature, free, reading))
 *         free(reading);
 */
MK_API int mk_server_post(struct mk_server *server, void (*fn)(struct mk_worker *worker, void *ctx),
                          void (*done)(void *ctx), void *ctx) MK_API_MUST_USE;

/**
 * Pauses and resumes accepting connections, for example while a database is down or overloaded. While paused,
 * new connections wait in the kernel's queue (`net.core.somaxconn`), and open connections are served as
 * usual. Each worker applies the calls in their order, in its next iteration. Any thread may call these
 * functions. They return 0 or an error of mk_server_post().
 */
MK_API int mk_server_pause_accepting(struct mk_server *server);
MK_API int mk_server_resume_accepting(struct mk_server *server);

/**
 * Stops the server: it accepts no more connections, allows open requests `drain_ms` milliseconds to finish
 * (0: no time; MK_FOREVER: no limit), and closes all connections. Returns immediately. Any thread, handler or
 * signal handler may call it (it is async-signal-safe), at any time before mk_server_free(). A later call may
 * shorten the time, but never extends it.
 */
MK_API void mk_server_stop(struct mk_server *server, uint32_t drain_ms);

/** Waits until the threads of mk_server_start() have ended; only one thread may wait. Returns
 * immediately if there are none. Returns -EDEADLK if called from one of them; otherwise the first error
 * that ended a thread. */
MK_API int mk_server_wait(struct mk_server *server);

/**
 * Stops the server immediately, waits for its threads, and frees everything. Call it in the thread of
 * mk_server_step(), if you use that. A call from a handler or callback of the server is only reported to
 * on_log, and frees nothing. NULL is allowed.
 */
MK_API void mk_server_free(struct mk_server *server);

#ifdef __cplusplus
}
#endif

#endif
