/* SPDX-License-Identifier: Apache-2.0 */
/* Form data: the names and values of HTML forms and query strings. */
#ifndef DUDA_FORM_H
#define DUDA_FORM_H

#include <duda/schema.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A name and its value. Both are NUL-terminated; the lengths exclude the NUL. */
struct duda_pair {
    mk_str name, value;
};

/** The fields of a form, in the order received. */
struct duda_form_data {
    const struct duda_pair *pairs;
    size_t n;
};

/** Limits for parsing a form. A zero member selects its default. */
struct duda_form_limits {
    size_t size;          /**< bytes of the encoded form, without files: 1 MB */
    size_t fields;        /**< number of fields: 256 */
    size_t name;          /**< bytes of a name: 256 */
    size_t value;         /**< bytes of a value: 64 KB */
    uint64_t reserved[4]; /**< must be zero */
};

/** Returns the limits with the defaults filled in. */
MK_API struct duda_form_limits duda_form_limits_of(const struct duda_form_limits *limits);

/**
 * Parses application/x-www-form-urlencoded data, such as request bodies and query strings: `a=1&b=x+y%21`.
 * Returns 0; -EBADMSG: a `%` without two hexadecimal digits (400); -EMSGSIZE: a limit is exceeded (413);
 * -ENOMEM. Thread-safe.
 *
 *     struct duda_form_data fields;
 *     int e = duda_form_data_parse(MK_STR("name=Ana&tag=x&tag=y"), &memory, NULL, &fields);
 *     mk_str name = duda_form_data_get(&fields, "name");
 */
MK_API int duda_form_data_parse(mk_str text, const struct duda_allocator *memory,
                                const struct duda_form_limits *limits,
                                struct duda_form_data *out) MK_API_MUST_USE;
/** The value of the first field, or of the i-th field, with that name; absent if there is none. */
MK_API mk_str duda_form_data_get(const struct duda_form_data *form, const char *name);
MK_API mk_str duda_form_data_get_at(const struct duda_form_data *form, const char *name, size_t i);

/**
 * Fills a struct from form fields. Field names are those of the schema; `home.street` addresses a member of a
 * nested struct.
 *
 * Repeated fields fill lists. A bool member accepts on, true, 1, yes, off, false, 0 and no. It is false if
 * the field is absent, as for an unchecked checkbox. An empty field counts as absent, unless its member is a
 * string without `.min_length`. Unknown fields are ignored, because submit buttons and CSRF tokens are among
 * them. Returns 0; -EINVAL if a field is invalid (*errors lists the errors; respond with 422); or -ENOMEM.
 */
MK_API int duda_form_data_bind(const struct duda_form_data *form, const struct duda_schema *schema,
                               const struct duda_allocator *memory, void *out,
                               struct duda_validation_errors *errors) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
