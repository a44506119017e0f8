/* SPDX-License-Identifier: Apache-2.0 */
/* For programs in which nothing connects to backend servers. */
#include <monkey/attempt.h>
#include <stddef.h>

struct mk_attempt *mk_request_add_attempt(struct mk_request *r)
{
    (void)r;
    return NULL;
}

const struct mk_attempt *mk_request_attempts(const struct mk_request *r)
{
    (void)r;
    return NULL;
}
