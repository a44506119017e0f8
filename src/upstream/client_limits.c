/* SPDX-License-Identifier: Apache-2.0 */
/* What routes say of the limits of their exchanges. */
#include <errno.h>
#include <monkey/client.h>
#include <monkey/text.h>

enum { TRIES = 2, TRIES_MAX = 16, WAIT_MS = 60000 };

void mk_client_limits_init(struct mk_client_limits *l)
{
    *l = (struct mk_client_limits){.tries = TRIES, .response_ms = WAIT_MS, .silence_ms = WAIT_MS};
}

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

int mk_client_limits_read(const struct mk_conf_spot *spot, mk_str name, mk_str value,
                          struct mk_client_limits *l)
{
    bool is_good;
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
