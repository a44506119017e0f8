/* SPDX-License-Identifier: Apache-2.0 */
/* A [KV] section as a store for duda/store.h. */
#ifndef DUDA_KV_STORE_BACKEND_H
#define DUDA_KV_STORE_BACKEND_H

#include <duda/kv.h>
#include <duda/store_backend.h>

struct duda_store duda_kv_store_backend(struct duda_kv *kv);

#endif
