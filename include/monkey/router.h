/* SPDX-License-Identifier: Apache-2.0 */
/* A router finds the route for a method and a path, and extracts the path parameters. */
#ifndef MONKEY_ROUTER_H
#define MONKEY_ROUTER_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Limits of routers and routes. */
enum {
    MK_ROUTER_PATTERN_MAX = 1024,   /**< bytes in the text of a route */
    MK_ROUTER_SEGMENTS_MAX = 64,    /**< segments in a path */
    MK_ROUTER_PARAMS_MAX = 16,      /**< parameters in a route */
    MK_ROUTER_METHODS_MAX = 64,     /**< different methods in a router */
    MK_ROUTER_ROUTES_MAX = 1000000, /**< routes in a router */
};

/**
 * The type of a parameter, from most to least specific. A number that does not fit in 64 bits matches neither
 * `int` nor `uint`.
 */
enum mk_router_type {
    MK_ROUTER_UUID,   /**< `<uuid>`: 8-4-4-4-12 hexadecimal digits */
    MK_ROUTER_DATE,   /**< `<date>`: 2026-02-28, a valid date */
    MK_ROUTER_UINT,   /**< `<uint>`: decimal digits */
    MK_ROUTER_INT,    /**< `<int>`: decimal digits, optionally with a leading `-` */
    MK_ROUTER_NUMBER, /**< `<number>`: an integer of any length, optionally with a fraction: -3.25 */
    MK_ROUTER_HEX,    /**< `<hex>`: hexadecimal digits, any number of them */
    MK_ROUTER_ALPHA,  /**< `<alpha>`: ASCII letters */
    MK_ROUTER_WORD,   /**< `<word>`: letters, digits, `_` */
    MK_ROUTER_SLUG,   /**< `<slug>`: letters, digits, `_`, `-` */
    MK_ROUTER_TEXT,   /**< no type: any segment except an empty one */
    MK_ROUTER_REST,   /**< `*name`: the rest of the path, including slashes; may be empty */
};

/** A parameter of the matching route. */
struct mk_router_param {
    mk_str name;  /**< a slice of the route */
    mk_str value; /**< a slice of the path */
    enum mk_router_type type;
    union {
        int64_t as_int;   /**< the value of an `<int>` */
        uint64_t as_uint; /**< the value of a `<uint>` */
    };
};

/** The result of a lookup. */
struct mk_router_match {
    void *data;   /**< data of the route; NULL if none matches */
    size_t route; /**< index of the route, in the order of mk_router_add() calls; SIZE_MAX if none matches */
    uint64_t allowed; /**< if no route matches: the methods that have a route for the path; see
                           mk_router_allow() */
    size_t n;
    struct mk_router_param params[MK_ROUTER_PARAMS_MAX]; /**< n parameters, from left to right */
};

/** Results of mk_router_find(). Failures are HTTP status codes. */
enum mk_router_result {
    MK_ROUTER_FOUND = 0,
    MK_ROUTER_NO_PATH = 404,   /**< no route matches the path */
    MK_ROUTER_NO_METHOD = 405, /**< routes match the path, but not the method */
};

/**
 * A set of routes. A route is a string, `METHODS PATTERN`:
 *
 *     GET /                       this path only
 *     GET /users/:id<int>         one segment that is a number
 *     GET,POST /users/:id/notes   two methods; one segment of any text
 *     /about                      any method
 *
 * If the last segment is a star and a name, such as `*path`, it matches the rest of the path, which may
 * contain slashes or be empty.
 *
 * A pattern is compared with the decoded path (mk_request_path()), segment by segment and byte by byte; a
 * trailing slash is significant. In a pattern, `%3A` and `%2A` are a literal colon and star at the start of a
 * segment.
 *
 * The most specific route with a matching method wins. The leftmost segment in which two patterns differ
 * decides: literal text before parameters, and parameters in the order of enum mk_router_type. A `HEAD`
 * request goes to a route for `HEAD`, or else to one for `GET`. A route without methods handles the methods
 * that no other route with the same pattern handles.
 *
 * The lookup time depends on the length of the path, not on the number of routes. Add routes from one thread;
 * afterwards any thread may look them up.
 *
 *     struct mk_router *router = mk_router_new();
 *     struct mk_router_match match;
 *     if (mk_router_add(router, MK_STR("GET /users/:id<int>"), show_user, MK_STR_NULL))
 *         fail(mk_router_error(router));
 *     if (mk_router_find(router, MK_STR("GET"), MK_STR("/users/7"), &match) == MK_ROUTER_FOUND)
 *         call(match.data, match.params[0].as_int);
 *     mk_router_free(router);
 *
 * libmonkey and the plugin `duda` contain these functions; the program `monkey` does not export them to
 * plugins.
 */
struct mk_router;

/** Creates an empty router; NULL if out of memory. Free it with mk_router_free(). */
MK_API struct mk_router *mk_router_new(void) MK_API_MUST_USE;
/** Frees the router and its routes, but not their data. NULL is allowed. */
MK_API void mk_router_free(struct mk_router *router);

/**
 * Adds a route. The text is copied. A lookup returns `data`. `where` is the source location of the route
 * (`api.c:12`) for error messages, and may be absent.
 *
 * Returns 0; -EINVAL if the text is invalid or a limit is reached; -EEXIST if a route with the same methods
 * and pattern exists (parameter names do not count); or -ENOMEM. A failure leaves the routes unchanged, and
 * mk_router_error() describes it.
 */
MK_API int mk_router_add(struct mk_router *router, mk_str route, void *data, mk_str where) MK_API_MUST_USE;
/** The reason why the last mk_router_add() failed, without a trailing period; valid until the next
 * call. */
MK_API mk_str mk_router_error(const struct mk_router *router);

/**
 * Finds the route for a request. `method` is a name such as "GET"; `path` has the form of mk_request_path().
 * *match is always set; its slices are valid as long as the router and the path exist. With
 * MK_ROUTER_NO_METHOD, match->allowed holds the methods for the Allow header.
 */
MK_API enum mk_router_result mk_router_find_sized(const struct mk_router *router, mk_str method, mk_str path,
                                                  struct mk_router_match *match, size_t match_size);
static inline enum mk_router_result mk_router_find(const struct mk_router *router, mk_str method, mk_str path,
                                                   struct mk_router_match *match)
{
    return mk_router_find_sized(router, method, path, match, sizeof *match);
}
/** Writes a set of methods in the form of the Allow header: `GET, HEAD, POST` (RFC 9110, section 10.2.1). */
MK_API void mk_router_allow(const struct mk_router *router, uint64_t methods, struct mk_buf *out);

#ifdef __cplusplus
}
#endif

#endif
