/* SPDX-License-Identifier: Apache-2.0 */
/* A Duda service: its table of routes and their handlers. */
#ifndef DUDA_SERVICE_H
#define DUDA_SERVICE_H

/* C++ code can use the macros of this header, but C++ compilers warn about designated initializers that omit
 * members, although omitted members are zero. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif
#if defined(__cplusplus) && defined(__clang_major__) && __clang_major__ >= 18
/* This also applies where other files use the macros. */
#pragma clang diagnostic ignored "-Wmissing-designated-field-initializers"
#endif

#include <monkey/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A request in progress, as its handler sees it. Each handler runs on its own stack: a call that waits
 * suspends the handler, never the worker. The context lives until the handler has returned. It belongs to the
 * worker that called the handler; no other thread may use it.
 */
struct duda_ctx;
struct duda_metric;
struct duda_schema;
struct duda_topic;
struct duda_url_use;

/** The result of a handler: see duda_fn. Functions of Duda return this type instead of a plain int if their
 * result is meant to be returned from the handler: it may then be a status or DUDA_HANDLED, and not only 0 or
 * a negative errno value. */
typedef int duda_verdict;

/**
 * A request handler. Its return value determines the response:
 *
 * - 0: sends the response as written, or 204 No Content if nothing was written.
 * - 200 to 399: the same, with this status.
 * - 400 to 599: sends the error page of this status and discards the response written so far.
 * - DUDA_HANDLED: sends the response as written, with the status that was set.
 * - a negative errno value, as returned by Duda's own functions: sends the error page of the matching status:
 *
 *       400  -EBADMSG
 *       401  -EKEYREJECTED -EKEYEXPIRED -EKEYREVOKED
 *       403  -EACCES -EPERM
 *       404  -ENOENT
 *       409  -EEXIST -ESTALE
 *       413  -EMSGSIZE -EFBIG -E2BIG
 *       422  -ERANGE
 *       429  -EDQUOT
 *       501  -EOPNOTSUPP
 *       503  -ENOMEM -EAGAIN -EBUSY -ECONNREFUSED -ECONNRESET -EPIPE -EHOSTUNREACH -ENETUNREACH -ENODEV
 *            -ENOKEY -EXFULL -ETIME -ESHUTDOWN
 *       504  -ETIMEDOUT
 *       507  -ENOSPC
 *       500  all others
 *
 *   Statuses of 500 and above, and 403, are logged with the name of the handler and the error.
 *
 *   The errors that map to 401 mean that the client's token is invalid; duda_jwt_verify() returns them. The
 *   response then carries the challenge `WWW-Authenticate: Bearer error="invalid_token"`, unless the handler
 *   has set that header with duda_header_set(). A handler that returns the number 401 must set the header,
 *   because HTTP requires a challenge. -ENOKEY means that a backend, such as a database, rejects the server's
 *   own credentials, which the client cannot fix.
 * - Any other value, such as 1, 150, 999 or the DUDA_NEXT of a DUDA_BEFORE() function, is a bug: the client
 *   gets 500, and the error is logged.
 *
 * A long response, or a call to duda_flush(), starts the response before the handler returns. If the handler
 * then fails, the server closes the connection, so that the client detects the incomplete response.
 *
 *     static int hello(struct duda_ctx *d)
 *     {
 *         return duda_printf(d, "hello %s\n", duda_query_or(d, "name", "world"));
 *     }
 */
typedef duda_verdict duda_fn(struct duda_ctx *d);

/** The kind of a table entry. */
enum duda_route_kind {
    DUDA_IS_ROUTE = 1,
    DUDA_IS_GROUP,
    DUDA_IS_BEFORE,
    DUDA_IS_REQUIRE,
    DUDA_IS_AFTER,
    DUDA_IS_HOST,
    DUDA_IS_START,
    DUDA_IS_STOP,
    DUDA_IS_AROUND,
    DUDA_IS_CORS,
    DUDA_IS_ERROR,
    DUDA_IS_START_TASK,
};

/** Maximum stack size in bytes. Allocate larger data on the heap. */
#define DUDA_STACK_MAX (MK_API_CAST(size_t, 8) << 20)

/** One entry of a service's table. Use the macros below; they accept further members after the optional
 * summary: `DUDA_GET("/deep", deep, "Digs.", .stack = 262144)`. */
