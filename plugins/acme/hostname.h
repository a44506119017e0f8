/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax of host names in certificates. */
#ifndef ACME_HOSTNAME_H
#define ACME_HOSTNAME_H

#include <monkey/str.h>

/* Checks the syntax of a hostname: labels of letters, digits and hyphens, separated by dots. The last label begins with a
 * letter, which excludes IP addresses. A valid hostname is also a safe file name. */
bool acme_hostname_is_valid(mk_str name);
/* Returns whether an authority can certify the name for a stranger who requests it: valid, in lower case, with
 * several labels, and not in a domain that is reserved for local use (RFC 6762, RFC 7686, RFC 8375, RFC 9476). */
bool acme_hostname_is_public(mk_str name);

#endif
