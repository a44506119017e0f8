/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON. The whole interface is public: monkey/json.h. */
#ifndef MK_BASE_JSON_H
#define MK_BASE_JSON_H

#include <monkey/json.h>

#endif
