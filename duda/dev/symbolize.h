/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the addresses in a crash report (crash.h) to functions and source lines. */
#ifndef DUDA_DEV_SYMBOLIZE_H
#define DUDA_DEV_SYMBOLIZE_H

#include "error_page.h"

/* A frame in a report. */
struct dev_frame {
    mk_str object, symbol; /* object: its file; symbol: its function, if known */
    unsigned long long offset;
    bool is_first; /* frame of the crash: `offset` is the instruction itself, not a return address */
};
/* Returns false if the line is not a frame. */
bool dev_symbolize_parse_frame(mk_str line, struct dev_frame *f);
/* Parses "FILE:LINE" as addr2line prints it, possibly followed by " (discriminator 2)". Returns false if the
 * location is unknown. */
bool dev_symbolize_parse_location(mk_str text, mk_str *path, uint64_t *row);
/* Writes the stack, with an excerpt of the innermost source that is not part of the server. Source lines come
 * from `addr2line` of binutils, which compilers need anyway, or `llvm-addr2line`; without these programs, the
 * stack only names functions. */
void dev_symbolize_write_stack(const struct dev_error_page *p, mk_str report);
/* Writes the first line of the report, such as "SIGSEGV (Segmentation fault) at address 0x10". */
void dev_symbolize_write_cause(struct mk_buf *out, mk_str report);
/* Returns what ran when the process crashed, such as "the handler of GET /"; absent if no handler did. */
mk_str dev_symbolize_find_running(mk_str report);
/* Returns whether a call to exit() has caused the report. */
bool dev_symbolize_is_exit_report(mk_str report);

#endif
