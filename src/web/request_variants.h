/* SPDX-License-Identifier: Apache-2.0 */
/* Other paths that programs may derive from the path of a request. */
#ifndef MK_WEB_REQUEST_VARIANTS_H
#define MK_WEB_REQUEST_VARIANTS_H

#include "web/request_type.h"

/* Finds the variants of one of the request's targets. Returns 0, or the status with which to reject the
 * request: 400, 414 or 503; *out is then empty. */
unsigned mk_request_variants_of_target(const struct mk_request *r, const struct mk_request_target *a,
                                       const struct mk_request_path_variants **out) MK_MUST_USE;

#endif
