/* SPDX-License-Identifier: Apache-2.0 */
/* How long this thread wanted a processor that others had. */
#ifndef PACE_STARVED_H
#define PACE_STARVED_H

#include "base/def.h"

/* Nanoseconds since it began. False when the kernel does not tell. */
bool pace_starved_read(uint64_t *ns) MK_MUST_USE;

#endif
