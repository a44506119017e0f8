/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

DUDA_SERVICE(tracker, DUDA_BEFORE(duda_csrf_check), DUDA_GROUP("", users, "Users and sessions."),
             DUDA_GROUP("", issues, "The issues."));
