/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey test`: compiles a service and its tests, and runs them. */
#ifndef DUDA_DEV_TESTING_H
#define DUDA_DEV_TESTING_H

#include <monkey/plugin.h>

extern const struct mk_verb dev_verb_test;

#endif