struct duda_route {
    enum duda_route_kind kind;
    const char *method;               /**< route: "GET", "GET,POST"; "*": any method */
    const char *path;                 /**< route: "/items/:id"; group: "/api"; host: the host name */
    const struct duda_routes *routes; /**< routes of a group */
    duda_fn *fn;
    const char *name; /**< name of fn */
    const char *file; /**< source file of the entry */
    int line;
    const char *summary;  /**< one-line description */
    size_t stack;         /**< stack size in bytes, from 32 KB to DUDA_STACK_MAX; 0: 64 KB */
    uint32_t deadline_ms; /**< passed to duda_deadline() before the middleware runs; 0: HandlerTimeout */
    /** Documentation of the route for `monkey doc` and `monkey openapi`, given by name after the summary. It
     * has no effect on requests: `DUDA_POST("/items", create, "Creates an item.", .request_body =
     * &item_schema, .response_body = &item_schema, .responses = "201 409")` */
    const struct duda_schema *query;         /**< query parameters: see duda_bind_query() */
    const struct duda_schema *request_body;  /**< JSON request body: see duda_bind_json() */
    const struct duda_schema *form;          /**< form request body: see duda_bind_form() */
    const struct duda_schema *response_body; /**< JSON response body: see duda_send_json_struct() */
    bool request_is_list, response_is_list;  /**< the body is a list of such structs */
    const char *responses; /**< response statuses, the usual one first: "201 409"; NULL: 200 */
    bool (*predicate)(struct duda_ctx *d); /**< see DUDA_REQUIRE() */
    unsigned status;
    int (*start)(struct mk_worker *); /**< see DUDA_START() */
    void (*stop)(struct mk_worker *);
    /** Maximum size of the request body in bytes, in place of `MaxBodySize` of the configuration (1 MB). A
     * longer body is rejected with 413 before the handler runs. 0: `MaxBodySize`; UINT64_MAX: no limit.
     * Functions that read the body, such as duda_form_load(), additionally have their own limits. */
    uint64_t body_max;
    /** Further documentation for `monkey doc` and `monkey openapi`. */
    const struct duda_schema *headers; /**< request headers, named by `.json_name`: "If-Match" */
    /** Names of the file fields of a multipart form, separated by spaces. "photo?" is optional; "photos[]"
     * may occur several times. */
    const char *files;
    /** Media types of a successful response, separated by spaces: "application/json text/csv".
     * `response_body` is the schema of the JSON types. NULL: application/json if `response_body` is set. */
    const char *response_types;
    const struct duda_schema *problem; /**< body of error responses; NULL: problem details (RFC 9457) */
    /**
     * How clients authenticate: one or more of these words, separated by spaces; any one of them is
     * sufficient. NULL: as the last middleware with `.security` before the route, or the group, specifies;
     * "": not at all.
     *
     *     bearer  basic          Authorization header
     *     jwt                    a bearer token that is a JSON Web Token
     *     session                the session cookie of Duda
     *     header:X-Key  cookie:NAME  query:NAME    an API key in this place
     *
     * Any other word is an error at load. The member is only documentation; the middleware or the handler
     * checks the credentials, as in `DUDA_REQUIRE(has_token, 401, .security = "bearer")`.
     */
    const char *security;
    /** Constant data: of a route, which duda_route_data() returns, or of middleware or an error handler,
     * which duda_middleware_data() returns. */
    const void *data;
    /** Tags of the route in the OpenAPI document, separated by commas: "orders, admin". NULL: none. */
    const char *tags;
    /** Rate limit of a route, or of all routes of a group together: "10/minute" (second, minute, hour, day).
     * Each client address, or each IPv6 /64 network, has its own counter, which all workers share; its time
     * window begins with the first request. Responses have the headers RateLimit-Limit, RateLimit-Remaining
     * and RateLimit-Reset. A client that exceeds the limit gets 429 with Retry-After. For limits that several
     * machines share, use duda_store_rate_limit(). */
    const char *rate;
    /** Returns the key of the counter, such as the user, in place of the client address; an absent key: the
     * address. With this function, the limit is checked after the middleware and `.auth`, otherwise before
     * them. */
    mk_str (*rate_key)(struct duda_ctx *d);
    /** Authentication of a route or group, for tables whose routes need different authentication. It runs
     * after the middleware. */
    const struct duda_route_auth *auth;
    /** Name of the route for duda_url_for(); NULL: the name of its handler. Routes with the same name must
     * have the same pattern. */
    const char *url_name;
    /** Documentation: `request_body` is a merge patch, in which no member is required. See
     * duda_bind_merge_patch(). */
    bool request_is_patch;
    bool hidden; /**< omits the route from the OpenAPI document and the API page */
    /* Later releases add members here: struct duda_routes records the size of the entries. */
};

