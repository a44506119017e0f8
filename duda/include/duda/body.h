/* SPDX-License-Identifier: Apache-2.0 */
/* Request and response bodies: JSON with schemas, problem details, and content negotiation. */
#ifndef DUDA_BODY_H
#define DUDA_BODY_H

#include <duda/json.h>
#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Returned by a handler whose response is already complete, for example after duda_problem(). No handler
 * returns this value by mistake, unlike 1 (`return true`). */
enum { DUDA_HANDLED = 0x444f4e45 };

/**
 * Parses the JSON request body into a struct and validates it (see duda_json_read()). Waits for the body.
 * Returns 0 on success; the data lives until the handler returns. Return any other result from the handler.
 * The client then gets problem details with status 415 (not JSON), 400 (malformed), 413 (a limit is
 * exceeded) or 422 (does not match the schema), which list each error with line and column, or the response
 * of an error handler: see duda_error(). A failed wait returns its own error.
 *
 *     static int create(struct duda_ctx *d)
 *     {
 *         struct person person = {.age = 18};
 *         int e = duda_bind_json(d, &person_schema, &person, NULL);
 *         if (e)
 *             return e;
 *         return duda_send_json_struct(d, &person_schema, &person);
 *     }
 */
MK_API duda_verdict duda_bind_json_checked(struct duda_ctx *d, const struct duda_schema *schema, void *out,
                                           size_t size, const struct mk_json_limits *limits) MK_API_MUST_USE;
/**
 * For PATCH: applies the JSON request body, a merge patch (RFC 7396), to the struct (see duda_json_merge()).
 * Load the current values into the struct first: members that the client omits keep their values, and null
 * clears a member. Otherwise like duda_bind_json().
 *
 *     struct issue issue = {0};
 *     int e = duda_sql_query_row(d, db, &issue_schema, &issue, "SELECT * FROM issues WHERE id = $1",
 *                                duda_sql_integer(id));
 *     e = e ? e : duda_bind_merge_patch(d, &issue_schema, &issue, NULL);
 *     e = e ? e
 *           : duda_sql_query_struct(d, db, NULL, "UPDATE issues SET title = :title, owner = :owner WHERE id = :id",
 *                                   &issue_schema, &issue);
 */
MK_API duda_verdict duda_bind_merge_patch_checked(struct duda_ctx *d, const struct duda_schema *schema,
                                                  void *out, size_t size,
                                                  const struct mk_json_limits *limits) MK_API_MUST_USE;
/**
 * Parse a JSON request body: as a list of structs, or, without a schema, as a value of any type. `list` is
 * the address of a pointer to the struct, which the function sets to the array.
 *
 *     struct issue *issues;
 *     size_t n;
 *     int e = duda_bind_json_list(d, &issue_schema, &issues, &n, NULL);
 */
MK_API duda_verdict duda_bind_json_list_checked(struct duda_ctx *d, const struct duda_schema *schema,
                                                void *list, size_t size, size_t *n,
                                                const struct mk_json_limits *limits) MK_API_MUST_USE;
MK_API duda_verdict duda_read_json(struct duda_ctx *d, struct duda_value *out,
                                   const struct mk_json_limits *limits) MK_API_MUST_USE;

/**
 * Parses the query string into a struct (see duda_form_data_bind()). Returns 0 on success. Return any other
 * result from the handler: the client gets 413, 503, or 400 with problem details that list each error.
 *
 *     struct issue issue = {0};
 *     int e = duda_bind_query(d, &issue_schema, &issue);
 *     if (e)
 *         return e;
 */
MK_API duda_verdict duda_bind_query_checked(struct duda_ctx *d, const struct duda_schema *schema, void *out,
                                            size_t size) MK_API_MUST_USE;
#ifndef __cplusplus
/** Call the functions above with the size of the struct. They return -EFAULT, which becomes status 500, if
 * the schema describes a struct of another size. If you have only a `void *`, call the functions with the
 * suffix `_checked`, and pass schema->size. */
#define duda_bind_json(d, schema, out, ...) duda_bind_json_checked(d, schema, out, sizeof *(out), __VA_ARGS__)
#define duda_bind_merge_patch(d, schema, out, ...)                                                           \
    duda_bind_merge_patch_checked(d, schema, out, sizeof *(out), __VA_ARGS__)
