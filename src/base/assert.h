/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions catch our own bugs only. Never assert anything that a peer, a disk, the kernel or a
 * configuration can cause. Assertions stay in release builds: a worker that fails one dies and is
 * replaced. */
#ifndef MK_BASE_ASSERT_H
#define MK_BASE_ASSERT_H

#include "base/compiler.h"

#define MK_ASSERT(cond)                                                                                      \
    do {                                                                                                     \
        if (MK_UNLIKELY(!(cond)))                                                                            \
            mk_platform_assert_failed(#cond, __FILE__, __LINE__);                                            \
    } while (0)

_Noreturn void mk_platform_assert_failed(const char *cond, const char *file, int line) MK_COLD;

#endif
