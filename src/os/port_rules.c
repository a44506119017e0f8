/* SPDX-License-Identifier: Apache-2.0 */
#include "os/port_rules.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/fd.h"

/* The build machine's headers may be older than ABI 4. */
enum { RULE_NET_PORT = 2, BIND_TCP = 1 << 0, CONNECT_TCP = 1 << 1 };

struct ruleset {
    uint64_t handled_access_fs, handled_access_net;
};

struct port_rule {
    uint64_t allowed_access, port;
};

bool mk_port_rules_are_built(void)
{
    return true;
}

static uint64_t rights_of(unsigned uses)
{
    return (uses & MK_PORT_CONNECT ? CONNECT_TCP : 0) | (uses & MK_PORT_BIND ? BIND_TCP : 0);
}

mk_err mk_port_rules_open(struct mk_port_rules *r, unsigned uses)
{
    const struct ruleset attr = {.handled_access_net = rights_of(uses)};
    r->fd = -1;
    if (!uses)
        return 0;
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < MK_PORT_RULES_ABI)
        return -EOPNOTSUPP;
    r->fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    /* A kernel without IPv4 has no rules for ports. */
    return r->fd >= 0 ? 0 : errno == EAFNOSUPPORT ? -EOPNOTSUPP : mk_err_last();
}

mk_err mk_port_rules_allow(struct mk_port_rules *r, enum mk_port_use use, uint16_t port)
{
    const struct port_rule rule = {.allowed_access = rights_of(use), .port = port};
    if (r->fd < 0 || syscall(SYS_landlock_add_rule, r->fd, RULE_NET_PORT, &rule, 0) == 0)
        return 0;
    return errno == EAFNOSUPPORT ? -EOPNOTSUPP : mk_err_last();
}

mk_err mk_port_rules_enforce(struct mk_port_rules *r)
{
    if (r->fd < 0)
        return 0;
    mk_err e = syscall(SYS_landlock_restrict_self, r->fd, 0) < 0 ? mk_err_last() : 0;
    mk_fd_close(&r->fd);
    return e == -E2BIG ? -EOPNOTSUPP : e; /* the process is in 16 sandboxes already */
}
