/* SPDX-License-Identifier: Apache-2.0 */
/* From the report of a crash, as crash.h has it, to functions and lines of sources. */
#ifndef DUDA_DEV_FRAMES_H
#define DUDA_DEV_FRAMES_H

#include "page.h"

/* Writes the stack, with an excerpt of the innermost source that is not the server's. Lines come from
 * `addr2line` of binutils, which compilers need anyway, or `llvm-addr2line`; without both only functions are
 * named. */
void dev_frames_write(const struct dev_page *p, mk_str report);
/* The first line: "crashed with SIGSEGV at address 0x0". */
void dev_frames_write_cause(struct mk_buf *out, mk_str report);

#endif
