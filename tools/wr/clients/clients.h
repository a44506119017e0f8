/* SPDX-License-Identifier: Apache-2.0 */
/* The output parsers of the load clients, one file each; see struct wr_client_type. */
#ifndef WR_CLIENTS_CLIENTS_H
#define WR_CLIENTS_CLIENTS_H

#include "base/str.h"
#include "wr/result.h"

bool wr_wrk_read(mk_str output, struct wr_result *out, const char **why);
bool wr_h2load_read(mk_str output, struct wr_result *out, const char **why);
bool wr_weighttp_read(mk_str output, struct wr_result *out, const char **why);
bool wr_ab_read(mk_str output, struct wr_result *out, const char **why);
bool wr_siege_read(mk_str output, struct wr_result *out, const char **why);
bool wr_pace_read(mk_str output, struct wr_result *out, const char **why);

#endif
