/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a request, after it was received. */
#ifndef DUDA_SERVICE_FORMS_H
#define DUDA_SERVICE_FORMS_H

#include <duda/upload.h>

struct duda_kept_form {
    int result; /* of the first duda_form_load() */
    struct duda_fields fields;
    struct duda_upload *files;
    size_t n_files;
    struct mk_spool *content; /* NULL: it has no files */
};

/* Content-Encoding of requests (RFC 9110, section 8.4), of which Duda decodes none. 0; 415: the content is
 * compressed, so that it cannot be read as what its Content-Type says. The response then says what is accepted. */
int duda_coding_check(struct duda *d);

/* NULL: not received yet. */
struct duda_kept_form *duda_forms_of(struct duda *d);

#endif
