/* SPDX-License-Identifier: Apache-2.0 */
/* What routes say of their exchanges. */
#include <errno.h>
#include <monkey/text.h>
#include <monkey/upstream.h>

enum { TRIES = 2, TRIES_MAX = 16, WAIT_MS = 60000 };

static bool read_tries(const struct mk_conf_spot *spot, mk_str value, unsigned *out)
{
    uint64_t n;
    bool is_good = mk_num_parse(value, &n) && n >= 1 && n <= TRIES_MAX;
    if (is_good)
        *out = (unsigned)n;
    else
        mk_conf_spot_error(spot, value, "expected a number from 1 to %d", TRIES_MAX);
    return is_good;
}

/* 1: it was one of these; 0: another one; -EINVAL: it is wrong. */
static int read_limit(const struct mk_conf_spot *spot, mk_str word, struct mk_upstream_limits *l)
{
    bool is_good;
    mk_str value = word, name = mk_str_cut(&value, '=');
    if (!value.len)
        return 0;
    if (mk_str_eq(name, MK_STR("tries")))
        is_good = read_tries(spot, value, &l->tries);
    else if (mk_str_eq(name, MK_STR("wait")))
        is_good = mk_conf_spot_time(spot, value, &l->response_ms);
    else if (mk_str_eq(name, MK_STR("silence")))
        is_good = mk_conf_spot_time(spot, value, &l->silence_ms);
    else
        return 0;
    return is_good ? 1 : -EINVAL;
}

bool mk_upstream_limits_read(const struct mk_conf_spot *spot, mk_str words, struct mk_upstream_limits *limits,
                             bool (*read)(void *ctx, mk_str word), void *ctx)
{
    *limits = (struct mk_upstream_limits){.tries = TRIES, .response_ms = WAIT_MS, .silence_ms = WAIT_MS};
    for (;;) {
        mk_str word;
        if (!mk_conf_spot_word(spot, &words, &word))
            return false;
        if (!word.p)
            return true;
        int e = read_limit(spot, word, limits);
        if (e < 0 || (e == 0 && !read(ctx, word)))
            return false;
    }
}
