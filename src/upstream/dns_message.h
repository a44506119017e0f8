/* SPDX-License-Identifier: Apache-2.0 */
/* Queries and answers of the DNS (RFC 1035, RFC 2782). An answer is untrusted: every length, pointer and count in it is
 * checked, and the work is limited. */
#ifndef MK_UPSTREAM_DNS_MESSAGE_H
#define MK_UPSTREAM_DNS_MESSAGE_H

#include <monkey/str.h>

enum mk_dns_type { MK_DNS_A = 1, MK_DNS_CNAME = 5, MK_DNS_AAAA = 28, MK_DNS_SRV = 33 };

enum {
    MK_DNS_NAME_MAX = 256,        /* a name as text, with its NUL */
    MK_DNS_QUERY_MAX = 300,       /* a query */
    MK_DNS_MESSAGE_MAX = 65535,   /* a message over TCP */
    MK_DNS_RECORDS_MAX = 64 * 64, /* a message has no room for more addresses */
    MK_DNS_NXDOMAIN = 3,
};

struct mk_dns_query {
    mk_str name;
    enum mk_dns_type type;
    uint16_t id;
};

struct mk_dns_record {
    uint16_t priority, weight, port; /* of SRV */
    uint16_t at;                     /* offset of the address, or of the target of SRV, in the message */
};

struct mk_dns_answer {
    unsigned rcode;
    bool is_truncated; /* ask again over TCP */
    uint32_t ttl;      /* the lowest TTL of the records, in seconds */
    unsigned n;
    struct mk_dns_record records[MK_DNS_RECORDS_MAX];
};

/* Writes the query. Returns its length; 0: the name is not a valid domain name. */
size_t mk_dns_write_query(const struct mk_dns_query *query, unsigned char out[MK_DNS_QUERY_MAX]);
/* Parses the answer. It contains the records of the requested type for the name, or for the name at the end of its
 * aliases (CNAME). Returns 0; -EAGAIN: the message does not answer this query; -EBADMSG: it is malformed; -ELOOP:
 * there are too many aliases. */
int mk_dns_read_answer(const struct mk_dns_query *query, const unsigned char *message, size_t len,
                       struct mk_dns_answer *out);
/* Reads the name at this offset of a message, in lower case. False: it is malformed, or has bytes that no host name
 * contains. */
bool mk_dns_read_name(const unsigned char *message, size_t len, size_t at, char out[MK_DNS_NAME_MAX]);

#endif
