/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities of a process, as sets of bits. */
#ifndef MK_OS_CAPABILITIES_H
#define MK_OS_CAPABILITIES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* Returns what a worker that runs as root keeps: access to files of all users, and optionally ports below 1024. */
uint64_t mk_capabilities_of_root_worker(bool binds_ports);
/* Removes all other capabilities from the bounding set, which limits what programs can gain, and from the ambient
 * set. Without CAP_SETPCAP, the bounding set stays: then only no_new_privs limits programs. */
void mk_capabilities_limit_gain(uint64_t keep);
/* The same for all sets; the inheritable set becomes empty. */
mk_err mk_capabilities_limit(uint64_t keep) MK_MUST_USE;
/* Appends names, separated by spaces. */
void mk_capabilities_print(uint64_t set, struct mk_buf *out);

#endif
