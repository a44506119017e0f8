/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin interface. Includes all other headers that plugins need. */
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
#include <monkey/json.h>
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
 * Determines when on_request of a plugin is called: lower values first, equal values in the order of `Load`.
 * on_response is called in reverse order, so that the first plugin has the final say on the response.
 */
enum mk_priority {
    MK_PRIORITY_ADDRESS = 100, /**< determines the client address, and denies access by address */
    MK_PRIORITY_REWRITE = 200, /**< changes the path */
    MK_PRIORITY_LIMIT = 300,   /**< limits rates */
    MK_PRIORITY_AUTH = 400,    /**< authenticates users */
    MK_PRIORITY_NORMAL = 500,
    MK_PRIORITY_LATE = 900
};

/** A subcommand that the plugin adds to the command line: `monkey NAME ...`. */
struct mk_command {
    const char *name, *args; /**< "passwd", "FILE USER" */
    const char *help;        /**< one line */
    /** Runs the command; argv[0] is its name. Returns the exit code: 0 success, 1 failure, 2 usage error, 3
     * invalid configuration. */
    int (*run)(int argc, char **argv);
    uint64_t reserved[2]; /**< must be zero */
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
 * request that it belongs to. Every function may be NULL. Only load(), unload() and host() may block.
 *
 * The master loads plugins and forks the workers, in which the plugins run (mk_config_shared() returns memory
 * that all workers share). A crash in a hook ends its worker; the master starts another one.
 */
struct mk_plugin {
    unsigned abi; /**< ABI version that the plugin was built with; set by MK_PLUGIN_HEAD */
    size_t size;  /**< size of this struct in the plugin; set by MK_PLUGIN_HEAD */

    const char *name;     /**< as in `Load NAME`: lower case, digits, `-` */
    const char *version;  /**< version of the plugin */
    const char *help;     /**< one line: the purpose of the plugin */
    const char *replaces; /**< name of the Monkey 1 plugin that this one replaces, if different; NULL: none */
    unsigned priority;    /**< enum mk_priority, or a value in between; 0 is MK_PRIORITY_NORMAL */

    const struct mk_conf_table *const *sections; /**< configuration sections of the plugin; ended by NULL */
    const struct mk_handler *const *handlers;    /**< for [ROUTES]; ended by NULL */
    const struct mk_command *const *commands;    /**< subcommands; ended by NULL */

    /** Called when a configuration that loads the plugin is read. Returns 0, with *data set for the
     * functions below, or a negative errno value. Report mistakes with mk_config_error(), which also
     * rejects the configuration. */
    int (*load)(struct mk_config *config, void **data);
    /** Called when that configuration is released or rejected, but only if load() returned 0. It runs
     * in the master, and also in workers of another configuration, which inherited a copy of this one. */
    void (*unload)(void *data);
    /**
     * Called once per virtual host, after load(). The hooks of requests for this virtual host receive
     * *host_data, and mk_vhost_data() returns it. If *host_data stays NULL, the plugin does not apply to the
     * virtual host, and none of its hooks is called there. Without this function, hooks receive the data of
     * load() for every virtual host.
     */
    int (*host)(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data);

    /** Called in the master, with its privileges, after a configuration was accepted and before its workers
     * start; not called when the configuration is only checked (`monkey -t`). Report mistakes as in load():
     * the configuration is then rejected. unload() closes what this function opens. */
    int (*master_start)(struct mk_config *config, void *data);
    /** Called when a worker starts (return 0, or a negative errno value to fail), and when it stops: all of
     * its connections are closed by then. The server calls worker_stop of a plugin before that of the plugins
     * that it `needs`. */
    int (*worker_start)(struct mk_worker *worker, void *data);
    void (*worker_stop)(struct mk_worker *worker, void *data);
    /** Receives a message that the same plugin sent with mk_worker_send(), in this worker or another.
     * The message is valid during the call. */
    void (*on_message)(struct mk_worker *worker, mk_str message, void *data);

    /** Called when a connection has been accepted. Return MK_NEXT, MK_WAIT for (more) input, or MK_ERROR to
     * close the connection without a response. */
    enum mk_verdict (*on_accept)(struct mk_conn *connection, void *data);

