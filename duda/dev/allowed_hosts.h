/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts that `monkey run` answers for. A page of another site can lead its own name to this machine, and
 * would then read what the service says (DNS rebinding): so it answers for addresses and for names that are
 * ours. */
#ifndef DUDA_DEV_ALLOWED_HOSTS_H
#define DUDA_DEV_ALLOWED_HOSTS_H

#include <monkey/str.h>
#include <stdbool.h>

/* The host of a request, without port; absent: it has none, so that no browser sent it. `more` are further
 * names, separated by commas or spaces. */
bool dev_allowed_hosts_contain(mk_str host, mk_str more);

#endif
