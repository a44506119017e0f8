/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive circular doubly linked list. */
#ifndef MK_BASE_LIST_H
#define MK_BASE_LIST_H

#include "base/compiler.h"

struct mk_list {
    struct mk_list *next, *prev;
};

static inline void mk_list_init(struct mk_list *head)
{
    head->next = head->prev = head;
}

static inline bool mk_list_empty(const struct mk_list *head)
{
    return head->next == head;
}

static inline void mk_list_add_last(struct mk_list *head, struct mk_list *link)
{
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}

/* Makes the removed link a ring of one element, so that removing it twice is harmless. */
static inline void mk_list_remove(struct mk_list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    mk_list_init(link);
}

#define MK_LIST_ENTRY(link, type, member) MK_CONTAINER(link, type, member)
/* Iterates from first to last; the body may remove `at`. */
#define MK_LIST_EACH_SAFE(at, head)                                                                          \
    for (struct mk_list *at = (head)->next, *at##_next = at->next; at != (head);                             \
         at = at##_next, at##_next = at->next)

#endif
