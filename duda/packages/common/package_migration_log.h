/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that the migrations of a database take long: they have no time limit. */
#ifndef DUDA_PACKAGES_COMMON_PACKAGE_MIGRATION_LOG_H
#define DUDA_PACKAGES_COMMON_PACKAGE_MIGRATION_LOG_H

#include <duda/sql_backend.h>
#include <monkey/timer.h>
#include <monkey/worker.h>

/* What a worker does with the migrations of a database. */
struct package_migration_state {
    const struct duda_sql_migration *running; /* NULL: it waits for another worker or program */
    uint64_t since_ms;                        /* 0: it neither migrates nor waits */
};

struct package_migration_log {
    struct mk_timer timer;
    struct mk_worker *worker;
    const char *section;  /* "SQLITE" */
    mk_str name, service; /* of the section; MigrationsOf */
    uint32_t first_ms;    /* time until the first message; each later interval is twice as long */
    struct package_migration_state (*get_state)(void *ctx);
    void *ctx;
};

/* The caller has set the members from `worker` on. `timeout_ms`: of a statement. */
void package_migration_log_init(struct package_migration_log *log, uint32_t timeout_ms);
/* Call it whenever migrations may begin. Does nothing if the timer already runs. */
void package_migration_log_start(struct package_migration_log *log);
void package_migration_log_stop(struct package_migration_log *log);

#endif
