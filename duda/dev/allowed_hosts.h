/* SPDX-License-Identifier: Apache-2.0 */
/* The host names that `monkey run` accepts. A page of another site can resolve its own name to this machine
 * and then read the responses of the service (DNS rebinding). Only IP addresses and the names of this machine
 * are therefore accepted. */
#ifndef DUDA_DEV_ALLOWED_HOSTS_H
#define DUDA_DEV_ALLOWED_HOSTS_H

#include <monkey/str.h>
#include <stdbool.h>

/* `host`: the host of a request, without port; absent: no browser sent the request. `more`: further names,
 * separated by commas or spaces. */
bool dev_allowed_hosts_contain(mk_str host, mk_str more);

#endif
