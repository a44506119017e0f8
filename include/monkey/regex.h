/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions, if Monkey was built with PCRE2. */
#ifndef MONKEY_REGEX_H
#define MONKEY_REGEX_H

#include <monkey/str.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The maximum number of captures of a match: the whole match, and 31 groups. */
enum { MK_REGEX_CAPTURES_MAX = 32 };

/** The captures of a match, as slices of the text. Index 0 is the whole match. Groups that did not
 * participate are empty. */
struct mk_regex_captures {
    mk_str at[MK_REGEX_CAPTURES_MAX]; /**< indexed by group number */
};

/** The result of a match. */
enum mk_regex_result {
    MK_REGEX_NO_MATCH, /**< the text does not match */
    MK_REGEX_MATCH,    /**< the text matches */
    MK_REGEX_LIMIT     /**< unknown: the search exceeded its step or memory limit */
};

/** The reason why a pattern could not be compiled. */
struct mk_regex_error {
    /** -EINVAL: invalid pattern; -ENOENT: no regular expression support; -ENOMEM */
    int code;
    size_t offset;  /**< byte offset in the pattern; at most its length */
    char text[512]; /**< human-readable message, without a trailing period */
};

struct mk_regex_ops;

/** A compiled pattern. Any thread may match it. Free it with mk_regex_free(). */
struct mk_regex {
    const struct mk_regex_ops *ops; /**< private: used by the functions below */
};

/** The implementation of the functions below. Call mk_regex_match() and the other functions instead. */
struct mk_regex_ops {
    void (*free)(struct mk_regex *regex);
    unsigned (*groups)(const struct mk_regex *regex);
    unsigned (*group)(const struct mk_regex *regex, mk_str name);
    enum mk_regex_result (*match)(const struct mk_regex *regex, mk_str text, struct mk_regex_captures *out);
    uint64_t reserved[4]; /**< must be zero */
};

/**
 * Compiles a pattern; `nocase` ignores the case of letters. On failure, returns NULL and describes the error
 * in *error. Call it while a configuration is loaded (in load(), host() or a parse()), so that no request
 * waits for the compilation.
 *
 * Text is a sequence of bytes: `.` matches one byte of any value, and a pattern cannot enable UTF mode. `$`
 * matches only at the very end.
 *
 *     struct mk_regex_error error;
 *     struct mk_regex *r = mk_regex_new(MK_STR("^/u/(\\d+)$"), false, &error);
 *     struct mk_regex_captures found;
 *     if (r && mk_regex_match(r, path, &found) == MK_REGEX_MATCH)
 *         use(found.at[1]);
 *     mk_regex_free(r);
 */
MK_API struct mk_regex *mk_regex_new_sized(mk_str pattern, bool nocase, struct mk_regex_error *error,
                                           size_t error_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE struct mk_regex *mk_regex_new(mk_str pattern, bool nocase,
                                                            struct mk_regex_error *error)
{
    return mk_regex_new_sized(pattern, nocase, error, sizeof *error);
}

/** Frees the pattern; NULL is allowed. The argument is a void pointer, so that you can pass the
 * function to mk_config_add_cleanup(). */
static inline void mk_regex_free(void *regex)
{
    struct mk_regex *r = MK_API_CAST(struct mk_regex *, regex);
    if (r)
        r->ops->free(r);
}

/** The number of groups in the pattern. */
static inline unsigned mk_regex_groups(const struct mk_regex *regex)
{
    return regex->ops->groups(regex);
}

/** The number of the group with that name; 0 if there is no such group. */
static inline unsigned mk_regex_group(const struct mk_regex *regex, mk_str name)
{
    return regex->ops->group(regex, name);
}

/**
 * Searches the text for the pattern, at any position. `out` may be NULL; it is set if the text matches. The
 * search is bounded, and a client may choose text that exceeds the bound: treat MK_REGEX_LIMIT as the
 * result that is safe for your purpose.
 */
static inline enum mk_regex_result mk_regex_match(const struct mk_regex *regex, mk_str text,
                                                  struct mk_regex_captures *out)
{
    return regex->ops->match(regex, text, out);
}

#ifdef __cplusplus
}
#endif

#endif