/**
 * The `.auth` of a route or group: two functions, as for DUDA_BEFORE(), and their `.data`. The middleware of
 * duda/auth.h is suitable:
 *
 *     static const struct duda_route_auth admins = {.authenticate = duda_auth_jwt,
 *                                                   .authorize = duda_require_role,
 *                                                   .authorize_data = "admin"};
 *     DUDA_ROUTES(items,
 *         DUDA_DELETE("/items/:id", delete_item, "Deletes an item.", .auth = &admins, .security = "jwt"));
 */
struct duda_route_auth {
    duda_fn *authenticate;         /**< determines who the client is */
    const void *authenticate_data; /**< returned by duda_middleware_data() */
    duda_fn *authorize;            /**< determines whether the client may use the route; NULL: all may */
    const void *authorize_data;
    uint64_t reserved[4]; /**< must be zero */
};

struct duda_cors;

/** A table of entries; DUDA_ROUTES() and DUDA_SERVICE() define it. */
struct duda_routes {
    const struct duda_route *first;
    size_t n;
    size_t entry_size; /**< sizeof(struct duda_route) when the service was compiled */
};

#ifdef __cplusplus
/** Implementation of the macros below: receives the first argument after the handler, because C++ does not
 * permit an unnamed string among designated initializers. A string initializes the summary, and an option the
 * member with its name. */
struct duda_route_first {
    const char *summary = MK_API_NULL;
    size_t stack = 0;
    uint32_t deadline_ms = 0;
    const struct duda_schema *query = MK_API_NULL;
    const struct duda_schema *request_body = MK_API_NULL;
    const struct duda_schema *form = MK_API_NULL;
    const struct duda_schema *response_body = MK_API_NULL;
    bool request_is_list = false;
    bool response_is_list = false;
    const char *responses = MK_API_NULL;
    uint64_t body_max = 0;
    const struct duda_schema *headers = MK_API_NULL;
    const char *files = MK_API_NULL;
    const char *response_types = MK_API_NULL;
    const struct duda_schema *problem = MK_API_NULL;
    const char *security = MK_API_NULL;
    const void *data = MK_API_NULL;
    const char *tags = MK_API_NULL;
    const char *rate = MK_API_NULL;
    mk_str (*rate_key)(struct duda_ctx *d) = MK_API_NULL;
    const struct duda_route_auth *auth = MK_API_NULL;
    const char *url_name = MK_API_NULL;
    bool request_is_patch = false;
    bool hidden = false;
};
/** Returns the route with the member that is set in `first`. */
constexpr inline struct duda_route duda_route_with(const struct duda_route_first &first,
                                                   struct duda_route route)
{
    route.summary = first.summary ? first.summary : route.summary;
    route.stack = first.stack ? first.stack : route.stack;
    route.deadline_ms = first.deadline_ms ? first.deadline_ms : route.deadline_ms;
    route.query = first.query ? first.query : route.query;
    route.request_body = first.request_body ? first.request_body : route.request_body;
    route.form = first.form ? first.form : route.form;
    route.response_body = first.response_body ? first.response_body : route.response_body;
    route.request_is_list = first.request_is_list ? first.request_is_list : route.request_is_list;
    route.response_is_list = first.response_is_list ? first.response_is_list : route.response_is_list;
    route.responses = first.responses ? first.responses : route.responses;
    route.body_max = first.body_max ? first.body_max : route.body_max;
    route.headers = first.headers ? first.headers : route.headers;
    route.files = first.files ? first.files : route.files;
    route.response_types = first.response_types ? first.response_types : route.response_types;
    route.problem = first.problem ? first.problem : route.problem;
    route.security = first.security ? first.security : route.security;
    route.data = first.data ? first.data : route.data;
    route.tags = first.tags ? first.tags : route.tags;
    route.rate = first.rate ? first.rate : route.rate;
    route.rate_key = first.rate_key ? first.rate_key : route.rate_key;
    route.auth = first.auth ? first.auth : route.auth;
    route.url_name = first.url_name ? first.url_name : route.url_name;
    route.request_is_patch = first.request_is_patch ? first.request_is_patch : route.request_is_patch;
    route.hidden = first.hidden ? first.hidden : route.hidden;
    return route;
}
/** The first argument, and the arguments after it. */
#define DUDA_FIRST_OF(first, ...) first
#define DUDA_REST_OF(first, ...)  __VA_ARGS__
#endif

