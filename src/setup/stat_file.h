/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics in a memory file: the internal part of its API (monkey/stats.h). */
#ifndef MK_SETUP_STAT_FILE_H
#define MK_SETUP_STAT_FILE_H

#include <monkey/stats.h>

#include "base/compiler.h"

/* Clears a file, which may contain the statistics of a server that has crashed. Returns false if the
 * descriptor is no such file. */
bool mk_stat_file_clear(int fd) MK_MUST_USE;

#endif
