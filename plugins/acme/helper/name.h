/* SPDX-License-Identifier: Apache-2.0 */
/* Names in certificates: host names, wildcards and IP addresses. */
#ifndef ACME_NAME_H
#define ACME_NAME_H

#include <monkey/str.h>

enum { ACME_NAME_SIZE = 256 };

/* Returns the size of the address, 4 or 16 bytes; 0: the name is a host name. `address` may be NULL. */
size_t acme_name_address(const char *name, unsigned char address[16]);
/* Writes the name that an authority sends as SNI to verify the name by tls-alpn-01: for an address, that of its reverse
 * lookup (RFC 8738, section 6). */
void acme_name_sni(const char *name, char *buf, size_t size);

#endif
