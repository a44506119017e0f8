/* SPDX-License-Identifier: Apache-2.0 */
/* What HTML forms send: names and values. */
#ifndef DUDA_FORM_H
#define DUDA_FORM_H

#include <duda/schema.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A name and its value. A NUL follows each, which its length does not count. */
struct duda_pair {
    mk_str name, value;
};

/** The fields of a form, in the order in which they came. */
struct duda_form_data {
    const struct duda_pair *at;
    size_t n;
};

/** What a form may cost. A member that is 0 means its default. */
struct duda_form_limits {
    size_t size;   /**< bytes of all, as they come: 1 MB; files do not count */
    size_t fields; /**< their number: 256 */
    size_t name;   /**< bytes of a name: 256 */
    size_t value;  /**< bytes of a value: 64 KB */
};

/** The limits with the defaults filled in. */
MK_API struct duda_form_limits duda_form_limits_of(const struct duda_form_limits *limits);

/**
 * Decodes application/x-www-form-urlencoded, such as content and queries: `a=1&b=x+y%21`. 0; -EBADMSG: a `%`
 * without two hexadecimal digits (400); -EFBIG: a limit is exceeded (413); -ENOMEM. From any thread.
 *
 *     struct duda_form_data fields;
 *     int e = duda_form_data_parse(MK_STR("name=Ana&tag=x&tag=y"), &memory, NULL, &fields);
 *     mk_str name = duda_form_data_get(&fields, "name");
 */
MK_API int duda_form_data_parse(mk_str text, const struct duda_allocator *memory,
                                const struct duda_form_limits *limits,
                                struct duda_form_data *out) MK_API_MUST_USE;
/** The value of the first field of that name, and of its i-th one; absent if there is none. */
MK_API mk_str duda_form_data_get(const struct duda_form_data *f, const char *name);
MK_API mk_str duda_form_data_get_at(const struct duda_form_data *f, const char *name, size_t i);

/**
 * Fills a struct from fields: names are those of the members, `home.street` for a struct inside of it.
 *
 * Repeated fields fill lists. A check box that is not sent is false; otherwise bool members take on, true, 1,
 * yes, and off, false, 0, no. A field that is sent empty counts as not sent, unless its member is a text
 * without `.min`. Fields that no member has are passed over: buttons and tokens are among them. 0, -EINVAL
 * (the flaws say why: 422), or -ENOMEM.
 */
MK_API int duda_form_data_bind(const struct duda_form_data *f, const struct duda_schema *shape,
                               const struct duda_allocator *memory, void *out,
                               struct duda_validation_errors *flaws) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
