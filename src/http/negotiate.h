/* SPDX-License-Identifier: Apache-2.0 */
/* Content negotiation (RFC 9110, section 12.5). */
#ifndef MK_HTTP_NEGOTIATE_H
#define MK_HTTP_NEGOTIATE_H

#include "http/header.h"

/* Returns the quality of a content coding in thousandths, from 0 (not acceptable) to 1000 (best). `id` is
 * MK_HEADER_ACCEPT_ENCODING or another header with the same syntax.
 *
 * - The first element that names the coding decides. "x-gzip" matches gzip as well.
 * - Otherwise `*` decides.
 * - Otherwise "identity" has quality 1, the lowest acceptable quality, and every other coding has 0.
 * - Without the header, "identity" has quality 1000 and every other coding 0: the RFC would allow any coding,
 *   but a client that does not send Accept-Encoding often cannot decode any.
 * - An element with a malformed weight has quality 0. */
unsigned mk_negotiate_coding_q(const struct mk_headers *fields, enum mk_header_id id, mk_str coding);

/* Returns the quality of a media type ("text/html", or with parameters) in thousandths, from Accept (RFC
 * 9110, section 12.5.1).
 *
 * - The most specific matching range decides: a range with parameters, all of which the type must have,
 *   before TYPE/SUBTYPE, before TYPE/star, before star/star. Of equally specific ranges, the first decides.
 * - A type without a matching range has quality 0. Without the header, or with an empty one, every type has
 *   quality 1000.
 * - A range with a malformed weight has quality 0; an invalid range is skipped. */
unsigned mk_negotiate_type_q(const struct mk_headers *fields, mk_str type);

#endif
