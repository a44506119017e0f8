/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin is. It brings all other headers. */
#ifndef MONKEY_PLUGIN_H
#define MONKEY_PLUGIN_H

#include <monkey/access_record.h>
#include <monkey/addr.h>
#include <monkey/buf.h>
#include <monkey/config.h>
#include <monkey/connection.h>
#include <monkey/filter.h>
#include <monkey/format.h>
#include <monkey/handler.h>
#include <monkey/host.h>
#include <monkey/mem.h>
#include <monkey/regex.h>
#include <monkey/request.h>
#include <monkey/response.h>
#include <monkey/spool.h>
#include <monkey/subprocess.h>
#include <monkey/text.h>
#include <monkey/tls.h>
#include <monkey/tunnel.h>
#include <monkey/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * When the on_request of a plugin is called: low numbers first, equal ones in the order of `Load`.
 * on_response is called in reverse order, so that the first plugin has the last word.
 */
enum mk_priority {
    MK_PRIORITY_ADDRESS = 100, /**< determines the client's address, and denies access by address */
    MK_PRIORITY_REWRITE = 200, /**< changes the path */
    MK_PRIORITY_LIMIT = 300,   /**< limits rates */
    MK_PRIORITY_AUTH = 400,    /**< asks for a password */
    MK_PRIORITY_NORMAL = 500,
    MK_PRIORITY_LATE = 900
};

/** A command that the plugin adds to the command line: `monkey WORD ...`. */
struct mk_command {
    const char *name, *args; /**< "passwd", "FILE USER" */
    const char *help;        /**< one line */
    /** argv[0] is the word. Returns the exit code: 0 success, 1 failure, 2 wrong usage, 3 bad configuration.
     */
    int (*run)(int argc, char **argv);
};

/**
 * A plugin: its name, its configuration, and its hooks.
 *
 *     static enum mk_verdict greet(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         (void)request, (void)data;
 *         mk_response_add_header(response, MK_STR("X-Greeting"), MK_STR("hello"));
 *         return MK_NEXT;
 *     }
 *
 *     MK_PLUGIN(hello) = {
 *         MK_PLUGIN_HEAD,
 *         .name = "hello",
 *         .version = "1.0",
 *         .help = "Greets every client.",
 *         .on_request = greet,
 *     };
 *
 * The struct is constant. Keep state in the configuration (load, host), the worker, the connection or the
 * request it belongs to. Every function may be NULL. Only load(), unload() and host() may block.
 *
 * The master loads plugins and forks the workers, in which they run (mk_config_shared() is memory they
 * share). A crash in a hook ends its worker; the master starts another one.
 */
struct mk_plugin {
    unsigned abi; /**< MK_PLUGIN_HEAD sets these two: */
    size_t size;  /**< the server checks what it was built with */

    const char *name;     /**< as in `Load NAME`: lower case, digits, `-` */
    const char *version;  /**< its own */
    const char *help;     /**< one line: what it is for */
    const char *replaces; /**< the plugin of Monkey 1 that it replaces under another name; NULL: none */
    unsigned order;       /**< enum mk_priority, or anything between; 0 is MK_PRIORITY_NORMAL */

    const struct mk_conf_table *const *sections; /**< that it brings; ended by NULL */
    const struct mk_handler *const *handlers;    /**< for [ROUTES]; ended by NULL */
    const struct mk_command *const *verbs;       /**< ended by NULL */

    /** A configuration that loads the plugin is being read. Returns 0, with *data for the functions below, or
     * a negated errno value. Report mistakes with mk_config_error(), which also rejects the configuration. */
    int (*load)(struct mk_config *config, void **data);
    /** That configuration is released, or was rejected after all. Only if load() returned 0. Called in the
     * master, and in workers of another configuration, which inherited a copy of this one. */
    void (*unload)(void *data);
    /**
     * Called once per host, after load(): hooks of requests for this host receive *host_data, and
     * mk_vhost_data() returns it. If it stays NULL, the plugin does not apply to the host: none of its hooks
     * is called there. Without this function the hooks receive the data of load(), for every host.
     */
    int (*host)(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data);

