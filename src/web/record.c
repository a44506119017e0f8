/* SPDX-License-Identifier: Apache-2.0 */
#include "web/record.h"

const char *const mk_ending_names[MK_ENDINGS] = {
    [MK_ENDING_DONE] = "done",       [MK_ENDING_REFUSED] = "refused", [MK_ENDING_GONE] = "gone",
    [MK_ENDING_TIMEOUT] = "timeout", [MK_ENDING_ABORTED] = "aborted", [MK_ENDING_SHUTDOWN] = "shutdown",
};
