/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that all processes of a server share, by name. */
#ifndef MK_SERVER_SHARED_H
#define MK_SERVER_SHARED_H

#include "base/str.h"

enum { MK_SHARED_NAME = 63 };

struct mk_shared_region;

struct mk_shared {
    struct mk_shared_region *first;
};

/* Memory of zeroes, or, for a name and size that were asked for before, that one. In the master: who is
 * forked later has it, too. NULL: no memory, or the name is too long. */
void *mk_shared_take(struct mk_shared *s, mk_str name, size_t size) MK_MUST_USE;
void mk_shared_fini(struct mk_shared *s);

#endif
