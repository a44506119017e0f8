/* SPDX-License-Identifier: Apache-2.0 */
/* The file system as the configuration reader sees it. */
#ifndef MK_SERVER_CONFIO_H
#define MK_SERVER_CONFIO_H

#include "conf/read.h"

extern const struct mk_conf_io mk_confio;

#endif
