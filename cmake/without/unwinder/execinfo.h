/* SPDX-License-Identifier: Apache-2.0 */
/* backtrace() where neither the C library nor the compiler's library can unwind the stack, as with Debian's
 * musl-gcc, whose libgcc is made for glibc. A crash report then contains only the address of the crash. */
#ifndef WITHOUT_EXECINFO_H
#define WITHOUT_EXECINFO_H

static inline int backtrace(void **at, int max)
{
    (void)at;
    (void)max;
    return 0;
}

#endif
