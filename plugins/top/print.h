/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a recorded request: as JSON, or as a line for people. */
#ifndef TOP_RECORDER_PRINT_H
#define TOP_RECORDER_PRINT_H

#include <monkey/json.h>

#include "reader.h"

/* The time when the request ended; for a request in flight: when it began. In milliseconds since 1970. */
uint64_t top_entry_ended_ms(const struct top_entry *e);
const char *top_print_method(unsigned method);
void top_print_json(const struct top_entry *e, struct mk_json_writer *w);
/* Characters that a terminal would interpret are escaped. */
void top_print_line(const struct top_entry *e, struct mk_buf *out);

#endif
