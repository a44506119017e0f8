/* SPDX-License-Identifier: Apache-2.0 */
/* Security schemes of an OpenAPI document, from the words of `.security` in struct duda_route. */
#ifndef DUDA_DEV_OPENAPI_SECURITY_H
#define DUDA_DEV_OPENAPI_SECURITY_H

#include "introspect.h"

#include <monkey/json.h>

/* The schemes that the operations of a document refer to. */
enum { DEV_SECURITY_MAX = 16 };
struct dev_security_schemes {
    mk_str words[DEV_SECURITY_MAX]; /* in the memory of the service */
    size_t n;
};

/* Does `.security` contain a word that OpenAPI can express? */
bool dev_openapi_has_security(const char *words);
/* Writes the member `security` of an operation if the words require it. Ignores unknown words. */
void dev_openapi_write_security(struct mk_json_writer *w, struct dev_security_schemes *schemes,
                                const char *words);
/* Writes the member `securitySchemes` of the components. */
void dev_openapi_write_security_schemes(struct mk_json_writer *w, const struct dev_security_schemes *schemes,
                                        const char *service);

#endif
