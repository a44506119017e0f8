/* SPDX-License-Identifier: Apache-2.0 */
/* The components of services that are not ready. */
#ifndef DUDA_SERVICE_READINESS_H
#define DUDA_SERVICE_READINESS_H

struct duda_component;

void duda_readiness_free(struct duda_component *c);

#endif
