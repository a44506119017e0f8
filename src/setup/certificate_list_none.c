/* SPDX-License-Identifier: Apache-2.0 */
/* A server without MK_CERTIFICATES: there is no list. */
#include "setup/certificate_list.h"

struct mk_certificate_list *mk_config_certificate_list(struct mk_config *c)
{
    (void)c;
    return NULL;
}

bool mk_certificate_list_read(const struct mk_certificate_list *list, struct mk_buf *json)
{
    (void)list, (void)json;
    return false;
}
