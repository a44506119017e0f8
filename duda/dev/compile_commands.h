/* SPDX-License-Identifier: Apache-2.0 */
/* Writes compile_commands.json, which tells editors (clangd) the compiler options of each source. */
#ifndef DUDA_DEV_COMPILE_COMMANDS_H
#define DUDA_DEV_COMPILE_COMMANDS_H

#include "paths.h"
#include "service_files.h"

/* Writes compile_commands.json into the folder of the service, for its sources and the tests in its folder,
 * and sets `written`, which may be NULL, to its path. Returns an exit code. */
int dev_compile_commands_write(const struct dev_paths *paths, const struct dev_source *source,
                               const struct dev_service_words *words, char written[PATH_MAX]);

#endif