    /** Called in the master, with its rights, after a configuration was accepted and before its workers
     * start; not when it is only checked (`monkey -t`). Report mistakes as in load(): the configuration is
     * then rejected after all. unload() closes what this opens. */
    int (*master_start)(struct mk_config *config, void *data);
    /** A worker starts (return 0, or a negated errno value to fail) and stops; all its connections are closed
     * by then. */
    int (*worker_start)(struct mk_worker *worker, void *data);
    void (*worker_stop)(struct mk_worker *worker, void *data);
    /** mk_worker_send() of the same plugin, here or in another worker. Valid during the call. */
    void (*on_message)(struct mk_worker *worker, mk_str message, void *data);

    /** A connection was accepted: MK_NEXT, MK_WAIT for (more) input, or MK_ERROR to close it without a
     * response. */
    enum mk_verdict (*on_accept)(struct mk_conn *connection, void *data);

    /** The request and its host are known; no handler has seen it. MK_NEXT continues; MK_DONE: the response
     * is complete; MK_WAIT until mk_request_resume(), which calls it again; MK_ERROR with the status that
     * was set. */
    enum mk_verdict (*on_request)(struct mk_request *request, struct mk_response *response, void *host_data);
    /** The response is complete and was not sent: change its status and fields, add filters. Not called for
     * requests so malformed that they have no path. */
    void (*on_response)(struct mk_request *request, struct mk_response *response, void *host_data);
    /** The client went away, or the request was cut off, before its response was complete. on_done follows.
     */
    void (*on_abort)(struct mk_request *request, void *host_data);
    /** The request is over, however it ended. */
    void (*on_done)(const struct mk_access_record *record, void *host_data);
    /** mk_request_log() for the host: true takes the message, so that it goes to no other log. The request
     * may be one of mk_request_log_copy(). */
    bool (*on_log)(struct mk_request *request, enum mk_log_level level, mk_str message, void *host_data);

    /** Plugins whose functions this one calls, by name; ended by NULL. The server loads them too, before this
     * one, if no `Load` line has done so. Link with their objects (the guide shows how), so that these are
     * found. */
    const char *const *needs;

    /** The worker takes no more connections, and stops when those that it has are closed and nothing holds it
     * (mk_worker_ref()), or when `DrainTimeout` is over: begin no more work of your own. Not called where a
     * worker stops at once. */
    void (*worker_drain)(struct mk_worker *worker, void *data);
    /** Another worker process has ended, however that came: what it held in shared memory may be taken back. Called
     * in all workers, those of other configurations too: soon, and never before it has ended. */
    void (*on_worker_exit)(struct mk_worker *worker, void *data);
};

/** Begins the initialiser of a plugin: what the server checks before it looks at anything else. */
#define MK_PLUGIN_HEAD .abi = MK_ABI, .size = sizeof(struct mk_plugin)

/**
 * MK_PLUGIN(NAME) defines the plugin (NAME is a word of C: `_` in place of `-`). The same source makes an
 * object to load, whose file is monkey-NAME.so, and, with MK_PLUGIN_STATIC defined, a part of the program.
 *
 * MK_PLUGIN_OF(NAME) is the plugin itself, for those of its functions that are asked for it (mk_vhost_data()),
 * which MK_PLUGIN_DECLARE(NAME) makes known to them.
 */
#ifdef MK_PLUGIN_STATIC
#define MK_PLUGIN_OF(name)      mk_plugin_##name
#define MK_PLUGIN_DECLARE(name) extern const struct mk_plugin mk_plugin_##name
#else
#define MK_PLUGIN_OF(name)      mk_plugin
#define MK_PLUGIN_DECLARE(name) extern MK_API const struct mk_plugin mk_plugin
#endif
#define MK_PLUGIN(name)                                                                                      \
    MK_PLUGIN_DECLARE(name);                                                                                 \
    const struct mk_plugin MK_PLUGIN_OF(name)

#ifdef __cplusplus
}
#endif

#endif
