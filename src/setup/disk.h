/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the configuration reader files and environment variables. */
#ifndef MK_SETUP_DISK_H
#define MK_SETUP_DISK_H

#include "conf/read.h"

extern const struct mk_conf_io mk_disk_io;

#endif
