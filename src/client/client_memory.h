/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of an exchange: blocks of the worker where they are large enough, else of the heap. */
#ifndef MK_CLIENT_CLIENT_MEMORY_H
#define MK_CLIENT_CLIENT_MEMORY_H

#include "upstream/spare.h"

/* `*size` is how much is wanted, and then how much there is. NULL: memory is out. */
void *mk_client_memory_take(struct mk_spare *blocks, size_t *size);
/* Of that size: what was taken, or came from the heap. */
void mk_client_memory_give(struct mk_spare *blocks, void *p, size_t size);

#endif
