/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <string.h>

const char *mk_err_text(mk_err e)
{
    const char *text = strerror(-e);
    return text ? text : "unknown error";
}
