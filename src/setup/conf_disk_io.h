/* SPDX-License-Identifier: Apache-2.0 */
/* Supplies the configuration reader with files and environment variables. */
#ifndef MK_SETUP_CONF_DISK_IO_H
#define MK_SETUP_CONF_DISK_IO_H

#include "conf/read.h"

extern const struct mk_conf_io mk_conf_disk_io;

#endif
