/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on requests, parsed with the configuration and evaluated for each request. [SECURITY],
 * [CHALLENGE], [LIMITS], and `When` in [REWRITE] and [ROUTES] use them. */
#ifndef MONKEY_CONDITION_H
#define MONKEY_CONDITION_H

#include <monkey/addr.h>
#include <monkey/config.h>
#include <monkey/regex.h>
#include <monkey/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a condition tests, as flags. */
enum mk_condition_subject {
    MK_CONDITION_PATH = 1,         /**< `path PATTERN...` */
    MK_CONDITION_CONTAINS = 2,     /**< `contains TEXT...`: a substring of the path */
    MK_CONDITION_FROM = 4,         /**< `from NETWORK...`: the client address */
    MK_CONDITION_METHOD = 8,       /**< `method NAME...` */
    MK_CONDITION_REFERER = 16,     /**< `referer HOST...`: the site of the referring page */
    MK_CONDITION_HOST = 32,        /**< `host GLOB...` */
    MK_CONDITION_SCHEME = 64,      /**< `scheme http|https` */
    MK_CONDITION_QUERY = 128,      /**< `query GLOB...`: the whole query */
    MK_CONDITION_HEADER = 256,     /**< `header NAME GLOB...` */
    MK_CONDITION_COOKIE = 512,     /**< `cookie NAME GLOB...` */
    MK_CONDITION_PARAMETER = 1024, /**< `parameter NAME GLOB...`: a parameter of the query */
    MK_CONDITION_FILE = 2048,      /**< `file`: the path names an existing file or folder of the virtual host;
                                        may read from disk */
    MK_CONDITION_COUNTRY = 4096,   /**< `country CODE...`: the country of the client address */
    MK_CONDITION_ASN = 8192,       /**< `asn NUMBER...`: the autonomous system of the client address */
};

/** The conditions of a rule, which matches if all of them are true. */
struct mk_conditions;

/** Creates an empty list, which is true for every request, in the memory of the configuration. Returns NULL,
 * and reports the error, if out of memory. */
MK_API struct mk_conditions *mk_conditions_new(const struct mk_conf_ctx *ctx);
/**
 * Parses conditions and appends them to the list: `[not] SUBJECT VALUE... [not] SUBJECT VALUE...`. A quoted
 * word is always a value. `subjects` are the allowed flags of enum mk_condition_subject. If `is_bare`, the
 * text may begin with values without a subject: paths, which begin with `/` or `*`, and networks. Returns
 * false after reporting an error.
 *
 *     struct mk_conditions *list = mk_conditions_new(ctx);
 *     if (!list || !mk_conditions_parse(list, ctx, mk_conf_ctx_value(ctx), MK_CONDITION_HEADER, false))
 *         return false;
 */
MK_API bool mk_conditions_parse(struct mk_conditions *conditions, const struct mk_conf_ctx *ctx, mk_str text,
                                unsigned subjects, bool is_bare) MK_API_MUST_USE;
/** Appends one condition with these values. Returns false after reporting an error. */
MK_API bool mk_conditions_add(struct mk_conditions *conditions, const struct mk_conf_ctx *ctx,
                              enum mk_condition_subject subject, bool is_negated, const mk_str *values,
                              size_t n) MK_API_MUST_USE;
/** Converts the path patterns to lower case, for a caller that matches lower-case paths. Returns false if out
 * of memory. */
MK_API bool mk_conditions_fold_paths(struct mk_conditions *conditions,
                                     struct mk_config *config) MK_API_MUST_USE;

/** The subjects that the conditions test, as flags. */
MK_API unsigned mk_conditions_subjects(const struct mk_conditions *conditions);
/** Returns the networks of the `from` condition, for a caller that indexes many rules by network. Returns
 * NULL, and sets *n to 0, unless the list has exactly one `from` condition, which is not negated and lists
 * all its networks itself. */
MK_API const struct mk_network *mk_conditions_networks(const struct mk_conditions *conditions, size_t *n);

/**
 * Evaluates the conditions for `path`, which is mk_request_path() or one of its variants. Skips conditions on
 * the subjects in `without`. Conditions see the headers that the client sent, without the changes of hooks.
 * Returns MK_REGEX_LIMIT if the result depends on a regular expression that exceeded its limit, or if memory
 * is exhausted: the caller then chooses the safe result.
 */
MK_API enum mk_regex_result mk_conditions_match_path(const struct mk_conditions *conditions,
                                                     struct mk_request *request, mk_str path,
                                                     unsigned without);
/** Evaluates only the conditions that depend on nothing but the client address: `from`, `country` and `asn`.
 * Returns false if one of them is false. */
MK_API bool mk_conditions_match_addr(const struct mk_conditions *conditions, const struct mk_addr *addr);

/**
 * An index of the condition lists of an ordered set of rules. It skips lists that cannot be true for a
 * request. Consecutive lists that test the same header, cookie, parameter, host, query or part of the path
 * are searched together, in about the time that one of them takes.
 */
struct mk_condition_index;

/** Creates an index of `n` lists in the memory of the configuration. A list that is NULL is never skipped.
 * Returns NULL if out of memory. */
MK_API struct mk_condition_index *mk_condition_index_new(struct mk_config *config,
                                                         const struct mk_conditions *const *lists, size_t n);
/** Returns the index of the first list, from `at` on, that may be true for the path; `n` if there is none.
 * The skipped lists are false, although mk_conditions_match_path() might return MK_REGEX_LIMIT for some of
 * them: their regular expressions can only match text that contains a certain string, and this string is
 * absent. */
MK_API size_t mk_condition_index_next(const struct mk_condition_index *index, struct mk_request *request,
                                      mk_str path, size_t at);

/** Evaluates the conditions for the current path of the request. */
static inline enum mk_regex_result mk_conditions_match(const struct mk_conditions *conditions,
                                                       struct mk_request *request)
{
    return mk_conditions_match_path(conditions, request, mk_request_path(request), 0);
}

#ifdef __cplusplus
}
#endif

#endif
