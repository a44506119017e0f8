/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions by PCRE2, compiled to machine code where that is possible. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "regex.h"

#include <pcre2.h>

enum {
    /* A pattern for paths needs some hundred steps. These stop one that goes astray within a millisecond,
     * unless it begins at every byte of a long path. */
    STEPS_MAX = 20000,
    HEAP_MAX_KB = 1024,
    NAME_MAX_LEN = 32, /* of PCRE2 */
};

struct regex {
    pcre2_code *code;
    pcre2_match_context *limits;
    unsigned groups;
};

static void *take(PCRE2_SIZE size, void *data)
{
    (void)data;
    return mk_mem_alloc(size);
}

static void give_back(void *p, void *data)
{
    (void)data;
    mk_mem_free(p);
}

void rewrite_regex_free(void *regex)
{
    struct regex *r = regex;
    if (!r)
        return;
    pcre2_code_free(r->code);
    pcre2_match_context_free(r->limits);
    mk_mem_free(r);
}

/* Paths are bytes: no pattern may say that they are UTF-8, which a client need not obey. */
static pcre2_code *compile(mk_str pattern, bool nocase, pcre2_general_context *memory,
                           struct regex_error *why)
{
    uint32_t options = PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_DOTALL;
    pcre2_compile_context *context = pcre2_compile_context_create(memory);
    int number = PCRE2_ERROR_NOMEMORY;
    PCRE2_SIZE at = 0;
    pcre2_code *code = NULL;
    if (context)
        code = pcre2_compile((PCRE2_SPTR)pattern.p, pattern.len, options | (nocase ? PCRE2_CASELESS : 0),
                             &number, &at, context);
    pcre2_compile_context_free(context);
    if (!code) {
        why->at = at < pattern.len ? at : pattern.len;
        if (pcre2_get_error_message(number, (PCRE2_UCHAR *)why->text, sizeof why->text) < 0)
            why->text[0] = '\0';
    }
    return code;
}

struct regex *rewrite_regex_new(mk_str pattern, bool nocase, struct regex_error *why)
{
    *why = (struct regex_error){.text = "memory is out"};
    pcre2_general_context *memory = pcre2_general_context_create(take, give_back, NULL);
    struct regex *r = mk_mem_zalloc(1, sizeof *r);
    if (r && memory && (r->code = compile(pattern, nocase, memory, why)))
        r->limits = pcre2_match_context_create(memory);
    pcre2_general_context_free(memory);
    if (!r || !r->limits) {
        rewrite_regex_free(r);
        return NULL;
    }
    uint32_t groups = 0;
    pcre2_pattern_info(r->code, PCRE2_INFO_CAPTURECOUNT, &groups);
    r->groups = groups;
    pcre2_set_match_limit(r->limits, STEPS_MAX);
    pcre2_set_depth_limit(r->limits, STEPS_MAX);
    pcre2_set_heap_limit(r->limits, HEAP_MAX_KB);
    (void)pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE); /* without it, the interpreter does the same */
    return r;
}

unsigned rewrite_regex_groups(const struct regex *r)
{
    return r->groups;
}

unsigned rewrite_regex_group(const struct regex *r, mk_str name)
{
    char room[NAME_MAX_LEN + 1];
    if (name.len > NAME_MAX_LEN)
        return 0;
    memcpy(room, name.p, name.len);
    room[name.len] = '\0';
    int n = pcre2_substring_number_from_name(r->code, (PCRE2_SPTR)room);
    return n > 0 ? (unsigned)n : 0;
}

static void copy_captures(const pcre2_match_data *found, mk_str text, struct captures *out)
{
    const PCRE2_SIZE *pairs = pcre2_get_ovector_pointer((pcre2_match_data *)(uintptr_t)found);
    unsigned n = pcre2_get_ovector_count((pcre2_match_data *)(uintptr_t)found);
    for (unsigned i = 0; i < CAPTURES_MAX; i++) {
        bool took_part = i < n && pairs[2 * i] != PCRE2_UNSET && pairs[2 * i] <= pairs[2 * i + 1];
        out->at[i] =
            took_part ? mk_str_of(text.p + pairs[2 * i], pairs[2 * i + 1] - pairs[2 * i]) : MK_STR("");
    }
}

bool rewrite_regex_match(const struct regex *r, mk_str text, struct captures *out, const char **why)
{
    *why = "memory is out";
    pcre2_match_data *found = pcre2_match_data_create_from_pattern(r->code, NULL);
    if (!found)
        return false;
    int n = pcre2_match(r->code, (PCRE2_SPTR)text.p, text.len, 0, 0, found, r->limits);
    *why = n >= 0 || n == PCRE2_ERROR_NOMATCH ? NULL : "it took too many steps, or too much memory";
    if (n >= 0)
        copy_captures(found, text, out);
    pcre2_match_data_free(found);
    return n >= 0;
}
