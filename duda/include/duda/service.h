/* SPDX-License-Identifier: Apache-2.0 */
/* What a service is: its routes, and the functions that answer them. */
#ifndef DUDA_SERVICE_H
#define DUDA_SERVICE_H

#include <monkey/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One request under way, as its handler sees it. Every handler runs on a stack of its own: a function that
 * waits suspends the handler, never the worker. It lives until the handler has returned, and belongs to the
 * worker that called the handler: no other thread may use it.
 */
struct duda_ctx;
struct duda_schema;

/**
 * A handler. Its result decides what the client gets:
 *
 * - 0: what was said. 204 if nothing was.
 * - 200 to 399: the same, with this status.
 * - 400 to 599: the error page of this status; what was said is dropped.
 * - DUDA_HANDLED: what was said, with the status that was set.
 * - a negated errno value: the error page of a status, so what a function of Duda answers may be returned as it is:
 *
 *       400  -EBADMSG
 *       401  -EKEYREJECTED -EKEYEXPIRED -EKEYREVOKED
 *       403  -EACCES -EPERM
 *       404  -ENOENT
 *       409  -EEXIST -ESTALE
 *       413  -EMSGSIZE -EFBIG -E2BIG
 *       429  -EDQUOT
 *       501  -EOPNOTSUPP
 *       503  -ENOMEM -EAGAIN -EBUSY -ECONNREFUSED -ECONNRESET -EPIPE -EHOSTUNREACH -ENETUNREACH -ENODEV
 *            -ENOKEY
 *       504  -ETIMEDOUT
 *       507  -ENOSPC
 *       500  all others
 *
 *   From 500 on, and for 403, the log names the handler and the error.
 *
 *   401 is for a token of the client that is no good, as duda_jwt_verify() answers. These errors send the
 *   challenge `WWW-Authenticate: Bearer error="invalid_token"`, unless the handler has set that field with
 *   duda_header_set(). A handler that returns the number 401 must set it: HTTP demands a challenge. -ENOKEY is for a
 *   backend, such as a database, that does not accept our credentials: the client can do nothing about those.
 * - Anything else, such as 1, 150, 999 or the DUDA_NEXT of a guard, is a mistake: 500, and the log says so.
 *
 * Once the response has begun (it is long, or duda_flush() was called), the client gets what was said, and an
 * error closes the connection, so that the client sees that the response is incomplete.
 *
 *     static int hello(struct duda_ctx *d)
 *     {
 *         return duda_printf(d, "hello %s\n", duda_query_or(d, "name", "world"));
 *     }
 */
typedef int duda_fn(struct duda_ctx *d);

/** What a line of a table is. */
enum duda_kind {
    DUDA_END, /**< the end of the table */
    DUDA_IS_ROUTE,
    DUDA_IS_GROUP,
    DUDA_IS_BEFORE,
    DUDA_IS_REQUIRE,
    DUDA_IS_AFTER,
    DUDA_IS_HOST,
    DUDA_IS_START,
    DUDA_IS_STOP,
};

/** Bytes of a stack, at most: what needs more belongs on the heap. */
#define DUDA_STACK_MAX ((size_t)8 << 20)

/** One line of a service's table. Use the macros below; what follows `doc` may be added to them:
 * `DUDA_GET("/deep", deep, "Digs.", .stack = 262144)`. */
struct duda_route {
    enum duda_kind kind;
    const char *method; /**< of a route: "GET", "GET,POST"; "*": all */
    const char *path;   /**< of a route: "/items/:id"; of a group: "/api"; of a host: its name */
    duda_fn *fn;
    const char *name; /**< of fn */
    const char *file; /**< where the line is */
    int line;
    const char *doc;                 /**< one line for readers */
    size_t stack;                    /**< bytes of stack, from 32 KB to DUDA_STACK_MAX; 0: 64 KB */
    uint32_t deadline_ms;            /**< as duda_deadline() at its begin; 0: none */
    const struct duda_route *routes; /**< of a group */
    /** What `monkey doc` says about the route, by name behind `doc`; nothing else depends on them:
     * `DUDA_POST("/items", create, "Creates an item.", .takes = &item_shape, .gives = &item_shape, .answers =
     * "201 409")`
     */
    const struct duda_schema *query;    /**< the names of the query: see duda_bind_query() */
    const struct duda_schema *takes;    /**< the content, JSON: see duda_bind_json() */
    const struct duda_schema *form;     /**< the content, a form: see duda_bind_form() */
    const struct duda_schema *gives;    /**< the content of the answer, JSON: see duda_send_json_struct() */
    bool takes_list, gives_list;        /**< it is a list of them */
    const char *answers;                /**< statuses of answers, the usual one first: "201 409"; NULL: 200 */
    bool (*allows)(struct duda_ctx *d); /**< see DUDA_REQUIRE() */
    unsigned status;
    int (*start)(struct mk_worker *); /**< see DUDA_START() */
    void (*stop)(struct mk_worker *);
    /** The most bytes of content that the route accepts, in place of `MaxBodySize` of the configuration (1 MB);
     * longer content is answered with 413 before the handler runs. 0: `MaxBodySize`; UINT64_MAX: no limit.
     * Functions that read the content, such as duda_form_load(), have limits of their own below this one. */
    uint64_t body_max;
};

