/* SPDX-License-Identifier: Apache-2.0 */
/* Network sets with binary search. Networks are nested or disjoint, never partially overlapping: only the
 * last network in order that begins at or before an address, and the networks that enclose it, can therefore
 * contain the address. */
#ifndef MK_OS_NETWORK_SET_H
#define MK_OS_NETWORK_SET_H

#include <monkey/addr.h>

/* Returns the memory size of a set of `n` networks. */
size_t mk_network_set_size(size_t n);
/* Builds the set in that memory, aligned for any object. numbers[i] is the number that mk_network_set_next()
 * returns for v[i]; if `numbers` is NULL, that number is i. */
struct mk_network_set *mk_network_set_build(void *memory, const struct mk_network *v, const uint32_t *numbers,
                                            size_t n);

#endif