/* clang-format off */
/**
 * A route of a service: methods, a path pattern, the handler, an optional summary (a string literal), and
 * options: members of struct duda_route. Without a summary: `DUDA_GET("/ping", ping)`, or
 * `DUDA_GET("/ping", ping, .rate = "1/second")`.
 *
 * Patterns are those of monkey/router.h: `:name` matches a segment, `:id<int>` a numeric segment, and a final
 * `*name` the rest of the path. duda_param() returns the matched values. The most specific pattern wins,
 * regardless of the order of the entries; two patterns that match the same paths are an error at startup. The
 * GET handler also serves HEAD. Duda itself answers OPTIONS, and rejects unsupported methods with 405.
 *
 *     DUDA_GET("/users/:id<int>", show_user, "Shows a user.", .deadline_ms = 5000)
 */
#define DUDA_ROUTE(http_method, pattern, ...) DUDA_ROUTE_ENTRY(http_method, pattern, __VA_ARGS__, )
/** For macros that define a route: omits the route from the OpenAPI document. In services, write
 * `.hidden = true`. */
#define DUDA_HIDDEN .hidden = true
/** Implementation of DUDA_ROUTE(). The empty last argument allows callers to omit all further arguments. In
 * C, an unnamed string initializes the member after `line`, which is `summary`. */
