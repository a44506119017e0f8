/* SPDX-License-Identifier: Apache-2.0 */
/* The list of certificates in shared memory, which a process of the master writes and workers read: see
 * mk_config_certificate_list(). */
#ifndef MK_SETUP_CERTIFICATE_LIST_H
#define MK_SETUP_CERTIFICATE_LIST_H

#include "base/buf.h"
#include "monkey/tls.h"

enum { MK_CERTIFICATE_LIST_MAX = 4 << 20 }; /* unused memory is not allocated */

/* Returns an empty buffer of that size for the next list. Only one process at a time may call this; it may die at any
 * instruction. */
struct mk_buf mk_certificate_list_begin(struct mk_certificate_list *list);
/* Replaces the list by the contents of that buffer. */
void mk_certificate_list_publish(struct mk_certificate_list *list, size_t len);

#endif