#define duda_bind_json_list(d, schema, list, n, ...)                                                         \
    duda_bind_json_list_checked(d, schema, list, sizeof **(list), n, __VA_ARGS__)
#define duda_bind_query(d, schema, out) duda_bind_query_checked(d, schema, out, sizeof *(out))
#endif
/** For packages: returns 0 if the schema describes a struct of `size` bytes. Otherwise records a reason (see
 * duda_reason()), and returns -EFAULT. */
MK_API int duda_schema_check_size(struct duda_ctx *d, const struct duda_schema *schema,
                                  size_t size) MK_API_MUST_USE;

/** Sends a JSON response: writes a value, or a struct, as JSON, and sets the Content-Type unless the handler
 * has set one. Returns 0 or a negative errno value, like duda_write(). */
MK_API int duda_send_json(struct duda_ctx *d, struct duda_value value);
MK_API int duda_send_json_struct(struct duda_ctx *d, const struct duda_schema *schema, const void *object);

/**
 * Sends an error response: replaces the response with problem details (RFC 9457, formerly 7807) that contain
 * `status` (400 to 599) and a message for the developer of the client. Return the result from the handler.
 *
 *     return duda_problem(d, 409, "the name %s is taken", name);
 */
MK_API duda_verdict duda_problem(struct duda_ctx *d, unsigned status, const char *fmt, ...)
    MK_API_PRINTF(3, 4) MK_API_MUST_USE;
/** Sends problem details with the validation errors. Each error becomes an element of `errors`: an object
 * with `detail`, `pointer` and `code` and, where they apply, the limits `minimum` and `maximum`, the
 * `expected` pattern or format, and `line` and `column` (see struct duda_validation_error). Return the result
 * from the handler. */
MK_API duda_verdict duda_problem_errors(struct duda_ctx *d, unsigned status,
                                        const struct duda_validation_errors *errors) MK_API_MUST_USE;

/**
 * Negotiates the content type: returns the index of the media type that the client prefers (RFC 9110, section
 * 12.5.1), or -1 if it accepts none of them (send 406, or send one of them anyway). Ties go to the first, so
 * list your preferred type first. The response gets `Vary: Accept`.
 *
 *     static const char *const types[] = {"text/html", "application/json", NULL};
 *     if (duda_accepts(d, types) == 1)
 *         return duda_send_json(d, value);
 */
MK_API int duda_accepts(struct duda_ctx *d, const char *const *types);
/**
 * Returns the index of the language ("en", "de-CH") that the client prefers (RFC 4647, section 3.4: `en`
 * also matches a request for en-GB), or 0, the default language, if it accepts none of them. The response
 * gets `Vary: Accept-Language`.
 *
 *     static const char *const languages[] = {"en", "de", NULL};
 *     bool is_german = duda_accepts_language(d, languages) == 1;
 */
MK_API int duda_accepts_language(struct duda_ctx *d, const char *const *languages);

/** Negotiates a language without a request: `accept_language` is the value of Accept-Language. Returns -1 if
 * none matches. */
MK_API int duda_negotiate_language(mk_str accept_language, const char *const *languages);

#ifdef __cplusplus
}

template <typename type>
static inline MK_API_MUST_USE duda_verdict duda_bind_json(struct duda_ctx *d,
                                                          const struct duda_schema *schema, type *out,
                                                          const struct mk_json_limits *limits)
{
    return duda_bind_json_checked(d, schema, out, sizeof *out, limits);
}
template <typename type>
static inline MK_API_MUST_USE duda_verdict duda_bind_merge_patch(struct duda_ctx *d,
                                                                 const struct duda_schema *schema, type *out,
                                                                 const struct mk_json_limits *limits)
{
    return duda_bind_merge_patch_checked(d, schema, out, sizeof *out, limits);
}
template <typename type>
static inline MK_API_MUST_USE duda_verdict duda_bind_json_list(struct duda_ctx *d,
                                                               const struct duda_schema *schema, type **list,
                                                               size_t *n, const struct mk_json_limits *limits)
{
    return duda_bind_json_list_checked(d, schema, list, sizeof **list, n, limits);
}
template <typename type>
static inline MK_API_MUST_USE duda_verdict duda_bind_query(struct duda_ctx *d,
                                                           const struct duda_schema *schema, type *out)
{
    return duda_bind_query_checked(d, schema, out, sizeof *out);
}
#endif

#endif
