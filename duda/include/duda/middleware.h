/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for middleware: call the handler, read constant data, and attach data to the request. */
#ifndef DUDA_MIDDLEWARE_H
#define DUDA_MIDDLEWARE_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/** For DUDA_AROUND() functions: runs the later middleware and the handler, and returns their result. A second
 * call returns -EALREADY. After the first call, duda_result() returns the result, and duda_response_status()
 * the status that the client will get for it. */
MK_API duda_verdict duda_next(struct duda_ctx *d) MK_API_MUST_USE;

/**
 * Returns the `.data` of the matched route. NULL if the route has none, or if an error handler responds for
 * a path without a route.
 *
 *     const char *title = duda_route_data(d); // DUDA_GET("/about", show_page, .data = "About us")
 */
MK_API const void *duda_route_data(struct duda_ctx *d);
/**
 * Returns the `.data` of the middleware or error handler that is running. NULL if its entry has none, or in
 * the handler of a route.
 *
 *     const char *role = duda_middleware_data(d); // DUDA_BEFORE(check_role, .data = "admin")
 */
MK_API const void *duda_middleware_data(struct duda_ctx *d);

/**
 * Attaches data to the request, such as the user that a DUDA_BEFORE() function has authenticated. `key` is
 * the address of a static variable, so no other file can use the same key by mistake. Earlier data under the
 * same key is destroyed and replaced; if `data` is NULL, the earlier data is only removed. When the request
 * has ended, after deferred functions and error handlers, Duda calls destroy(data), which must not wait;
 * `destroy` may be NULL. Memory from duda_alloc() lives long enough, unless duda_arena_rewind() frees it.
 *
 * Returns 0, or -ENOMEM after calling destroy(data).
 *
 *     static const char user_key;
 *
 *     static int find_user(struct duda_ctx *d)
 *     {
 *         struct user *user = user_of_token(d, duda_header(d, "Authorization"));
 *         int e = duda_attach(d, &user_key, user, NULL);
 *         return e ? e : DUDA_NEXT;
 *     }
 *
 *     static int greet(struct duda_ctx *d)
 *     {
 *         const struct user *user = duda_attached(d, &user_key);
 *         return user ? duda_printf(d, "hello %s\n", user->name) : 401;
 *     }
 */
MK_API int duda_attach(struct duda_ctx *d, const void *key, void *data,
                       void (*destroy)(void *data)) MK_API_MUST_USE;
/** Returns the data attached under the key; NULL if there is none. */
MK_API void *duda_attached(struct duda_ctx *d, const void *key);

/** The type of a struct for `.data`, stored as its first member because `.data` is a `void *`. A macro such
 * as DUDA_BASIC_AUTH() sets the type, and Duda refuses to load a service that passes a struct of another
 * type. */
enum duda_data_type {
    DUDA_DATA_BASIC_AUTH = 0x64730001,
    DUDA_DATA_TOKEN_AUTH = 0x64730002,
    DUDA_DATA_SESSION_AUTH = 0x64730003,
    DUDA_DATA_OIDC_LOGIN = 0x64730004
};
/** For packages: returns whether the data is a struct of this type. The pointer may point to anything. */
static inline bool duda_data_has_type(const void *data, enum duda_data_type type)
{
    const unsigned char *p = MK_API_CAST(const unsigned char *, data);
    unsigned char expected[sizeof type];
    size_t i = 0;
    memcpy(expected, &type, sizeof type);
    while (p && i < sizeof expected && p[i] == expected[i])
        i++;
    return i == sizeof expected;
}
/** For packages: declares a function for tables of routes that requires a certain `.data`. When Duda loads a
 * service, it calls check() for each entry with the function. check() returns NULL, or the reason not to load
 * the service: "duda_auth_basic() needs a `.data` that DUDA_BASIC_AUTH() defines". Call this function in
 * load(). */
MK_API void duda_data_declare(struct mk_config *config, duda_fn *fn, const char *(*check)(const void *data));

#ifdef __cplusplus
}
#endif

#endif
