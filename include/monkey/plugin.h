/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin is. It brings all other headers. */
#ifndef MONKEY_PLUGIN_H
#define MONKEY_PLUGIN_H

#include <monkey/address.h>
#include <monkey/buf.h>
#include <monkey/child.h>
#include <monkey/config.h>
#include <monkey/connection.h>
#include <monkey/filter.h>
#include <monkey/handler.h>
#include <monkey/host.h>
#include <monkey/mem.h>
#include <monkey/record.h>
#include <monkey/request.h>
#include <monkey/response.h>
#include <monkey/text.h>
#include <monkey/tls.h>
#include <monkey/tunnel.h>
#include <monkey/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * When the on_request of a plugin is called: low numbers first, equal ones in the order of `Load`.
 * on_response is called in the opposite order, so that who comes first has the last word.
 */
enum mk_order {
    MK_ORDER_ADDRESS = 100, /**< finds out who the client is, and keeps out who may not be here */
    MK_ORDER_REWRITE = 200, /**< changes what is asked for */
    MK_ORDER_LIMIT = 300,   /**< refuses what is too much */
    MK_ORDER_AUTH = 400,    /**< asks for a password */
    MK_ORDER_NORMAL = 500,
    MK_ORDER_LATE = 900
};

/** A word of the command line that the plugin answers: `monkey WORD ...`. */
struct mk_verb {
    const char *name, *args; /**< "passwd", "FILE USER" */
    const char *help;        /**< one line */
    /** argv[0] is the word. Answers the exit code: 0 fine, 1 failed, 2 wrong usage, 3 bad configuration. */
    int (*run)(int argc, char **argv);
};

/**
 * A plugin: what it is called, what it can be told, and when it wants to be asked.
 *
 *     static enum mk_verdict greet(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         (void)request, (void)data;
 *         mk_response_add(response, MK_STR("X-Greeting"), MK_STR("hello"));
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
 * All of it is constant: what a plugin keeps, it keeps in the configuration (load, host), the worker, the
 * connection or the request that it is for. Every function may be NULL. None may block but load(), unload()
 * and host().
 *
 * A plugin is loaded in the master and runs in the workers, which are copies of it (mk_config_shared() is
 * what they have in common). A hook that crashes takes its worker with it; the master starts another one.
 */
struct mk_plugin {
    unsigned abi; /**< MK_PLUGIN_HEAD sets these two: */
    size_t size;  /**< the server checks what it was built with */

    const char *name;     /**< as in `Load NAME`: lower case, digits, `-` */
    const char *version;  /**< its own */
    const char *help;     /**< one line: what it is for */
    const char *replaces; /**< the plugin of Monkey 1 whose place it takes under another name; NULL: none */
    unsigned order;       /**< enum mk_order, or anything between; 0 is MK_ORDER_NORMAL */

    const struct mk_conf_table *const *sections; /**< that it brings; ended by NULL */
    const struct mk_handler *const *handlers;    /**< for [ROUTES]; ended by NULL */
    const struct mk_verb *const *verbs;          /**< ended by NULL */

    /** A configuration that loads it is being read: 0 with *data for the functions below, or a negated errno
     * value. What is wrong is reported with mk_config_error(); that alone refuses the configuration. */
    int (*load)(struct mk_config *config, void **data);
    /** That configuration is let go, or not taken after all. Only if load() answered 0. In the master, and in
     * workers of another configuration, which were born with a copy of this one. */
    void (*unload)(void *data);
    /**
     * Once for each host, after load(): *host_data is what the hooks of requests for this host get, and
     * mk_host_data() answers. When it stays NULL the plugin has no business with the host: none of its hooks
     * is called there. Without this function the hooks get what load() set, for every host.
     */
    int (*host)(struct mk_config *config, struct mk_host *host, void *data, void **host_data);

    /** In the master, with its rights, when a configuration was taken and before its workers begin; not when
     * it is only looked at (`monkey -t`). What is wrong is reported as in load(): the configuration is not
     * taken after all. What this opens, unload() closes. */
    int (*master_start)(struct mk_config *config, void *data);
    /** A worker begins (0, or a negated errno value: it cannot) and ends; all its connections are closed by
     * then. */
    int (*worker_start)(struct mk_worker *worker, void *data);
    void (*worker_stop)(struct mk_worker *worker, void *data);
    /** mk_worker_send() of the same plugin, here or in another worker. Valid during the call. */
    void (*on_message)(struct mk_worker *worker, mk_str message, void *data);

    /** A connection was taken: MK_NEXT, MK_WAIT for (more) input, MK_REFUSE to close it without a word. */
    enum mk_verdict (*on_accept)(struct mk_conn *connection, void *data);

    /** The request and its host are known, no handler has seen it: MK_NEXT goes on; MK_DONE: the response is
     * complete; MK_WAIT until mk_request_resume(), then it is called again; MK_REFUSE with the status that
     * was set. */
    enum mk_verdict (*on_request)(struct mk_request *request, struct mk_response *response, void *host_data);
    /** The response is complete and not sent: change its status, its fields, put filters before its content.
     * Not for responses of requests that were so broken that they have no path. */
    void (*on_response)(struct mk_request *request, struct mk_response *response, void *host_data);
    /** The client went away, or the request was cut off, before its response was complete. on_done follows.
     */
    void (*on_abort)(struct mk_request *request, void *host_data);
    /** The request is over, however it ended. */
    void (*on_done)(const struct mk_record *record, void *host_data);
    /** mk_request_log() for the host: true takes the message, so that it goes to no other log. */
    bool (*on_log)(struct mk_request *request, enum mk_log_level level, mk_str message, void *host_data);
};

/** Begins the initialiser of a plugin: what the server checks before it looks at anything else. */
#define MK_PLUGIN_HEAD .abi = MK_ABI, .size = sizeof(struct mk_plugin)

/**
 * MK_PLUGIN(NAME) defines the plugin (NAME is a word of C: `_` in place of `-`). The same source makes an
 * object to load, whose file is monkey-NAME.so, and, with MK_PLUGIN_STATIC defined, a part of the program.
 *
 * MK_PLUGIN_OF(NAME) is the plugin itself, for those of its functions that are asked for it (mk_host_data()),
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
