/* SPDX-License-Identifier: Apache-2.0 */
/* Support for services built with AddressSanitizer: its library must be the first one in the process,
 * although the program itself is built without it. */
#ifndef DUDA_DEV_SANITIZER_H
#define DUDA_DEV_SANITIZER_H

#include "argv.h"
#include "source.h"

/* The library required by the flags of a source; empty: none. The compiler knows its path. */
void dev_sanitizer_find_library(const struct dev_source *source, char library[PATH_MAX]);
/* Starts a command line that preloads the library. Does nothing if `library` is empty. */
void dev_sanitizer_add_preload(struct dev_argv *w, const char *library);

#endif
