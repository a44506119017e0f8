/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey build`: an object to deploy. */
#ifndef DUDA_DEV_BUILD_H
#define DUDA_DEV_BUILD_H

#include <monkey/plugin.h>

extern const struct mk_verb dev_verb_build;

#endif
