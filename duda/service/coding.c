/* SPDX-License-Identifier: Apache-2.0 */
#include "service/coding.h"

int duda_coding_check(struct duda *d)
{
    mk_str list = duda_field(d, "Content-Encoding"), coding;
    while (list.p && mk_element_next(&list, &coding)) {
        if (mk_str_eq_nocase(coding, MK_STR("identity")))
            continue;
        (void)duda_set(d, "Accept-Encoding", MK_STR("identity"));
        return duda_reason(d, 415,
                           "the content has the Content-Encoding %.*s, and identity alone is accepted",
                           MK_STR_ARG(mk_str_first(coding, 32)));
    }
    return 0;
}
