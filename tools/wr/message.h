/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and the progress line on standard error. */
#ifndef WR_MESSAGE_H
#define WR_MESSAGE_H

#include "base/compiler.h"

/* Prints "wr: ..." on its own line. */
void wr_message(const char *fmt, ...) MK_PRINTF(1, 2);
/* Like wr_message(), but always returns false: `return wr_message_error(...)`. */
bool wr_message_error(const char *fmt, ...) MK_PRINTF(1, 2);

/* Replaces the previous progress line. Prints only to a terminal, and not if `quiet`. */
void wr_message_init(bool quiet);
void wr_message_progress(const char *fmt, ...) MK_PRINTF(1, 2);
void wr_message_progress_end(void);

/* Replaces control characters with question marks; keeps newlines and tabs. */
void wr_message_sanitize(char *text);

#endif
