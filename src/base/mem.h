/* SPDX-License-Identifier: Apache-2.0 */
/* The only access to the heap. During startup, a NULL is fatal; later, it leads to a 503 or a closed
 * connection. */
#ifndef MK_BASE_MEM_H
#define MK_BASE_MEM_H

#include <monkey/mem.h>

#include "base/compiler.h"

#endif
