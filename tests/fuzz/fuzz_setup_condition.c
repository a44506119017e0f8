/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions and lists in files: input that is accepted has no errors in the report, and can be evaluated for any request.
 * The input is conditions, a line break, the header fields of a request, an empty line, and the content of the list
 * that the conditions name with `file:LIST`. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "conf/table.h"
#include "unit/site.h"
#include "web/condition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ALL_SUBJECTS = ~0, TEXT_MAX = 4096 };

/* Returns the text before the separator, and moves *rest past it. */
static mk_str cut_part(mk_str *rest, mk_str separator)
{
    for (size_t i = 0; i + separator.len <= rest->len; i++) {
        if (!mk_str_starts(mk_str_skip(*rest, i), separator))
            continue;
        mk_str part = mk_str_first(*rest, i);
        *rest = mk_str_skip(*rest, i + separator.len);
        return part;
    }
    mk_str part = *rest;
    *rest = MK_STR("");
    return part;
}

static int make_list(mk_str content)
{
    int fd = memfd_create("list", MFD_CLOEXEC);
    MK_ASSERT(fd >= 0 && (content.len == 0 || write(fd, content.p, content.len) == (ssize_t)content.len));
    return fd;
}

/* Replaces LIST by the name of the file. */
static mk_str name_list(struct mk_arena *arena, mk_str text, int fd)
{
    mk_str before = cut_part(&text, MK_STR("LIST"));
    return text.len
               ? mk_arena_printf(arena, "%.*s/proc/self/fd/%d%.*s", MK_STR_ARG(before), fd, MK_STR_ARG(text))
               : mk_arena_copy(arena, before);
}

static void evaluate(const struct mk_conditions *conditions, mk_str fields)
{
    static struct site site;
    char text[TEXT_MAX];
    site_init(&site);
    snprintf(text, sizeof text, "%.*s", MK_STR_ARG(fields));
    struct mk_exchange *x =
        site_get(&site, "/a/b.txt?x=1&y=%61+b&%78=", "Cookie: a=b; c=d\r\nUser-Agent: Bot\r\n");
    MK_ASSERT(x);
    x->request.fields.at[0].value = mk_str_from_c(text); /* the value of Host, which may be anything */
    for (unsigned i = 0; i < 2; i++) {                   /* the second result may be a remembered one */
        enum mk_regex_result one = mk_conditions_match(conditions, &x->request);
        MK_ASSERT(one == mk_conditions_match(conditions, &x->request));
    }
    (void)mk_conditions_match_addr(conditions, &site.peer);
    mk_exchange_free(x);
    mk_mem_free(site.web.conditions);
    site_fini(&site);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_arena arena;
    struct mk_conf_report report;
    mk_str rest = mk_str_of(size ? (const char *)data : "", size);
    mk_arena_init(&arena, NULL);
    mk_conf_report_init(&report, &arena);
    mk_str line = cut_part(&rest, MK_STR("\n")), fields = cut_part(&rest, MK_STR("\n\n"));
    int fd = make_list(rest);
    struct mk_conf_entry entry = {
        .key = MK_STR("When"), .value = name_list(&arena, line, fd), .at = {.file = MK_STR("t"), .line = 1}};
    struct mk_conf_ctx ctx = {.arena = &arena, .report = &report, .entry = &entry};
    struct mk_conditions *conditions = mk_conditions_new(&ctx);
    MK_ASSERT(conditions);
    bool ok = mk_conditions_parse(conditions, &ctx, entry.value, (unsigned)ALL_SUBJECTS, size & 1);
    MK_ASSERT(ok == (report.n_errors == 0));
    if (ok)
        evaluate(conditions, fields);
    struct mk_buf problems = mk_buf_growing(1 << 22);
    mk_conf_report_print(&report, &problems);
    MK_ASSERT(!problems.failed);
    mk_buf_free(&problems);
    mk_arena_fini(&arena);
    close(fd);
    return 0;
}
