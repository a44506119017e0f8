/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of networks that find those of a peer by binary search. Networks nest or are apart, never overlap in part: so the last one
 * in order that begins at or before an address, and those around it, are all that can have it. */
#ifndef MK_OS_NETWORK_SET_H
#define MK_OS_NETWORK_SET_H

#include <monkey/addr.h>

/* The memory that a set of `n` networks needs. */
size_t mk_network_set_size(size_t n);
/* Makes the set in that memory, which is aligned for any object. `numbers` NULL: the number of each network is its index. */
struct mk_network_set *mk_network_set_build(void *memory, const struct mk_network *v, const uint32_t *numbers,
                                            size_t n);

#endif
