/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey new`: a folder with a service to begin with. */
#ifndef DUDA_DEV_NEW_H
#define DUDA_DEV_NEW_H

#include <monkey/plugin.h>

extern const struct mk_verb dev_verb_new;

#endif