/* clang-format off */
/**
 * Routes of a service: methods, a path pattern, the handler, and one line that says what it does.
 *
 * Patterns are those of monkey/router.h: `:name` is a segment, `:id<int>` one that is a number, `*name` at
 * the end all that is left. duda_param() answers what they matched. The most specific pattern wins, whatever
 * the order of the lines; two that match the same paths are an error when the server starts. HEAD is
 * answered by the GET handler, OPTIONS and 405 by Duda.
 *
 *     DUDA_GET("/users/:id<int>", show_user, "Shows a user.", .deadline_ms = 5000)
 */
#define DUDA_ROUTE(how, pattern, function, ...)                                                              \
    {.kind = DUDA_IS_ROUTE, .method = how, .path = pattern, .fn = function, .name = #function,               \
     .file = __FILE__, .line = __LINE__, .doc = __VA_ARGS__}
/* clang-format on */
#define DUDA_GET(path, fn, ...)    DUDA_ROUTE("GET", path, fn, __VA_ARGS__)
#define DUDA_POST(path, fn, ...)   DUDA_ROUTE("POST", path, fn, __VA_ARGS__)
#define DUDA_PUT(path, fn, ...)    DUDA_ROUTE("PUT", path, fn, __VA_ARGS__)
#define DUDA_PATCH(path, fn, ...)  DUDA_ROUTE("PATCH", path, fn, __VA_ARGS__)
#define DUDA_DELETE(path, fn, ...) DUDA_ROUTE("DELETE", path, fn, __VA_ARGS__)
/** Every method that no other route of this pattern has. */
#define DUDA_ANY(path, fn, ...) DUDA_ROUTE("*", path, fn, __VA_ARGS__)

/** The packages that a service calls and that are plugins: the server loads them, too. Say which ones before
 * the first #include: `#define DUDA_USE "duda-kv", "duda-redis",`, with the comma at the end. */
#ifndef DUDA_USE
#define DUDA_USE
#endif

/** The section of the service in the configuration: see duda/config.h. */
#ifdef DUDA_SETTINGS
#define DUDA_SECTION &DUDA_SETTINGS,
#else
#define DUDA_SECTION
#endif

/**
 * A table of its own: DUDA_ROUTES(admin, DUDA_GET(...), ...) defines it, DUDA_GROUP("/admin", admin, "...")
 * puts all of it below a path; "" leaves the paths as they are. Groups may hold groups, eight deep.
 */
#define DUDA_ROUTES(word, ...) static const struct duda_route word[] = {__VA_ARGS__, {.kind = DUDA_END}}
/* clang-format off */
#define DUDA_GROUP(prefix, table, ...)                                                                       \
    {.kind = DUDA_IS_GROUP, .path = prefix, .routes = table, .file = __FILE__, .line = __LINE__,             \
     .doc = __VA_ARGS__}
/* clang-format on */

/** What a DUDA_BEFORE() function returns to let the handler run. */
enum { DUDA_NEXT = 0x4e455854 };

