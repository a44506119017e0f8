/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON: all of it is public. */
#ifndef MK_BASE_JSON_H
#define MK_BASE_JSON_H

#include <monkey/json.h>

#endif
