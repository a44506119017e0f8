/* SPDX-License-Identifier: Apache-2.0 */
#include "web/record.h"

static const char *const names[MK_ENDINGS] = {
    [MK_ENDING_DONE] = "done",       [MK_ENDING_REFUSED] = "refused", [MK_ENDING_GONE] = "gone",
    [MK_ENDING_TIMEOUT] = "timeout", [MK_ENDING_ABORTED] = "aborted", [MK_ENDING_SHUTDOWN] = "shutdown",
};

const char *mk_ending_name(enum mk_ending ending)
{
    return (unsigned)ending < MK_ENDINGS ? names[ending] : "";
}
