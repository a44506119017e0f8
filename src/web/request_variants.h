/* SPDX-License-Identifier: Apache-2.0 */
/* Other paths that programs may derive from the path of a request. */
#ifndef MK_WEB_REQUEST_VARIANTS_H
#define MK_WEB_REQUEST_VARIANTS_H

#include "web/request_type.h"

/* Variants of one of the request's targets. 0, or the status to reject the request with: 414 or 503; then
 * *out is empty. */
unsigned mk_request_variants_of_target(const struct mk_request *r, const struct mk_request_target *a,
                                       const struct mk_request_path_variants **out) MK_MUST_USE;

#endif
