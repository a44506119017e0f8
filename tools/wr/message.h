/* SPDX-License-Identifier: Apache-2.0 */
/* What wr tells people on standard error: messages, and a line that shows how far it is. */
#ifndef WR_MESSAGE_H
#define WR_MESSAGE_H

#include "base/compiler.h"

/* "wr: ...", on a line of its own. */
void wr_message(const char *fmt, ...) MK_PRINTF(1, 2);
/* The same; always false, for callers that give up. */
bool wr_message_error(const char *fmt, ...) MK_PRINTF(1, 2);

/* The line that shows progress takes the place of the one before it. Only on a terminal, unless `quiet`. */
void wr_message_init(bool quiet);
void wr_message_progress(const char *fmt, ...) MK_PRINTF(1, 2);
void wr_message_progress_end(void);

/* Makes what would do something to a terminal into question marks; lines stay. */
void wr_message_sanitize(char *text);

#endif
