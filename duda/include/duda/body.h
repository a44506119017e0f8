/* SPDX-License-Identifier: Apache-2.0 */
/* Content in a form that both sides know: JSON by shapes, problems, pages by templates, and what clients
 * accept. */
#ifndef DUDA_BODY_H
#define DUDA_BODY_H

#include <duda/json.h>
#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a handler returns when the answer was said already, by duda_problem() for example: no number that a handler could mean
 * otherwise, such as that of `return true`. */
enum { DUDA_HANDLED = 0x444f4e45 };

/**
 * Reads the content, which must be JSON, into a struct (see duda_json_read()). Waits for it. 0: it is there,
 * and lives until the handler returns. Anything else is what the handler returns: the client then gets
 * problem details with status 415 (it is no JSON), 400 (malformed), 413 (a limit is exceeded) or 422 (not of
 * this shape), which name each flaw with line and column, or the error is one of a wait.
 *
 *     static int create(struct duda_ctx *d)
 *     {
 *         struct person person = {.age = 18};
 *         int e = duda_bind_json(d, &person_shape, &person, NULL);
 *         if (e)
 *             return e;
 *         return duda_send_json_struct(d, &person_shape, &person);
 *     }
 */
MK_API int duda_bind_json(struct duda_ctx *d, const struct duda_schema *shape, void *out,
                          const struct duda_json_limits *limits) MK_API_MUST_USE;
/** The same for a list of structs, and for JSON of any shape. */
MK_API int duda_bind_json_list(struct duda_ctx *d, const struct duda_schema *shape, void *list, size_t *n,
                               const struct duda_json_limits *limits) MK_API_MUST_USE;
MK_API int duda_read_json(struct duda_ctx *d, struct duda_value *out,
                          const struct duda_json_limits *limits) MK_API_MUST_USE;

/** Reads the query into a struct (see duda_form_data_bind()). 0; anything else is what the handler returns:
 * problem details with status 400 that name each flaw, 413 or 503. */
MK_API int duda_bind_query(struct duda_ctx *d, const struct duda_schema *shape, void *out) MK_API_MUST_USE;

/** Says a value, or a struct, as JSON, with its Content-Type unless another one was set. 0 or a negated errno
 * value, as duda_write(). */
MK_API int duda_send_json(struct duda_ctx *d, struct duda_value value);
MK_API int duda_send_json_struct(struct duda_ctx *d, const struct duda_schema *shape, const void *at);

/**
 * Problem details (RFC 9457) in the place of anything said before: `status` (400 to 599), and a sentence for
 * the client's author. What it answers is what the handler returns.
 *
 *     return duda_problem(d, 409, "the name %s is taken", name);
 */
MK_API int duda_problem(struct duda_ctx *d, unsigned status, const char *fmt, ...)
    MK_API_PRINTF(3, 4) MK_API_MUST_USE;
/** The same with what a reading has found: each flaw becomes a member of `errors`. */
MK_API int duda_problem_errors(struct duda_ctx *d, unsigned status,
                               const struct duda_validation_errors *flaws) MK_API_MUST_USE;

/**
 * Which of these media types the client likes best (RFC 9110, section 12.5.1): its index; the first one of
 * equals, so write your favourite first; -1: it accepts none of them (answer 406, or one nevertheless). The
 * response gets `Vary: Accept`.
 *
 *     static const char *const types[] = {"text/html", "application/json", NULL};
 *     if (duda_accepts(d, types) == 1)
 *         return duda_send_json(d, value);
 */
MK_API int duda_accepts(struct duda_ctx *d, const char *const *types);
/** Which of these languages ("en", "de-CH") the client likes best (RFC 4647, section 3.4: `en` also serves a
 * client that asks for en-GB): its index; 0, so the first one is the default, if it asks for none of them.
 * The response gets `Vary: Accept-Language`. */
MK_API int duda_accepts_language(struct duda_ctx *d, const char *const *languages);

/** The choice without a request: `field` is the value of Accept-Language; -1: none of them. */
MK_API int duda_negotiate_language(mk_str field, const char *const *languages);

#ifdef __cplusplus
}
#endif

#endif