#ifdef __cplusplus
#define DUDA_ROUTE_ENTRY(http_method, pattern, function, ...)                                                \
    duda_route_with({DUDA_FIRST_OF(__VA_ARGS__, )},                                                          \
                    {.kind = DUDA_IS_ROUTE, .method = http_method, .path = pattern, .fn = function,          \
                     .name = #function, .file = __FILE__, .line = __LINE__, DUDA_REST_OF(__VA_ARGS__)})
#else
#define DUDA_ROUTE_ENTRY(http_method, pattern, function, ...)                                                \
    {.kind = DUDA_IS_ROUTE, .method = http_method, .path = pattern, .fn = function, .name = #function,       \
     .file = __FILE__, .line = __LINE__, __VA_ARGS__}
#endif
/* clang-format on */
#define DUDA_GET(path, ...)    DUDA_ROUTE("GET", path, __VA_ARGS__)
#define DUDA_POST(path, ...)   DUDA_ROUTE("POST", path, __VA_ARGS__)
#define DUDA_PUT(path, ...)    DUDA_ROUTE("PUT", path, __VA_ARGS__)
#define DUDA_PATCH(path, ...)  DUDA_ROUTE("PATCH", path, __VA_ARGS__)
#define DUDA_DELETE(path, ...) DUDA_ROUTE("DELETE", path, __VA_ARGS__)
/** A route for every method that no other route with this pattern handles. */
#define DUDA_ANY(path, ...) DUDA_ROUTE("*", path, __VA_ARGS__)

/** The packages that the server must load as plugins for this service. Define the list before the first
 * #include: `#define DUDA_USE "duda-kv", "duda-redis"`. */
#ifndef DUDA_USE
#define DUDA_USE NULL
#endif

/** Title, version and description of the service for `monkey doc` and `monkey openapi`. Define them before
 * the first #include in the file with DUDA_SERVICE(): `#define DUDA_API_VERSION "1.4.0"`. The default title
 * is the name of the service. */
#ifndef DUDA_API_TITLE
#define DUDA_API_TITLE NULL
#endif
#ifndef DUDA_API_VERSION
#define DUDA_API_VERSION NULL
#endif
#ifndef DUDA_API_DESCRIPTION
#define DUDA_API_DESCRIPTION NULL
#endif

/** The configuration section of the service: see duda/config.h. */
#ifdef DUDA_SETTINGS
#define DUDA_SECTION &DUDA_SETTINGS,
#else
#define DUDA_SECTION
#endif

/**
 * A route group, a nested table: DUDA_ROUTES(admin, DUDA_GET(...), ...) defines it, and
 * DUDA_GROUP("/admin", admin, "...") mounts it under a path prefix; the prefix "" leaves the paths
 * unchanged. Groups nest up to eight levels.
 *
 *     DUDA_ROUTES(admin, DUDA_REQUIRE(is_staff, 403), DUDA_GET("/log", show_log, "Shows the log."));
 *     DUDA_SERVICE(shop, DUDA_GROUP("/admin", admin, "For staff."), DUDA_GET("/", list_prices, "Lists the prices."));
 */
#define DUDA_ROUTES(word, ...)                                                                               \
    static const struct duda_route duda_entries_##word[] = {__VA_ARGS__};                                    \
    DUDA_ROUTES_DECLARE(word);                                                                               \
    const struct duda_routes word = {duda_entries_##word, MK_LEN(duda_entries_##word),                       \
                                     sizeof duda_entries_##word[0]}
/**
 * Declares a table that DUDA_ROUTES() defines in another file of the service, so that this file can mount it
 * with DUDA_GROUP(). Put the declaration into a header that both files include. Each table of a service needs
 * a different name.
 *
 *     DUDA_ROUTES_DECLARE(items);
 */
#define DUDA_ROUTES_DECLARE(word) extern __attribute__((visibility("hidden"))) const struct duda_routes word
/* clang-format off */
#define DUDA_GROUP(prefix, ...) DUDA_GROUP_ENTRY(prefix, __VA_ARGS__, )
/** Implementation of DUDA_GROUP(). */
#ifdef __cplusplus
#define DUDA_GROUP_ENTRY(prefix, table, ...)                                                                 \
    duda_route_with({DUDA_FIRST_OF(__VA_ARGS__, )},                                                          \
                    {.kind = DUDA_IS_GROUP, .path = prefix, .routes = &(table), .file = __FILE__,            \
                     .line = __LINE__, DUDA_REST_OF(__VA_ARGS__)})
#else
#define DUDA_GROUP_ENTRY(prefix, table, ...)                                                                 \
    {.kind = DUDA_IS_GROUP, .path = prefix, .routes = &(table), .file = __FILE__, .line = __LINE__, __VA_ARGS__}
#endif
/* clang-format on */

/** The value that a DUDA_BEFORE() function returns to continue with the handler. */
enum { DUDA_NEXT = 0x4e455854 };

/* clang-format off */
/**
 * Middleware: a function that runs before, around or after the handlers of all later entries of this table,
 * and of the groups among them. `.data` passes constant data to the function, which reads it with
 * duda_middleware_data(): `DUDA_BEFORE(check_quota, .data = &free_plan)`.
 *
 * DUDA_BEFORE(): DUDA_NEXT continues with the handler. Any other result becomes the result of the request, as
 * if a handler had returned it, and neither the handler nor a later DUDA_BEFORE() function runs. Returning 0
 * without writing a response is an error, so a function that returns true or false cannot admit a client by
 * mistake. For a predicate, use DUDA_REQUIRE().
 *
 * Middleware does not run if the path has no route (404), the route does not support the method (405), or the
 * server rejects the request (413). Error handlers run then: see DUDA_ERROR(). For headers that all responses
 * must have, use the plugin `headers`.
 *
 * DUDA_AFTER(): the function runs regardless of the result; several functions run in reverse order of their
 * entries. It reads the result with duda_result(), and the response with duda_response_status(),
 * duda_response_header() and duda_response_body(). It may set headers, and change the result with
 * duda_set_result(). Its own return value is ignored. It cannot change a response that has started: one of 64
 * KB or more, an event stream, or one that the handler has flushed. Check duda_response_has_started().
 *
 *     static int only_staff(struct duda_ctx *d)
 *     {
 *         return is_staff(d) ? DUDA_NEXT : duda_redirect(d, 303, MK_STR("/login"));
 *     }
 *     DUDA_ROUTES(admin, DUDA_BEFORE(only_staff), DUDA_GET("/log", show_log, "Shows the log."));
 */
#define DUDA_BEFORE(...) DUDA_MIDDLEWARE_ENTRY(DUDA_IS_BEFORE, __VA_ARGS__, )
#define DUDA_AFTER(...) DUDA_MIDDLEWARE_ENTRY(DUDA_IS_AFTER, __VA_ARGS__, )
/**
 * Middleware that wraps the handler: the function calls duda_next(d), which runs the later middleware and the
 * handler, and returns their result. The function's own result becomes the result of the request. If it does
 * not call duda_next(), it replaces the handler; if it returns DUDA_NEXT, the handler runs as after a
 * DUDA_BEFORE() function. DUDA_AFTER() functions run when all DUDA_AROUND() functions have returned.
 *
 * If the response has started when duda_next() returns, the function cannot change it: see DUDA_AFTER(). If
 * it returns the -EALREADY of such an attempt, Duda logs its name and keeps the result of the handler.
 *
 * Code after duda_next() does not run if the handler is terminated or the worker crashes. Use duda_defer()
 * for a cleanup that must run even if the handler is terminated.
 *
 *     static int in_transaction(struct duda_ctx *d)
 *     {
 *         int e = begin(d);
 *         if (e)
 *             return e;
 *         int result = duda_next(d);
 *         if (duda_response_status(d) < 400)
 *             e = commit(d);
 *         else
 *             rollback(d);
 *         return e ? e : result;
 *     }
 *     DUDA_ROUTES(orders, DUDA_AROUND(in_transaction), DUDA_POST("/orders", create, "Creates an order."));
 */
#define DUDA_AROUND(...) DUDA_MIDDLEWARE_ENTRY(DUDA_IS_AROUND, __VA_ARGS__, )
/** Implementation of the macros for middleware. */
#define DUDA_MIDDLEWARE_ENTRY(kind_, function, ...)                                                          \
    {.kind = kind_, .fn = function, .name = #function, .file = __FILE__, .line = __LINE__, __VA_ARGS__}

/**
 * Middleware with a predicate: unless the predicate returns true, the client gets the error page of this
 * status (400 to 599).
 *
 *     static bool is_staff(struct duda_ctx *d)
 *     {
 *         mk_str role;
 *         return duda_session_get(d, "role", &role) == 0 && mk_str_eq(role, MK_STR("staff"));
 *     }
 *     DUDA_ROUTES(admin, DUDA_REQUIRE(is_staff, 403, .security = "session"),
 *                 DUDA_GET("/log", show_log, "Shows the log."));
 *
 * DUDA_BEFORE() and DUDA_REQUIRE() accept `.security`, which documents how clients of the later entries
 * authenticate: see struct duda_route.
 */
#define DUDA_REQUIRE(function, ...) DUDA_REQUIRE_ENTRY(function, __VA_ARGS__, )
/** Implementation of DUDA_REQUIRE(). */
#define DUDA_REQUIRE_ENTRY(function, code, ...)                                                              \
    {.kind = DUDA_IS_REQUIRE, .name = #function, .file = __FILE__, .line = __LINE__,                         \
     .predicate = function, .status = code, __VA_ARGS__}

/** An error handler: a function that responds to errors of all later entries of this table, and of the groups
 * among them. See duda/error.h. */
#define DUDA_ERROR(...) DUDA_MIDDLEWARE_ENTRY(DUDA_IS_ERROR, __VA_ARGS__, )

/** Allows pages of other origins to call all later routes of this table, and of the groups among them: see
 * struct duda_cors. `DUDA_CORS(NULL)` ends this for the routes after it. */
#define DUDA_CORS(policy) {.kind = DUDA_IS_CORS, .file = __FILE__, .line = __LINE__, .data = policy}

/**
 * Restricts the later entries of this table to requests for this host: "api.example.org", or "*.example.org"
 * for all its subdomains. "" ends the restriction. A request that matches no entry of its host falls back to
 * the entries for any host.
 *
 *     DUDA_SERVICE(shop, DUDA_GET("/", hello), DUDA_HOST("api.example.org"), DUDA_GET("/prices", list_prices));
 */
#define DUDA_HOST(host) {.kind = DUDA_IS_HOST, .path = host, .file = __FILE__, .line = __LINE__}

/**
 * Functions that each worker calls at startup and at shutdown. The startup function returns 0, or a negative
 * errno value to abort the startup.
 *
 *     static int open_prices(struct mk_worker *worker)
 *     {
 *         (void)worker;
 *         return access("/srv/prices", R_OK) ? -errno : 0;
 *     }
 *     DUDA_SERVICE(shop, DUDA_START(open_prices), DUDA_GET("/", list_prices, "Lists the prices."));
 */
#define DUDA_START(function)                                                                                 \
    {.kind = DUDA_IS_START, .name = #function, .file = __FILE__, .line = __LINE__, .start = function}
#define DUDA_STOP(function)                                                                                  \
    {.kind = DUDA_IS_STOP, .name = #function, .file = __FILE__, .line = __LINE__, .stop = function}
/**
 * A start task: each worker runs the function at startup, after the DUDA_START() functions, as a background
 * task (see duda/task.h), so it may wait: to load a cache or check a database. Until it returns 0, the worker
 * is not ready (see duda/readiness.h), but still serves the requests that it receives. Options: `.stack`,
 * `.deadline_ms`.
 *
 *     static int load_prices(struct duda_ctx *d)
 *     {
 *         mk_str text;
 *         int e = fetch_prices(d, &text); // waits
 *         return e ? e : keep_prices(text);
 *     }
 *     DUDA_SERVICE(shop, DUDA_START_TASK(load_prices), DUDA_GET("/", list_prices, "Lists the prices."));
 *
 * The start tasks of a service run one after the other. If a task returns an error, Duda logs the error and
 * runs the task again after a second; each further failure doubles the delay, up to a minute.
 */
#define DUDA_START_TASK(...) DUDA_MIDDLEWARE_ENTRY(DUDA_IS_START_TASK, __VA_ARGS__, )
/* clang-format on */

/**
 * The stack probe of a source file detects whether the file was compiled with `-fstack-clash-protection`.
 * Handler stacks are small and adjacent in memory. A function with a large frame must therefore touch each
 * page of the frame, so that an overflow hits the guard region below the stack. `monkey run`, `monkey build`,
 * `monkey test` and `pkg-config --cflags duda` set that option. Each source file that includes duda.h, and
 * each DUDA_SERVICE(), adds a probe: a function with a large frame, which Duda calls when it loads the
 * service. Duda refuses a service whose probe skips pages.
 *
 * Services need no code for this. Clang lacks the option for some processors; there, the guard region of one
 * megabyte is the only protection.
 */
struct duda_probe {
    void (*touch)(size_t size);
    const char *file;
};

#if defined(__clang__) && !defined(__x86_64__) && !defined(__i386__) && !defined(__s390x__) &&               \
    !defined(__powerpc64__) && !(defined(__aarch64__) && __clang_major__ >= 18)
/** Defined where the compiler lacks -fstack-clash-protection. */
#define DUDA_HAS_NO_PROBE 1
#endif

#ifdef DUDA_HAS_NO_PROBE
/** Adds a probe to the object; only duda.h and DUDA_SERVICE() use it. */
#define DUDA_PROBE(word) extern int duda_probe_of_##word
#else
/** Adds a probe to the object; only duda.h and DUDA_SERVICE() use it. */
#define DUDA_PROBE(word)                                                                                     \
    __attribute__((noinline, no_sanitize("address"))) static void duda_touch_##word(size_t size)             \
    {                                                                                                        \
        *(volatile char *)__builtin_alloca(size) = 1;                                                        \
    }                                                                                                        \
    __attribute__((used, section("duda_probes"))) static const struct duda_probe duda_probe_##word = {       \
        duda_touch_##word, __BASE_FILE__}
#endif

/** Version of the binary interface between a service and Duda. Duda loads services built for any version from
 * DUDA_ABI_OLDEST to its own. Structs that a service defines may gain members at their end without a new
 * version: DUDA_SERVICE() and DUDA_SCHEMA() record the sizes that the service was built with. */
#define DUDA_ABI        4
#define DUDA_ABI_OLDEST 4

/** A service as Duda loads it; DUDA_SERVICE() defines it. */
struct duda_service {
    unsigned abi;
    size_t size; /**< sizeof(struct duda_service) of the service */
    const char *name, *file;
    const struct duda_routes *routes;
    const struct mk_plugin *plugin;
    const struct mk_handler *handler;
    const struct duda_probe *probes, *probes_end;
    const char *title, *version, *description;                        /**< of the API; each may be NULL */
    struct duda_metric *const *metrics, *const *metrics_end;          /**< see duda/metrics.h */
    const struct duda_topic *const *topics, *const *topics_end;       /**< see duda/topic.h */
    const struct duda_url_use *const *url_uses, *const *url_uses_end; /**< see duda/url.h */
};

/** The calls of duda_url_for() in the object; only DUDA_SERVICE() uses it. Empty in a program that contains
 * its services, because they share the sections of the program, and a call may refer to a route of any
 * service. */
#ifdef MK_PLUGIN_STATIC
#define DUDA_URL_USES MK_API_NULL, MK_API_NULL
#else
#define DUDA_URL_USES __start_duda_url_uses, __stop_duda_url_uses
#endif

/**
 * Defines the service from its routes. `name` consists of lowercase letters and digits. The object file is a
 * plugin of the server: `Load ./monkey-hello.so`. The service handles requests of every virtual host before
 * [ROUTES] does; requests that match none of its routes fall through to [ROUTES]. If any virtual host names
 * the service in its [ROUTES], the service runs only there: with `/shop/\* hello` (without the backslash),
 * its paths are relative to `/shop`.
 *
 *     DUDA_SERVICE(hello,
 *         DUDA_GET("/", hello, "Greets."),
 *         DUDA_GET("/items/:id", item, "Shows one item."),
 *     )
 */
#define DUDA_SERVICE(word, ...)                                                                              \
    MK_PLUGIN_DECLARE(word);                                                                                 \
    DUDA_PROBE(word);                                                                                        \
    /* The linker defines these symbols as the start and the end of sections of the object. */               \
    extern const struct duda_probe __start_duda_probes[] __attribute__((weak, visibility("hidden")));        \
    extern const struct duda_probe __stop_duda_probes[] __attribute__((weak, visibility("hidden")));         \
    extern struct duda_metric *const __start_duda_metrics[] __attribute__((weak, visibility("hidden")));     \
    extern struct duda_metric *const __stop_duda_metrics[] __attribute__((weak, visibility("hidden")));      \
    extern const struct duda_topic *const __start_duda_topics[] __attribute__((weak, visibility("hidden"))); \
    extern const struct duda_topic *const __stop_duda_topics[] __attribute__((weak, visibility("hidden")));  \
    extern const struct duda_url_use *const __start_duda_url_uses[]                                          \
        __attribute__((weak, visibility("hidden")));                                                         \
    extern const struct duda_url_use *const __stop_duda_url_uses[]                                           \
        __attribute__((weak, visibility("hidden")));                                                         \
    static bool duda_bind_##word(const struct mk_conf_ctx *ctx, mk_str words, void **data);                  \
    static const struct mk_handler duda_handler_##word = {.name = #word,                                     \
                                                          .handle = duda_service_handle,                     \
                                                          .bind = duda_bind_##word,                          \
                                                          .body_max = duda_service_body_max,                 \
                                                          .explain = duda_service_explain,                   \
                                                          .body_max_setting = "its `.body_max`"};            \
    DUDA_ROUTES(duda_routes_##word, __VA_ARGS__);                                                            \
    static const struct duda_service duda_service_##word = {DUDA_ABI,                                        \
                                                            sizeof(struct duda_service),                     \
                                                            #word,                                           \
                                                            __FILE__,                                        \
                                                            &duda_routes_##word,                             \
                                                            &MK_PLUGIN_OF(word),                             \
                                                            &duda_handler_##word,                            \
                                                            __start_duda_probes,                             \
                                                            __stop_duda_probes,                              \
                                                            DUDA_API_TITLE,                                  \
                                                            DUDA_API_VERSION,                                \
                                                            DUDA_API_DESCRIPTION,                            \
                                                            __start_duda_metrics,                            \
                                                            __stop_duda_metrics,                             \
                                                            __start_duda_topics,                             \
                                                            __stop_duda_topics,                              \
                                                            DUDA_URL_USES};                                  \
    extern MK_API const struct duda_service *const duda_service_of_##word;                                   \
    const struct duda_service *const duda_service_of_##word = &duda_service_##word;                          \
    static bool duda_bind_##word(const struct mk_conf_ctx *ctx, mk_str words, void **data)                   \
    {                                                                                                        \
        return duda_service_bind(&duda_service_##word, ctx, words, data);                                    \
    }                                                                                                        \
    static int duda_load_##word(struct mk_config *config, void **data)                                       \
    {                                                                                                        \
        return duda_service_load(&duda_service_##word, config, data);                                        \
    }                                                                                                        \
    static const struct mk_handler *const duda_handlers_##word[] = {&duda_handler_##word, NULL};             \
    static const struct mk_conf_table *const duda_sections_##word[] = {DUDA_SECTION NULL};                   \
    static const char *const duda_needs_##word[] = {"duda", DUDA_USE, NULL};                                 \
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
        .on_error = duda_service_error,                                                                      \
        .worker_cancel = duda_service_cancel,                                                                \
    }

/** Implementation of DUDA_SERVICE(); do not call these functions. */
MK_API int duda_service_load(const struct duda_service *service, struct mk_config *config, void **data);
MK_API int duda_service_host(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data);
MK_API int duda_service_start(struct mk_worker *worker, void *data);
MK_API void duda_service_stop(struct mk_worker *worker, void *data);
MK_API void duda_service_cancel(struct mk_worker *worker, void *data);
MK_API bool duda_service_bind(const struct duda_service *service, const struct mk_conf_ctx *ctx, mk_str words,
                              void **data);
MK_API enum mk_verdict duda_service_handle(struct mk_request *request, struct mk_response *response,
                                           void *data);
MK_API uint64_t duda_service_body_max(struct mk_request *request, void *data);
MK_API enum mk_verdict duda_service_error(struct mk_request *request, struct mk_response *response,
                                          void *host_data);
MK_API bool duda_service_explain(struct mk_request *request, void *data);

#ifdef __cplusplus
}
#endif

#endif