/* clang-format off */
/**
 * A function that runs before, or after, the handlers of the lines that follow in this table, and of the
 * groups there.
 *
 * Before: DUDA_NEXT lets the handler run. Any other result is the answer, as that of a handler, and neither the handler nor a
 * later `before` runs; 0 without a word said is a mistake. So a function that answers yes or no cannot open the route: for such a
 * one there is DUDA_REQUIRE(). After: it runs in any case, the last one first, sees duda_result(), and may change it with
 * duda_set_result(); what it answers itself is ignored. It cannot change a response that has begun.
 *
 *     static int only_staff(struct duda_ctx *d)
 *     {
 *         return is_staff(d) ? DUDA_NEXT : duda_redirect(d, 303, "/login");
 *     }
 *     DUDA_ROUTES(admin, DUDA_BEFORE(only_staff), DUDA_GET("/log", show_log, "Shows the log."));
 */
#define DUDA_BEFORE(function)                                                                                \
    {.kind = DUDA_IS_BEFORE, .fn = function, .name = #function, .file = __FILE__, .line = __LINE__}
#define DUDA_AFTER(function)                                                                                 \
    {.kind = DUDA_IS_AFTER, .fn = function, .name = #function, .file = __FILE__, .line = __LINE__}

/**
 * The same for a predicate: without `true` from it the client gets the error page of this status, 400 to 599.
 *
 *     static bool is_staff(struct duda_ctx *d)
 *     {
 *         return mk_str_eq(duda_session_get(d, "role"), MK_STR("staff"));
 *     }
 *     DUDA_ROUTES(admin, DUDA_REQUIRE(is_staff, 403), DUDA_GET("/log", show_log, "Shows the log."));
 */
#define DUDA_REQUIRE(predicate, code)                                                                        \
    {.kind = DUDA_IS_REQUIRE, .name = #predicate, .file = __FILE__, .line = __LINE__,                        \
     .allows = predicate, .status = code}

/** The lines that follow in this table are for requests to this host alone: "api.example.org", or
 * "*.example.org" for all below it. "" is any host again. A request that no line of its host answers is
 * looked up in those for any host. */
#define DUDA_HOST(host) {.kind = DUDA_IS_HOST, .path = host, .file = __FILE__, .line = __LINE__}

/** Functions that each worker calls when it starts (0, or a negated errno value to fail) and stops. */
#define DUDA_START(function)                                                                                 \
    {.kind = DUDA_IS_START, .start = function, .name = #function, .file = __FILE__, .line = __LINE__}
#define DUDA_STOP(function)                                                                                  \
    {.kind = DUDA_IS_STOP, .stop = function, .name = #function, .file = __FILE__, .line = __LINE__}
/* clang-format on */

/**
 * How a source was compiled. Handlers have small stacks, one beside the other: a function whose frame is large must touch each
 * page of it on the way down, so that it meets the guard below its stack (`-fstack-clash-protection`). `monkey run`, `build` and
 * `test` and `pkg-config --cflags duda` compile so. Each source that includes duda.h, and each DUDA_SERVICE(), adds a probe: a
 * function with a large frame, which Duda calls when it loads the service. It refuses a service whose probe leaves out pages.
 *
 * Nothing has to be written for it. Clang has no such protection on some processors: there the guard of a megabyte must do.
 */
struct duda_probe {
    void (*touch)(size_t size);
    const char *file;
};

#if defined(__clang__) && !defined(__x86_64__) && !defined(__i386__) && !defined(__s390x__) &&               \
    !defined(__powerpc64__) && !(defined(__aarch64__) && __clang_major__ >= 18)
/** Set where the compiler has no such protection. */
#define DUDA_HAS_NO_PROBE 1
#endif

#ifdef DUDA_HAS_NO_PROBE
/** Adds a probe to the object: for duda.h and DUDA_SERVICE() alone. */
#define DUDA_PROBE(word) extern int duda_probe_of_##word
#else
/** Adds a probe to the object: for duda.h and DUDA_SERVICE() alone. */
#define DUDA_PROBE(word)                                                                                     \
    __attribute__((noinline, no_sanitize("address"))) static void duda_touch_##word(size_t size)             \
    {                                                                                                        \
        *(volatile char *)__builtin_alloca(size) = 1;                                                        \
    }                                                                                                        \
    __attribute__((used, section("duda_probes"))) static const struct duda_probe duda_probe_##word = {       \
        duda_touch_##word, __BASE_FILE__}
#endif

/** The version of what a service and Duda know of each other. */
#define DUDA_ABI 3

/** A service as Duda loads it: made by DUDA_SERVICE(). */
struct duda_service {
    unsigned abi;
    size_t size;
    const char *name, *file;
    const struct duda_route *routes;
    const struct mk_plugin *plugin;
    const struct mk_handler *handler;
    const struct duda_probe *probes, *probes_end;
};

/**
 * Makes the service out of its routes. `name` consists of small letters and digits. The object is a plugin of
 * the server: `Load ./monkey-hello.so`. It answers in every host, ahead of [ROUTES], which get what it has no
 * route for; or, when [ROUTES] of any host name it, only there: `/shop/\* hello` (without the backslash),
 * where its paths begin behind `/shop`.
 *
 *     DUDA_SERVICE(hello,
 *         DUDA_GET("/", hello, "Greets."),
 *         DUDA_GET("/items/:id", item, "Shows one item."),
 *     )
 */
#define DUDA_SERVICE(word, ...)                                                                              \
    MK_PLUGIN_DECLARE(word);                                                                                 \
    DUDA_PROBE(word);                                                                                        \
    /* The linker gives these names to the begin and the end of the probes of the object. */                 \
    extern const struct duda_probe __start_duda_probes[] __attribute__((weak, visibility("hidden")));        \
    extern const struct duda_probe __stop_duda_probes[] __attribute__((weak, visibility("hidden")));         \
    static const struct mk_handler duda_handler_##word;                                                      \
    static const struct duda_route duda_routes_##word[] = {__VA_ARGS__, {.kind = DUDA_END}};                 \
    static const struct duda_service duda_service_##word = {DUDA_ABI,                                        \
                                                            sizeof(struct duda_service),                     \
                                                            #word,                                           \
                                                            __FILE__,                                        \
                                                            duda_routes_##word,                              \
                                                            &MK_PLUGIN_OF(word),                             \
                                                            &duda_handler_##word,                            \
                                                            __start_duda_probes,                             \
                                                            __stop_duda_probes};                             \
    extern MK_API const struct duda_service *const duda_service_of_##word;                                   \
    const struct duda_service *const duda_service_of_##word = &duda_service_##word;                          \
    static bool duda_bind_##word(const struct mk_conf_ctx *spot, mk_str words, void **data)                  \
    {                                                                                                        \
        return duda_service_bind(&duda_service_##word, spot, words, data);                                   \
    }                                                                                                        \
    static int duda_load_##word(struct mk_config *config, void **data)                                       \
    {                                                                                                        \
        return duda_service_load(&duda_service_##word, config, data);                                        \
    }                                                                                                        \
    static const struct mk_handler duda_handler_##word = {.name = #word,                                     \
                                                          .handle = duda_service_handle,                     \
                                                          .bind = duda_bind_##word,                          \
                                                          .body_max = duda_service_body_max,                 \
                                                          .explain = duda_service_explain};                  \
    static const struct mk_handler *const duda_handlers_##word[] = {&duda_handler_##word, NULL};             \
    static const struct mk_conf_table *const duda_sections_##word[] = {DUDA_SECTION NULL};                   \
    static const char *const duda_needs_##word[] = {"duda", DUDA_USE NULL};                                  \
    MK_PLUGIN(word) = {                                                                                      \
        MK_PLUGIN_HEAD,                                                                                      \
        .name = #word,                                                                                       \
        .help = "A service of Duda.",                                                                        \
        .sections = duda_sections_##word,                                                                    \
        .handlers = duda_handlers_##word,                                                                    \
        .load = duda_load_##word,                                                                            \
        .host = duda_service_host,                                                                           \
        .worker_start = duda_service_start,                                                                  \
        .worker_stop = duda_service_stop,                                                                    \
        .needs = duda_needs_##word,                                                                          \
    }

/** What DUDA_SERVICE() consists of; nothing else calls these. */
MK_API int duda_service_load(const struct duda_service *service, struct mk_config *config, void **data);
MK_API int duda_service_host(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data);
MK_API int duda_service_start(struct mk_worker *worker, void *data);
MK_API void duda_service_stop(struct mk_worker *worker, void *data);
MK_API bool duda_service_bind(const struct duda_service *service, const struct mk_conf_ctx *spot,
                              mk_str words, void **data);
MK_API enum mk_verdict duda_service_handle(struct mk_request *request, struct mk_response *response,
                                           void *data);
MK_API uint64_t duda_service_body_max(struct mk_request *request, void *data);
MK_API bool duda_service_explain(struct mk_request *request, void *data);

#ifdef __cplusplus
}
#endif

#endif
