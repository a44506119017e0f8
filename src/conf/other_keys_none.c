/* SPDX-License-Identifier: Apache-2.0 */
/* For builds without MK_KEY_HELP. */
#include "conf/other_keys.h"

const char *mk_conf_other_keys_hint(mk_str key)
{
    (void)key;
    return NULL;
}
