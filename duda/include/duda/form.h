/* SPDX-License-Identifier: Apache-2.0 */
/* Fills structs from form fields (monkey/form.h). */
#ifndef DUDA_FORM_H
#define DUDA_FORM_H

#include <duda/schema.h>
#include <monkey/form.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Fills a struct from form fields. The schema determines the names of the fields; `home.street` addresses a
 * member of a nested struct.
 *
 * Repeated fields fill lists. A bool member accepts on, true, 1, yes, off, false, 0 and no. It is false if
 * the field is absent, as for an unchecked checkbox. An empty field clears an optional member, like null in
 * JSON, unless the member is a string without `.min_length`, which becomes empty. Unknown fields are ignored,
 * because they include submit buttons and CSRF tokens. Returns 0; -EINVAL if a field is invalid (*errors
 * lists the errors; respond with 422); or -ENOMEM.
 *
 * After -EINVAL, strings that violate a rule, such as `.max_length`, are stored nonetheless, so that a page
 * can show the form again with the text that the user has entered. Do not use the struct for anything else.
 */
MK_API int duda_form_data_bind(const struct mk_form *form, const struct duda_schema *schema,
                               const struct mk_allocator *memory, void *out,
                               struct duda_validation_errors *errors) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
