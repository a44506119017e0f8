/* SPDX-License-Identifier: Apache-2.0 */
/* For builds without MK_KEY_HELP. */
#include "conf/other_keys.h"
#include "conf/other_server.h"

const char *mk_conf_other_keys_hint(mk_str key)
{
    (void)key;
    return NULL;
}

struct mk_conf_other_server mk_conf_other_server_detect(mk_str text)
{
    (void)text;
    return (struct mk_conf_other_server){0};
}
