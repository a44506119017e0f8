/* SPDX-License-Identifier: Apache-2.0 */
/* Other paths that programs may take the path of a request for. */
#ifndef MK_WEB_REQUEST_VARIANTS_H
#define MK_WEB_REQUEST_VARIANTS_H

#include "web/request_type.h"

/* Those of one of the paths that the request has had. 0, or the status to refuse it with: 414 or 503; then
 * *out has none. */
unsigned mk_request_variants_of_target(const struct mk_request *r, const struct mk_request_target *a,
                                       const struct mk_request_path_variants **out) MK_MUST_USE;

#endif
