/* SPDX-License-Identifier: Apache-2.0 */
/* A router: which of many routes answers a method and a path, and what its parameters are. */
#ifndef MONKEY_ROUTER_H
#define MONKEY_ROUTER_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Limits of a route, and of a router. */
enum {
    MK_ROUTER_PATTERN = 1024,   /**< bytes of a route's text */
    MK_ROUTER_SEGMENTS = 64,    /**< of a path */
    MK_ROUTER_PARAMS = 16,      /**< of a route */
    MK_ROUTER_METHODS = 64,     /**< different methods in a router */
    MK_ROUTER_ROUTES = 1000000, /**< in a router */
};

/**
 * What a parameter matches, from the most to the least specific. A number that does not fit into 64 bits is
 * no `int` and no `uint`: the route does not match.
 */
enum mk_router_type {
    MK_ROUTER_UUID,   /**< `<uuid>`: 8-4-4-4-12 hexadecimal digits */
    MK_ROUTER_DATE,   /**< `<date>`: 2026-02-28, a day that exists */
    MK_ROUTER_UINT,   /**< `<uint>`: decimal digits */
    MK_ROUTER_INT,    /**< `<int>`: decimal digits, perhaps with a `-` */
    MK_ROUTER_NUMBER, /**< `<number>`: an int of any length, or one with a fraction: -3.25 */
    MK_ROUTER_HEX,    /**< `<hex>`: hexadecimal digits, of any number */
    MK_ROUTER_ALPHA,  /**< `<alpha>`: letters of ASCII */
    MK_ROUTER_WORD,   /**< `<word>`: letters, digits, `_` */
    MK_ROUTER_SLUG,   /**< `<slug>`: letters, digits, `_`, `-` */
    MK_ROUTER_TEXT,   /**< without a type: any segment but the empty one */
    MK_ROUTER_REST,   /**< `*name`: the rest of the path, slashes included; may be empty */
    MK_ROUTER_TYPES
};

/** A parameter of the route that was found. */
struct mk_router_param {
    mk_str name;  /**< a slice of the route */
    mk_str value; /**< a slice of the path */
    enum mk_router_type type;
    union {
        int64_t as_int;   /**< the value of an `<int>` */
        uint64_t as_uint; /**< the value of a `<uint>` */
    };
};

/** What a search found. */
struct mk_router_match {
    void *data;       /**< of the route; NULL if there is none */
    size_t route;     /**< how many were added before it; SIZE_MAX if there is none */
    uint64_t allowed; /**< without a route: the methods that the path has; see mk_router_allow() */
    size_t n;
    struct mk_router_param params[MK_ROUTER_PARAMS]; /**< n of them, from left to right */
};

/** Answers of mk_router_find(). Those of failure are statuses for the client. */
enum mk_router_result {
    MK_ROUTER_FOUND = 0,
    MK_ROUTER_NO_PATH = 404,   /**< no route matches the path */
    MK_ROUTER_NO_METHOD = 405, /**< routes match the path, but not with this method */
};

/**
 * A set of routes. A route is text, `METHODS PATTERN`:
 *
 *     GET /                       this path only
 *     GET /users/:id<int>         one segment that is a number
 *     GET,POST /users/:id/notes   two methods; one segment of any text
 *     /about                      any method
 *
 * A last segment of a star and a name, such as `*path`, is the rest of the path, whatever it is.
 *
 * A pattern is compared with the decoded path (mk_request_path()), segment by segment and byte by byte; a
 * slash at the end counts. `%3A` in a pattern is a colon, `%2A` a star, that begins a segment of plain text.
 *
 * The most specific route that has the method answers. The leftmost segment in which two patterns differ
 * decides: text before parameters, these in the order of enum mk_router_type. `HEAD` is answered by a route
 * for `HEAD`, or else by one for `GET`; a route without methods answers those that no other route with the
 * same pattern has.
 *
 * The time of a search depends on the length of the path, not on the number of routes. Add routes from one
 * thread; then any thread may search.
 *
 *     struct mk_router *router = mk_router_new();
 *     struct mk_router_match match;
 *     if (mk_router_add(router, MK_STR("GET /users/:id<int>"), show_user, MK_STR_NULL))
 *         fail(mk_router_error(router));
 *     if (mk_router_find(router, MK_STR("GET"), MK_STR("/users/7"), &match) == MK_ROUTER_FOUND)
 *         call(match.data, match.params[0].as_int);
 *     mk_router_free(router);
 *
 * libmonkey and the object `duda` have these functions; the program `monkey` does not offer them to plugins.
 */
struct mk_router;

/** An empty router, or NULL when memory is out. mk_router_free() ends it. */
MK_API struct mk_router *mk_router_new(void) MK_API_MUST_USE;
/** Frees the router and its routes; not their data. NULL is fine. */
MK_API void mk_router_free(struct mk_router *router);

/**
 * Adds a route. The text is copied. `data` is what a search answers; `where` says where the route is written
 * (`api.c:12`), for messages, and may be absent.
 *
 * Returns 0; -EINVAL when the text is wrong or a limit is reached; -EEXIST when a route of the same methods
 * and pattern is there (the names of parameters do not count); -ENOMEM. After a failure the router has the
 * routes that it had, and mk_router_error() says what is wrong.
 */
MK_API int mk_router_add(struct mk_router *router, mk_str route, void *data, mk_str where) MK_API_MUST_USE;
/** Why the last mk_router_add() failed, without a full stop; valid until the next one. */
MK_API mk_str mk_router_error(const struct mk_router *router);

/**
 * Searches the route for a request. `method` is a word such as "GET"; `path` has the form of
 * mk_request_path(). *match is filled in any case; its slices are valid as long as the router and the path.
 * With MK_ROUTER_NO_METHOD, match->allowed tells what the response's field Allow says.
 */
MK_API enum mk_router_result mk_router_find(const struct mk_router *router, mk_str method, mk_str path,
                                            struct mk_router_match *match);
/** Writes a set of methods as Allow has it: `GET, HEAD, POST` (RFC 9110, section 10.2.1). */
MK_API void mk_router_allow(const struct mk_router *router, uint64_t methods, struct mk_buf *out);

#ifdef __cplusplus
}
#endif

#endif
