/* SPDX-License-Identifier: Apache-2.0 */
/* Rates in configuration syntax, and the table's time unit. */
#ifndef LIMITS_RATE_H
#define LIMITS_RATE_H

#include <monkey/str.h>

/* "10/s": the interval between requests, and the burst tolerance. */
bool limits_rate_parse_requests(mk_str text, uint64_t *interval, uint64_t *tolerance);
/* "500K", from 1K to 1T. */
bool limits_rate_parse_bandwidth(mk_str text, uint64_t *rate);
/* "1M", up to 1T. */
bool limits_rate_parse_size(mk_str text, uint64_t *bytes);

/* Transfer time of that many bytes, in ticks; at least one. */
uint64_t limits_rate_ticks_for_bytes(uint64_t bytes, uint64_t rate);

#endif
