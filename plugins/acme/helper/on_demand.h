/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates that are issued when clients request their names. Each certificate has one name. */
#ifndef ACME_HELPER_ON_DEMAND_H
#define ACME_HELPER_ON_DEMAND_H

#include "job.h"

/* Obtains the certificate for the name of the job, unless there is one that is not due for renewal. Returns whether there is
 * one now. */
bool acme_on_demand_issue(const struct acme_job *plan);
/* Reports certificates that are due for renewal, and deletes certificates that expired more than a week ago. The server
 * asks the allow endpoint again before it renews one. */
bool acme_on_demand_look(const struct acme_job *plan);

#endif
