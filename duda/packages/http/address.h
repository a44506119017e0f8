/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses belong to the public Internet. */
#ifndef DUDA_HTTP_ADDRESS_H
#define DUDA_HTTP_ADDRESS_H

#include <monkey/addr.h>

/* Is it a public unicast address? Loopback, private, link-local, shared, reserved and multicast addresses are
 * not, nor are IPv6 addresses that contain an IPv4 address (NAT64, 6to4, Teredo), and known metadata services
 * of cloud providers. An IPv4-mapped IPv6 address is treated as the IPv4 address. */
bool http_address_is_public(const struct mk_addr *addr);

#endif