    /** Called when the request and its virtual host are known, before any handler. MK_NEXT continues.
     * MK_DONE means that the response is complete. MK_WAIT suspends the request until mk_request_resume(),
     * which calls the hook again. MK_ERROR sends an error page with the status that was set. */
    enum mk_verdict (*on_request)(struct mk_request *request, struct mk_response *response, void *host_data);
    /** Called when the response is complete but not yet sent. The hook may change its status and
     * headers, and add filters. Not called for requests so malformed that they have no path. */
    void (*on_response)(struct mk_request *request, struct mk_response *response, void *host_data);
    /** Called when the client disconnected, or the request was aborted, before its response was
     * complete. on_done follows. */
    void (*on_abort)(struct mk_request *request, void *host_data);
    /** Called when the request has ended, whatever the outcome. */
    void (*on_done)(const struct mk_access_record *record, void *host_data);
    /** Receives messages that mk_request_log() writes for the virtual host. Return true to handle the
     * message, which is then written to no other log. The request may be a copy made by
     * mk_request_log_copy(). */
    bool (*on_log)(struct mk_request *request, enum mk_log_level level, mk_str message, void *host_data);

    /** The names of the plugins whose functions this one calls; ended by NULL. The server loads them
     * before this one, even without a `Load` line. Link with their objects (the guide shows how), so that
     * the functions are found. */
    const char *const *needs;

    /** Called when the worker starts to drain: it accepts no more connections, and stops once the
     * existing ones are closed and no reference (mk_worker_ref()) is held, or when `DrainTimeout` expires.
     * Start no new background work. Not called if a worker stops immediately. */
    void (*worker_drain)(struct mk_worker *worker, void *data);
    /** Called when another worker process has exited, for any reason, so that plugins can reclaim resources
     * that it held in shared memory. All workers receive the call, including those of other configurations:
     * soon after the exit, and never before it. */
    void (*on_worker_exit)(struct mk_worker *worker, void *data);

    /**
     * Called when the server is about to send an error page. Plugins are called in the same order as for
     * on_request. The response has the status (400 to 599), no body, and the headers of the error, such as
     * Allow, Retry-After and WWW-Authenticate. The hook may change the status. MK_NEXT leaves the page to the
     * next plugin, and finally to [ERROR_PAGES] or the built-in page. MK_DONE means that the hook has written
     * the response. MK_ERROR sends the built-in page for the status that the response then has. MK_WAIT
     * suspends the request until mk_request_resume(), after which the server calls the hook again.
     *
     * The hooks are called for one error per request: if a hook fails or exceeds HandlerTimeout, the client
     * gets the built-in page. If the server must respond at once, because the request is incomplete or a
     * handler has timed out, MK_WAIT counts as MK_NEXT. Not called for a request so malformed that it has no
     * path, nor for an error after the response has started.
     */
    enum mk_verdict (*on_error)(struct mk_request *request, struct mk_response *response, void *host_data);

    /** Called when all on_request hooks have returned MK_NEXT, before the first route handler is called, and
     * again after a rewrite to another path, or when an index file or a fallback is served instead: the
     * request then has the headers that it had before the first call. Plugins are called in the same order as
     * for on_request. For changes to the request that access checks must not see, such as
     * mk_request_set_header(). Returns 0, or the status (400 to 599) with which to reject the request. */
    unsigned (*on_handler)(struct mk_request *request, void *host_data);

    /**
     * Runs a command of the administrator in one worker, such as
     * `monkey shell upstream api drain 10.0.0.1:80`: `words` is the text after the name of the plugin.
     * Appends the response, or the reason for a failure, to `out`. Returns 0, or a negative errno value:
     * -EINVAL for wrong usage; -ENOENT, -EEXIST or -ENOSPC if the command cannot change anything. The shell
     * logs all commands with their results, except after those four errors. After -EINPROGRESS, the command
     * calls end->done() later; `out` stays empty. `end` is valid during the call.
     */
    int (*on_command)(struct mk_worker *worker, mk_str words, struct mk_buf *out,
                      const struct mk_command_end *end, void *data);

    /** Called by mk_worker_release_memory(): frees memory that no request needs, such as caches that can be
     * filled again. `what` are flags of enum mk_release. */
    void (*on_release_memory)(struct mk_worker *worker, unsigned what, void *data);

    /** Called when a worker stops, after its connections have been closed and before any worker_stop: cancel
     * background work that calls functions of other plugins, which still work. Afterwards the worker waits
     * for its threads (mk_worker_offload()). */
    void (*worker_cancel)(struct mk_worker *worker, void *data);
};

/** The first members of a plugin's initializer, which the server checks before it reads any others. */
#define MK_PLUGIN_HEAD .abi = MK_ABI, .size = sizeof(struct mk_plugin)

/**
 * MK_PLUGIN(NAME) defines the plugin (NAME is a C identifier: `_` in place of `-`). The same source can be
 * built as a shared object named monkey-NAME.so or, with MK_PLUGIN_STATIC defined, into the program.
 *
 * MK_PLUGIN_OF(NAME) is the plugin itself, for functions that take it as an argument, such as
 * mk_vhost_data(). MK_PLUGIN_DECLARE(NAME) declares it before its definition.
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
