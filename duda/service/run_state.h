/* SPDX-License-Identifier: Apache-2.0 */
/* State that outlives the server under `monkey run`. `monkey run` starts a new server for each saved version
 * of a service. Sessions, values of stores and counters of rate limits stay, as they do when a production
 * server reloads its configuration. See duda_shared_memory() in duda/store_backend.h. */
#ifndef DUDA_SERVICE_RUN_STATE_H
#define DUDA_SERVICE_RUN_STATE_H

#include <stdbool.h>
#include <stddef.h>

/* Reads the first `size` bytes of the key file. Returns false without `monkey run`, or if the file is too
 * short. */
bool duda_run_state_read_key(unsigned char *key, size_t size);

#endif
