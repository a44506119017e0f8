/* SPDX-License-Identifier: Apache-2.0 */
/* Parses rates in configuration syntax, and converts them to the table's time unit. */
#ifndef LIMITS_RATE_H
#define LIMITS_RATE_H

#include <monkey/str.h>

/* Parses a rate such as "10/s" to the interval between requests and the burst tolerance. */
bool limits_rate_parse_requests(mk_str text, uint64_t *interval, uint64_t *tolerance);
/* Parses a bandwidth such as "500K", from 1K to 1T. */
bool limits_rate_parse_bandwidth(mk_str text, uint64_t *rate);
/* Parses a size such as "1M", up to 1T. */
bool limits_rate_parse_size(mk_str text, uint64_t *bytes);

/* Returns the transfer time of that many bytes in ticks, at least one. */
uint64_t limits_rate_ticks_for_bytes(uint64_t bytes, uint64_t rate);

#endif
