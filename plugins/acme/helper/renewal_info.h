/* SPDX-License-Identifier: Apache-2.0 */
/* Parses what a directory and a response say about renewal times (RFC 9773) and profiles. Depends on nothing but
 * the JSON library, so that it can be fuzzed. */
#ifndef ACME_RENEWAL_INFO_H
#define ACME_RENEWAL_INFO_H

#include <jansson.h>
#include <monkey/buf.h>

/* The period in which the authority suggests to renew a certificate, in seconds since 1970. */
struct acme_renewal_window {
    int64_t start, end;
    const char *explanation; /* a URL for people; NULL: none */
};

/* Parses a date of RFC 3339, such as 2026-01-02T04:00:00.5Z. */
bool acme_rfc3339_parse(mk_str text, int64_t *seconds);
/* Parses the response for a certificate (section 4.2). Returns false if it has no valid window. */
bool acme_renewal_window_parse(const json_t *response, struct acme_renewal_window *window);

/* Returns whether the directory offers the profile. If not, appends the offered profiles to *offered. */
bool acme_profile_is_offered(const json_t *directory, const char *profile, struct mk_buf *offered);

#endif
