/* SPDX-License-Identifier: Apache-2.0 */
/* Restricts the TCP ports of a process (Landlock ABI 4, Linux 6.7). UDP and unix sockets are not affected. */
#ifndef MK_OS_PORT_RULES_H
#define MK_OS_PORT_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { MK_PORT_RULES_ABI = 4 };

enum mk_port_use { MK_PORT_CONNECT = 1, MK_PORT_BIND = 2 };

/* A rule set under construction; `fd` is -1 if it restricts nothing. */
struct mk_port_rules {
    int fd;
};

/* Is this build able to restrict ports? */
bool mk_port_rules_are_built(void);

/* Begins a rule set that denies these uses (enum mk_port_use) of all ports. 0 uses: it restricts nothing.
 * -EOPNOTSUPP: the kernel or this build cannot restrict ports. */
mk_err mk_port_rules_open(struct mk_port_rules *r, unsigned uses) MK_MUST_USE;
/* Allows a use of a port. The rule set must deny this use by default. Repeating a rule has no effect. */
mk_err mk_port_rules_allow(struct mk_port_rules *r, enum mk_port_use use, uint16_t port) MK_MUST_USE;
/* Enforces the rules for this process and its descendants. Needs no_new_privs. */
mk_err mk_port_rules_enforce(struct mk_port_rules *r) MK_MUST_USE;

#endif
