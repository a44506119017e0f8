/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves a crash report in the format of crash.h to functions and source lines. */
#ifndef DUDA_DEV_SYMBOLIZE_H
#define DUDA_DEV_SYMBOLIZE_H

#include "error_page.h"

/* A line of a report. */
struct dev_frame {
    mk_str object, symbol; /* file, and function if known */
    unsigned long long offset;
    bool is_first;
};
/* False: the line is not a frame. */
bool dev_symbolize_parse_frame(mk_str line, struct dev_frame *f);
/* Parses "FILE:LINE", possibly followed by " (discriminator 2)", as printed by addr2line. False: unknown
 * location. */
bool dev_symbolize_parse_location(mk_str text, mk_str *path, uint64_t *row);
/* Writes the stack, with an excerpt of the innermost source that is not part of the server. Source lines come
 * from `addr2line` of binutils, which compilers need anyway, or `llvm-addr2line`; without either, only
 * functions are named. */
void dev_symbolize_write_stack(const struct dev_error_page *p, mk_str report);
/* The first line: "SIGSEGV (Segmentation fault) at address 0x10". */
void dev_symbolize_write_cause(struct mk_buf *out, mk_str report);
/* Was the report caused by a call to exit()? */
bool dev_symbolize_is_exit_report(mk_str report);

#endif
