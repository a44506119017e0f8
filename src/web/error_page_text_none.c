/* SPDX-License-Identifier: Apache-2.0 */
/* Short error pages (MK_STYLES=OFF). */
#include "web/error_page_text.h"

#include <monkey/http.h>

const char mk_error_page_style[] = "body{font-family:sans-serif;text-align:center}";
const char mk_error_page_picture[] = "";

const char *mk_error_page_explanation(unsigned status)
{
    return status < 400   ? "The server responded with this status and no further explanation."
           : status < 500 ? "The server cannot respond to this request."
                          : "The server failed to respond to this request.";
}

mk_str mk_status_detail(unsigned status)
{
    return mk_str_from_c(mk_error_page_explanation(status));
}
