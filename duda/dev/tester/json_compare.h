/* SPDX-License-Identifier: Apache-2.0 */
/* Compares JSON texts, and finds values in them. */
#ifndef DUDA_DEV_JSON_COMPARE_H
#define DUDA_DEV_JSON_COMPARE_H

#include "test_type.h"

/* Where two JSON texts differ. */
struct tester_json_difference {
    struct mk_buf path;   /* "$.items[1].name" */
    mk_str got, expected; /* the values there; absent: missing */
    const char *problem;  /* NULL: the values differ; otherwise one of the texts is not JSON */
};

/* Returns whether the texts have the same value, whatever the order of members, the whitespace, and the
 * notation of strings and numbers. If not, fills `difference`. */
bool tester_json_compare(mk_str got, mk_str expected, struct tester_json_difference *difference);
/* Returns the value that a JSON pointer (RFC 6901) selects: the content of a string, or JSON; absent if there
 * is none. */
mk_str tester_json_find(struct duda_test *t, mk_str json, mk_str pointer);

#endif
