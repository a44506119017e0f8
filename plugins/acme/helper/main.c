/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the helper: determines which certificates are due, obtains them, and requests the time of the
 * next run. The plugin starts each run; there is no process between runs. */
#include <errno.h>
#include <unistd.h>

#include "dns.h"
#include "on_demand.h"
#include "run.h"
#include "store.h"

enum { EXIT_BUSY = 75 /* EX_TEMPFAIL: another helper uses the same state */ };

static bool renew_all(const struct acme_job *plan)
{
    struct acme_run r = acme_run_begin(plan);
    acme_dns_remove_left(plan);
    for (size_t i = 0; i < plan->n_specs; i++)
        if (acme_run_is_due(&r, &plan->specs[i]))
            (void)acme_run_obtain(&r, &plan->specs[i]);
    acme_run_end(&r);
    return true;
}

static bool do_job(const struct acme_job *plan)
{
    return !plan->on_demand.is_set ? renew_all(plan)
           : plan->on_demand.name  ? acme_on_demand_issue(plan)
                                   : acme_on_demand_look(plan);
}

int main(void)
{
    struct acme_job plan;
    struct acme_error f = {0};
    if (!acme_job_read(&plan, STDIN_FILENO, &f)) {
        acme_report_log(MK_LOG_ERROR, "%s", f.text);
        return 1;
    }
    int e = plan.on_demand.is_set ? acme_store_open_on_demand(!plan.on_demand.name, &f) : acme_store_open(&f);
    bool ok = !e && do_job(&plan);
    if (e && e != -EAGAIN)
        acme_report_log(MK_LOG_ERROR, "%s", f.text);
    acme_job_free(&plan);
    return ok ? 0 : e == -EAGAIN ? EXIT_BUSY : 1;
}
