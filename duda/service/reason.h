/* SPDX-License-Identifier: Apache-2.0 */
/* Why a handler has failed. */
#ifndef DUDA_SERVICE_REASON_H
#define DUDA_SERVICE_REASON_H

#include "service/duda_type.h"

/* What duda_reason() has said of the result of the handler; NULL: nothing. */
const char *duda_reason_of(const struct duda *d);

#endif
