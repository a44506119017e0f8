/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions with PCRE2, JIT-compiled if the system allows it. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <monkey/mem.h>
#include <pcre2.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "os/regex.h"

enum {
    /* A path pattern needs a few hundred steps. PCRE2 counts steps separately for each start position, so the
     * start positions of an unanchored pattern share STEPS_SHARED. If that is not enough, as for one `.*` in
     * a long text, the search may take another SLOW_US of CPU time. */
    STEPS_MAX = 20000,
    STEPS_SHARED = 500000,
    SLOW_US = 10000,
    HEAP_MAX_KB = 4096, /* memory for interpreter frames: enough for STEPS_MAX frames of a pattern with few
                           groups */
    NAME_MAX_LEN = 32,  /* limit of PCRE2 */
};

struct pattern {
    struct mk_regex regex;
    pcre2_code *code;
    unsigned groups;
    bool anchored;
};

static const struct pattern *pattern_of(const struct mk_regex *r)
{
    return (const struct pattern *)(const void *)r; /* first member of struct pattern */
}

static void *pcre2_alloc_memory(PCRE2_SIZE size, void *data)
{
    (void)data;
    return mk_mem_alloc(size);
}

static void pcre2_free_memory(void *p, void *data)
{
    (void)data;
    mk_mem_free(p);
}

static void free_pattern(struct mk_regex *r)
{
    struct pattern *p = (struct pattern *)(void *)r;
    pcre2_code_free(p->code);
    mk_mem_free(p);
}

static unsigned count_groups(const struct mk_regex *r)
{
    return pattern_of(r)->groups;
}

static unsigned find_group_number(const struct mk_regex *r, mk_str name)
{
    char buf[NAME_MAX_LEN + 1];
    if (!name.len || name.len > NAME_MAX_LEN)
        return 0;
    memcpy(buf, name.p, name.len);
    buf[name.len] = '\0';
    int n = pcre2_substring_number_from_name(pattern_of(r)->code, (PCRE2_SPTR)buf);
    return n > 0 ? (unsigned)n : 0;
}

/* ---- Matching ---- */

/* Match state: one per worker for all patterns, so that requests do not allocate. */
struct match_context {
    pcre2_match_data *data;
    pcre2_match_context *limits;
};

static _Thread_local struct match_context thread_context;

/* Frees the state at the end of a thread: an embedding program may start and end many threads. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_exit_of_thread;
static bool has_key;

static void free_match_context(void *p)
{
    struct match_context *match_context = p;
    pcre2_match_data_free(match_context->data);
    pcre2_match_context_free(match_context->limits);
    *match_context = (struct match_context){0};
}

static void create_thread_key(void)
{
    has_key = pthread_key_create(&at_exit_of_thread, free_match_context) == 0;
}

static struct match_context *thread_match_context(void)
{
    if (thread_context.data)
        return &thread_context;
    pthread_once(&once, create_thread_key);
    pcre2_general_context *memory = pcre2_general_context_create(pcre2_alloc_memory, pcre2_free_memory, NULL);
    thread_context.limits = memory ? pcre2_match_context_create(memory) : NULL;
    thread_context.data =
        thread_context.limits ? pcre2_match_data_create(MK_REGEX_CAPTURES_MAX, memory) : NULL;
    pcre2_general_context_free(memory); /* the other contexts have copied it */
    if (!thread_context.data) {
        pcre2_match_context_free(thread_context.limits);
        return NULL;
    }
    if (has_key)
        (void)pthread_setspecific(at_exit_of_thread, &thread_context);
    pcre2_set_depth_limit(thread_context.limits, STEPS_MAX);
    pcre2_set_heap_limit(thread_context.limits, HEAP_MAX_KB);
    return &thread_context;
}

static uint32_t match_limit_for(const struct pattern *p, size_t len)
{
    size_t share = p->anchored ? STEPS_MAX : STEPS_SHARED / (len + 1);
    return share < STEPS_MAX ? (uint32_t)share : STEPS_MAX;
}

/* Returns the CPU time of the thread, which base/clock.h does not provide. */
static int64_t cpu_time_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Deadline of a search, in CPU time, so that a search does not fail on a busy machine. Reading the CPU time
 * is a system call, so the CPU time is read only when the wall clock has passed `us`. */
struct deadline {
    int64_t cpu_us, us;
};

static struct deadline set_deadline(void)
{
    return (struct deadline){.cpu_us = cpu_time_us() + SLOW_US, .us = (int64_t)mk_clock_us() + SLOW_US};
}

static bool deadline_has_passed(struct deadline *d)
{
    int64_t now = (int64_t)mk_clock_us();
    if (now <= d->us)
        return false;
    int64_t left = d->cpu_us - cpu_time_us();
    d->us = now + left;
    return left < 0;
}

