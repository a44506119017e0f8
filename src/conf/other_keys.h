/* SPDX-License-Identifier: Apache-2.0 */
/* Directives of nginx, Apache, Caddy and HAProxy that users write out of habit as keys, sections or handlers. Only error
 * messages use this table. Builds without MK_KEY_HELP omit it. */
#ifndef MK_CONF_OTHER_KEYS_H
#define MK_CONF_OTHER_KEYS_H

#include "base/str.h"

/* Returns a hint that names the equivalent of the directive `key`; NULL: it is not in the table. */
const char *mk_conf_other_keys_hint(mk_str key);

#endif
