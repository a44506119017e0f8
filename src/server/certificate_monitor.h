/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the list of certificates of the active configuration, and their metrics, if a plugin shows them
 * (mk_config_certificate_list()). A process of its own reads the files: thousands of certificates must not block the
 * master. */
#ifndef MK_SERVER_CERTIFICATE_MONITOR_H
#define MK_SERVER_CERTIFICATE_MONITOR_H

#include "event/loop.h"
#include "setup/config_generation_type.h"

struct mk_certificate_monitor {
    struct mk_loop *loop;
    struct mk_log *log;
    const struct mk_config_generation *generation;
    struct mk_timer timer;
    struct mk_file_watch *folders; /* with the state of renewals, in the arena of the generation */
    pid_t pid;                     /* process that reads; 0: none */
    uint64_t read_ms;              /* loop time when it was started; 0: read now */
    unsigned table;                /* of the statistics */
};

void mk_certificate_monitor_init(struct mk_certificate_monitor *m, struct mk_loop *loop, struct mk_log *log);
/* Makes `g` the configuration whose certificates are listed. */
void mk_certificate_monitor_set_config(struct mk_certificate_monitor *m, struct mk_config_generation *g);
/* Call it when a child that is not a worker has exited. */
void mk_certificate_monitor_reap(struct mk_certificate_monitor *m, pid_t pid);
void mk_certificate_monitor_stop(struct mk_certificate_monitor *m);

#endif
