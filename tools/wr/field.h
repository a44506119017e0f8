/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a shot by name, for all that writes them. */
#ifndef WR_FIELD_H
#define WR_FIELD_H

#include "wr/shot.h"

struct wr_field {
    const char *name;
    double (*of)(const struct wr_shot *s);
    int decimals;
};

/* All, up to one without a name. */
const struct wr_field *wr_field_all(void);

double wr_field_rate(const struct wr_shot *s);
double wr_field_us_per_request(const struct wr_shot *s);
double wr_field_user_us(const struct wr_shot *s);
double wr_field_system_us(const struct wr_shot *s);
double wr_field_pss_kb(const struct wr_shot *s);
double wr_field_peak_kb(const struct wr_shot *s);
double wr_field_mean_us(const struct wr_shot *s);
double wr_field_p50_us(const struct wr_shot *s);
double wr_field_p99_us(const struct wr_shot *s);
double wr_field_max_us(const struct wr_shot *s);
double wr_field_errors(const struct wr_shot *s);
double wr_field_voluntary(const struct wr_shot *s);
double wr_field_involuntary(const struct wr_shot *s);
double wr_field_server_busy(const struct wr_shot *s);
double wr_field_client_busy(const struct wr_shot *s);

#endif
