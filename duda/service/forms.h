/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a request, after it was received. */
#ifndef DUDA_SERVICE_FORMS_H
#define DUDA_SERVICE_FORMS_H

#include <duda/upload.h>

struct duda_parsed_form {
    int result; /* of the first duda_form_load() */
    struct duda_form_data fields;
    struct duda_upload *files;
    size_t n_files;
    struct mk_spool *content; /* NULL: it has no files */
};

/* Content-Encoding of requests (RFC 9110, section 8.4), of which Duda decodes none. 0; 415: the content is
 * compressed, so that it cannot be read as what its Content-Type says. The response then says what is accepted. */
int duda_form_check_encoding(struct duda_ctx *d);

/* NULL: not received yet. */
struct duda_parsed_form *duda_form_parsed(struct duda_ctx *d);

#endif
