/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the effective configuration: every key with its effective value, as text that can be loaded again.
 */
#ifndef MK_SETUP_EFFECTIVE_H
#define MK_SETUP_EFFECTIVE_H

#include "settings/generation_type.h"

void mk_effective_print(const struct mk_generation *g, struct mk_buf *out);

#endif
