/* SPDX-License-Identifier: Apache-2.0 */
/* Filters before the content of a response: each is a source that pulls from the previous content. */
#ifndef MK_WEB_FILTER_H
#define MK_WEB_FILTER_H

#include <monkey/filter.h>

#include "web/content.h"

/* What all filters pull from in the end. */
struct mk_content *mk_filter_origin(struct mk_content *c);

#endif