/* Matches with the full step limit for each start position, until the deadline. */
static int match_with_deadline(const struct pattern *p, mk_str text,
                               const struct match_context *match_context)
{
    struct deadline end = set_deadline();
    int n = PCRE2_ERROR_NOMATCH;
    pcre2_set_match_limit(match_context->limits, STEPS_MAX);
    for (size_t at = 0; at <= text.len && n == PCRE2_ERROR_NOMATCH; at++) {
        if (deadline_has_passed(&end))
            return PCRE2_ERROR_MATCHLIMIT;
        n = pcre2_match(p->code, (PCRE2_SPTR)text.p, text.len, at, PCRE2_ANCHORED, match_context->data,
                        match_context->limits);
    }
    return n;
}

/* Copies the first n captures; the capture of a group that did not participate in the match is empty. */
static void copy_captures(pcre2_match_data *data, unsigned n, mk_str text, struct mk_regex_captures *out)
{
    const PCRE2_SIZE *pairs = pcre2_get_ovector_pointer(data);
    for (unsigned i = 0; i < MK_REGEX_CAPTURES_MAX; i++) {
        bool took_part = i < n && pairs[2 * i] != PCRE2_UNSET && pairs[2 * i] <= pairs[2 * i + 1];
        out->at[i] =
            took_part ? mk_str_of(text.p + pairs[2 * i], pairs[2 * i + 1] - pairs[2 * i]) : MK_STR("");
    }
}

static enum mk_regex_result match_regex(const struct mk_regex *r, mk_str text, struct mk_regex_captures *out)
{
    const struct pattern *p = pattern_of(r);
    const struct match_context *match_context = thread_match_context();
    if (!match_context)
        return MK_REGEX_LIMIT;
    if (!text.p)
        text = MK_STR("");
    pcre2_set_match_limit(match_context->limits, match_limit_for(p, text.len));
    int n =
        pcre2_match(p->code, (PCRE2_SPTR)text.p, text.len, 0, 0, match_context->data, match_context->limits);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter does not use the JIT stack */
        n = pcre2_match(p->code, (PCRE2_SPTR)text.p, text.len, 0, PCRE2_NO_JIT, match_context->data,
                        match_context->limits);
    if (n == PCRE2_ERROR_MATCHLIMIT && !p->anchored)
        n = match_with_deadline(p, text, match_context);
    if (n < 0)
        return n == PCRE2_ERROR_NOMATCH ? MK_REGEX_NO_MATCH : MK_REGEX_LIMIT;
    if (out)
        copy_captures(match_context->data, n ? (unsigned)n : MK_REGEX_CAPTURES_MAX, text,
                      out); /* n is 0 if there are more groups than pairs */
    return MK_REGEX_MATCH;
}

static const struct mk_regex_ops ops = {
    .free = free_pattern, .groups = count_groups, .group = find_group_number, .match = match_regex};

/* ---- Compiling ---- */

static void fill_compile_error(int number, PCRE2_SIZE at, mk_str pattern, struct mk_regex_error *error)
{
    error->code = number == PCRE2_ERROR_HEAP_FAILED ? -ENOMEM : -EINVAL;
    error->offset = at < pattern.len ? at : pattern.len;
    if (pcre2_get_error_message(number, (PCRE2_UCHAR *)error->text, sizeof error->text) < 0)
        error->text[0] = '\0';
}

/* Paths are bytes: patterns must not enable UTF-8, since a client's path may be invalid. */
static pcre2_code *compile_code(mk_str pattern, bool nocase, pcre2_general_context *memory,
                                struct mk_regex_error *error)
{
    uint32_t options = PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_DOTALL;
    pcre2_compile_context *context = pcre2_compile_context_create(memory);
    int number = 0;
    PCRE2_SIZE at = 0;
    if (!context)
        return NULL;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern.p, pattern.len,
                                     options | (nocase ? PCRE2_CASELESS : 0), &number, &at, context);
    pcre2_compile_context_free(context);
    if (!code)
        fill_compile_error(number, at, pattern, error);
    return code;
}

static void jit_compile_pattern(struct pattern *p)
{
    uint32_t n = 0, all = 0;
    pcre2_pattern_info(p->code, PCRE2_INFO_CAPTURECOUNT, &n);
    pcre2_pattern_info(p->code, PCRE2_INFO_ALLOPTIONS, &all);
    p->regex.ops = &ops;
    p->groups = n;
    p->anchored = all & PCRE2_ANCHORED;
    (void)pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* otherwise the interpreter is used */
}

extern mk_regex_compile mk_regex_pcre2_compile;

struct mk_regex *mk_regex_pcre2_compile(mk_str pattern, bool nocase, struct mk_regex_error *error)
{
    *error = (struct mk_regex_error){.code = -ENOMEM, .text = "out of memory"};
    pcre2_general_context *memory = pcre2_general_context_create(pcre2_alloc_memory, pcre2_free_memory, NULL);
    struct pattern *p = memory ? mk_mem_zalloc(1, sizeof *p) : NULL;
    if (p)
        p->code = compile_code(pattern.p ? pattern : MK_STR(""), nocase, memory, error);
    pcre2_general_context_free(memory);
    if (p && p->code) {
        jit_compile_pattern(p);
        return &p->regex;
    }
    mk_mem_free(p);
    return NULL;
}
