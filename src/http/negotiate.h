/* SPDX-License-Identifier: Apache-2.0 */
/* What a client accepts (RFC 9110, section 12.5). */
#ifndef MK_HTTP_NEGOTIATE_H
#define MK_HTTP_NEGOTIATE_H

#include "http/header.h"

/* How welcome a content coding is, in thousandths: 1000 most, 0 not at all. `id` is MK_HEADER_ACCEPT_ENCODING
 * or another field of the same syntax.
 *
 * - An element that names the coding decides; the first one, if there are more. "x-gzip" names gzip as well.
 * - Otherwise `*` decides.
 * - Otherwise "identity" is 1, the least welcome of all that are acceptable, and every other coding 0.
 * - Without the field "identity" is 1000 and every other coding 0: the RFC would allow any, but a client that
 *   asks for nothing is often unable to decode.
 * - An element whose weight is malformed weighs 0. */
unsigned mk_negotiate_coding_q(const struct mk_headers *fields, enum mk_header_id id, mk_str coding);

/* How welcome a media type ("text/html", or with parameters) is, in thousandths, after Accept (RFC 9110,
 * section 12.5.1).
 *
 * - The most specific range that has the type decides: one with parameters, all of which the type must have
 *   too, before TYPE/SUBTYPE, before TYPE/star, before star/star; the first one, if there are more.
 * - What no range has is 0. Without the field, or with an empty one, everything is 1000.
 * - A range whose weight is malformed weighs 0; one that is no range at all is passed over. */
unsigned mk_negotiate_type_q(const struct mk_headers *fields, mk_str type);

#endif
