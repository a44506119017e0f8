/* SPDX-License-Identifier: Apache-2.0 */
/* A server without TLS has neither `monkey --https` nor `monkey ca`. */
#include "server/https.h"

#include "server/master.h"

bool mk_https_init(struct mk_https *h, const struct mk_arguments *a)
{
    (void)h, (void)a;
    return false;
}

void mk_https_fini(struct mk_https *h)
{
    (void)h;
}

void mk_https_write_config(const struct mk_https *h, struct mk_buf *out)
{
    (void)h, (void)out;
}

void mk_https_write_notice(const struct mk_https *h, struct mk_buf *out)
{
    (void)h, (void)out;
}

void mk_https_renew(struct mk_https *h, struct mk_log *log)
{
    (void)h, (void)log;
}

int mk_https_show_ca(void)
{
    return MK_EXIT_USAGE;
}
