/* SPDX-License-Identifier: Apache-2.0 */
/* Services that are built with the address sanitizer: its library must be the first one in the process, whose program is built
 * without it. */
#ifndef DUDA_DEV_SANITIZER_H
#define DUDA_DEV_SANITIZER_H

#include "argv.h"
#include "source.h"

/* The library that the flags of a source ask for; empty: none. The compiler knows where it is. */
void dev_sanitizer_find_library(const struct dev_source *source, char library[PATH_MAX]);
/* The beginning of a command that loads the library first. Empty: nothing. */
void dev_sanitizer_add_preload(struct dev_argv *w, const char *library);

#endif
