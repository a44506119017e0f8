/* SPDX-License-Identifier: Apache-2.0 */
/* Filters before the content of a response: each is a source that pulls from the previous content. */
#ifndef MK_WEB_FILTER_H
#define MK_WEB_FILTER_H

#include <monkey/filter.h>

#include "web/response_body.h"

/* What all filters pull from in the end. */
struct mk_response_body *mk_filter_unfiltered_body(struct mk_response_body *c);

#endif
