/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes of conditions: they skip no list that may match. The input is lists of conditions, one a line, an empty line,
 * and the values of the headers A, B and Cookie of a request, one a line. */
#include "unit/condition_rules.h"
#include "unit/site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 2048, VALUES = 3 };

static void check_request(const struct condition_rules *rules, const struct mk_condition_index *index,
                          mk_str text)
{
    static struct site site;
    char values[VALUES][TEXT_MAX];
    site_init(&site);
    for (unsigned i = 0; i < VALUES; i++) {
        mk_str value = mk_str_cut(&text, '\n');
        snprintf(values[i], TEXT_MAX, "%.*s", MK_STR_ARG(value));
    }
    struct mk_exchange *x = site_get(&site, "/a/b.txt?x=1&y=%61+b&x=2", "A: a\r\nB: b\r\nCookie: c=d\r\n");
    MK_ASSERT(x);
    for (unsigned i = 0; i < VALUES; i++) /* which may be anything; the first one is Host */
        x->request.fields.at[1 + i].value = mk_str_from_c(values[i]);
    for (unsigned i = 0; i < 2; i++) /* the second result may be a remembered one */
        (void)condition_rules_check(rules, index, &x->request, mk_request_path(&x->request));
    mk_exchange_free(x);
    mk_mem_free(site.web.conditions);
    site_fini(&site);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_arena arena;
    struct condition_rules rules = {.n = 0};
    mk_str rest = mk_str_of(size ? (const char *)data : "", size), line;
    mk_arena_init(&arena, NULL);
    mk_conf_report_init(&rules.report, &arena);
    while ((line = mk_str_cut(&rest, '\n')).len && rules.n < CONDITION_RULES_MAX)
        if (!strstr(mk_arena_copy(&arena, line).p, "file:")) /* the input must not name files */
            condition_rules_add(&rules, &arena, line);
    struct mk_condition_index *index = mk_condition_index_build(&arena, rules.lists, rules.n);
    MK_ASSERT(index);
    check_request(&rules, index, rest);
    mk_arena_fini(&arena);
    return 0;
}
