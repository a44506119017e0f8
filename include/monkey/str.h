/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MONKEY_STR_H
#define MONKEY_STR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A piece of text: where it begins and how many bytes it has.
 *
 * Passed by value, never NUL-terminated by promise, never owner of its bytes: it is valid as long as what it
 * points into, which the function that hands it out names. An absent text has `p == NULL`; an empty one has
 * `len == 0` and `p != NULL`.
 *
 * Print one with `printf("%.*s", MK_STR_ARG(s))`.
 */
typedef struct mk_str {
    const char *p;
    size_t len;
} mk_str;

/** A literal as a mk_str: `MK_STR("text/html")`. In C, also usable in static initialisers through
 * MK_STR_INIT. */
#define MK_STR_INIT(literal)                                                                                 \
    {                                                                                                        \
        ("" literal), sizeof(literal) - 1                                                                    \
    }
#ifdef __cplusplus
#define MK_STR(literal) (mk_str MK_STR_INIT(literal))
#else
#define MK_STR(literal) ((mk_str)MK_STR_INIT(literal))
#endif

/** The two arguments of a "%.*s". */
#define MK_STR_ARG(s) ((int)(s).len), ((s).p ? (s).p : "")

#ifdef __cplusplus
}
#endif

#endif
