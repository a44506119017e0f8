/* SPDX-License-Identifier: Apache-2.0 */
/* What services have asked of stores, databases and other servers. */
#ifndef CHEETAH_PACKAGES_H
#define CHEETAH_PACKAGES_H

#include "session.h"

/* The command. */
void cheetah_packages(struct cheetah_session *s, mk_str args, bool json);

#endif
