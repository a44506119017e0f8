/* SPDX-License-Identifier: Apache-2.0 */
/* JSON (RFC 8259) from and to structs with a shape. */
#ifndef DUDA_JSON_H
#define DUDA_JSON_H

#include <duda/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a text of JSON may cost. A member that is 0 means its default. */
struct duda_json_limits {
    size_t size;  /**< bytes of text: 1 MB */
    size_t depth; /**< objects and lists inside of each other: 32, at most DUDA_JSON_DEPTH_MAX */
    size_t items; /**< elements and members, all together: 65,536 */
};

/** The deepest nesting that can be allowed. */
enum { DUDA_JSON_DEPTH_MAX = 64 };

/**
 * Reads a text of JSON into the struct at `out`. Members that are optional and not in the text keep what they
 * hold: set defaults, or zeroes, before. Texts without escapes point into `text`, all else is in `memory`, so
 * both must live as long as the struct is used.
 *
 * 0, or -EBADMSG: not JSON (400); -EINVAL: not of this shape (422); -EFBIG: a limit is exceeded (413);
 * -ENOMEM. All but the last are described in *flaws. The struct is partly written then. From any thread.
 *
 *     struct person person = {.age = 18};
 *     struct duda_validation_errors flaws;
 *     int e = duda_json_read(text, &person_shape, &memory, NULL, &person, &flaws);
 */
MK_API int duda_json_read(mk_str text, const struct duda_schema *shape, const struct duda_allocator *memory,
                          const struct duda_json_limits *limits, void *out,
                          struct duda_validation_errors *flaws) MK_API_MUST_USE;
/** The same for a list of such structs: *list and *n are in `memory`. */
MK_API int duda_json_read_list(mk_str text, const struct duda_schema *shape,
                               const struct duda_allocator *memory, const struct duda_json_limits *limits,
                               void *list, size_t *n, struct duda_validation_errors *flaws) MK_API_MUST_USE;
/** Reads JSON of any shape. Integers that fit are integers, all other numbers are doubles. */
MK_API int duda_json_read_value(mk_str text, const struct duda_allocator *memory,
                                const struct duda_json_limits *limits, struct duda_value *out,
                                struct duda_validation_errors *flaws) MK_API_MUST_USE;

/** Writes a value. Text that is not UTF-8 is read as Latin-1, so that the result always is JSON. Optional
 * members that are not there are left out. Values inside of each other below DUDA_JSON_DEPTH_MAX levels are
 * written as null. */
MK_API void duda_json_write(struct mk_buf *out, const struct duda_value *v);

#ifdef __cplusplus
}
#endif

#endif
