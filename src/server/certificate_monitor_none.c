/* SPDX-License-Identifier: Apache-2.0 */
/* A server without MK_CERTIFICATES: there is no list. */
#include "server/certificate_monitor.h"

void mk_certificate_monitor_init(struct mk_certificate_monitor *m, struct mk_loop *loop, struct mk_log *log)
{
    (void)m, (void)loop, (void)log;
}

void mk_certificate_monitor_set_config(struct mk_certificate_monitor *m, struct mk_config_generation *g)
{
    (void)m, (void)g;
}

void mk_certificate_monitor_reap(struct mk_certificate_monitor *m, pid_t pid)
{
    (void)m, (void)pid;
}

void mk_certificate_monitor_stop(struct mk_certificate_monitor *m)
{
    (void)m;
}
