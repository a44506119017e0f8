/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of PCRE2. The server loads the library when the first one is made. */
#ifndef MONKEY_REGEX_H
#define MONKEY_REGEX_H

#include <monkey/str.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How many captures a match reports: the whole of it, and 31 groups. */
enum { MK_REGEX_CAPTURES = 32 };

/** What a match found: 0 is all of it. A group that took no part is empty. Slices of the text. */
struct mk_regex_captures {
    mk_str at[MK_REGEX_CAPTURES]; /**< by the number of the group */
};

/** The result of a match. */
enum mk_regex_result {
    MK_REGEX_NO_MATCH, /**< the text does not match */
    MK_REGEX_MATCH,    /**< it does */
    MK_REGEX_LIMIT     /**< unknown: the search took too many steps, or too much memory */
};

/** Why there is no regular expression. */
struct mk_regex_error {
    /** -EINVAL: the pattern is wrong; -ENOENT: this server has no regular expressions; -ENOMEM */
    int code;
    size_t at;      /**< where in the pattern, in bytes; at most its length */
    char text[512]; /**< for people, without a full stop */
};

struct mk_regex_ops;

/** A compiled pattern. Any thread may match it; ends with mk_regex_free(). */
struct mk_regex {
    const struct mk_regex_ops *ops; /**< of the library, for the functions below alone */
};

/** What the library does; call mk_regex_match() and its neighbours instead. */
struct mk_regex_ops {
    void (*free)(struct mk_regex *r);
    unsigned (*groups)(const struct mk_regex *r);
    unsigned (*group)(const struct mk_regex *r, mk_str name);
    enum mk_regex_result (*match)(const struct mk_regex *r, mk_str text, struct mk_regex_captures *out);
};

/**
 * Compiles a pattern; NULL: *why says what is wrong. Call it while a configuration is loaded (in load(),
 * host() or a parse()): a worker in its sandbox may not be able to load the library.
 *
 * Text is bytes: `.` is one byte of any value, and a pattern cannot turn UTF on. `$` is the very end.
 *
 *     struct mk_regex_error why;
 *     struct mk_regex *r = mk_regex_new(MK_STR("^/u/(\\d+)$"), false, &why);
 *     struct mk_regex_captures found;
 *     if (r && mk_regex_match(r, path, &found) == MK_REGEX_MATCH)
 *         use(found.at[1]);
 *     mk_regex_free(r);
 */
MK_API struct mk_regex *mk_regex_new(mk_str pattern, bool nocase, struct mk_regex_error *why) MK_API_MUST_USE;

/** NULL is fine. Takes any pointer, so that it can be passed to mk_config_add_cleanup(). */
static inline void mk_regex_free(void *regex)
{
    struct mk_regex *r = MK_API_CAST(struct mk_regex *, regex);
    if (r)
        r->ops->free(r);
}

/** How many groups it has. */
static inline unsigned mk_regex_groups(const struct mk_regex *r)
{
    return r->ops->groups(r);
}

/** The number of the group with that name; 0 if there is none. */
static inline unsigned mk_regex_group(const struct mk_regex *r, mk_str name)
{
    return r->ops->group(r, name);
}

/**
 * Looks for the pattern anywhere in the text. `out` may be NULL; it is filled when the text matches. The
 * search is bounded: treat MK_REGEX_LIMIT as the result that is safe for the caller, because a client
 * chooses the text.
 */
static inline enum mk_regex_result mk_regex_match(const struct mk_regex *r, mk_str text,
                                                  struct mk_regex_captures *out)
{
    return r->ops->match(r, text, out);
}

#ifdef __cplusplus
}
#endif

#endif
