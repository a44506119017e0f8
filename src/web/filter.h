/* SPDX-License-Identifier: Apache-2.0 */
/* Response body filters: each filter is a body source that reads from the filter or body below it. */
#ifndef MK_WEB_FILTER_H
#define MK_WEB_FILTER_H

#include <monkey/filter.h>

#include "web/response.h"

/* Returns the unfiltered body that all filters read from. */
struct mk_response_body *mk_filter_unfiltered_body(struct mk_response_body *c);

#endif
