/* SPDX-License-Identifier: Apache-2.0 */
/* The parsed form of a request. */
#ifndef DUDA_SERVICE_FORMS_H
#define DUDA_SERVICE_FORMS_H

#include <duda/upload.h>

struct duda_parsed_form {
    int result; /* result of the first duda_form_load() */
    struct mk_form fields;
    struct mk_spool *content; /* NULL: no files */
};

/* Returns NULL if the form has not been received yet. */
struct duda_parsed_form *duda_form_parsed(struct duda_ctx *d);
/* Loads the form for functions that cannot return an error. Returns true if there is no form. */
bool duda_form_load_implicitly(struct duda_ctx *d);
/* Receives the request body, up to `max` bytes (0: no limit besides that of the route). Waits. */
int duda_form_spool_body(struct duda_ctx *d, uint64_t max, struct mk_spool **out);

#endif
