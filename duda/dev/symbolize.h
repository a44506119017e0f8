/* SPDX-License-Identifier: Apache-2.0 */
/* From the report of a crash, as crash.h has it, to functions and lines of sources. */
#ifndef DUDA_DEV_SYMBOLIZE_H
#define DUDA_DEV_SYMBOLIZE_H

#include "error_page.h"

/* A line of a report. */
struct dev_frame {
    mk_str object, symbol; /* a file, and a function if it is known */
    unsigned long long offset;
    bool is_first;
};
/* False: the line is none of a frame. */
bool dev_symbolize_parse_frame(mk_str line, struct dev_frame *f);
/* "FILE:LINE", perhaps with " (discriminator 2)" behind it, as addr2line says it. False: it does not know. */
bool dev_symbolize_parse_location(mk_str text, mk_str *path, uint64_t *row);
/* Writes the stack, with an excerpt of the innermost source that is not the server's. Lines come from
 * `addr2line` of binutils, which compilers need anyway, or `llvm-addr2line`; without both only functions are
 * named. */
void dev_symbolize_write_stack(const struct dev_error_page *p, mk_str report);
/* The first line: "SIGSEGV (Segmentation fault) at address 0x10". */
void dev_symbolize_write_cause(struct mk_buf *out, mk_str report);
/* The report is of a call of exit(). */
bool dev_symbolize_is_exit_report(mk_str report);

#endif
