/* SPDX-License-Identifier: Apache-2.0 */
/* The heap; no other code calls malloc(). A failed allocation is fatal during startup; later it leads to a
 * 503 or a closed connection. */
#ifndef MK_BASE_MEM_H
#define MK_BASE_MEM_H

#include <monkey/mem.h>

#include "base/compiler.h"

#endif
