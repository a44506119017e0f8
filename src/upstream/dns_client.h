/* SPDX-License-Identifier: Apache-2.0 */
/* Asks name servers over UDP, and over TCP if an answer is truncated. Blocks, so it runs in a thread. */
#ifndef MK_UPSTREAM_DNS_CLIENT_H
#define MK_UPSTREAM_DNS_CLIENT_H

#include "os/sockaddr.h"
#include "upstream/dns_message.h"

struct mk_dns_client {
    const struct mk_sockaddr *servers; /* in the order in which they are asked */
    unsigned n_servers;
    uint64_t deadline_ms; /* of all queries together: mk_clock_ms() */
    int cancel_fd;        /* readable: the queries fail with -ECANCELED */
    size_t len;           /* of the last answer */
    unsigned char message[MK_DNS_MESSAGE_MAX];
};

/* Asks for the records. Returns 0, also if there are none; -ENOENT: the name does not exist; -ETIMEDOUT,
 * -ECANCELED, or another error of the network; -EREMOTEIO: the name servers answered with an error; -EBADMSG,
 * -ELOOP: their answer is malformed; -EINVAL: the name is not a valid domain name. */
int mk_dns_client_query(struct mk_dns_client *c, mk_str name, enum mk_dns_type type,
                        struct mk_dns_answer *out);

#endif
