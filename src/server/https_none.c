/* SPDX-License-Identifier: Apache-2.0 */
/* A server without TLS: `monkey --https` and `monkey ca` fail. */
#include "server/https.h"

#include <stdio.h>

#include "event/tls.h"
#include "server/master.h"

static void print_reason(void)
{
    const char *error = "";
    (void)mk_tls_load(&error);
    fprintf(stderr, "monkey: %s\n", error);
}

bool mk_https_init(struct mk_https *h, const struct mk_arguments *a)
{
    (void)h, (void)a;
    print_reason();
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
    print_reason();
    return MK_EXIT_FAILED;
}
