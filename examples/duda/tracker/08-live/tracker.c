/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

DUDA_SERVICE(tracker, DUDA_AFTER(announce), DUDA_GROUP("/api", api, "The API.", .rate = "1000/hour"),
             DUDA_BEFORE(duda_csrf_check), DUDA_GROUP("", users, "Users and sessions."),
             DUDA_GROUP("", issues, "The issues."), DUDA_GROUP("", live, "Live updates."),
             DUDA_BEFORE(duda_auth_session, .data = &require_login, .security = "session"),
             DUDA_GROUP("", changes, "Changes by users."), DUDA_GROUP("", files, "Attachments."),
             DUDA_GROUP("", tokens, "Tokens."));
