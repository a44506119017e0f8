/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/probe_list.h"

void mk_probe_list_remove(struct mk_probe **first, struct mk_probe *p)
{
    while (*first && *first != p)
        first = &(*first)->next;
    if (*first)
        *first = p->next;
}

void mk_probe_list_forget(struct mk_probe *first)
{
    for (struct mk_probe *p = first; p; p = p->next) {
        p->conn = NULL;
        p->server = NULL;
    }
}
